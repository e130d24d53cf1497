"""WebNN's softmax."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.webnn.operation import Convert, Operation
from webinfer.ops import softmax as sm


def _softmax(op: Operation) -> Value:
    """Before the axis became an argument, softmax took a matrix and worked on its rows."""
    x = op.value("input")
    axis = op.get("axis", 1) if x.type.rank == 2 else op.need("axis")
    return op.emit(sm.SOFTMAX, [x], sm.SoftmaxAttrs(axis))


CONVERTERS: dict[str, Convert] = {
    "softmax": _softmax,
}
