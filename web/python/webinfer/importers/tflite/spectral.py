"""TFLite's Fourier transforms: products with tables of cosines and sines, real and imaginary parts apart."""

from __future__ import annotations

import math
from collections.abc import Callable

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.tflite.operation import Complex, Operation, Row
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul
from webinfer.ops import movement as mv

MAX_LENGTH = 4096  # of a transform; its tables have this times half of it as many elements


def _table(op: Operation, length: int, results: int, wave: Callable[[float], float]) -> Value:
    """[length, results] of a wave at the angles of a transform."""
    turn = [wave(2.0 * math.pi * k / length) for k in range(length)]
    return op.constant([turn[i * k % length] for i in range(length) for k in range(results)], DType.FLOAT32,
                       (length, results))  # fmt: skip


def _product(op: Operation, x: Value, table: Value) -> Value:
    return op.emit(matmul.MATMUL, [x, table], matmul.MatmulAttrs())


def _fitted(op: Operation, x: Value, axis: int, length: int) -> Value:
    """x cut, or padded with zeros, to a length along an axis."""
    x = op.cut(x, axis, 0, min(length, x.type.shape[axis]))
    missing = tuple(length - n if i == axis else 0 for i, n in enumerate(x.type.shape))
    return x if not any(missing) else op.emit(mv.PAD, [x], mv.PadAttrs((0,) * x.type.rank, missing))


def _rfft2d(op: Operation) -> Value:
    """The transform of real rows along the last two axes; half of the last one, the rest mirrors it."""
    x, lengths = op.value(0), op.integers(1)
    if x.type.dtype is not DType.FLOAT32 or x.type.rank < 2 or len(lengths) != 2 or min(lengths) < 1:
        op.fail(f"x is {x.type} and lengths are {lengths}; needs float32 of two axes or more, and two lengths")
    within(f"{op.what}: length of the transform", max(lengths), MAX_LENGTH, "use shorter frames")
    height, width = lengths
    x = _fitted(op, _fitted(op, x, x.type.rank - 2, height), x.type.rank - 1, width)
    half = width // 2 + 1
    real = _product(op, x, _table(op, width, half, math.cos))
    imaginary = _product(op, x, _table(op, width, half, lambda angle: -math.sin(angle)))
    if height > 1:
        swap = (*range(x.type.rank - 2), x.type.rank - 1, x.type.rank - 2)
        a, b = op.transpose(real, swap), op.transpose(imaginary, swap)
        cos, sin = _table(op, height, height, math.cos), _table(op, height, height, lambda angle: -math.sin(angle))
        real = op.binary(ew.SUB, _product(op, a, cos), _product(op, b, sin))
        imaginary = op.binary(ew.ADD, _product(op, a, sin), _product(op, b, cos))
        real, imaginary = op.transpose(real, swap), op.transpose(imaginary, swap)
    return Complex(real, imaginary)


def _parts(op: Operation) -> Complex:
    z = op.value(0)
    if not isinstance(z, Complex):
        op.fail("its input is not complex")
    return z


def _complex_abs(op: Operation) -> Value:
    z = _parts(op)
    squares = [op.unary(ew.SQUARE, part) for part in (z.real, z.imaginary)]
    return op.unary(ew.SQRT, op.binary(ew.ADD, *squares))


CONVERTERS: dict[str, Row] = {
    "COMPLEX_ABS": (_complex_abs, ""),
    "IMAG": (lambda op: _parts(op).imaginary, ""),
    "REAL": (lambda op: _parts(op).real, ""),
    "RFFT2D": (_rfft2d, "Rfft2dOptions"),
}
