"""A backend as its author would add it: this folder and one row in the registry. Runs what one byte code can."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from webinfer.backends.base import Backend, BuildOptions, Executor, MemoryReport, PlanRow, shapes_text
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Graph, Node, Value
from webinfer.host.interface import Host
from webinfer.tensor import Tensor

LOWERINGS: dict[str, Callable[..., Any]] = {"add": operator.add, "neg": operator.neg, "abs": abs}


class ToyExecutor(Executor):
    """A graph of additions, signs and absolute values."""

    backend = "toy"

    def __init__(self, graph: Graph, host: Host, options: BuildOptions) -> None:
        self.graph, self.options, self.closed, self._host = graph, options, False, host

    def _values(self, inputs: Mapping[str, Any]) -> dict[Value, Any]:
        values = {v: np.frombuffer(inputs[v.name], np.float32).reshape(v.type.shape) for v in self.graph.inputs}
        for node in self.graph.nodes:
            values[node.output] = LOWERINGS[node.op.name](*(values[v] for v in node.inputs if v is not None))
        return values

    async def run(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        values = self._values(inputs)
        return {v.name: _tensor(v, values[v]) for v in self.graph.outputs}

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        values = self._values(inputs)
        for node in self.graph.nodes:
            yield node, node.output, _tensor(node.output, values[node.output])

    def rows(self) -> Sequence[PlanRow]:
        return [
            PlanRow(i, n.label, n.op.name, "toy", "numpy", shapes_text(n), 0, 0, "for fun")
            for i, n in enumerate(self.graph.nodes)
        ]

    def memory(self) -> MemoryReport:
        return MemoryReport(0, 0, 0)

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        return [await self.pass_ms(inputs, rounds) / len(self.graph.nodes)] * len(self.graph.nodes)

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        start = self._host.now_ms()
        for _ in range(repeats):
            self._values(inputs)
        return (self._host.now_ms() - start) / repeats

    def close(self) -> None:
        self.closed = True


class ToyBackend(Backend):
    """Builds toy executors."""

    async def build(self, graph: Graph, host: Host, options: BuildOptions) -> ToyExecutor:
        refused = [node for node in graph.nodes if node.op.name not in LOWERINGS]
        if refused:
            raise UnsupportedOpError([f"{n.label}: {n.op.name} on toy: no such byte code" for n in refused], refused)
        return ToyExecutor(graph, host, options)


def _tensor(value: Value, array: Any) -> Tensor:
    return Tensor(array.astype(np.float32).tobytes(), value.type.shape, value.type.dtype)


BACKEND = ToyBackend()
