"""TFLite's softmax and its logarithm."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import softmax


def _softmax(op: Operation) -> Value:
    x = op.value(0)
    op.quantized(x)
    axis = op.axis(-1, x.type.rank)
    return op.emit(softmax.SOFTMAX, [x], softmax.SoftmaxAttrs(axis, op.real("beta"), op.out_type()))


def _log_softmax(op: Operation) -> Value:
    x = op.value(0)
    attrs = softmax.SoftmaxAttrs(op.axis(-1, x.type.rank))
    return op.in_float(lambda v: op.emit(softmax.LOG_SOFTMAX, v, attrs), [x])


CONVERTERS: dict[str, Row] = {
    "LOG_SOFTMAX": (_log_softmax, ""),
    "SOFTMAX": (_softmax, "SoftmaxOptions"),
}
