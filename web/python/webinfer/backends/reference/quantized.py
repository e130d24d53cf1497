"""Arithmetic on quantised tensors: exact integers, then one rounding that is defined to the bit.

The rounding is the one of ai-edge-litert with its default delegate (XNNPACK): a sum is multiplied
by one float32 scale and rounded to the nearest integer, ties to even. What that delegate leaves to
TFLite's own kernels (softmax, mean, resize) follows those.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from webinfer.backends.reference import short_softmax
from webinfer.backends.reference.arrays import Array, Inputs, required
from webinfer.codegen.lookup import lookup_table
from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Node, Quantization, TensorType
from webinfer.lowering.short_products import HALVES_AWAY, product_factors, rounding_of
from webinfer.lowering.short_softmax import short_rows
from webinfer.ops.activation import Activation
from webinfer.ops.elementwise import UnaryAttrs
from webinfer.ops.resize import ResizeAttrs

F = np.float32
FIXED_POINT = (
    "abs",
    "clamp",
    "hard_swish",
    "leaky_relu",
    "relu",
    "relu6",
    "relu_n1_to_1",
)  # the delegate's and TFLite's own integer forms; fmt: skip


def is_quantized(node: Node) -> bool:
    """Whether the node computes on integers that stand for real numbers."""
    x, y = node.inputs[0], node.outputs[0]
    return x is not None and _scaled(x.type) and _scaled(y.type)


def _scaled(type: TensorType) -> bool:
    return type.quant is not None and not type.dtype.is_float


def scale_of(type: TensorType) -> np.float32:
    """The only scale of a quantised type.

    Raises:  ShapeError if there is none or one for each channel.
    """
    if type.quant is None or len(type.quant.scales) != 1:
        raise ShapeError(f"{type}: needs exactly one scale")
    return F(type.quant.scales[0])


def zero_of(type: TensorType) -> int:
    """The zero point that goes with `scale_of`."""
    return type.quant.zero_points[0] if type.quant and type.quant.zero_points else 0


def _spread(quant: Quantization, rank: int) -> tuple[Array, Array]:
    """Scales and zero points, shaped to broadcast over a tensor of that rank."""
    shape = [1] * rank
    if quant.axis is not None and len(quant.scales) > 1:
        shape[quant.axis] = -1
    zeros = quant.zero_points or (0,) * len(quant.scales)
    scales, zero_points = np.array(quant.scales, F), np.array(zeros, np.int64)
    if len(quant.scales) == 1:
        return scales.reshape([1] * rank), zero_points[:1].reshape([1] * rank)
    return scales.reshape(shape), np.resize(zero_points, len(quant.scales)).reshape(shape)


def real(x: Array, type: TensorType) -> Array:
    """The real numbers, as float64: scale * (stored - zero point)."""
    assert type.quant is not None
    if not x.size:
        return np.zeros(x.shape)
    scales, zeros = _spread(type.quant, x.ndim)
    return np.asarray((x.astype(np.int64) - zeros) * scales.astype(np.float64))


def float_weights(inputs: Inputs, node: Node) -> Array:
    """The second operand of a float product; quantised weights become the reals they stand for."""
    w, value = required(inputs[1]), node.inputs[1]
    assert value is not None
    return real(w, value.type) if _scaled(value.type) else w.astype(np.float64)


def operands(inputs: Inputs, node: Node) -> tuple[Array, Array]:
    """Both operands of a product without their zero points: exact integers, held in float64.

    Raises:  ShapeError if one has no scale
    """
    pair = []
    for array, value in zip(inputs[:2], node.inputs[:2], strict=True):
        assert value is not None
        if value.type.quant is None:
            raise ShapeError(f"{node.op.name}: {value.name!r} is {value.type} without a scale")
        x = required(array)
        pair.append((x.astype(np.int64) - _spread(value.type.quant, x.ndim)[1]).astype(np.float64))
    return pair[0], pair[1]


def bounds(activation: Activation, type: TensorType) -> tuple[int, int]:
    """The smallest and the largest stored result: the element type's range, cut by an activation that clamps.

    Raises:  ShapeError for activations that are not a clamp
    """
    low, high = type.dtype.range
    if activation.bounds is None:
        raise ShapeError(f"activation {activation} is not defined on quantised tensors")
    scale, zero = scale_of(type), zero_of(type)
    lowest, highest = activation.bounds
    if np.isfinite(lowest):
        low = max(low, zero + _steps(lowest, scale))
    if np.isfinite(highest):
        high = min(high, zero + _steps(highest, scale))
    return low, high


def _steps(x: float, scale: np.float32) -> int:
    """How many steps of the scale a number is away from zero; with the smallest scales that is infinity."""
    with np.errstate(over="ignore"):
        return int(np.clip(np.rint(F(x) / scale), -(2.0**31), 2.0**31))


def clamped(y: Array, activation: Activation, type: TensorType) -> Array:
    """Stored integers, saturated to the result's bounds."""
    return np.clip(y, *bounds(activation, type)).astype(type.dtype.value)


