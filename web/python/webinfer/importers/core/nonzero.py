"""What is true of a tensor, as positions: how many there are is known when a run has counted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import MAX_READ
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, scan
from webinfer.ops.registry import NoAttrs


def counted(op: BaseOperation, count: Value) -> int:
    """How many results there are, which a run must show first."""
    found = op.writer.read(count)
    if found.constant is None:
        op.refuse("a result whose size depends on data")
    return int(found.numbers()[0])


def places(op: BaseOperation, chosen: Value) -> Value:
    """The positions of what is true in a flat bool tensor, in order, as int32."""
    size = chosen.type.size
    if not size:
        return op.constant([], DType.INT32)
    if chosen.constant is not None and chosen.constant.sparsity is None and size <= MAX_READ:
        return op.constant([i for i, yes in enumerate(chosen.numbers()) if yes], DType.INT32)
    ones = op.cast(chosen, DType.INT32)
    sums = op.emit(scan.CUMULATIVE_SUM, [ones], scan.CumulativeSumAttrs(0))
    count = counted(op, op.cut(sums, 0, size - 1, 1))
    if not count:
        return op.constant([], DType.INT32)
    # Each position goes to its place in the list, the others behind its end.
    end, one = (op.constant([n], DType.INT32) for n in (count, 1))
    target = op.emit(ew.WHERE, [chosen, op.binary(ew.SUB, sums, one), end], NoAttrs())
    inputs = [op.zeros((count + 1,), DType.INT32), op.reshape(target, (size, 1)), op.constant(range(size), DType.INT32)]
    return op.cut(op.emit(gather.SCATTER_ND, inputs, gather.ScatterNdAttrs()), 0, 0, count)


def coordinates(op: BaseOperation, positions: Value, shape: Sequence[int]) -> list[Value]:
    """For each axis of a shape the coordinates of flat positions."""
    found = []
    for axis, size in enumerate(shape):
        step = op.constant([max(math.prod(shape[axis + 1 :]), 1)], DType.INT32)
        row = op.binary(ew.FLOOR_DIV, positions, step)
        found.append(op.binary(ew.FLOOR_MOD, row, op.constant([size], DType.INT32)) if axis else row)
    return found


def not_zero(op: BaseOperation, x: Value, axis: int, dtype: DType = DType.INT64) -> Value:
    """The coordinates of what is not zero: one coordinate after the other along `axis` of two."""
    rank = x.type.rank
    if not rank:
        op.refuse("positions in a number without axes")
    flat = op.reshape(x, (x.type.size,))
    if flat.type.dtype is not DType.BOOL:
        flat = op.binary(ew.NOT_EQUAL, flat, op.constant([0], flat.type.dtype))
    found = places(op, flat)
    if not found.type.size:
        return op.zeros((0, rank) if axis else (rank, 0), dtype)
    return op.cast(op.stack(coordinates(op, found, x.type.shape), axis), dtype)
