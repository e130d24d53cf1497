"""Positions along an axis, also of an axis whose size is a symbol: slices, and ranges of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.dims import has_size, hint_of
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import MAX_READ, within
from webinfer.importers.core.operation import BaseOperation
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.elementwise import ADD

LEAST_TABLE = 512  # numbers that a range of an open size is cut from, at least: twice a sentence


@dataclass(frozen=True, slots=True)
class Span:
    """The positions of an axis: so many, `step` apart."""

    start: int
    count: int
    step: int = 1


def span_of(start: int | None, end: int | None, step: int, size: int) -> Span:
    """What a slice takes of an axis, as Python's slices do; None stands for the axis' own end."""
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clamped(at: int | None, default: int) -> int:
        return default if at is None else min(max(at + size if at < 0 else at, low), high)

    begin, stop = clamped(start, low if step > 0 else high), clamped(end, high if step > 0 else low)
    distance = stop - begin if step > 0 else begin - stop
    return Span(begin, -(-distance // abs(step)) if distance > 0 else 0, step)


def sized_range(op: BaseOperation, start: int, limit: int, step: int, dtype: DType) -> Value:
    """A range whose ends follow sizes of inputs: the first numbers of a longer one."""
    count = max(-(-(limit - start) // step), 0)
    most = LEAST_TABLE
    while most < 2 * hint_of(count):
        most *= 2
    within("elements of a range", count, min(most, MAX_READ), "use a smaller model")
    numbers = op.cut(op.constant(range(0, min(most, MAX_READ) * step, step), dtype), 0, 0, count)
    return op.binary(ADD, numbers, op.scalar_of(start, dtype)) if has_size(start) or start else numbers


def counted(op: BaseOperation, count: int, dtype: DType, shape: Sequence[int]) -> Value:
    """The numbers from 0 to `count`, which may follow sizes of inputs, in a shape."""
    if has_size(count):
        return op.reshape(sized_range(op, 0, count, 1, dtype), shape)
    return op.constant(range(count), dtype, shape)
