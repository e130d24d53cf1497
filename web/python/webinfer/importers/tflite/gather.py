"""TFLite operators that read or write elements by position."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.axes import gathered
from webinfer.importers.core.nonzero import not_zero
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import elementwise as ew
from webinfer.ops import gather
from webinfer.ops.registry import NoAttrs


def _gather(op: Operation) -> Value:
    return gathered(op, op.value(0), op.value(1), op.number("axis"), op.number("batch_dims"))


def _gather_nd(op: Operation) -> Value:
    return op.emit(gather.GATHER_ND, [op.value(0), op.value(1)], gather.GatherNdAttrs())


def _embedding_lookup(op: Operation) -> Value:
    table = op.value(1)
    if op.declared().dtype is DType.FLOAT32:
        table = op.as_float(table)
    return op.emit(gather.GATHER, [table, op.value(0)], gather.GatherAttrs(0))


def _scatter_nd(op: Operation) -> Value:
    """Updates are added up onto zeros."""
    positions, updates = op.value(0), op.value(1)
    dtype = updates.type.dtype
    if dtype in (DType.BOOL, DType.INT8, DType.UINT8, DType.INT16):  # no kernel adds these up
        updates = op.cast(updates, DType.INT32)
    zeros = op.expand(op.scalar_of(0, updates.type.dtype), op.integers(2))
    return op.cast(op.emit(gather.SCATTER_ND, [zeros, positions, updates], gather.ScatterNdAttrs(add=True)), dtype)


def _where(op: Operation) -> Value:
    """Where an input is not zero: one row of coordinates each; how many there are is data."""
    x = op.value(0)
    return not_zero(op, op.cast(x, DType.INT32) if x.type.quant is not None else x, 1)


def _sums_of_segments(op: Operation, count: int) -> Value:
    """Rows of one number are added up; those of negative numbers go to a row that is cut away."""
    x, rows = op.value(0), op.value(1)
    zeros = op.expand(op.scalar_of(0, x.type.dtype), (count + 1, *x.type.shape[rows.type.rank :]))
    is_below = op.binary(ew.LESS, rows, op.scalar_of(0, rows.type.dtype))
    rows = op.emit(ew.WHERE, [is_below, op.scalar_of(count, rows.type.dtype), rows], NoAttrs())
    positions = op.reshape(rows, (*rows.type.shape, 1))
    y = op.emit(gather.SCATTER_ND, [zeros, positions, x], gather.ScatterNdAttrs(add=True))
    return op.cut(y, 0, 0, count)


def _segment_sum(op: Operation) -> Value:
    numbers = op.integers(1)
    if list(numbers) != sorted(numbers) or min(numbers, default=0) < 0:
        op.fail("numbers of segments must not fall, nor be negative")
    return _sums_of_segments(op, max(numbers, default=-1) + 1)


def _sparse_to_dense(op: Operation) -> Value:
    positions, shape, numbers = op.value(0), op.integers(1), op.value(2)
    count = positions.type.shape[0] if positions.type.rank else 1
    dense = op.expand(op.reshape(op.value(3), ()), shape)
    if count == 0:
        return dense
    positions = op.reshape(positions, (count, len(shape)))
    updates = op.expand(op.reshape(numbers, (numbers.type.size,)), (count,))
    return op.emit(gather.SCATTER_ND, [dense, positions, updates], gather.ScatterNdAttrs())


CONVERTERS: dict[str, Row] = {
    "EMBEDDING_LOOKUP": (_embedding_lookup, ""),
    "GATHER": (_gather, "GatherOptions"),
    "GATHER_ND": (_gather_nd, ""),
    "SCATTER_ND": (_scatter_nd, ""),
    "SEGMENT_SUM": (_segment_sum, ""),
    "SPARSE_TO_DENSE": (_sparse_to_dense, ""),
    "UNSORTED_SEGMENT_SUM": (lambda op: _sums_of_segments(op, op.integer(2)), ""),
    "WHERE": (_where, ""),
}
