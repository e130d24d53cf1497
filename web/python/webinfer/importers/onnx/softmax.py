"""ONNX's softmax and its logarithm. Before opset 13 all axes from `axis` on were one."""

from __future__ import annotations

import math

from webinfer.graph.ir import Value
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import softmax as sm


def _softmax(op: Operation) -> Value:
    kind = sm.SOFTMAX if op.name == "Softmax" else sm.LOG_SOFTMAX
    x = op.arranged(0)
    rank = len(x.perm)
    axis = op.axis(op.whole("axis", -1 if op.opset >= 13 else 1), max(rank, 1))
    if op.opset < 13 and math.prod(x.shape[axis + 1 :]) != 1:
        flat = op.reshape(op.value(0), (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
        return op.reshape(op.emit(kind, [flat], sm.SoftmaxAttrs(1)), x.shape)
    return op.view(op.emit(kind, [x.value], sm.SoftmaxAttrs(x.perm[axis])), x.perm)


CONVERTERS: dict[str, Convert] = {
    "LogSoftmax": _softmax,
    "Softmax": _softmax,
}
