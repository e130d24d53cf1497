"""From a graph to an executor: a stored plan, or one compiled now, on a kernel instance that fits the engine.

What lowers is imported when a graph is compiled: a process that restores plans starts without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from webinfer.backends.base import Executor, PlanEntry, ReadGraph, RegimeExecutor, StoredRegimes
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.loaded_plan import LoadedPlan
from webinfer.backends.wasm.memory import MAX_DEAD_BYTES, KernelMemory
from webinfer.backends.wasm.stored_plan import THREADS, RestoredExecutor, WasmStoredPlan, requirements, serialize
from webinfer.backends.wasm.thread_teams import better_thread_count, open_threads
from webinfer.errors import KernelError, LimitError, OutOfMemoryError, WebinferError
from webinfer.flags import debug
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host, Kernels, Progress

if TYPE_CHECKING:
    from webinfer.backends.wasm.builder import Builder
    from webinfer.backends.wasm.executor import WasmExecutor
    from webinfer.backends.wasm.open_plan import OpenExecutor
    from webinfer.graph.trace import Trace

TUNING_MS = 200.0  # of timings behind a load; a guess, other budgets were not compared
_tasks: set[asyncio.Task[None]] = set()


async def build(
    graph: Graph,
    host: Host,
    progress: Progress | None = None,
    *,
    isa: str | None = None,
    threads: int | None = None,
    tuned: Mapping[str, str] | None = None,
    tuning_ms: float = TUNING_MS,
    entry: PlanEntry | None = None,
    beside: Sequence[Executor] = (),
    shared_memory_with: Executor | None = None,
) -> WasmExecutor | RestoredExecutor:
    """A graph compiled for the kernel module of this host, or the plan in `entry` if it fits.

    `tuned` names kernels by tuning key; None takes those that won on this device, if there is an entry. With an
    entry the plan is stored for the next visit: two seconds later, when kernels have been timed for up to
    `tuning_ms`. What wins then is in the stored plan, not in this one. Where nothing goes on between a script's calls,
    it is stored at once, and no kernel is timed.

    The plan goes into the memory of an executor of `beside` if one fits, or as a guest into that of
    `shared_memory_with`, another model's executor.

    Raises:  UnsupportedOpError listing every node that has no kernel; LimitError; OutOfMemoryError
    """
    if not host.settles_later:
        tuning_ms = 0
    if entry is None and tuned is None and (joined := _beside(graph, host, isa, threads, beside)) is not None:
        return joined
    if (memory := _shared_memory(shared_memory_with, isa, threads)) is not None:
        try:
            return await _built(graph, host, progress, memory, tuned, tuning_ms, entry)
        except (LimitError, OutOfMemoryError):  # for both of them
            pass
    recalled = None
    if tuned is None and entry is not None and not entry.plans and tuning_ms > 0:
        from webinfer.backends.wasm.tuning import recall_tuned

        recalled = asyncio.ensure_future(recall_tuned(graph, host))  # while threads start
    found = [plan.threads for plan in entry.plans if isinstance(plan, WasmStoredPlan)] if entry is not None else []
    kernels = await open_threads(host, isa, threads, *found)
    return await _built(graph, host, progress, kernels, tuned, tuning_ms, entry, recalled, threads is None)


async def build_open(
    graph: Graph, trace: Trace, host: Host, threads: int | None = None, beside: Sequence[Executor] = ()
) -> OpenExecutor | None:
    """A graph that was read with symbols as a plan that can be bound to sizes, bound to those of the hint.

    It goes into the memory of an executor of `beside` if one fits. None where guards leave no symbol open.

    Raises:  as `build`
    """
    from webinfer.backends.wasm.executor import build_of, can_share
    from webinfer.backends.wasm.open_plan import Followed, OpenExecutor

    if not can_share(graph) or graph.states:
        return None
    memory = None
    for other in reversed(beside):
        there = other.memory_of_kernels if isinstance(other, LoadedPlan) and other.shareable else None
        if there is not None and there.kernels is not None and there.dead <= MAX_DEAD_BYTES:
            memory = there
            break
    kernels = memory.kernels if memory is not None else await open_threads(host, None, threads)
    assert kernels is not None
    try:
        with trace.active():
            builder = _lowered(graph, trace, build_of(kernels))
            followed = Followed(trace, graph, builder, kernels.threads > 1)
        if not trace.is_of_use:
            return None
        if memory is None:
            made, kernels = OpenExecutor(followed, host, kernels, None), None
            return made
        memory.join()
        try:
            return OpenExecutor(followed, host, kernels, memory)
        except BaseException:
            memory.release()
            raise
    finally:
        if memory is None and kernels is not None:
            kernels.close()


def _lowered(graph: Graph, trace: Trace, build: str) -> Builder:
    """The graph's steps; caches have room to grow, unless packages are made or something cannot skip the room."""
    from webinfer.backends.wasm.builder import HELD
    from webinfer.backends.wasm.executor import lower_graph
    from webinfer.graph.trace import AskedAboutSpareError
    from webinfer.lowering.appended import are_lowered, find_appended

    appended = [] if trace.may_close else find_appended(graph, trace, HELD)
    if appended:
        with suppress(AskedAboutSpareError):
            builder = lower_graph(graph, build, {}, appended)
            if are_lowered(appended, builder.roomy):
                return builder
    return lower_graph(graph, build, {})