def scaled(acc: Array, scale: Array | np.float32, activation: Activation, type: TensorType) -> Array:
    """round(float32(acc) * scale) + zero point, saturated."""
    nearest = np.clip(np.rint(acc.astype(F) * scale), -(2.0**40), 2.0**40).astype(np.int64)
    return clamped(nearest + zero_of(type), activation, type)


def _product_scale(node: Node) -> Array:
    """One float32 factor for each output channel: x's scale times w's over y's."""
    x, w, y = node.inputs[0], node.inputs[1], node.output
    assert x is not None
    assert w is not None
    assert w.type.quant is not None
    return np.asarray(scale_of(x.type) * np.array(w.type.quant.scales, F) / scale_of(y.type), F)


def requantized(acc: Array, bias: Array | None, node: Node) -> Array:
    """The stored result of an integer product: bias added, scaled, rounded, saturated.

    A sum of products of bytes is an int32 that wraps around.

    Shapes:  acc [..., CO], exact integers
    Raises:  ShapeError with a residual or a slope
    """
    if any(v is not None for v in node.inputs[3:]):
        raise ShapeError(f"{node.op.name}: residual and slope are not defined on quantised tensors")
    acc = acc.astype(np.int64)  # sums beside a bias of 64 bits wrap around too
    if bias is not None:
        acc = acc + bias.reshape(-1).astype(np.int64)
    if node.required_input(0).type.dtype.itemsize == 1:
        acc = (acc + 2**31) % 2**32 - 2**31
    x, y = node.required_input(0).type, node.output.type
    if x.dtype is DType.INT16:
        nearest = _scaled_shorts(acc, product_factors(node), rounding_of(node))
        return clamped(nearest + zero_of(y), node.attrs.activation, y)
    return scaled(acc, _product_scale(node), node.attrs.activation, node.output.type)


def _scaled_shorts(acc: Array, factors: list[tuple[int, int]], rounding: int) -> Array:
    """Sums of a 16-bit product times factors: of 64 bits, or of 32 bits that are rounded twice."""
    scales, shifts = map(np.array, zip(*factors, strict=True))
    if not rounding:
        return np.asarray((acc * scales + (1 << (shifts - 1))) >> shifts)
    right = np.maximum(-shifts, 0)
    acc = ((acc << np.maximum(shifts, 0)) + 2**31) % 2**32 - 2**31
    high = (acc * scales + (1 << 30)) >> 31
    half = (1 << right) >> 1
    away = (rounding == HALVES_AWAY) & (high < 0) & (half > 0)
    return np.asarray((high + half - away) >> right)


def quantize(x: Array, node: Node) -> Array:
    """Stored integers of floats, or of integers with another scale."""
    source, type = node.inputs[0], node.output.type
    assert source is not None
    if _scaled(source.type):
        return _rescaled(x, source.type, type)
    low, high = type.dtype.range
    with np.errstate(invalid="ignore"):
        nearest = np.rint(x.astype(F) * (F(1.0) / scale_of(type)))
    nearest = np.clip(np.nan_to_num(nearest, nan=0.0), low - zero_of(type), high - zero_of(type))
    return np.asarray(nearest.astype(np.int64) + zero_of(type), type.dtype.value)


def _rescaled(x: Array, source: TensorType, type: TensorType) -> Array:
    if max(source.dtype.itemsize, type.dtype.itemsize) == 1 and len(type.quant.scales if type.quant else ()) == 1:
        table = np.frombuffer(lookup_table("quantize", UnaryAttrs(), source, type), type.dtype.value)
        return np.asarray(table[x.view(np.uint8)])
    return scaled(x.astype(np.int64) - zero_of(source), scale_of(source) / scale_of(type), Activation.NONE, type)


def unary(formula: Callable[[Array], Array], x: Array, node: Node) -> Array:
    """The formula on the real numbers, stored again; two operators have a fixed-point form."""
    source, type = node.inputs[0], node.output.type
    assert source is not None
    if node.op.name in FIXED_POINT and x.dtype.itemsize == 1:
        table = np.frombuffer(lookup_table(node.op.name, node.attrs, source.type, type), type.dtype.value)
        return np.asarray(table[x.view(np.uint8)])
    y = formula(real(x, source.type)) / float(scale_of(type))
    low, high = type.dtype.range
    return np.asarray(np.clip(np.rint(np.nan_to_num(y, nan=0.0)) + zero_of(type), low, high).astype(type.dtype.value))


def _shift(node: Node) -> tuple[int, list[np.float32]]:
    """Bits behind the point of a sum's factors, and the scales of both operands over the result's."""
    out = scale_of(node.output.type)
    factors = [scale_of(node.required_input(i).type) / out for i in (0, 1)]
    return 20 - int(np.floor(np.log2(max(*factors, F(2.0**-64))))), factors


