"""ONNX's normalisations, taken apart into means, differences and quotients."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.graph.queries import is_all
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import reduce as red


def _channels(op: Operation, key: int, rank: int, axis: int) -> Value:
    """A number for each channel, made to broadcast along `axis` of what is computed."""
    value = op.value(key)
    if value.type.rank != 1:
        op.fail(f"input {key} has shape {value.type.shape}, needs a number for each channel")
    return op.reshape(value, [value.type.shape[0] if i == axis else 1 for i in range(rank)])


def _trained(op: Operation) -> list[Value]:
    """Normalised by the mean and variance of the batch itself, and the running ones with these mixed in."""
    x, keep = op.arranged(0), op.real("momentum", 0.9)
    rank, axis = len(x.perm), x.perm[1] if len(x.perm) > 1 else 0
    attrs = red.ReduceAttrs(tuple(i for i in range(rank) if i != axis), keep_dims=True)
    mean = op.emit(red.REDUCE_MEAN, [x.value], attrs)
    apart = op.binary(ew.SUB, x.value, mean)
    variance = op.emit(red.REDUCE_MEAN, [op.unary(ew.SQUARE, apart)], attrs)
    root = op.unary(ew.SQRT, op.unary(ew.LINEAR, variance, 1.0, op.real("epsilon", 1e-5)))
    factor = op.binary(ew.DIV, _channels(op, 1, rank, axis), root)
    y = op.binary(ew.ADD, op.binary(ew.MUL, apart, factor), _channels(op, 2, rank, axis))
    results = [op.view(y, x.perm)]
    for key, own in ((3, mean), (4, variance)):
        old, flat = op.value(key), op.reshape(own, op.value(key).type.shape)
        results.append(op.binary(ew.ADD, op.unary(ew.LINEAR, old, keep), op.unary(ew.LINEAR, flat, 1 - keep)))
    return results


def _batch_normalization(op: Operation) -> Value | list[Value]:
    """x * factor + offset; both are known at load, unless the file was exported while it trained."""
    if op.whole("training_mode", 0):
        return _trained(op)
    if len([o for o in op.info.outputs if o]) > 1:
        op.refuse("results of training")
    if not op.whole("spatial", 1):
        op.refuse("spatial=0")
    x = op.arranged(0)
    rank, axis = len(x.perm), x.perm[1] if len(x.perm) > 1 else 0
    scale, bias, mean, variance = (_channels(op, key, rank, axis) for key in range(1, 5))
    epsilon = op.scalar_of(op.real("epsilon", 1e-5), variance.type.dtype)
    factor = op.binary(ew.DIV, scale, op.unary(ew.SQRT, op.binary(ew.ADD, variance, epsilon)))
    offset = op.binary(ew.SUB, bias, op.binary(ew.MUL, mean, factor))
    return op.view(op.binary(ew.ADD, op.binary(ew.MUL, x.value, factor), offset), x.perm)


def centred(op: Operation, x: Value, axes: Sequence[int], epsilon: float) -> tuple[Value, Value, Value]:
    """x less its mean over its deviation, both along `axes`; then the mean, and one over the deviation."""
    difference, variance, mean = _moments(op, x, axes)
    deviation = op.unary(ew.SQRT, op.binary(ew.ADD, variance, op.scalar_of(epsilon, variance.type.dtype)))
    return op.binary(ew.DIV, difference, deviation), mean, deviation


def _moments(op: Operation, x: Value, axes: Sequence[int]) -> tuple[Value, Value, Value]:
    """x less its mean along `axes`, the variance, and the mean."""
    attrs = red.ReduceAttrs(tuple(sorted(axes)), keep_dims=True)
    mean = op.emit(red.REDUCE_MEAN, [x], attrs)
    difference = op.binary(ew.SUB, x, mean)
    return difference, op.emit(red.REDUCE_MEAN, [op.unary(ew.SQUARE, difference)], attrs), mean


def _instance_normalization(op: Operation) -> Value:
    x = op.arranged(0)
    rank = len(x.perm)
    y, _, _ = centred(op, x.value, x.perm[2:], op.real("epsilon", 1e-5))
    channels = x.value.type.shape[x.perm[1]] if rank > 1 else 0
    for key, mixed, neutral in ((1, ew.MUL, 1.0), (2, ew.ADD, 0.0)):
        row = op.value(key)  # exporters write a group norm with ones and zeros, and its own rows behind it
        if row.type.shape != (channels,) or not is_all(row, neutral):
            y = op.binary(mixed, y, _channels(op, key, rank, x.perm[1]))
    return op.view(y, x.perm)


def layer_normalized(
    op: Operation, x: Value, axis: int, scale: Value | None, bias: Value | None, epsilon: float
) -> tuple[Value, Value, Value]:
    """The layer norm over the axes from `axis` on, the mean, and one over the deviation."""
    y, mean, deviation = centred(op, x, range(axis, x.type.rank), epsilon)
    y = y if scale is None else op.binary(ew.MUL, y, scale)
    return y if bias is None else op.binary(ew.ADD, y, bias), mean, deviation


def _normalized(op: Operation, x: Value) -> int:
    """The first of the axes that are normalised, which must hold elements."""
    axis = op.axis(op.whole("axis", -1), x.type.rank)
    if 0 in x.type.shape[axis:]:
        op.fail(f"axes from {axis} on of {x.type.shape} hold nothing to normalise")
    return axis


def _layer_normalization(op: Operation) -> list[Value]:
    x = op.value(0)
    axis = _normalized(op, x)
    y, mean, deviation = layer_normalized(op, x, axis, op.value(1), op.optional(2), op.real("epsilon", 1e-5))
    if len([o for o in op.info.outputs if o]) == 1:
        return [y]
    return [y, mean, op.unary(ew.RECIPROCAL, deviation)]


def _rms_normalization(op: Operation) -> Value:
    x = op.value(0)
    axis = _normalized(op, x)
    return op.binary(ew.MUL, root_mean_squared(op, x, axis, op.real("epsilon", 1e-5)), op.value(1))


def root_mean_squared(op: Operation, x: Value, axis: int, epsilon: float) -> Value:
    """x over the root of the mean of its squares."""
    attrs = red.ReduceAttrs(tuple(range(axis, x.type.rank)), keep_dims=True)
    mean = op.emit(red.REDUCE_MEAN, [op.unary(ew.SQUARE, x)], attrs)
    return op.binary(ew.DIV, x, op.unary(ew.SQRT, op.binary(ew.ADD, mean, op.scalar_of(epsilon, x.type.dtype))))


def _gated_rms_normalization(op: Operation) -> Value:
    """The root mean square norm of parts as long as the scale, times an activation of the gate, in float32."""
    kind = op.value(0).type.dtype
    x, scale, gate = (op.cast(op.value(i), DType.FLOAT32) for i in range(3))
    shape, size = x.type.shape, scale.type.size
    if scale.type.rank != 1 or not size or not shape or shape[-1] % size:
        op.fail(f"{shape} does not split into parts of {scale.type.shape}")
    parts = op.reshape(x, (*shape[:-1], shape[-1] // size, size))
    y = op.binary(ew.MUL, root_mean_squared(op, parts, len(shape), op.real("epsilon", 1e-5)), scale)
    act = op.unary(ew.SIGMOID, gate)
    if op.chosen("activation", ("silu", "swish", "sigmoid"), "silu") != "sigmoid":
        act = op.binary(ew.MUL, gate, act)
    return op.cast(op.binary(ew.MUL, op.reshape(y, shape), act), kind)


def _skip_layer_normalization(op: Operation) -> list[Value]:
    """The layer norm of the sum of two tensors and a bias; the sum is the fourth result."""
    simple = op.info.op.startswith("SkipSimplified")
    total = op.binary(ew.ADD, op.value(0), op.value(1))
    bias = op.optional(3 if simple else 4)
    if bias is not None:
        total = op.binary(ew.ADD, total, bias)
    if len(op.info.outputs) > 1 and any(op.info.outputs[1:3]):
        op.refuse("mean and deviation as results")
    epsilon, axis = op.real("epsilon", 1e-12), total.type.rank - 1
    if simple:
        y = op.binary(ew.MUL, root_mean_squared(op, total, axis, epsilon), op.value(2))
    else:
        y, _, _ = layer_normalized(op, total, axis, op.value(2), op.optional(3), epsilon)
    return [y, y, y, total][: max(len(op.info.outputs), 1)]


def _group_normalization(op: Operation) -> Value:
    x, groups = op.value(0), op.whole("num_groups", 0)
    n, c, *space = x.type.shape
    if groups < 1 or c % groups:
        op.fail(f"{c} channels do not split into {groups} groups")
    split = op.reshape(x, (n, groups, c // groups, *space))
    y, _, _ = centred(op, split, range(2, split.type.rank), op.real("epsilon", 1e-5))
    if op.opset < 21 and op.value(1).type.shape == (groups,):  # a number for each group
        scale, bias = (_channels(op, key, split.type.rank, 1) for key in (1, 2))
        return op.reshape(op.binary(ew.ADD, op.binary(ew.MUL, y, scale), bias), x.type.shape)
    scale, bias = (_channels(op, key, x.type.rank, 1) for key in (1, 2))
    return op.binary(ew.ADD, op.binary(ew.MUL, op.reshape(y, x.type.shape), scale), bias)


def _mean_variance(op: Operation) -> Value:
    x = op.arranged(0)
    axes = [x.perm[op.axis(a, len(x.perm))] for a in op.wholes("axes", (0, 2, 3)) or ()]
    return op.view(op.in_float32(x.value, lambda v: _standardized(op, v, axes)), x.perm)


def _standardized(op: Operation, x: Value, axes: Sequence[int]) -> Value:
    """x less its mean over its deviation, to which ONNX adds the least divisor: not to the variance, as elsewhere."""
    difference, variance, _ = _moments(op, x, axes)
    deviation = op.binary(ew.ADD, op.unary(ew.SQRT, variance), op.scalar_of(1e-9, x.type.dtype))
    return op.binary(ew.DIV, difference, deviation)


def _lp_normalization(op: Operation) -> Value:
    x = op.arranged(0)
    axis, p = x.perm[op.axis(op.whole("axis", -1), len(x.perm))], op.whole("p", 2)
    if p not in (1, 2):
        op.fail(f"p is {p}, allowed are 1 and 2")
    kind = red.REDUCE_L1 if p == 1 else red.REDUCE_L2
    norm = op.emit(kind, [x.value], red.ReduceAttrs((axis,), True))
    least = op.binary(ew.EQUAL, norm, op.scalar_of(0.0, norm.type.dtype))
    return op.view(op.binary(ew.DIV, x.value, op.binary(ew.ADD, norm, op.cast(least, norm.type.dtype))), x.perm)


CONVERTERS: dict[str, Convert] = {
    "BatchNormalization": _batch_normalization,
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _rms_normalization,
    "SimplifiedLayerNormalization": _rms_normalization,
    "com.microsoft.GatedRMSNorm": _gated_rms_normalization,
    "com.microsoft.SkipLayerNormalization": _skip_layer_normalization,
    "com.microsoft.SkipSimplifiedLayerNormalization": _skip_layer_normalization,
}
