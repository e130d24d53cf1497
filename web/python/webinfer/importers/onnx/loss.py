"""ONNX's losses, as they are computed when a model is judged.

Source:  onnx v1.23, NegativeLogLikelihoodLoss-22, SoftmaxCrossEntropyLoss-13
"""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather
from webinfer.ops import reduce as red
from webinfer.ops import softmax as sm
from webinfer.ops.registry import NoAttrs


def _loss(op: Operation, logs: Value) -> Value:
    """Minus the logarithm of the target's probability, weighted, summed or averaged.

    Shapes:  logs [N, C, ...], target [N, ...]
    """
    target, weight, kind = op.value(1), op.optional(2), logs.type.dtype
    n, classes, *space = logs.type.shape
    if target.type.shape != (n, *space):
        op.fail(f"targets {target.type.shape} do not fit {logs.type.shape}")
    size = math.prod(space)
    rows = op.saturated(op.reshape(target, (n, 1, size)))
    ignored = op.whole("ignore_index", 0) if "ignore_index" in op.attributes else None
    zero = op.scalar_of(0.0, kind)
    counted = None if ignored is None else op.binary(ew.NOT_EQUAL, rows, op.scalar_of(ignored, DType.INT32))
    safe = rows if counted is None else op.emit(ew.WHERE, [counted, rows, op.scalar_of(0, DType.INT32)], NoAttrs())
    found = op.emit(gather.GATHER_ELEMENTS, [op.reshape(logs, (n, classes, size)), safe], gather.ElementsAttrs(1))
    loss = op.unary(ew.NEG, found)
    factor = None
    if weight is not None:
        factor = op.emit(gather.GATHER, [weight, safe], gather.GatherAttrs(0))
    if counted is not None:
        loss = op.emit(ew.WHERE, [counted, loss, zero], NoAttrs())
        factor = op.cast(counted, kind) if factor is None else op.emit(ew.WHERE, [counted, factor, zero], NoAttrs())
    return _reduced(op, loss, factor, (n, *space))


def _reduced(op: Operation, loss: Value, factor: Value | None, shape: tuple[int, ...]) -> Value:
    loss = loss if factor is None else op.binary(ew.MUL, loss, factor)
    how = op.chosen("reduction", ("mean", "sum", "none"), "mean")
    if how == "none":
        return op.reshape(loss, shape)
    whole = red.ReduceAttrs((0, 1, 2))
    if how == "mean" and factor is None and loss.type.size:  # of nothing: 0, as the function's ReduceMean has it
        return op.emit(red.REDUCE_MEAN, [loss], whole)
    total = op.emit(red.REDUCE_SUM, [loss], whole)
    if how == "sum" or factor is None:
        return total
    return op.binary(ew.DIV, total, op.emit(red.REDUCE_SUM, [factor], whole))


def _log_likelihood(op: Operation) -> Value:
    return _loss(op, op.value(0))


def _cross_entropy(op: Operation) -> list[Value]:
    logs = op.emit(sm.LOG_SOFTMAX, [op.value(0)], sm.SoftmaxAttrs(1))
    return [_loss(op, logs), logs]


CONVERTERS: dict[str, Convert] = {
    "NegativeLogLikelihoodLoss": _log_likelihood,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
}
