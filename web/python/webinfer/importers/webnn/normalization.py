"""WebNN's normalisations, taken apart into means, differences and quotients."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.graph.ir import Value
from webinfer.importers.webnn.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import reduce as red


def _along(op: Operation, x: Value, axes: Sequence[int], like: Value) -> Value:
    """A scale or bias whose axes are those of `like` named by `axes`, in that order, made to broadcast."""
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    x = op.transpose(x, order) if x.type.rank == len(axes) else x
    return op.reshape(x, [d if i in axes else 1 for i, d in enumerate(like.type.shape)])


def _scaled(op: Operation, y: Value, axes: Sequence[int]) -> Value:
    for argument, kind in (("scale", ew.MUL), ("bias", ew.ADD)):
        operand = op.optional(argument)
        if operand is not None:
            y = op.binary(kind, y, _along(op, operand, axes, y))
    return y


def _normalized(op: Operation, centered: Value, variance: Value) -> Value:
    epsilon = op.scalar_of(op.get("epsilon", 1e-5), variance.type.dtype)
    deviation = op.unary(ew.SQRT, op.binary(ew.ADD, variance, epsilon))
    return op.binary(ew.DIV, centered, deviation)


def _batch_normalization(op: Operation) -> Value:
    x, axis = op.value("input"), op.get("axis", 1)
    mean, variance = (_along(op, op.value(name), [axis], x) for name in ("mean", "variance"))
    centered = op.binary(ew.SUB, x, mean)
    return _scaled(op, _normalized(op, centered, variance), [axis])


def _over(op: Operation, x: Value, axes: Sequence[int], parameter_axes: Sequence[int]) -> Value:
    """x less its mean, over its deviation, both along `axes`; then scale and bias."""
    attrs = red.ReduceAttrs(tuple(sorted(axes)), keep_dims=True)
    mean = op.emit(red.REDUCE_MEAN, [x], attrs)
    centered = op.binary(ew.SUB, x, mean)
    variance = op.emit(red.REDUCE_MEAN, [op.unary(ew.SQUARE, centered)], attrs)
    return _scaled(op, _normalized(op, centered, variance), parameter_axes)


def _instance_normalization(op: Operation) -> Value:
    channel = 3 if op.get("layout", "nchw") == "nhwc" else 1
    return _over(op, op.value("input"), [i for i in (1, 2, 3) if i != channel], [channel])


def _layer_normalization(op: Operation) -> Value:
    x = op.value("input")
    axes = op.get("axes", range(1, x.type.rank))
    return _over(op, x, list(axes), list(axes))


CONVERTERS: dict[str, Convert] = {
    "batchNormalization": _batch_normalization,
    "instanceNormalization": _instance_normalization,
    "layerNormalization": _layer_normalization,
}
