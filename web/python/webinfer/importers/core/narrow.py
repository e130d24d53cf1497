"""Values of element types that no kernel computes with: held in another type, rounded where they are made."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import elementwise as ew
from webinfer.ops.registry import NoAttrs
from webinfer.packing import SMALL_FLOATS, SmallFloat

_EXPONENT = 0x7F800000  # of a float32


def narrowed(op: BaseOperation, x: Value, dtype: DType, saturate: bool = True) -> Value:
    """x as `dtype` holds it, in the type that `dtype` is computed in.

    Integers keep their low bits. Floats are rounded to the nearest, ties to even. What is too large for a float of 8
    bits or less is its largest number, or without `saturate` its infinity or NaN.
    """
    if dtype is DType.FLOAT64:
        return op.cast(x, DType.FLOAT32)
    if not dtype.is_float:
        return op.writer.typed(_low_bits(op, op.cast(x, DType.INT32), dtype), dtype)
    real = op.cast(x, DType.FLOAT32)
    if dtype is DType.BFLOAT16:
        return op.writer.typed(_upper_half(op, real), dtype)
    kind = SMALL_FLOATS[dtype]
    if not kind.is_signed:
        op.refuse(f"rounding to {dtype}")
    y, outside = _nearest(op, real, kind), math.inf if kind.nan == 0 else math.nan
    if saturate:
        y = op.unary(ew.CLAMP, y, -kind.largest, kind.largest)
    else:
        y = _beyond(op, _beyond(op, y, ew.GREATER, kind.largest, outside), ew.LESS, -kind.largest, -outside)
    if kind.nan is None:
        y = op.emit(ew.WHERE, [op.unary(ew.IS_NAN, real), _real(op, 0.0), y], NoAttrs())
    return op.writer.typed(y, dtype)


def _whole(op: BaseOperation, number: int) -> Value:
    return op.scalar_of(number, DType.INT32)


def _real(op: BaseOperation, number: float) -> Value:
    return op.scalar_of(number, DType.FLOAT32)


def _beyond(op: BaseOperation, y: Value, test: ew.ElementwiseOp, limit: float, instead: float) -> Value:
    return op.emit(ew.WHERE, [op.binary(test, y, _real(op, limit)), _real(op, instead), y], NoAttrs())


def _low_bits(op: BaseOperation, x: Value, dtype: DType) -> Value:
    low = op.binary(ew.BIT_AND, x, _whole(op, (1 << dtype.bits) - 1))
    if (top := dtype.range[1] + 1) < 1 << dtype.bits:  # the sign's bit
        low = op.binary(ew.SUB, op.binary(ew.BIT_XOR, low, _whole(op, top)), _whole(op, top))
    return op.cast(low, dtype.inner)


def _bits(op: BaseOperation, x: Value, dtype: DType) -> Value:
    return op.emit(ew.BITCAST, [x], ew.CastAttrs(dtype))


def _upper_half(op: BaseOperation, x: Value) -> Value:
    """x with 8 bits of its fraction: half of the last place is added to its bits, and the rest cut off."""
    bits = _bits(op, x, DType.INT32)
    odd = op.binary(ew.BIT_AND, op.binary(ew.FLOOR_DIV, bits, _whole(op, 1 << 16)), _whole(op, 1))
    up = op.binary(ew.ADD, bits, op.binary(ew.ADD, odd, _whole(op, 0x7FFF)))
    y = _bits(op, op.binary(ew.BIT_AND, up, _whole(op, -(1 << 16))), DType.FLOAT32)
    return op.emit(ew.WHERE, [op.unary(ew.IS_NAN, x), x, y], NoAttrs())


def _nearest(op: BaseOperation, x: Value, kind: SmallFloat) -> Value:
    """x with as many bits as the type has at its size: a whole number of the last place there, all factors exact."""
    lowest, steps = (128 - kind.bias) << 23, float(1 << kind.fraction)
    power = op.binary(ew.BIT_AND, _bits(op, x, DType.INT32), _whole(op, _EXPONENT))
    power = op.binary(ew.MINIMUM, op.binary(ew.MAXIMUM, power, _whole(op, lowest)), _whole(op, 253 << 23))
    inverse = _bits(op, op.binary(ew.SUB, _whole(op, 254 << 23), power), DType.FLOAT32)
    part = op.unary(ew.LINEAR, op.binary(ew.MUL, x, inverse), steps)
    whole = op.unary(ew.LINEAR, op.unary(ew.ROUND_EVEN, part), 1 / steps)
    return op.binary(ew.MUL, whole, _bits(op, power, DType.FLOAT32))
