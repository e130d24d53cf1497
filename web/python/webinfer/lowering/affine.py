"""Quantised tensors as kernels of several backends see them: float32 scales, zero points, stored bounds."""

from __future__ import annotations

import math

from webinfer.dtypes import round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, TensorType
from webinfer.ops.activation import Activation
from webinfer.ops.matmul import MatmulAttrs


def is_stored(type: TensorType) -> bool:
    """Whether integers stand for real numbers."""
    return type.quant is not None and not type.dtype.is_float


def is_quantized(node: Node) -> bool:
    """Whether the node computes on integers that stand for real numbers."""
    x = node.inputs[0] if node.inputs else None
    return x is not None and is_stored(x.type) and is_stored(node.outputs[0].type)


def is_scaled_by_column(w: TensorType, a: MatmulAttrs) -> bool:
    """Whether all rows of a product meet one matrix of stored weights, with one scale or one for each column."""
    axis = w.rank - 2 if a.transpose_b else w.rank - 1
    one = math.prod(w.shape[:-2]) == 1 and not a.transpose_a
    return one and w.quant is not None and (len(w.quant.scales) == 1 or w.quant.axis == axis)


def scale_of(type: TensorType) -> float:
    """The only scale.

    Raises:  UnsupportedOpError if the type has none, one for each channel, or one that is not a positive number
    """
    if type.quant is None or len(type.quant.scales) != 1:
        raise UnsupportedOpError([f"{type} needs exactly one scale here"])
    scale = round_to_f32(type.quant.scales[0])
    if not 0 < scale < math.inf:
        raise UnsupportedOpError([f"{type} has the scale {scale}, needs a positive number"])
    return scale


def _fraction(factor: float) -> tuple[int, int]:
    """A positive factor as a fraction of 31 bits and a power of two.

    Source:  tensorflow v2.18.0, lite/kernels/internal/quantization_util.cc, QuantizeMultiplier
    """
    mantissa, exponent = math.frexp(factor)
    wide = math.floor(mantissa * 2.0**31 + 0.5)
    return (wide // 2, exponent + 1) if wide == 1 << 31 else (wide, exponent)


def fixed_factor(factor: float, bits: int = 15) -> tuple[int, int]:
    """A positive factor as a multiplier of so many bits and a right shift: how 64-bit sums are scaled.

    Source:  tensorflow v2.18.0, lite/kernels/internal/common.cc, MultiplyByQuantizedMultiplier of int64
    """
    wide, exponent = _fraction(factor)
    if exponent < -31:
        return 0, 1
    if exponent > 14:
        raise UnsupportedOpError([f"a scale of {factor}; 16-bit results need less than 2^14"])
    rest, most = 31 - bits, (1 << bits) - 1
    return (min(wide + (1 << rest >> 1) >> rest, most)), bits - exponent


def sum_factors(a: TensorType, b: TensorType, y: TensorType) -> tuple[int, int, int] | None:
    """The factors of a sum of bytes in fixed point, and how many bits stand behind their point; they have 21 bits.

    None where the scales are so far apart that sums of 32 bits do not hold them.
    """
    factors = [round_to_f32(scale_of(x) / scale_of(y)) for x in (a, b)]
    shift = 20 - math.floor(math.log2(max(*factors, 2.0**-64)))
    p, q = (round(f * 2.0**shift) for f in factors)
    return (p, q, shift) if 1 <= shift <= 30 else None


def narrow_factor(factor: float) -> tuple[int, int]:
    """A positive factor as a fraction of 31 bits and a power of two: how 32-bit sums are scaled.

    Source:  tensorflow v2.18.0, lite/kernels/internal/common.cc, MultiplyByQuantizedMultiplier of int32
    """
    wide, exponent = _fraction(factor)
    if exponent > 30:
        raise UnsupportedOpError([f"a scale of {factor}; 16-bit results need less than 2^30"])
    return (0, 0) if exponent < -31 else (wide, exponent)


def zero_of(type: TensorType) -> int:
    """The zero point that goes with `scale_of`."""
    return type.quant.zero_points[0] if type.quant and type.quant.zero_points else 0


def zeros_of(type: TensorType, count: int) -> tuple[int, ...]:
    """A zero point for each of `count` channels."""
    zeros = (type.quant.zero_points if type.quant else ()) or (0,)
    return zeros if len(zeros) == count else (zeros[0],) * count


def stored_bounds(type: TensorType, activation: Activation) -> tuple[int, int]:
    """Smallest and largest stored result: the element type's range, cut by a clamp.

    Raises:  UnsupportedOpError for activations that are not a clamp
    """
    low, high = type.dtype.range
    if activation.bounds is None:
        raise UnsupportedOpError([f"activation {activation} on quantised {type}; apply it as an operator of its own"])
    scale, zero = scale_of(type), zero_of(type)
    lowest, highest = activation.bounds
    if math.isfinite(lowest):
        low = max(low, zero + _steps(lowest, scale))
    if math.isfinite(highest):
        high = min(high, zero + _steps(highest, scale))
    return low, high


def _steps(x: float, scale: float) -> int:
    """How many steps of the scale a number is away from zero; far away is far enough."""
    return round(max(-(2.0**31), min(round_to_f32(round_to_f32(x) / scale), 2.0**31)))
