"""WebNN operators that choose elements by their position alone."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.webnn.operation import Convert, Operation
from webinfer.ops import pattern


def _triangular(op: Operation) -> Value:
    attrs = pattern.TriangularAttrs(op.get("upper", True), op.get("diagonal", 0))
    return op.emit(pattern.TRIANGULAR, [op.value("input")], attrs)


CONVERTERS: dict[str, Convert] = {
    "triangular": _triangular,
}
