"""What "auto" does: backends are built one after the other and timed in turns; the fastest on this device stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager

from webinfer.backends import registry
from webinfer.backends.base import Executor
from webinfer.errors import (
    BackendUnavailableError,
    CompilerError,
    DeviceLostError,
    GpuError,
    KernelError,
    LimitError,
    UnsupportedOpError,
    WebinferError,
)
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host

ROUNDS = 4  # the later half of the runs counts: code gets warm, and a GPU's clocks rise
TURN_RUNS, TURN_MS = 16, 20.0  # of one executor on end: so long may a user's run have to wait
CONTEST_MS = 400.0  # of two executors, after which what is known must do
FALLBACK_ERRORS = (
    BackendUnavailableError, UnsupportedOpError, LimitError, GpuError, DeviceLostError, KernelError, CompilerError,
)  # fmt: skip
Turn = Callable[[], AbstractAsyncContextManager[object]]  # in which nobody else runs


class BackendBenchmark:
    """Times the backends that "auto" considers for one graph, the quickest to start first."""

    def __init__(self, graph: Graph, host: Host, build: Callable[[str], Awaitable[Executor]]) -> None:
        self._graph, self._host, self._build = graph, host, build
        self._rows = registry.candidates()  # the last is asked first
        self._notes: list[str] = []
        self._refusals: list[UnsupportedOpError] = []
        self._figures: dict[str, float] = {}
        self._asked: list[registry.Row] = []
        self._first = ""  # the backend that was built first

    @property
    def open(self) -> str:
        """The names of those that are still to be asked; "" at the end."""
        return " and ".join(row.name for row in reversed(self._rows))

    @property
    def missed(self) -> bool:
        """Whether a backend could not be tried."""
        return bool(self._notes)

    async def next(self) -> Executor | None:
        """The graph on the next backend that takes it; None if there is none."""
        while self._rows:
            row = self._rows.pop()
            self._asked.append(row)
            try:
                if reason := await row.skip_in_auto(self._host):
                    self._notes.append(f"{row.name} {reason}")
                else:
                    built = await self._build(row.name)
                    self._first = self._first or row.name
                    return built
            except WebinferError as error:
                if not self._first and not isinstance(error, FALLBACK_ERRORS):
                    raise  # nothing runs that could go on without this one
                self._refuse(row.name, error)
        return None

    def postpone(self) -> None:
        """Lets `next` begin again with the backend that came last."""
        self._rows.append(self._asked.pop())

    def _refuse(self, name: str, error: Exception) -> None:
        self._notes.append(f"{name} cannot run it: {str(error).removeprefix(f'{name}: ')}")
        self._refusals += [error] if isinstance(error, UnsupportedOpError) else []

    async def faster(self, one: Executor, other: Executor, turn: Turn) -> Executor:
        """Which of two takes less time, by medians of later runs on zeros; one that fails takes more than the other.

        They run in turns, each a few times on end, as their user runs one: a GPU that rests between two runs is slow.
        Each has a `turn` of its own; what that raises, this raises.
        """
        inputs = {v.name: memoryview(bytes(v.type.nbytes)) for v in self._graph.inputs}
        times: dict[Executor, list[float]] = {one: [], other: []}
        begun = self._host.now_ms()
        for round_number in range(ROUNDS):
            for executor, found in times.items():
                async with turn():
                    try:
                        found += await self._several(executor, inputs)
                    except WebinferError as error:
                        self._refuse(executor.backend, error)
                        return other if executor is one else one
            if round_number and self._host.now_ms() - begun > CONTEST_MS:
                break
        from statistics import median

        figures = {executor: median(found[len(found) // 2 :]) for executor, found in times.items()}
        self._figures |= {executor.backend: ms for executor, ms in figures.items()}
        return min(figures, key=figures.__getitem__)

    async def _several(self, executor: Executor, inputs: Mapping[str, memoryview]) -> list[float]:
        """Milliseconds of each of as many runs as fit into a turn, at least one."""
        times: list[float] = []
        while len(times) < TURN_RUNS and sum(times) < TURN_MS:
            start = self._host.now_ms()
            await executor.run(inputs)
            times.append(self._host.now_ms() - start)
        return times

    def outcome(self, winner: Executor) -> str:
        """Why this one stays, in one sentence."""
        figures = ", ".join(f"{name} {ms:.2f} ms" for name, ms in sorted(self._figures.items(), key=lambda f: f[1]))
        told = [f"measured {figures}"] if figures else []
        return f"{registry.AUTO} chose {winner.backend}: {'; '.join(told + self._notes) or 'there is no other'}"

    def failure(self) -> Exception:
        """The error of a graph that no backend takes."""
        none = BackendUnavailableError(f"no backend can run {self._graph.name!r}: {'; '.join(self._notes)}")
        if not self._refusals:
            return none
        problems = [problem for error in self._refusals for problem in error.problems]
        refused = UnsupportedOpError(problems, [node for error in self._refusals for node in error.nodes])
        refused.__cause__ = none
        return refused