async def restore_open(
    stored: StoredRegimes, host: Host, threads: int | None, read: ReadGraph
) -> Sequence[RegimeExecutor]:
    """Stored plans with symbols on a kernel instance of their own; none if they are for another one.

    Raises:  as `restored_open`; BackendUnavailableError
    """
    from webinfer.backends.wasm.stored_regimes import restored_open

    kernels = await open_threads(host, None, threads, stored.facts["fits"][THREADS])
    try:
        fits = stored.facts["fits"] == requirements(host, kernels, tuned=False)
        found = restored_open(stored, host, kernels, _compile_anew, read) if fits else []
    except BaseException:
        kernels.close()
        raise
    if not found:
        kernels.close()
    return found


def _shared_memory(shared_memory_with: Executor | None, isa: str | None, threads: int | None) -> KernelMemory | None:
    """The memory of another model's plan in which one more may lie."""
    if shared_memory_with is None:
        return None
    if not isinstance(shared_memory_with, RestoredExecutor):
        from webinfer.backends.wasm.executor import WasmExecutor

        if not isinstance(shared_memory_with, WasmExecutor) or not shared_memory_with.shareable:
            return None
    if shared_memory_with.closed:
        return None
    memory, kernels = shared_memory_with.memory_of_kernels, shared_memory_with.kernels
    suits = isa in (None, kernels.isa) and threads in (None, kernels.threads)
    return memory if suits and memory is not None and memory.dead <= MAX_DEAD_BYTES else None


async def _built(
    graph: Graph, host: Host, progress: Progress | None, place: Kernels | KernelMemory, tuned: Mapping[str, str] | None,
    tuning_ms: float, entry: PlanEntry | None, recalled: Awaitable[Mapping[str, str]] | None = None,
    free: bool = False,
) -> WasmExecutor | RestoredExecutor:  # fmt: skip
    """As `build`, on a fresh kernel instance or in memory where another model's plan lies.

    `recalled` gives what `tuned` shall be, where that is on its way. `free`: the plan that is stored may be for more
    threads.
    """
    memory = place if isinstance(place, KernelMemory) else None
    kernels = place.kernels if isinstance(place, KernelMemory) else place
    assert kernels is not None
    if memory is not None:
        memory.acquire()
    try:
        if (found := kernels.call("abi")) != KERNELS.abi:
            raise KernelError(
                f"the kernel module has interface {found}, the engine needs {KERNELS.abi}; rebuild both together"
            )
        if entry is not None and (stored := entry.take(WasmStoredPlan)) is not None:
            if stored.fits == requirements(host, kernels, tuning_ms > 0):
                restored = RestoredExecutor(stored, graph, host, kernels, _compile_anew, memory)
                if stored.untried or free:
                    _store_later(restored, host, entry.name, stored.tuned, tuning_ms, free, bool(stored.untried))
                return restored
        from webinfer.backends.wasm.executor import WasmExecutor, build_of, lower_graph
        from webinfer.backends.wasm.tuning import recall_tuned

        if tuned is None:
            wanted = entry is not None and tuning_ms > 0
            tuned = await (recalled or recall_tuned(graph, host)) if wanted else {}
        builder = lower_graph(graph, build_of(kernels), tuned)
        sharing: dict[str, Any] = {} if memory is None else {"memory": memory, "is_guest": True}
        executor = WasmExecutor(graph, host, kernels, builder, progress, **sharing)
    except BaseException:
        if memory is None:
            kernels.close()
        else:
            memory.release()
        raise
    if entry is not None:
        _store_later(executor, host, entry.name, tuned, tuning_ms, free)
        await _store_at_once(executor, host, entry.name, tuned)
    return executor


