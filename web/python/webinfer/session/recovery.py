"""The executor behind a session: replaced when its device is lost or a kernel trapped, closed at the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

from webinfer.backends import registry
from webinfer.backends.base import BindableExecutor, Executor, KernelExecutor, ReadGraph, RegimeExecutor
from webinfer.errors import ClosedError, DeviceLostError, InputError, KernelError
from webinfer.graph.deferred import DeferredGraph
from webinfer.graph.ir import Graph
from webinfer.graph.positions import Axis, positions_among
from webinfer.host.interface import Host
from webinfer.session.backend_benchmark import BackendBenchmark
from webinfer.session.lru_cache import MAX_PLANS, LruCache
from webinfer.session.open_plans import OpenPlan, OpenPlans
from webinfer.session.open_store import OpenStore
from webinfer.session.options import MAX_PACKAGED_REGIMES
from webinfer.session.selection import LoadOptions, Selection, choose, with_wishes
from webinfer.session.stages import StagedGraph
from webinfer.tensor import Tensor

log = logging.getLogger("webinfer")
MAX_LOSSES = 2  # of a device; then the next backend of the order takes over
MAX_STAGED = 2  # sizes that are kept of a model of many plans: a voice has 14, 11 MB beside the weights
FIRST_RUN_S = 0.25  # how long what "auto" has left to do waits for a first run
LINGER_S = 4.0  # for which a slower executor is kept: until its plan is stored for later visits
Shapes = Mapping[str, Sequence[int]]  # of all inputs
Sizes = tuple[Sequence[int], ...]  # what tells the plans of one session apart
T = TypeVar("T")


class _OutdatedError(Exception):
    """What was measured is no longer in use."""


def _key(shapes: Shapes) -> Sizes:
    return tuple(shapes.values())


class LiveExecutor:
    """The selection in use, and what it was selected by, so that it can be selected again.

    Those of other sizes of inputs are kept beside it. Without a selection, the graph's sizes are open as yet.
    Whoever replaces or inspects the executor holds `lock` and has waited for `idle()`.
    """

    def __init__(
        self, graph: Graph, host: Host, selection: Selection | None, order: Sequence[str], options: LoadOptions
    ) -> None:
        self._graph, self.host, self.order, self.options = graph, host, list(order), options
        self._open_plans, self._positions = OpenPlans(), dict[str, Axis]()
        self._bound: BindableExecutor | None = None  # the executor in use, if its sizes are bound
        self._selection, self._first, self._closed = selection, graph, False
        self._store = OpenStore(graph, host, options)
        self._others: LruCache[Sizes, tuple[Graph, Selection]] = LruCache(
            lambda found: found[1].executor, MAX_PLANS - 1
        )
        self._losses, self._broken = 0, False
        self.renew_locks()
        self.first_run = asyncio.Event()  # set when it is over, for what waits for it
        self.awaits_first_run = False
        self._settling: asyncio.Task[None] | None = None
        self._slower: list[Executor] = []
        self._settle_later()

    def renew_locks(self) -> None:
        """Replaces its lock by a released one; no run is under way."""
        self.lock, self._running = asyncio.Lock(), 0

    @property
    def selection(self) -> Selection:
        """The executor in use, and the reason.

        Raises:  ClosedError after `close`; InputError as long as sizes are open
        """
        if self._closed:
            raise ClosedError(f"the session of {self.ends.name!r} is closed; load the model again")
        if self._selection is None:
            sizes = ", ".join(f"{v.name!r}: ({', '.join(map(str, v.type.shape))})" for v in self.graph.inputs)
            raise InputError(
                f"{self.graph.name!r} has no plan yet, because sizes of its inputs are open: {sizes}; run it, or give "
                "sizes to load(shapes=…)"
            )
        return self._selection

    @property
    def bound(self) -> bool:
        """Whether the sizes of all inputs are known; a closed session's are."""
        return self._selection is not None or self._closed

    @property
    def closed(self) -> bool:
        """Whether the executor was closed for good."""
        return self._closed

    @property
    def idle_executor(self) -> Executor | None:
        """The executor if a run may begin at once; None while it is being replaced or built."""
        return None if self._selection is None or self._broken or self.lock.locked() else self._selection.executor

    # ----- sizes of inputs

    @property
    def graph(self) -> Graph:
        """The graph for the sizes in use."""
        return self._bound.graph if self._bound is not None else self._graph

    @property
    def ends(self) -> Graph:
        """The graph, of which only inputs and outputs may be looked at."""
        return self._bound.ends if self._bound is not None else self._graph

    @property
    def positions(self) -> dict[str, Axis]:
        """The inputs that hold positions, with the axes that these count along."""
        if self._bound is not None:
            return self._positions
        return {} if isinstance(self._graph, DeferredGraph) else positions_among(self._graph, self._graph.inputs)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the graph and of the sizes for which its plan holds."""
        own = self._open_plans.notes(self._bound) if self._bound is not None else []
        return (*self.ends.notes, *own)

    async def switch(
        self, now: Shapes, shapes: Shapes, read: Callable[[], Graph], read_open: Callable[[Shapes], Graph]
    ) -> None:
        """Goes on with the graph for other shapes of inputs; what is in use is kept under its shapes `now`.

        `read` gives the graph for the shapes, `read_open` that for shapes with symbols in them. A plan with symbols
        that holds for the shapes is bound to them.
        """
        await self.idle()
        if (found := self._others.take(_key(shapes))) is None:
            if (restored := await self._store.restored(read_open)) is not None:
                self._open_plans.take_over(*restored)
            is_new = (plan := self._open_plans.find(shapes)) is None
            if is_new:
                plan = await self._open_plan(shapes, read_open)
                self._store.later(lambda: self._store_plans(read_open))
            if plan is not None:
                await plan.bind(shapes)
                self._keep(now)
                self._bound, self._positions = plan.executor, plan.executor.positions()
                self._selection = Selection(plan.executor, plan.reason)
                if is_new:
                    await self._store.at_once(self._store_made)
                return
            graph = read()
            options = replace(self._options_of(graph), progress=None, beside=self._beside())
            found = graph, await choose(graph, self.host, self.order, options, later=True)
            self._open_plans.note_numbers()
            if isinstance(found[1].executor, RegimeExecutor):
                self._keep(now)
                self._open_plans.take_over(found[1].executor, found[1].reason)
                self._bound, self._selection = found[1].executor, found[1]
                return
        self._keep(now)
        self._bound = None
        self._graph, self._selection = found
        self._settle_later()

    def _keep(self, now: Shapes) -> None:
        """Keeps what is in use, unless it is a plan that can be bound to other sizes."""
        if self._selection is not None and self._bound is None:
            most = MAX_STAGED if isinstance(self._graph, StagedGraph) else None
            self._others.add(_key(now), (self._graph, self._selection), most)

    def _beside(self) -> list[Executor]:
        """All executors, the one in use at the end."""
        found = [kept.executor for _, kept in self._others.values()] + self._open_plans.executors()
        return found + ([self._selection.executor] if self._selection is not None else [])

    async def _open_plan(self, shapes: Shapes, read: Callable[[Shapes], Graph]) -> OpenPlan | None:
        """A new plan with symbols, on the backend in use, or that of plans that an earlier visit stored."""
        selection, last = self._selection, self._open_plans.last
        if selection is None and last is not None:
            selection = Selection(last.executor, last.reason)
        if selection is None or selection.benchmark is not None or isinstance(self._graph, StagedGraph) or self._broken:
            return None
        options = replace(self.options, plan_entry=None, progress=None)
        backend = selection.executor.backend
        plan = await self._open_plans.make(shapes, read, self.host, backend, options, self._beside())
        if plan is not None:
            plan.reason = selection.reason
        return plan

    async def _store_plans(self, read: ReadGraph) -> None:
        """Stores the plans with symbols for the next visit; makes the first one, if only one set of sizes came."""
        async with self.lock:
            await self.idle()
            selection = self._selection
            if self._closed or selection is None or self._broken or selection.executor.lost:
                return
            if selection.benchmark is not None:
                self._store.later(lambda: self._store_plans(read))
                return
            shapes = {value.name: value.type.shape for value in self.ends.inputs}
            if self._bound is None and self._open_plans.find(shapes) is None:
                await self._open_plan(shapes, read)
            await self._store_made()

    async def _store_made(self) -> None:
        """Stores the plans with symbols that there are for the backend in use."""
        plans = [one for one in self._open_plans.executors() if one.backend == self.selection.executor.backend]
        if plans:
            await self._store.store(plans, self.selection.reason)

    async def open_plan(
        self, shapes: Shapes, read: Callable[[Shapes], Graph], made: Callable[[Executor], None]
    ) -> OpenPlan | None:
        """The plan with symbols for these shapes, on the first backend of the order; a new one is told to `made`."""
        self._open_plans.most = MAX_PACKAGED_REGIMES
        if (found := self._open_plans.find(shapes)) is not None or self._open_plans.full:
            return found
        options = replace(self.options, plan_entry=None, progress=None)
        plan = await self._open_plans.make(
            shapes, read, self.host, self.order[0], options, self._beside(), may_close=True
        )
        if plan is not None:
            made(plan.executor)
        return plan

    def _options_of(self, graph: Graph) -> LoadOptions:
        return self.options if graph is self._first else replace(self.options, plan_entry=None)

    def replace(self, selection: Selection) -> None:
        """Closes the executor in use and takes another one of the same graph."""
        self._graph, before = self.graph, self.selection.executor
        self._bound = None
        self._open_plans.drop(before)  # whose graph the new executor has: it must not follow other sizes
        before.close()
        self._selection = selection

    # ----- what "auto" measures behind the first run

    def _settle_later(self) -> None:
        """Goes on with the benchmark of the selection in use, where there is one."""
        selection = self._selection
        if selection is not None and selection.benchmark is not None:
            self.awaits_first_run = not self.first_run.is_set()
            self._settling = asyncio.get_running_loop().create_task(self._settle(selection, selection.benchmark))

    async def autotune_done(self) -> None:
        """Waits until the fastest backend is in use."""
        while self._settling is not None and not self._settling.done():
            self.first_run.set()
            await asyncio.shield(self._settling)

    async def _settle(self, selection: Selection, benchmark: BackendBenchmark) -> None:
        """Ends early if the session goes on with another selection: for other sizes, after a loss, or closed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.first_run.wait(), FIRST_RUN_S)

        @asynccontextmanager
        async def turn() -> AsyncIterator[None]:
            async with self.lock:
                await self.idle()
                if self._selection is not selection or self._broken:
                    raise _OutdatedError
                yield

        while self._selection is selection and (rival := await benchmark.next()) is not None:
            before = selection.executor
            try:
                winner = await benchmark.faster(before, rival, turn)
                async with turn():
                    selection.executor = winner
            except _OutdatedError:
                benchmark.postpone()
                rival.close()
                return
            if winner is before:
                rival.close()
            else:
                self._close_later(before)
        if self._selection is selection:
            selection.benchmark, backend = None, selection.executor.backend
            selection.reason = with_wishes(benchmark.outcome(selection.executor), backend, self.host, self.options)
            if benchmark.missed:
                log.warning("%s: %s", self.graph.name, selection.reason)

    def _close_later(self, slower: Executor) -> None:
        """Closes an executor that is no longer in use, a while later."""
        self._slower.append(slower)
        asyncio.get_running_loop().call_later(LINGER_S, slower.close)

    async def watch(self, executor: Executor, run: Awaitable[T]) -> T:
        """Waits for a run, and notes if it ended with the loss of the device or of the kernels."""
        self._running += 1
        try:
            return await run
        except (DeviceLostError, KernelError) as error:
            self._note(executor, error)
            raise
        finally:
            self._running -= 1

    @property
    def sync_executor(self) -> KernelExecutor | None:
        """The executor, if its runs wait for nothing and it can run now: nobody holds the lock, nothing is rebuilt."""
        executor = self.idle_executor
        if not isinstance(executor, KernelExecutor):
            return None
        return None if executor.abandoned or executor.lost else executor

    def run_at_once(self, executor: KernelExecutor, buffers: Mapping[str, Any]) -> dict[str, Tensor]:
        """A run of the executor that is at hand, watched."""
        try:
            return executor.run_at_once(buffers)
        except (DeviceLostError, KernelError) as error:
            self._note(executor, error)
            raise

    def _note(self, executor: Executor, error: Exception) -> None:
        in_use = self._selection is not None and self._selection.executor is executor
        if in_use and not self._broken:  # overlapping runs may all fail from the one loss
            self._losses += isinstance(error, DeviceLostError)
            self._broken = True

    async def idle(self) -> None:
        """Waits until no run is left: what follows changes what they work on."""
        while self._running:
            await self.host.pause()

    async def revive(self) -> None:
        """Rebuilds the executor if it was lost: once where it was, then on the next backend of the order."""
        executor = self.selection.executor
        if executor.lost and not self._broken:  # between two runs
            self._losses, self._broken = self._losses + 1, True
        if not self._broken and not executor.abandoned:
            return
        order = self.order
        if self._losses >= MAX_LOSSES and not self.options.strict:
            order = [name for name in order if name != executor.backend] or [registry.fallback_of(executor.backend)]
        await self.rebuild(order)

    async def rebuild(self, order: Sequence[str] | None = None) -> None:
        """Compiles the graph anew, in the order of the session unless another one is given."""
        before, self._graph = self.selection.executor, self.graph
        before.close()
        self._bound = None
        self._open_plans.clear()
        self._others.clear()  # which were on the same device, or in the same state of tuning
        options = replace(self._options_of(self.graph), progress=None)
        self._selection = selection = await choose(self.graph, self.host, order or self.order, options)
        self._broken = False
        if self._losses:
            lost = f"the GPU was lost {self._losses} time{'s' * (self._losses > 1)}"
            same = selection.executor.backend == before.backend
            selection.reason = (
                f"{selection.reason}; rebuilt, {lost}" if same else f"{selection.executor.backend}, because {lost}"
            )
            log.warning("%s: %s", self.graph.name, selection.reason)

    def close(self) -> None:
        """Frees the executor; a second call does nothing."""
        self._closed, self._graph = True, self.ends
        self._bound = None
        self._open_plans.clear()
        self._others.clear()
        for slower in self._slower:
            slower.close()
        if self._selection is not None:
            self._selection.executor.close()
            self._selection = None
