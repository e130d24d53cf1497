"""Runs a graph node by node in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np

from webinfer.backends.base import MemoryReport, PlanRow, shapes_text
from webinfer.backends.interpreted import InterpretedExecutor
from webinfer.backends.reference.arrays import Array, constant_array
from webinfer.backends.reference.lowerings import LOWERINGS
from webinfer.errors import LimitError, OutOfMemoryError, ShapeError, UnsupportedOpError
from webinfer.graph.ir import Graph, Node, Value
from webinfer.host.interface import Host, Progress
from webinfer.lowering.soundness import check_graph, named_failures
from webinfer.ops.custom import CustomOp
from webinfer.ops.custom import compute as compute_custom
from webinfer.tensor import Tensor

MAX_RANK = 32  # of an array in every version of NumPy


async def build(graph: Graph, host: Host, progress: Progress | None = None) -> ReferenceExecutor:
    """The graph, ready to be interpreted.

    Raises:  UnsupportedOpError listing the custom operators without a reference function; LimitError if a tensor has
             more dimensions than NumPy's arrays
    """
    check_graph(graph)
    for value in (*graph.inputs, *(v for node in graph.nodes for v in node.outputs)):
        if len(value.type.shape) > MAX_RANK:
            raise LimitError(f"dimensions of {value.name!r}", len(value.type.shape), MAX_RANK, "use fewer")
    refused = [node for node in graph.nodes if isinstance(node.op, CustomOp) and not node.op.reference]
    if refused:
        raise UnsupportedOpError([f"{n.label}: {n.op.name} was registered without reference" for n in refused], refused)
    return ReferenceExecutor(graph, host)


def compute(node: Node, inputs: list[Array | None]) -> list[Array]:
    """The node's results.

    Raises:  ShapeError if a result is not of the type that inference promised
    """
    if isinstance(node.op, CustomOp):
        return [tensor.numpy() for tensor in compute_custom(node, inputs)]
    if all(v.type.size == 0 for v in node.outputs):
        return [np.zeros(v.type.shape, v.type.dtype.value) for v in node.outputs]
    with np.errstate(all="ignore"):  # infinities and NaN are results like any other
        results = [
            np.ascontiguousarray(y).reshape(v.type.shape)
            for y, v in zip(LOWERINGS[node.op](inputs, node), node.outputs, strict=True)
        ]
    for y, value in zip(results, node.outputs, strict=True):
        if y.dtype.name != value.type.dtype.value:
            raise ShapeError(f"{node.label}: reference of {node.op.name} made {y.dtype}, inference says {value.type}")
    return results


class ReferenceExecutor(InterpretedExecutor[Array]):
    """A graph that NumPy runs."""

    backend = "reference"

    def __init__(self, graph: Graph, host: Host) -> None:
        super().__init__(graph, host)
        self._constants: dict[Value, Array] = {}

    def _steps(self, inputs: Mapping[str, memoryview], values: dict[Value, Array]) -> Iterator[Node]:
        graph = self._graph()
        for value in graph.inputs:
            type = value.type
            values[value] = np.frombuffer(inputs[value.name], type.dtype.value).reshape(type.shape)
        for node in graph.nodes:
            foreseen = nullcontext() if isinstance(node.op, CustomOp) else named_failures(node, "reference")
            with _memory(node.label), foreseen:  # what a user's own function raises stays that
                arrays = [None if v is None else self._array(v, values) for v in node.inputs]
                values.update(zip(node.outputs, compute(node, arrays), strict=True))
            yield node

    def _array(self, value: Value, values: Mapping[Value, Array]) -> Array:
        if not value.is_constant:
            return values[value]
        found = self._constants.get(value)
        if found is None:
            found = self._constants[value] = constant_array(value)
        return found

    def _result(self, value: Value, values: Mapping[Value, Array]) -> Tensor:
        return _tensor(value, self._array(value, values))

    def rows(self) -> Sequence[PlanRow]:
        """The graph's nodes, one a row."""
        costs = [(node, node.cost()) for node in self._graph().nodes]
        return [
            PlanRow(
                i, n.label, n.op.name, "reference", "numpy", shapes_text(n), cost.flops, cost.bytes, "the definition"
            )
            for i, (n, cost) in enumerate(costs)
        ]

    def memory(self) -> MemoryReport:
        """Bytes of constants and of all values; NumPy shares no memory between values."""
        graph = self._graph()
        constants = {v for node in graph.nodes for v in node.inputs if v is not None and v.is_constant}
        total = sum(v.type.nbytes for node in graph.nodes for v in node.outputs)
        return MemoryReport(sum(v.type.nbytes for v in constants), total, total)

    def close(self) -> None:
        """Frees the constants."""
        super().close()
        self._constants.clear()


@contextmanager
def _memory(label: str) -> Iterator[None]:
    """Says of whom there is no memory."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemoryError(f"{label} on reference: {str(error) or 'no memory'}; use a smaller model") from error


def _tensor(value: Value, array: Array) -> Tensor:
    with _memory(value.name):
        data = memoryview(np.ascontiguousarray(array).tobytes())
    return Tensor(data, value.type.shape, value.type.dtype, value.type.quant)
