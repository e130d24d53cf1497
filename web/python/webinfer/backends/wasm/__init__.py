"""The WASM backend: a graph becomes one binary program that the kernel module runs in one call.

`lowerings` turns nodes into steps, `builder` collects them, `executor` compiles them and knows no operator,
`loaded_plan` runs what was compiled, `stored_plan` brings it into the plan cache and back. Talks to the kernels
only through host.interface.Kernels.
"""

from typing import Any

from webinfer.backends.base import Backend, BuildOptions, StoredPlan
from webinfer.backends.wasm.compilation import TUNING_MS, build
from webinfer.backends.wasm.executor import WasmExecutor
from webinfer.backends.wasm.loaded_plan import LoadedPlan
from webinfer.backends.wasm.stored_plan import deserialize
from webinfer.backends.wasm.thread_teams import begin_team
from webinfer.graph.ir import Constant, Graph, TensorType, Value, apply
from webinfer.host.interface import Host
from webinfer.ops import conv
from webinfer.tune.single_node import random_values

__all__ = ["BACKEND", "WasmExecutor", "build"]

_PRODUCT = (TensorType((48, 1, 1, 256)), TensorType((48,)))


class WasmBackend(Backend):
    """Compiles graphs for the kernel module, and stores plans for the next visit."""

    executor = WasmExecutor

    def begin(self, host: Host, options: BuildOptions) -> None:
        """Starts the threads of the kernel instance, unless those of `shared_memory_with` can be used."""
        if options.shared_memory_with is None:
            begin_team(host, options.threads)

    async def build(self, graph: Graph, host: Host, options: BuildOptions) -> LoadedPlan:
        """The graph's stored plan where it fits, else the graph compiled now."""
        return await build(
            graph,
            host,
            options.progress,
            threads=options.threads,
            tuning_ms=TUNING_MS if options.tuning_ms is None else options.tuning_ms,
            entry=options.plan_entry,
            beside=options.beside,
            shared_memory_with=options.shared_memory_with,
        )

    def arithmetic(self, work: int) -> Graph:
        """A product whose panels stay in the first cache, so large that threads share it."""
        x = Value("x", TensorType((1, 1, 768 * work, 256)))
        w, bias = (Value("w", type, Constant(random_values(type), type.dtype)) for type in _PRODUCT)
        node = apply(conv.CONV2D, [x, w, bias], conv.Conv2dAttrs(), "product")
        return Graph("product", [x], [node.output], [node])

    def deserialize(self, data: Any, identity: str) -> StoredPlan | None:
        """The plan in these bytes, if they are whole and this engine's."""
        return deserialize(data, identity)


BACKEND = WasmBackend()
