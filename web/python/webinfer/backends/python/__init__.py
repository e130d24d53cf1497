"""The Python backend: custom operators by their reference functions, where no other backend has them.

Needs no NumPy: the functions are given arrays where NumPy can be imported, else tensors. Runs nothing built in.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence

from webinfer.backends.base import Backend, BuildOptions, MemoryReport, PlanRow, shapes_text
from webinfer.backends.interpreted import InterpretedExecutor
from webinfer.errors import UnsupportedOpError
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


class PythonExecutor(InterpretedExecutor[Tensor]):
    """Custom operators one after the other."""

    backend = "python"

    def __init__(self, graph: Graph, host: Host) -> None:
        super().__init__(graph, host)
        self._arrays = importlib.util.find_spec("numpy") is not None

    def _steps(self, inputs: Mapping[str, memoryview], values: dict[Value, Tensor]) -> Iterator[Node]:
        graph = self._graph()
        for value in graph.inputs:
            values[value] = _tensor(inputs[value.name], value.type)
        for node in graph.nodes:
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

    def _result(self, value: Value, values: Mapping[Value, Tensor]) -> Tensor:
        return values[value]

    def rows(self) -> Sequence[PlanRow]:
        """The graph's nodes, one a row."""
        return [
            PlanRow(
                i, n.label, n.op.name, "python", "reference", shapes_text(n), 0,
                sum(v.type.nbytes for v in (*n.inputs, *n.outputs) if v is not None), "its reference function",
            )
            for i, n in enumerate(self._graph().nodes)
        ]  # fmt: skip

    def memory(self) -> MemoryReport:
        """Nothing is kept between runs."""
        return MemoryReport(0, 0, 0)


def _tensor(data: memoryview, type: TensorType) -> Tensor:
    return Tensor(data, type.shape, type.dtype, type.quant)
