"""From a graph to an executor: a plan that was kept, or one made now, on a kernel instance that fits the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from webinfer.backends.wasm.executor import WasmExecutor, lower_graph
from webinfer.backends.wasm.kernel_table import ABI
from webinfer.backends.wasm.stored_plan import KeptExecutor, requirements, seal
from webinfer.backends.wasm.tuning import remembered_choices, tune
from webinfer.errors import KernelError, WebinferError
from webinfer.flags import debug
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host, Progress

TUNING_MS = 200.0
QUIET_S = 2.0  # after a load, before what nobody waits for begins
_tasks: set[asyncio.Task[None]] = set()


async def build(
    graph: Graph,
    host: Host,
    progress: Progress | None = None,
    *,
    isa: str | None = None,
    threads: int | None = None,
    choices: Mapping[str, str] | None = None,
    tuning_ms: float = TUNING_MS,
) -> WasmExecutor | KeptExecutor:
    """A graph compiled for the kernel module of this host.

    The plan of a graph with an origin is kept for the next visit: two seconds later, when kernels have been timed
    for up to `tuning_ms`. What won is in the plan that is kept, not in this one.

    Raises:  UnsupportedOpError listing every node that has no kernel; LimitError; OutOfMemoryError
    """
    origin = graph.origin if isa is None and choices is None else None
    kernels = await host.kernels(isa, threads)
    try:
        if (found := kernels.call("abi")) != ABI:
            raise KernelError(f"the kernel module has interface {found}, the engine needs {ABI}; rebuild both together")
        if origin is not None and origin.kept is not None:
            kept, origin.kept = origin.kept, None  # its bytes need not be in memory twice
            if kept.fits == requirements(host, kernels, tuning_ms > 0):
                restored = KeptExecutor(kept, graph, host, kernels, _anew)
                if kept.untried:
                    _afterwards(restored, host, origin.name, kept.choices, tuning_ms)
                return restored
        if choices is None:
            choices = await remembered_choices(graph, host) if origin is not None and tuning_ms > 0 else {}
        executor = WasmExecutor(graph, host, kernels, lower_graph(graph, kernels.isa, choices), progress)
    except WebinferError:
        kernels.close()
        raise
    if origin is not None:
        _afterwards(executor, host, origin.name, choices, tuning_ms)
    return executor


async def _anew(graph: Graph, host: Host, isa: str) -> WasmExecutor:
    """The graph with default kernels, on one thread."""
    executor = await build(graph, host, isa=isa, threads=1, choices={})
    assert isinstance(executor, WasmExecutor)  # plans with choices are not kept
    return executor


def _afterwards(
    executor: WasmExecutor | KeptExecutor, host: Host, name: str, choices: Mapping[str, str], tuning_ms: float
) -> None:
    """Tunes and keeps when nobody waits; a loop that ends before, or a session, drops it."""
    loop = asyncio.get_running_loop()

    def begin() -> None:
        if not executor.closed:
            task = loop.create_task(_keep(executor, host, name, choices, tuning_ms))
            _tasks.add(task)
            task.add_done_callback(_tasks.discard)

    loop.call_later(QUIET_S, begin)


async def _keep(
    executor: WasmExecutor | KeptExecutor, host: Host, name: str, choices: Mapping[str, str], tuning_ms: float
) -> None:
    graph, kernels = executor.graph, executor.kernels
    fits = requirements(host, kernels, tuning_ms > 0)
    try:
        winners, untried = await tune(graph, host, kernels.isa, tuning_ms)
        if executor.closed:
            return
        if winners != choices:
            instance = await host.kernels(kernels.isa, kernels.threads)
            executor = WasmExecutor(graph, host, instance, lower_graph(graph, instance.isa, winners))
        await host.remember_bytes(name, seal(executor, fits, winners, untried))
        if winners != choices:
            executor.close()
    except WebinferError as error:
        debug(1, f"the plan of {graph.name} is not kept: {error}")