def _beside(
    graph: Graph, host: Host, isa: str | None, threads: int | None, beside: Sequence[Executor]
) -> WasmExecutor | None:
    """The graph compiled into the memory of another plan of its model; None if there is none that suits it."""
    if not beside:
        return None
    from webinfer.backends.wasm.executor import WasmExecutor, build_of, can_share, lower_graph

    for other in reversed(beside):
        memory = other.memory_of_kernels if isinstance(other, LoadedPlan) and other.shareable else None
        kernels = memory.kernels if memory is not None else None
        if memory is None or kernels is None or not can_share(graph) or memory.dead > MAX_DEAD_BYTES:
            continue
        if isa not in (None, kernels.isa) or threads not in (None, kernels.threads):
            continue
        memory.join()
        try:
            return WasmExecutor(graph, host, kernels, lower_graph(graph, build_of(kernels), {}), memory=memory)
        except (LimitError, OutOfMemoryError):
            memory.release()
            return None
        except BaseException:
            memory.release()
            raise
    return None


async def _compile_anew(graph: Graph, host: Host, isa: str) -> WasmExecutor:
    """The graph with default kernels, on one thread."""
    from webinfer.backends.wasm.executor import WasmExecutor

    executor = await build(graph, host, isa=isa, threads=1, tuned={})
    assert isinstance(executor, WasmExecutor)  # without an entry nothing is restored
    return executor


def _store_later(
    executor: WasmExecutor | RestoredExecutor, host: Host, name: str, tuned: Mapping[str, str], tuning_ms: float,
    free: bool, due: bool = True,
) -> None:  # fmt: skip
    """Tunes and stores when nobody waits; if the loop ends before, or the session is closed, nothing is stored.

    Nothing where no work goes on behind a call.

    `free`: more threads may be taken where they are faster now; `due`: it is to be stored whether they are or not.
    """
    if not host.settles_later:
        return
    loop = asyncio.get_running_loop()

    async def work() -> None:
        try:
            team = await better_thread_count(host, executor.kernels.isa) if free else None
            if team is not None or due:
                await _tune_and_store(executor, host, name, tuned, tuning_ms, team)
        except WebinferError as error:
            debug(1, f"the plan of {executor.layout.name} is not stored: {error}")

    def start() -> None:
        if not executor.closed:
            task = loop.create_task(work())
            _tasks.add(task)
            task.add_done_callback(_tasks.discard)

    loop.call_later(host.idle_delay_s, start)


async def _store_at_once(executor: WasmExecutor, host: Host, name: str, tuned: Mapping[str, str]) -> None:
    """Where nothing goes on behind a call: stores the plan before the script ends."""
    if not host.settles_later:
        try:
            await _store(executor, host, name, tuned, tuning_ms=0)
        except WebinferError as error:
            debug(1, f"the plan of {executor.layout.name} is not stored: {error}")


async def _tune_and_store(
    executor: WasmExecutor | RestoredExecutor, host: Host, name: str, tuned: Mapping[str, str], tuning_ms: float,
    team: Kernels | None,
) -> None:  # fmt: skip
    """Stores the plan, compiled anew for a `team` that is faster or with kernels that won."""
    from webinfer.backends.wasm.executor import WasmExecutor, build_of, lower_graph
    from webinfer.backends.wasm.tuning import tune

    graph, kernels, made = executor.graph, executor.kernels, None
    try:
        winners, untried = await tune(graph, host, kernels.isa, tuning_ms)
        if executor.closed:
            return
        if team is not None or winners != tuned:
            team = team or await host.kernels(kernels.isa, kernels.threads)
            made = WasmExecutor(graph, host, team, lower_graph(graph, build_of(team), winners))
        await _store(made or executor, host, name, winners, tuning_ms, untried)
    finally:
        if made is not None:
            made.close()
        elif team is not None:
            team.close()


async def _store(
    executor: WasmExecutor | RestoredExecutor, host: Host, name: str, tuned: Mapping[str, str], tuning_ms: float,
    untried: int = 0,
) -> None:  # fmt: skip
    fits = requirements(host, executor.kernels, tuning_ms > 0)
    await host.remember_bytes(name, serialize(executor, fits, tuned, untried))
