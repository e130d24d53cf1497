"""TFLite operators that sort elements into groups: segments, buckets, different elements."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.geometry import check_window
from webinfer.importers.core.limits import check_bytes
from webinfer.importers.core.unique import distinct
from webinfer.importers.tflite.operation import Convert, Operation, Row
from webinfer.importers.tflite.schema import DTYPES
from webinfer.ops import elementwise as ew
from webinfer.ops import reduce
from webinfer.ops.registry import NoAttrs

_LARGEST = 3.4028234663852886e38


def _segments(target: Op, start: int) -> Convert:
    """What a reduction makes of the rows of each number. `start` is what it makes of none: 1, or an end of the type."""

    def convert(op: Operation) -> Value:
        x, rows, count = op.value(0), op.value(1), op.integer(2)
        lead = rows.type.rank
        if x.type.dtype not in (DType.FLOAT32, DType.INT32) or x.type.shape[:lead] != rows.type.shape:
            op.refuse(f"segments of {x.type} by {rows.type}")
        check_window(op, {"segments": count})
        size, rest = rows.type.size, x.type.shape[lead:]
        check_bytes((size, count, *rest), x.type.dtype, op.what)
        low, high = (-_LARGEST, _LARGEST) if x.type.dtype is DType.FLOAT32 else x.type.dtype.range
        none = op.scalar_of({-1: low, 0: high, 1: 1}[start], x.type.dtype)
        ones = (1,) * len(rest)
        chosen = op.binary(
            ew.EQUAL, op.reshape(rows, (size, 1)), op.cast(op.constant(range(count), DType.INT32), rows.type.dtype)
        )
        held = op.emit(
            ew.WHERE, [op.reshape(chosen, (size, count, *ones)), op.reshape(x, (size, 1, *rest)), none], NoAttrs()
        )
        if not size:
            return op.expand(none, (count, *rest))
        return op.emit(target, [held], reduce.ReduceAttrs((0,)))

    return convert


def _bucketize(op: Operation) -> Value:
    """How many boundaries are no larger than each element."""
    x, edges = op.value(0), op.vector("boundaries")
    if not edges:
        return op.zeros(x.type.shape, DType.INT32)
    columns = op.reshape(op.cast(x, DType.FLOAT32), (*x.type.shape, 1))
    reached = op.binary(ew.GREATER_EQUAL, columns, op.constant(edges, DType.FLOAT32))
    return op.emit(reduce.REDUCE_SUM, [op.cast(reached, DType.INT32)], reduce.ReduceAttrs((x.type.rank,)))


def _unique(op: Operation) -> list[Value]:
    """The different elements as they come, and which of them each element is."""
    x = op.value(0)
    if x.type.rank != 1:
        op.fail(f"x has shape {x.type.shape}, needs rank 1")
    values, _, back, _ = distinct(op, x, ordered=False)
    return [values, op.cast(back, DTYPES.get(op.number("idx_out_type"), DType.INT32))]


CONVERTERS: dict[str, Row] = {
    "BUCKETIZE": (_bucketize, "BucketizeOptions"),
    "UNIQUE": (_unique, "UniqueOptions"),
    "UNSORTED_SEGMENT_MAX": (_segments(reduce.REDUCE_MAX, -1), ""),
    "UNSORTED_SEGMENT_MIN": (_segments(reduce.REDUCE_MIN, 0), ""),
    "UNSORTED_SEGMENT_PROD": (_segments(reduce.REDUCE_PRODUCT, 1), ""),
}