def _sum(x: Array, y: Array, node: Node, sign: int) -> Array:
    """x ± y with fixed-point factors of 21 bits."""
    a, b = node.required_input(0), node.required_input(1)
    shift, factors = _shift(node)
    p, q = (int(np.rint(np.float64(f) * 2.0**shift)) for f in factors)
    acc = p * (x.astype(np.int64) - zero_of(a.type)) + sign * q * (y.astype(np.int64) - zero_of(b.type))
    nearest = (acc + (1 << (shift - 1))) >> shift
    return clamped(nearest + zero_of(node.output.type), node.attrs.activation, node.output.type)


def binary(formula: Callable[[Array, Array], Array], x: Array, y: Array, node: Node) -> Array:
    """A sum or a product in integers; any other formula on the real numbers, stored again."""
    a, b, type = node.inputs[0], node.inputs[1], node.output.type
    assert a is not None
    assert b is not None
    if node.op.name in ("add", "sub") and 1 <= _shift(node)[0] <= 30:
        return _sum(x, y, node, 1 if node.op.name == "add" else -1)
    if node.op.name == "mul":
        product = (x.astype(np.int64) - zero_of(a.type)) * (y.astype(np.int64) - zero_of(b.type))
        scale = F(scale_of(a.type) * scale_of(b.type)) / scale_of(type)
        return scaled(product, scale, node.attrs.activation, type)
    result = formula(real(x, a.type), real(y, b.type))
    if type.quant is None:
        return result.astype(type.dtype.value)
    stored = np.rint(result / float(scale_of(type))) + zero_of(type)
    return clamped(stored, node.attrs.activation, type)


def average(total: Array, count: Array, node: Node) -> Array:
    """Sums of stored values over counts, rounded with ties away from zero."""
    nearest = np.where(total >= 0, (total + count // 2) // count, -((-total + count // 2) // count))
    return clamped(nearest, node.attrs.activation, node.output.type)


def reduce(formula: Callable[[Array, tuple[int, ...], bool], Array], x: Array, node: Node) -> Array:
    """A sum or a mean in integers; any other reduction on the real numbers, stored again."""
    source, type, a = node.inputs[0], node.output.type, node.attrs
    assert source is not None
    if node.op.name in ("reduce_sum", "reduce_mean"):
        count = x.size // max(type.size, 1) if node.op.name == "reduce_mean" else 1
        total = np.sum(x.astype(np.int64) - zero_of(source.type), axis=a.axes, keepdims=a.keep_dims)
        scale = scale_of(source.type) / F(scale_of(type) * F(count))
        units = np.asarray(np.clip(total.astype(F) * scale, -(2.0**40), 2.0**40), np.float64)
        odd = zero_of(type) & 1  # ties go to even stored numbers, the zero point included
        nearest = (np.rint(units + odd) - odd).astype(np.int64)
        return clamped(nearest + zero_of(type), Activation.NONE, type)
    y = np.asarray(formula(real(x, source.type), a.axes, a.keep_dims)) / float(scale_of(type))
    return clamped(np.rint(y) + zero_of(type), Activation.NONE, type)


def softmax(x: Array, node: Node) -> Array:
    """Softmax of the real numbers, stored again."""
    source, type, a = node.inputs[0], node.output.type, node.attrs
    assert source is not None
    if node.op.name == "softmax" and short_rows(node):
        return short_softmax.softmax(x, source.type, a.beta)
    shifted = a.beta * (real(x, source.type) - real(x, source.type).max(axis=a.axis, keepdims=True))
    total = np.sum(np.exp(shifted), axis=a.axis, keepdims=True)
    y = shifted - np.log(total) if node.op.name == "log_softmax" else np.exp(shifted) / total
    return clamped(np.rint(y / float(scale_of(type))) + zero_of(type), Activation.NONE, type)


def resize_bilinear(x: Array, node: Node) -> Array:
    """Bilinear samples of stored values with weights of 11 bits, rounded with ties up.

    Positions and weights are float32, as the delegate computes them.
    """
    a, y = node.attrs, x.astype(np.int64)
    for axis, count in ((1, a.size[0]), (2, a.size[1])):
        low, high, weight = _taps(x.shape[axis], count, a)
        near = np.take(y, low, axis)
        y = near * 2048 + (np.take(y, high, axis) - near) * weight.reshape([-1 if i == axis else 1 for i in range(4)])
    return ((y + (1 << 21)) >> 22).astype(x.dtype)


def _taps(size: int, count: int, a: ResizeAttrs) -> tuple[Array, Array, Array]:
    """Both neighbours of every output sample along one axis, and the weight of the second in 2048ths."""
    at = np.arange(count, dtype=F)
    if a.align_corners and count > 1:
        at = at * (F(size - 1) / F(count - 1))
    elif a.half_pixel_centers:
        at = (at + F(0.5)) * (F(size) / F(count)) - F(0.5)
    else:
        at = at * (F(size) / F(count))
    at = np.minimum(np.maximum(at, F(0.0)), F(size - 1)).astype(F)
    low = np.floor(at).astype(np.int64)
    return low, np.minimum(low + 1, size - 1), np.rint((at - low.astype(F)) * F(2048.0)).astype(np.int64)
