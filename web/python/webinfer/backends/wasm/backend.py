"""What the registry knows of the WASM backend: how graphs are built, and plans stored.

The compiler is imported when a graph is built: a process that only opens compiled models starts without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from webinfer.backends.base import (
    BindingBackend,
    BuildOptions,
    Executor,
    ReadGraph,
    RegimeExecutor,
    StoredPlan,
    StoredRegimes,
)
from webinfer.backends.wasm.thread_teams import begin_team
from webinfer.graph.ir import Constant, Graph, TensorType, Value, apply
from webinfer.graph.trace import Trace
from webinfer.host.interface import Host

if TYPE_CHECKING:
    from webinfer.backends.wasm.executor import WasmExecutor
    from webinfer.backends.wasm.loaded_plan import LoadedPlan
    from webinfer.backends.wasm.open_plan import OpenExecutor

_PRODUCT = (TensorType((48, 1, 1, 256)), TensorType((48,)))


class WasmBackend(BindingBackend):
    """Compiles graphs for the kernel module, and stores plans for the next visit."""

    @property
    def executor(self) -> type[WasmExecutor]:
        """The class of what `build` gives."""
        from webinfer.backends.wasm.executor import WasmExecutor

        return WasmExecutor

    def begin(self, host: Host, options: BuildOptions) -> None:
        """Starts the threads of the kernel instance, unless those of `shared_memory_with` can be used."""
        if options.shared_memory_with is None:
            begin_team(host, options.threads)

    async def build(self, graph: Graph, host: Host, options: BuildOptions) -> LoadedPlan:
        """The graph's stored plan where it fits, else the graph compiled now."""
        from webinfer.backends.wasm.compilation import TUNING_MS, build

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

    async def build_open(self, graph: Graph, trace: Trace, host: Host, options: BuildOptions) -> OpenExecutor | None:
        """The graph as a plan that can be bound to sizes."""
        from webinfer.backends.wasm.compilation import build_open

        return await build_open(graph, trace, host, options.threads, options.beside)

    def arithmetic(self, work: int) -> Graph:
        """A product whose panels stay in the first cache, so large that threads share it."""
        from webinfer.ops import conv
        from webinfer.tune.single_node import random_values

        x = Value("x", TensorType((1, 1, 768 * work, 256)))
        w, bias = (Value("w", type, Constant(random_values(type), type.dtype)) for type in _PRODUCT)
        node = apply(conv.CONV2D, [x, w, bias], conv.Conv2dAttrs(), "product")
        return Graph("product", [x], [node.output], [node])

    def deserialize(self, data: Any, identity: str) -> StoredPlan | StoredRegimes | None:
        """The plan in these bytes, if they are whole and this engine's."""
        from webinfer.backends.wasm.stored_plan import deserialize

        if (plan := deserialize(data, identity)) is not None:
            return plan
        from webinfer.backends.wasm.stored_regimes import MAGIC

        return StoredRegimes.read("wasm", MAGIC, data, identity)

    def serialize_open(self, executors: Sequence[Executor], host: Host, about: Mapping[str, Any]) -> bytes:
        """The bytes to store of those that lie in one memory with the last one."""
        from webinfer.backends.wasm.loaded_plan import LoadedPlan
        from webinfer.backends.wasm.stored_plan import requirements
        from webinfer.backends.wasm.stored_regimes import serialize_open

        last = executors[-1]
        fits = requirements(host, last.kernels, tuned=False) if isinstance(last, LoadedPlan) else []
        return serialize_open(executors, fits, about) if fits else b""

    async def restore_open(
        self, stored: StoredRegimes, host: Host, options: BuildOptions, read: ReadGraph
    ) -> Sequence[RegimeExecutor]:
        """Stored plans in the memory of one kernel instance."""
        from webinfer.backends.wasm.compilation import restore_open

        return await restore_open(stored, host, options.threads, read)


BACKEND = WasmBackend()
