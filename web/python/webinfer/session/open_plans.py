"""Plans whose sizes are symbols: a model that is given a second set of sizes is read once more with symbols in them.

Each plan holds for the sizes for which its guards hold (graph/dims.py): its regime. Sizes of another regime get one
more plan. What cannot be read with symbols gets a plan for each set of sizes, as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from webinfer.backends import registry
from webinfer.backends.base import BindableExecutor, BindingBackend, Executor, RegimeExecutor
from webinfer.errors import BackendUnavailableError
from webinfer.flags import debug
from webinfer.graph.ir import Graph
from webinfer.graph.trace import Trace
from webinfer.host.interface import Host
from webinfer.importers.core.partial_evaluation import DataDependentValue
from webinfer.lazy_dataclass import dataclass
from webinfer.session.options import MAX_PACKAGED_REGIMES, MAX_REGIMES

MAX_FAILURES = 2  # of reading with symbols, one after the other; then a model is not read so again
SHOWN = 12  # guards of a regime that `Session.plan` lists
Shapes = Mapping[str, Sequence[int]]


@dataclass(slots=True, eq=False)
class OpenPlan:
    """One regime: a plan, and for which sizes it holds."""

    trace: Trace
    ranks: tuple[tuple[str, int], ...]
    holds: Callable[[Sequence[int]], bool]
    executor: BindableExecutor
    reason: str = ""

    async def bind(self, shapes: Shapes) -> None:
        """Goes on for these shapes of inputs.

        Raises:  LimitError; OutOfMemoryError
        """
        await self.executor.bind(_flat(shapes))

    def note(self, number: int, count: int) -> str:
        """The regime for people."""
        guards = [text for text in self.trace.guards if str(2**31 - 1) not in text]
        more = f" and {len(guards) - SHOWN} more" if len(guards) > SHOWN else ""
        listed = "; ".join(guards[:SHOWN])
        return f"sizes are bound, not planned: regime {number} of {count} holds while {listed}{more}"


class OpenPlans:
    """The regimes of a session that were met so far, the one used last at the end."""

    def __init__(self) -> None:
        self._plans: list[OpenPlan] = []
        self.most = MAX_REGIMES
        self._failures, self._tried = 0, False

    def find(self, shapes: Shapes) -> OpenPlan | None:
        """A plan that holds for these shapes of all inputs."""
        ranks, sizes = _ranks(shapes), _flat(shapes)
        for plan in reversed(self._plans):
            if plan.ranks == ranks and not plan.executor.lost and not plan.executor.abandoned and plan.holds(sizes):
                self._plans.remove(plan)
                self._plans.append(plan)
                return plan
        return None

    async def make(
        self, shapes: Shapes, read: Callable[[Shapes], Graph], host: Host, backend: str, options: Any,
        beside: Sequence[Executor], may_close: bool = False,
    ) -> OpenPlan | None:  # fmt: skip
        """A new plan, bound to these shapes; None where there can be none.

        An axis of 0 is 0 for all sizes of the plan. With `may_close` it may hold for these shapes alone.
        """
        made, self._tried = None, False
        if self._failures < MAX_FAILURES:
            made = await _made(shapes, read, host, backend, options, beside, may_close)
            self._tried = made is None
        if made is not None:
            self._plans.append(made)
            while len(self._plans) > self.most:
                self._plans.pop(0).executor.close()
        return made

    @property
    def last(self) -> OpenPlan | None:
        """The plan that was used last."""
        return self._plans[-1] if self._plans else None

    @property
    def full(self) -> bool:
        """Whether one more plan would close another one."""
        return len(self._plans) >= self.most

    def take_over(self, executor: RegimeExecutor, reason: str) -> None:
        """Takes the regimes of a compiled model that are loaded, the one in use at the end."""
        for own in sorted(executor.regimes(), key=lambda own: own is executor):
            ranks = _ranks({value.name: value.type.shape for value in own.ends.inputs})
            self._plans.append(OpenPlan(own.trace, ranks, own.trace.compile_guards(), own, reason))
        while len(self._plans) > MAX_PACKAGED_REGIMES:
            self._plans.pop(0).executor.close()

    def note_numbers(self) -> None:
        """Notes that sizes which had no plan with symbols have one of numbers: it was not the sizes that were wrong."""
        self._failures, self._tried = self._failures + self._tried, False

    def drop(self, executor: Executor) -> None:
        """Forgets the plan of an executor, which is the caller's now."""
        self._plans = [plan for plan in self._plans if plan.executor is not executor]

    def executors(self) -> list[Executor]:
        """Those of all regimes."""
        return [plan.executor for plan in self._plans]

    def notes(self, executor: Executor) -> list[str]:
        """What is to be said of the regime in use; nothing if the executor is of none."""
        found = [i for i, plan in enumerate(self._plans, 1) if plan.executor is executor]
        return [self._plans[i - 1].note(i, len(self._plans)) for i in found]

    def clear(self) -> None:
        """Closes all plans."""
        for plan in self._plans:
            plan.executor.close()
        self._plans.clear()


async def _made(
    shapes: Shapes, read: Callable[[Shapes], Graph], host: Host, name: str, options: Any, beside: Sequence[Executor],
    may_close: bool,
) -> OpenPlan | None:  # fmt: skip
    """As `OpenPlans.make`. Whatever a symbol in the place of a number leads to means that there is no such plan."""
    try:
        backend = registry.open_backend(name) if name in registry.ROWS else None
    except BackendUnavailableError:
        return None
    if not isinstance(backend, BindingBackend):
        return None
    hints = {f"{input}[{i}]": size for input, shape in shapes.items() for i, size in enumerate(shape)}
    trace = Trace(hints, may_close=may_close)
    try:
        with trace.active():
            symbols: Iterator[Any] = iter(map(trace.size, trace.symbols))
            graph = read({input: tuple(next(symbols) for _ in shape) for input, shape in shapes.items()})
        if type(graph) is not Graph or not trace.is_of_use:
            return None
        executor = await backend.build_open(graph, trace, host, replace(options, beside=beside).of(name))
    except (Exception, DataDependentValue) as error:
        debug(1, f"sizes cannot be symbols: {type(error).__name__}: {error}")
        return None
    return None if executor is None else OpenPlan(trace, _ranks(shapes), trace.compile_guards(), executor)


def _ranks(shapes: Shapes) -> tuple[tuple[str, int], ...]:
    return tuple((name, len(shape)) for name, shape in shapes.items())


def _flat(shapes: Shapes) -> list[int]:
    return [size for shape in shapes.values() for size in shape]
