"""ONNX operators that read or write elements by position."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.limits import within
from webinfer.importers.core.unique import reversed_order
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, reduce, scan
from webinfer.ops.registry import NoAttrs

_MOST_POSITIONS = 2**20  # and comparisons of updates with elements
# What combines updates of one position, what adds them to x, and what changes nothing.
_COMBINED: dict[str, tuple[Op, Op, float]] = {
    "max": (reduce.REDUCE_MAX, ew.MAXIMUM, -math.inf), "min": (reduce.REDUCE_MIN, ew.MINIMUM, math.inf),
    "mul": (reduce.REDUCE_PRODUCT, ew.MUL, 1.0),
}  # fmt: skip


def _gather(op: Operation) -> Value:
    x, positions = op.arranged(0), op.value(1)
    rank = len(x.perm)
    axis = op.axis(op.whole("axis", 0), rank)
    at = x.perm[axis]
    y = op.emit(gather.GATHER, [x.value, positions], gather.GatherAttrs(at))
    # The axis becomes those of the positions; what lies behind it moves.
    more = positions.type.rank - 1

    def place(p: int) -> int:
        return p if p < at else p + more

    perm = [place(p) for p in x.perm[:axis]] + list(range(at, at + more + 1)) + [place(p) for p in x.perm[axis + 1 :]]
    return op.view(y, perm)


def _gather_elements(op: Operation) -> Value:
    x = op.value(0)
    axis = op.axis(op.whole("axis", 0), x.type.rank)
    positions = op.value(1)
    if x.type.rank == positions.type.rank:  # what no position reaches beside the axis is cut off
        for i, size in enumerate(positions.type.shape):
            if i != axis and size < x.type.shape[i]:
                x = op.cut(x, i, 0, size)
    return op.emit(gather.GATHER_ELEMENTS, [x, positions], gather.ElementsAttrs(axis))


def _gather_nd(op: Operation) -> Value:
    x, positions, batches = op.value(0), op.value(1), op.whole("batch_dims", 0)
    if positions.type.rank and not positions.type.shape[-1]:  # names no axis: all of x, for each position
        outer, inner = positions.type.shape[:-1], x.type.shape[batches:]
        if not 0 <= batches <= len(outer) or outer[:batches] != x.type.shape[:batches]:
            op.fail(f"positions {positions.type.shape} do not fit {x.type.shape} with {batches} batch axes")
        within = (*outer[:batches], *[1] * (len(outer) - batches), *inner)
        return op.expand(op.reshape(x, within), (*outer, *inner))
    return op.emit(gather.GATHER_ND, [x, positions], gather.GatherNdAttrs(batches))


def _scatter_elements(op: Operation) -> Value:
    x, positions, updates = (op.value(i) for i in range(3))
    axis, kind = op.axis(op.whole("axis", 0), x.type.rank), op.word("reduction", "none")
    if not positions.type.size and positions.type.shape == updates.type.shape:
        return x  # no updates
    apart = [p != d for i, (p, d) in enumerate(zip(positions.type.shape, x.type.shape, strict=True)) if i != axis]
    if kind == "none" and not any(apart):
        return op.emit(gather.SCATTER_ELEMENTS, [x, positions, updates], gather.ElementsAttrs(axis))
    shape, count = positions.type.shape, positions.type.size
    if any(p > d for i, (p, d) in enumerate(zip(shape, x.type.shape, strict=True)) if i != axis) or not count:
        op.fail(f"positions {shape} do not fit {x.type.shape}")
    within(f"{op.what}: positions", count, _MOST_POSITIONS, "use fewer")
    whole = []
    for i in range(x.type.rank):
        inner = math.prod(shape[i + 1 :])
        along = positions if i == axis else op.constant(
            [n // inner % shape[i] for n in range(count)], positions.type.dtype
        )  # fmt: skip
        whole.append(op.reshape(along, (count,)))
    return _scattered(op, x, op.stack(whole, 1), op.reshape(updates, (count,)), kind)


def _scatter_nd(op: Operation) -> Value:
    return _scattered(op, op.value(0), op.value(1), op.value(2), op.word("reduction", "none"))


def _scattered(op: Operation, x: Value, positions: Value, updates: Value, kind: str) -> Value:
    """x with updates [P.., I..] put to positions [P.., k], added there, or combined in another way."""
    dtype = x.type.dtype
    if kind == "none":
        return op.emit(gather.SCATTER_ND, [x, positions, updates], gather.ScatterNdAttrs())
    if not dtype.is_float and dtype.itemsize < 4:
        wide = _scattered(op, op.cast(x, DType.INT32), positions, op.cast(updates, DType.INT32), kind)
        return op.cast(wide, dtype)
    if kind == "add":
        return op.emit(gather.SCATTER_ND, [x, positions, updates], gather.ScatterNdAttrs(add=True))
    if kind not in _COMBINED:
        op.refuse(f"reduction {kind}")
    _, combine, neutral = _COMBINED[kind]
    if not dtype.is_float and math.isinf(neutral):
        neutral = dtype.range[neutral > 0]
    depth = positions.type.shape[-1]
    shape = math.prod(x.type.shape[:depth]), math.prod(x.type.shape[depth:])
    rows = _row_numbers(op, positions, x.type.shape[:depth])
    updates = op.reshape(updates, (rows.type.size, shape[1]))
    compared = updates.type.size * shape[0] <= _MOST_POSITIONS
    if not compared and kind == "mul":
        within(f"{op.what}: updates times elements", updates.type.size * shape[0], _MOST_POSITIONS, "use fewer")
    found = (_compared if compared else _sorted)(op, kind, rows, updates, shape, neutral)
    return op.reshape(op.binary(combine, op.reshape(x, shape), found), x.type.shape)


def _row_numbers(op: Operation, positions: Value, sizes: tuple[int, ...]) -> Value:
    """Positions [P.., k] in axes of these sizes, each as one number that counts from 0. Shapes:  -> [P]"""
    depth, dtype = positions.type.shape[-1], positions.type.dtype
    count = positions.type.size // max(depth, 1)
    flat, columns = op.constant([0], dtype), op.reshape(positions, (count, depth))
    for i, size in enumerate(sizes):
        length = op.constant([size], dtype)
        own = op.binary(ew.FLOOR_MOD, op.row(columns, 1, i), length)
        flat = op.binary(ew.ADD, op.binary(ew.MUL, flat, length), own)
    return op.reshape(flat, (count,))


def _compared(op: Operation, kind: str, rows: Value, updates: Value, shape: tuple[int, int], neutral: float) -> Value:
    """What the updates of each row make together: every row of `shape` looks at all of them."""
    (count, inner), dtype = updates.type.shape, rows.type.dtype
    hit = op.binary(ew.EQUAL, op.reshape(rows, (count, 1, 1)), op.constant(range(shape[0]), dtype, (1, shape[0], 1)))
    neutral_value = op.scalar_of(neutral, updates.type.dtype)
    spread = op.emit(ew.WHERE, [hit, op.reshape(updates, (count, 1, inner)), neutral_value], NoAttrs())
    return op.emit(_COMBINED[kind][0], [spread], reduce.ReduceAttrs((0,)))


def _sorted(op: Operation, kind: str, rows: Value, updates: Value, shape: tuple[int, int], neutral: float) -> Value:
    """The largest or the smallest update of each element: of sorted ones that are written, the last stays."""
    (count, inner), dtype, size = updates.type.shape, rows.type.dtype, updates.type.size
    first = op.binary(ew.MUL, op.reshape(rows, (count, 1)), op.constant([inner], dtype))
    places = op.binary(ew.ADD, first, op.constant(range(inner), dtype, (1, inner)))
    given = op.reshape(updates, (size,))
    keys = op.cast(given, DType.FLOAT32) if given.type.dtype is DType.FLOAT16 else given
    _, order = op.emit_all(scan.TOP_K, [reversed_order(op, keys) if kind == "max" else keys], scan.TopKAttrs(size))
    written, at = (
        op.emit(gather.GATHER, [v, order], gather.GatherAttrs(0)) for v in (given, op.reshape(places, (size,)))
    )
    none = op.expand(op.scalar_of(neutral, given.type.dtype), (math.prod(shape),))
    found = op.emit(gather.SCATTER_ND, [none, op.reshape(at, (size, 1)), written], gather.ScatterNdAttrs())
    return op.reshape(found, shape)


CONVERTERS: dict[str, Convert] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
}
