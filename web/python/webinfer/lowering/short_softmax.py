"""Softmax of 16-bit integers as LiteRT computes it: tables of 512 straight lines, and a factor for distances.

Source: tensorflow v2.18.0, lite/kernels/internal, LUTPopulate, SoftmaxInt16 and QuantizeMultiplier; activations.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from webinfer.dtypes import DType, round_to_f32
from webinfer.graph.ir import Node, TensorType
from webinfer.lowering.affine import scale_of, zeros_of

LINES = 512
_LOW, _HIGH, _RANGE = -32768, 32767, 65535


@cache
def tables() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ends of the lines of e^x from -10 to 0, and of 1 / (1 + x) from 0 to 1; 513 numbers each."""
    exponentials = _table(lambda x: round_to_f32(math.exp(x)), 10.0 / _RANGE, _HIGH)
    reciprocals = _table(lambda x: round_to_f32(1.0 / round_to_f32(1.0 + x)), 1.0 / _RANGE, _LOW)
    return exponentials, reciprocals


def short_rows(node: Node) -> bool:
    """Whether a softmax is of rows of 16-bit integers, with a result of the same type that is 1 at 32768."""
    x, y, a = node.required_input(0).type, node.output.type, node.attrs
    pair = x.dtype is DType.INT16 and y.dtype is DType.INT16 and y.quant is not None
    return pair and a.axis == x.rank - 1 and a.beta > 0 and scale_of(y) == 2.0**-15 and not any(zeros_of(y, 1))


def distance_factor(x: TensorType, beta: float) -> tuple[int, int]:
    """The multiplier of 31 bits and the left shift (negative: right) that lay distances of x over -10 to 0.

    A factor so large that it lays 1 beyond all lines, or so small that nothing leaves 0, is one that 64 bits hold.
    """
    whole = scale_of(x) * beta / (10.0 / _RANGE)
    mantissa, exponent = math.frexp(min(whole, 65536.0) if whole > 2.0**-31 else 0.0)
    multiplier = math.floor(mantissa * 2.0**31 + 0.5)
    return (multiplier // 2, exponent + 1) if multiplier == 1 << 31 else (multiplier, exponent)


def _table(function: Callable[[float], float], step: float, zero: int) -> tuple[int, ...]:
    """Lines that are off by the same in the middle as at their ends."""
    single = round_to_f32
    low, high = single(single(step) * (_LOW - zero)), single(single(step) * (_HIGH - zero))
    out = single(2.0 / _RANGE)
    inverse = single(65536.0 / single(single(out * _HIGH) - single(out * _LOW)))
    width = single(single(high - low) / LINES)
    ends = [_scaled(function, single(low + single(i * width)), inverse) for i in range(LINES + 1)]
    numbers = []
    for i in range(LINES):
        start, end = _nearest(ends[i]), ends[i + 1]
        middle = single(single(low + single(i * width)) + single(width / 2.0))
        line = _nearest(single(single(end + start) / 2.0))
        off = _nearest((line - _nearest(_scaled(function, middle, inverse))) / 2.0)
        numbers.append(min(max(start - off, _LOW), _HIGH))
    return (*numbers, min(max(_nearest(_scaled(function, high, inverse)), _LOW), _HIGH))


def _scaled(function: Callable[[float], float], x: float, inverse: float) -> float:
    return round_to_f32(function(x) * inverse)


def _nearest(x: float) -> int:
    """The nearest integer, ties away from zero."""
    return int(math.copysign(math.floor(abs(x) + 0.5), x))
