"""ONNX operators that choose or set elements by their position alone."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import MAX_READ, check_bytes, within
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.tensors import dtype_of
from webinfer.ops import elementwise as ew
from webinfer.ops import pattern
from webinfer.ops.registry import NoAttrs


def _trilu(op: Operation) -> Value:
    x = op.value(0)
    diagonal = op.integer(1) if op.optional(1) is not None else 0
    if x.type.rank < 2:
        op.fail(f"{x.type.shape} holds no matrices")
    diagonal = min(max(diagonal, -(2**20)), 2**20)
    return op.emit(pattern.TRIANGULAR, [x], pattern.TriangularAttrs(bool(op.whole("upper", 1)), diagonal))


def _one_hot(op: Operation) -> Value:
    """The second of two values where the new axis has the position, else the first; positions may be negative."""
    positions, values = op.value(0), op.value(2)
    depth = int(op.scalar(1))
    if values.type.shape != (2,):
        op.fail(f"values have shape {values.type.shape}, needs (2,)")
    if depth < 0:
        op.fail(f"depth is {depth}")
    axis = op.axis(op.whole("axis", -1), positions.type.rank + 1)
    shape = positions.type.shape
    check_bytes((*shape, depth), values.type.dtype, f"{op.what}: result")
    places = op.saturated(positions)
    behind = op.binary(ew.ADD, places, op.scalar_of(depth, DType.INT32))
    negative = op.binary(ew.LESS, places, op.scalar_of(0, DType.INT32))
    places = op.emit(ew.WHERE, [negative, behind, places], NoAttrs())
    row = op.constant(range(depth), DType.INT32, [depth if i == axis else 1 for i in range(len(shape) + 1)])
    hit = op.binary(ew.EQUAL, op.reshape(places, (*shape[:axis], 1, *shape[axis:])), row)
    off, on = (op.row(values, 0, i) for i in (0, 1))
    return op.emit(ew.WHERE, [hit, on, off], NoAttrs())


def _window(op: Operation) -> Value:
    """A window of cosines, known while the model is read."""
    size = op.integer(0)
    within("elements of a window", size, MAX_READ, "use a shorter window")
    kind = op.whole("output_datatype", 1)
    dtype = dtype_of(kind, "output_datatype").inner
    span = size if op.whole("periodic", 1) else size - 1
    terms = {
        "BlackmanWindow": (0.42, -0.5, 0.08), "HammingWindow": (25 / 46, -21 / 46), "HannWindow": (0.5, -0.5),
    }[op.name]  # fmt: skip
    if size < 0 or not dtype.is_float or (span == 0 and size):
        op.refuse(f"a window of {size} elements of {dtype}")
    numbers = [sum(a * math.cos(2 * math.pi * k * i / span) for k, a in enumerate(terms)) for i in range(size)]
    return op.constant(numbers, dtype)


CONVERTERS: dict[str, Convert] = {
    "BlackmanWindow": _window,
    "HammingWindow": _window,
    "HannWindow": _window,
    "OneHot": _one_hot,
    "Trilu": _trilu,
    "com.microsoft.Trilu": _trilu,
}
