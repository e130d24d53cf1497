"""ONNX's shifts, said as products and quotients of powers of two."""

from __future__ import annotations

import functools

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather
from webinfer.ops.registry import NoAttrs


def _shift(op: Operation) -> Value:
    a, b = op.value(0), op.value(1)
    dtype, left = a.type.dtype, op.chosen("direction", ("LEFT", "RIGHT"), "") == "LEFT"
    bits = 8 * dtype.itemsize
    if dtype.is_float or dtype in (DType.BOOL, DType.UINT64):
        op.refuse(f"shifts of {dtype}")
    signed = not dtype.startswith("u")
    low, high = dtype.range
    powers = [2**k if 2**k <= high else low for k in range(bits)]
    usable = bits - 1 if signed and not left else bits  # the sign bit as a divisor would turn the sign
    distance = op.cast(b, DType.INT32)
    zero = op.scalar_of(0, DType.INT32)
    within = functools.partial(op.binary, ew.LESS)
    far = op.binary(ew.LOGICAL_OR, within(distance, zero), within(op.scalar_of(usable - 1, DType.INT32), distance))
    safe = op.emit(ew.WHERE, [far, zero, distance], NoAttrs())
    power = op.emit(gather.GATHER, [op.constant(powers, dtype), safe], gather.GatherAttrs(0))
    moved = op.binary(ew.MUL if left else ew.FLOOR_DIV, a, power)
    gone = op.scalar_of(0, dtype)
    if signed and not left:
        negative = op.binary(ew.LESS, a, gone)
        gone = op.emit(ew.WHERE, [negative, op.scalar_of(-1, dtype), gone], NoAttrs())
    return op.emit(ew.WHERE, [far, gone, moved], NoAttrs())


CONVERTERS: dict[str, Convert] = {
    "BitShift": _shift,
}
