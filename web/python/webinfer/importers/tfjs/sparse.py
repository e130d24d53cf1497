"""TensorFlow nodes on lists of positions, which a model holds or a run tells: segments, sparse shapes, differences."""

from __future__ import annotations

import itertools
import math
from collections import Counter

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import MAX_READ, within
from webinfer.importers.tfjs.elementwise import number
from webinfer.importers.tfjs.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather


def _segments(op: Operation) -> Value:
    """Sums or means of chosen rows, those of one number together; numbers that are left out get zeros.

    Source:  tfjs-backend-cpu 4.22.0, kernels/SparseSegmentReduction_impl
    """
    x, positions, segments = number(op), op.integers(1), op.integers(2)
    if x.type.rank < 1 or len(positions) != len(segments) or any(not 0 <= p < x.type.shape[0] for p in positions):
        op.fail(f"rows {positions} of segments {segments} do not fit x {x.type.shape}")
    if any(a > b for a, b in itertools.pairwise(segments)) or min(segments, default=0) < 0:
        op.fail(f"segments {segments} must be in order")
    within(f"{op.what}: segments", max(segments, default=0), MAX_READ, "use fewer")
    zeros = op.zeros((max(segments, default=-1) + 1, *x.type.shape[1:]), x.type.dtype)
    if not positions:
        return zeros
    rows = op.emit(gather.GATHER, [x, op.constant(positions, DType.INT32)], gather.GatherAttrs(0))
    places = op.constant(segments, DType.INT32, (len(segments), 1))
    y = op.emit(gather.SCATTER_ND, [zeros, places, rows], gather.ScatterNdAttrs(add=True))
    if op.name == "SparseSegmentSum":
        return y
    counts = Counter(segments)
    sizes = [max(counts[i], 1) for i in range(zeros.type.shape[0])]
    divisors = op.constant(sizes, x.type.dtype, (len(sizes), *(1,) * (x.type.rank - 1)))
    return op.binary(ew.DIV, y, divisors)


def _reshape(op: Operation) -> list[Value]:
    """Positions of elements in another shape, and that shape."""
    numbers, old, new = op.integers(0), op.integers(1), list(op.integers(2))
    whole = math.prod(old)
    if new.count(-1) == 1:
        rest = -math.prod(new)
        new[new.index(-1)] = whole // rest if rest else 0
    if math.prod(new) != whole or min(new, default=0) < 0 or op.value(0).type.shape[1:] != (len(old),):
        op.fail(f"positions {op.value(0).type.shape} in {old} do not fit the shape {op.integers(2)}")
    places = list[int]()
    for at in range(0, len(numbers), max(len(old), 1)):
        flat = 0
        for size, place in zip(old, numbers[at : at + len(old)], strict=True):
            flat = flat * size + place
        row = list[int]()
        for size in reversed(new):
            row.insert(0, flat % size)
            flat //= size
        places += row
    rows = op.value(0).type.shape[0]
    return [op.constant(places, DType.INT32, (rows, len(new))), op.constant(new, DType.INT32)]


def _difference(op: Operation) -> list[Value]:
    """The elements of a row that another one lacks, and where they are."""
    x, others = op._constants(0), set(op._constants(1))
    kept = [i for i, element in enumerate(x) if element not in others]
    return [op.constant([x[i] for i in kept], op.value(0).type.dtype), op.constant(kept, DType.INT32)]


CONVERTERS: dict[str, Convert] = {
    "ListDiff": _difference,
    "SparseReshape": _reshape,
    "SparseSegmentMean": _segments,
    "SparseSegmentSum": _segments,
}
