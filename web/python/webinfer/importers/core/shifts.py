"""Bits of whole numbers: shifts said as quotients of powers of two, and patterns of two numbers."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather
from webinfer.ops.registry import NoAttrs

_NARROW = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.BOOL)


def pattern(op: BaseOperation, target: Op, a: Value, b: Value) -> Value:
    """Bits of a and b put together; narrow numbers as int32."""
    dtype = a.type.dtype
    if dtype is DType.UINT32:
        whole = [op.emit(ew.BITCAST, [v], ew.CastAttrs(DType.INT32)) for v in (a, b)]
        return op.emit(ew.BITCAST, [op.binary(target, *whole)], ew.CastAttrs(dtype))
    if dtype is not DType.INT32 and dtype not in _NARROW:
        op.refuse(f"bits of {dtype}")
    return op.cast(op.binary(target, op.cast(a, DType.INT32), op.cast(b, DType.INT32)), dtype)


def shifted_right(op: BaseOperation, a: Value, b: Value) -> Value:
    """a / 2^b rounded down; distances are brought within 0 and the number of bits less one."""
    dtype = a.type.dtype
    if dtype is not DType.INT32 and (dtype not in _NARROW or dtype is DType.BOOL):
        op.refuse(f"shifts of {dtype}")
    bits = 8 * dtype.itemsize
    a, b = op.cast(a, DType.INT32), op.cast(b, DType.INT32)
    ends = [op.scalar_of(n, DType.INT32) for n in (0, bits - 1, 30)]
    distance = op.binary(ew.MINIMUM, op.binary(ew.MAXIMUM, b, ends[0]), ends[1])
    powers = op.constant([2**k for k in range(31)], DType.INT32)
    near = op.binary(ew.MINIMUM, distance, ends[2])
    power = op.emit(gather.GATHER, [powers, near], gather.GatherAttrs(0))
    y = op.binary(ew.FLOOR_DIV, a, power)
    if bits == 32:  # 2^31 is not int32
        sign = op.binary(ew.FLOOR_DIV, y, op.scalar_of(2, DType.INT32))
        y = op.emit(ew.WHERE, [op.binary(ew.EQUAL, distance, ends[1]), sign, y], NoAttrs())
    return op.cast(y, dtype)
