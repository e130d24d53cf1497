"""The Python backend: custom operators by their reference functions, where no other backend has them.

Needs no NumPy: the functions are given arrays where NumPy can be imported, else tensors. Runs nothing built in.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from webinfer.backends.base import Backend, BuildOptions, Executor, MemoryReport, PlanRow, shapes_text
from webinfer.errors import ClosedError, UnsupportedOpError
from webinfer.graph.ir import Graph, Node, TensorType, Value
from webinfer.host.interface import Host
from webinfer.ops.custom import CustomOp, compute
from webinfer.tensor import Tensor

__all__ = ["BACKEND", "PythonExecutor", "build", "runs"]


def runs(node: object) -> bool:
    """Whether this backend can run a node."""
    return isinstance(node, Node) and isinstance(node.op, CustomOp) and node.op.reference is not None


async def build(graph: Graph, host: Host) -> PythonExecutor:
    """The graph, ready to be interpreted.

    Raises:  UnsupportedOpError listing the nodes without a reference function
    """
    refused = [node for node in graph.nodes if not runs(node)]
    if refused:
        raise UnsupportedOpError([f"{n.label}: {n.op.name} has no reference function" for n in refused], refused)
    return PythonExecutor(graph, host)


class PythonBackend(Backend):
    """Stands in for other backends wherever a custom operator has a reference function."""

    async def build(self, graph: Graph, host: Host, options: BuildOptions) -> PythonExecutor:
        """The graph, ready to be interpreted."""
        return await build(graph, host)

    def accepts(self, node: Node) -> bool:
        """Whether the node is a custom operator with a reference function."""
        return runs(node)


BACKEND = PythonBackend()


class PythonExecutor(Executor):
    """Custom operators one after the other."""

    backend = "python"

    def __init__(self, graph: Graph, host: Host) -> None:
        self.graph: Graph | None = graph
        self._host = host
        self._arrays = importlib.util.find_spec("numpy") is not None

    def _steps(self, inputs: Mapping[str, memoryview], values: dict[Value, Tensor]) -> Iterator[Node]:
        if self.graph is None:
            raise ClosedError("this session was closed; load the model again")
        for value in self.graph.inputs:
            values[value] = _tensor(inputs[value.name], value.type)
        for node in self.graph.nodes:
            tensors = [values[v] if v in values else self._constant(v, values) for v in node.inputs if v is not None]
            results = compute(node, [t.numpy() for t in tensors] if self._arrays else tensors)
            values.update(zip(node.outputs, results, strict=True))
            yield node

    def _constant(self, value: Value, values: dict[Value, Tensor]) -> Tensor:
        constant = value.constant
        assert constant is not None
        if constant.stored is not value.type.dtype or constant.sparsity is not None:
            raise UnsupportedOpError([f"{value.name}: a constant of {value.type} that is stored as {constant.stored}"])
        values[value] = _tensor(constant.data, value.type)
        return values[value]

    async def run(self, inputs: Mapping[str, memoryview]) -> dict[str, Tensor]:
        """The outputs by name."""
        values: dict[Value, Tensor] = {}
        for _ in self._steps(inputs, values):
            pass
        return {v.name: values[v] for v in self.graph.outputs} if self.graph else {}

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node and yields every result as it is computed."""
        values: dict[Value, Tensor] = {}
        for node in self._steps(inputs, values):
            for value in node.outputs:
                yield node, value, values[value]

    def rows(self) -> Sequence[PlanRow]:
        """The graph's nodes, one a row."""
        return [
            PlanRow(
                i, n.label, n.op.name, "python", "reference", shapes_text(n), 0,
                sum(v.type.nbytes for v in (*n.inputs, *n.outputs) if v is not None), "its reference function",
            )
            for i, n in enumerate(self.graph.nodes if self.graph else ())
        ]  # fmt: skip

    def memory(self) -> MemoryReport:
        """Nothing is kept between runs."""
        return MemoryReport(0, 0, 0)

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Median milliseconds of each node."""
        times: list[list[float]] = [[] for _ in self.rows()]
        for _ in range(rounds):
            start = self._host.now_ms()
            for i, _node in enumerate(self._steps(inputs, {})):
                now = self._host.now_ms()
                times[i].append(now - start)
                start = now
            await self._host.pause()
        return [statistics.median(t) for t in times]

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of all nodes, once."""
        return sum(await self.profile(inputs, repeats))

    def close(self) -> None:
        """Lets the graph go."""
        self.graph = None


def _tensor(data: memoryview, type: TensorType) -> Tensor:
    return Tensor(data, type.shape, type.dtype, type.quant)
