"""Positions along an axis that are known, or that a caller gives: those that lie outside the axis are errors.

Kernels move a position that lies outside to the nearest element, so that they read nothing else: what a run computes
cannot be told from an error there. What is known before is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, SizeConstant, Value
from webinfer.lazy_dataclass import dataclass

_AXES = ("gather", "gather_elements")  # whose second input counts along an axis of the first
_SAME = ("identity", "reshape")  # what leaves elements as they are
_WHOLE = (DType.INT32, DType.INT64, DType.UINT32)


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis that positions count along: a negative one counts from its end."""

    size: int
    reader: str  # the node's label

    def outside(self, data: memoryview, letter: str) -> int | None:
        """The first number of these bytes, in the format of that letter, that is not a position of the axis."""
        flat = data.cast("B")
        if max(flat.cast(letter.upper()), default=-1) < self.size:  # type: ignore[call-overload]
            return None  # one look at all: a negative number would be a large one
        numbers: Sequence[int] = flat.cast(letter)  # type: ignore[call-overload]
        if -self.size <= min(numbers) and max(numbers) < self.size:
            return None
        return next(n for n in numbers if not -self.size <= n < self.size)


def axis_of(node: Node) -> Axis | None:
    """The axis that the second input of a node counts along; None for operators that have no such input."""
    if node.op.name not in _AXES or node.inputs[0] is None or node.inputs[1] is None:
        return None
    return Axis(node.inputs[0].type.shape[node.attrs.axis], node.label)


def known_outside(node: Node) -> tuple[int, Axis] | None:
    """A constant position of the node that lies outside its axis, and the axis."""
    axis = axis_of(node)
    positions = node.inputs[1] if axis is not None else None
    constant = positions.constant if positions is not None else None
    if axis is None or positions is None or constant is None or constant.sparsity is not None:
        return None
    if isinstance(constant, SizeConstant):
        beyond = (n for n in constant.elements if not -axis.size <= n < axis.size)
        return next(((int(n), axis) for n in beyond), None)
    dtype, data = positions.type.dtype, constant.data
    if dtype not in _WHOLE or constant.stored is not dtype or not isinstance(data, memoryview) or not data.nbytes:
        return None
    found = axis.outside(data, dtype.letter)
    return None if found is None else (found, axis)


def positions_among(graph: Graph, inputs: Iterable[Value]) -> dict[str, Axis]:
    """The inputs whose elements are positions as they are given, with the shortest axis that each counts along.

    None in a graph that clamps positions.
    """
    sources = {value: value for value in inputs if value.type.dtype in _WHOLE}
    found: dict[str, Axis] = {}
    for node in graph.nodes if sources and not graph.clamps_positions else ():
        first = node.inputs[0] if node.inputs else None
        if first in sources and (node.op.name in _SAME or _widens(node)):
            assert first is not None
            sources[node.outputs[0]] = sources[first]
        axis = axis_of(node)
        if axis is not None and node.inputs[1] in sources:
            name = sources[node.inputs[1]].name
            if name not in found or axis.size < found[name].size:
                found[name] = axis
    return found


def _widens(node: Node) -> bool:
    """Whether a node makes int64 of integers."""
    return node.op.name == "cast" and node.attrs.dtype is DType.INT64
