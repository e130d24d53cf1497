"""From a graph to an executor: tuned or not, on a kernel instance that fits the engine."""

from __future__ import annotations

from collections.abc import Mapping

from webinfer.backends.wasm.executor import WasmExecutor, lower_graph
from webinfer.backends.wasm.kernel_table import ABI
from webinfer.backends.wasm.tuning import tuned_choices
from webinfer.errors import KernelError, UnsupportedOpError
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host, Progress


async def build(
    graph: Graph,
    host: Host,
    progress: Progress | None = None,
    *,
    isa: str | None = None,
    threads: int | None = None,
    choices: Mapping[str, str] | None = None,
    tuning_ms: float = 0.0,
) -> WasmExecutor:
    """A graph compiled for the kernel module of this host.

    Raises:  UnsupportedOpError listing every node that has no kernel; LimitError; OutOfMemoryError
    """
    if choices is None and tuning_ms > 0:
        choices = await tuned_choices(graph, host, isa, tuning_ms)
    kernels = await host.kernels(isa, threads)
    if (found := kernels.call("abi")) != ABI:
        kernels.close()
        raise KernelError(f"the kernel module has interface {found}, the engine needs {ABI}; rebuild both together")
    try:
        builder = lower_graph(graph, kernels.isa, choices)
    except UnsupportedOpError:
        kernels.close()
        raise
    return WasmExecutor(graph, host, kernels, builder, progress)
