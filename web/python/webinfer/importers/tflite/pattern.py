"""TFLite operators whose result follows from sizes, ranges or positions alone."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.dims import has_size, whole
from webinfer.graph.ir import Value
from webinfer.importers.core.spans import sized_range
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.importers.tflite.schema import DTYPES
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops import pattern
from webinfer.ops.registry import NoAttrs


def _one_hot(op: Operation) -> Value:
    x = op.value(0)
    depth, on, off = op.integer(1), op.scalar(2), op.scalar(3)
    axis = op.axis(op.number("axis"), x.type.rank + 1)
    return op.emit(pattern.ONE_HOT, [x], pattern.OneHotAttrs(depth, axis, on, off, op.value(2).type.dtype))


def _broadcast_to(op: Operation) -> Value:
    return op.expand(op.value(0), op.integers(1))


def _fill(op: Operation) -> Value:
    return op.expand(op.reshape(op.value(1), ()), op.integers(0))


def _shape(op: Operation) -> Value:
    x, dtype = op.value(0), DTYPES.get(op.number("out_type"), DType.INT32)
    if dtype not in (DType.INT32, DType.INT64):  # 0, the default, is FLOAT32 and means int32
        dtype = DType.INT32
    return op.constant(x.type.shape, dtype)


def _rank(op: Operation) -> Value:
    return op.scalar_of(op.value(0).type.rank, DType.INT32)


def _range(op: Operation) -> Value:
    start, limit, delta = op.scalar(0), op.scalar(1), op.scalar(2)
    if len({op.value(i).type.dtype for i in range(3)}) > 1:
        op.fail("start, limit and delta have different types")
    if has_size((start, limit, delta)) and delta != 0:
        return sized_range(op, whole(start), whole(limit), int(delta), op.value(0).type.dtype)
    if delta == 0 or not all(map(math.isfinite, (start, limit, delta))):
        op.fail(f"no range goes from {start} to {limit} by {delta}")
    count = max(math.ceil((limit - start) / delta), 0)
    if count > 65536:
        op.refuse(f"a range of {count} numbers")
    return op.constant([start + i * delta for i in range(count)], op.value(0).type.dtype)


def _zeros_like(op: Operation) -> Value:
    x = op.value(0)
    zero = op.scalar_of(0, x.type.dtype)
    return op.emit(mv.EXPAND, [zero], mv.ExpandAttrs(x.type.shape))


def _with_diagonal(op: Operation, x: Value, diagonal: Value) -> Value:
    """x [..., M, N] with another diagonal [..., min(M, N)]."""
    *lead, rows, columns = x.type.shape
    at = op.constant([int(i % (columns + 1) == 0 and i < columns * columns) for i in range(rows * columns)], DType.BOOL)
    size = diagonal.type.shape[-1]
    if diagonal.type.shape != (*lead, min(rows, columns)):
        op.fail(f"a diagonal {diagonal.type.shape} does not fit {x.type.shape}")
    row = op.reshape(diagonal, (*lead, 1, size)) if size == columns else op.reshape(diagonal, (*lead, size, 1))
    return op.emit(ew.WHERE, [op.reshape(at, (rows, columns)), row, x], NoAttrs())


def _matrix_diag(op: Operation) -> Value:
    diagonal = op.value(0)
    zeros = op.expand(op.scalar_of(0, diagonal.type.dtype), (*diagonal.type.shape, diagonal.type.shape[-1]))
    return _with_diagonal(op, zeros, diagonal)


CONVERTERS: dict[str, Row] = {
    "BROADCAST_TO": (_broadcast_to, ""),
    "FILL": (_fill, ""),
    "MATRIX_DIAG": (_matrix_diag, ""),
    "MATRIX_SET_DIAG": (lambda op: _with_diagonal(op, op.value(0), op.value(1)), ""),
    "ONE_HOT": (_one_hot, "OneHotOptions"),
    "RANGE": (_range, ""),
    "RANK": (_rank, ""),
    "SHAPE": (_shape, "ShapeOptions"),
    "ZEROS_LIKE": (_zeros_like, ""),
}
