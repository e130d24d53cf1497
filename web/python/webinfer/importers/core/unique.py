"""Which elements of a row differ: how many they are is known when a run has counted."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.nonzero import places
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, scan


def reversed_order(op: BaseOperation, x: Value) -> Value:
    """Numbers of which the smallest is the largest; twice, they are as they were."""
    return op.unary(ew.NEG, x) if x.type.dtype.is_float else op.binary(ew.BIT_XOR, x, op.constant([-1], x.type.dtype))


def distinct(op: BaseOperation, flat: Value, ordered: bool) -> list[Value]:
    """The different elements, where each is first, which of them each element is, and how often each is there.

    They are in the order of their size, or as they come.

    Shapes:  flat [N] -> [K], int32 [K], int32 [N], int32 [K]
    """
    size = flat.type.size
    if flat.type.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64) or not size:
        op.refuse(f"different elements of {flat.type}")
    turned, order = op.emit_all(scan.TOP_K, [reversed_order(op, flat)], scan.TopKAttrs(size))
    held = op.constant([True], DType.BOOL)
    if size > 1:
        changed = op.binary(ew.NOT_EQUAL, op.cut(turned, 0, 1, size - 1), op.cut(turned, 0, 0, size - 1))
        held = op.concat([held, changed], 0)
    starts = places(op, held)
    count = starts.type.size
    rank = op.emit(scan.CUMULATIVE_SUM, [op.cast(held, DType.INT32)], scan.CumulativeSumAttrs(0))
    rank = op.binary(ew.SUB, rank, op.constant([1], DType.INT32))
    ends = op.concat([op.cut(starts, 0, 1, count - 1), op.constant([size], DType.INT32)], 0)
    counts = op.binary(ew.SUB, ends, starts)
    values, first = (_at(op, v, starts) for v in (turned, order))
    zeros = op.zeros((size,), DType.INT32)
    back = op.emit(gather.SCATTER_ELEMENTS, [zeros, order, rank], gather.ElementsAttrs(0))
    if not ordered:
        _, again = op.emit_all(scan.TOP_K, [reversed_order(op, first)], scan.TopKAttrs(count))
        values, first, counts = (_at(op, v, again) for v in (values, first, counts))
        none, numbers = op.zeros((count,), DType.INT32), op.constant(range(count), DType.INT32)
        now = op.emit(gather.SCATTER_ELEMENTS, [none, again, numbers], gather.ElementsAttrs(0))
        back = _at(op, now, back)
    return [reversed_order(op, values), first, back, counts]


def _at(op: BaseOperation, x: Value, positions: Value) -> Value:
    return op.emit(gather.GATHER, [x, positions], gather.GatherAttrs(0))
