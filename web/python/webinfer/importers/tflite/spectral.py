"""TFLite's Fourier transforms: products with tables of cosines and sines, real and imaginary parts apart."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.core.spectral import Complex, fitted, magnitude, waves
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul

MAX_LENGTH = 4096  # of a transform; its tables have this times half of it as many elements


def _product(op: Operation, x: Value, table: Value) -> Value:
    return op.emit(matmul.MATMUL, [x, table], matmul.MatmulAttrs())


def _rfft2d(op: Operation) -> Value:
    """The transform of real rows along the last two axes; half of the last one, the rest mirrors it."""
    x, lengths = op.value(0), op.integers(1)
    if x.type.dtype is not DType.FLOAT32 or x.type.rank < 2 or len(lengths) != 2 or min(lengths) < 1:
        op.fail(f"x is {x.type} and lengths are {lengths}; needs float32 of two axes or more, and two lengths")
    within(f"{op.what}: length of the transform", max(lengths), MAX_LENGTH, "use shorter frames")
    height, width = lengths
    x = fitted(op, fitted(op, x, x.type.rank - 2, height), x.type.rank - 1, width)
    half = width // 2 + 1
    real = _product(op, x, waves(op, math.cos, width, width, half))
    imaginary = _product(op, x, waves(op, math.sin, width, width, half, -1.0))
    if height > 1:
        swap = (*range(x.type.rank - 2), x.type.rank - 1, x.type.rank - 2)
        a, b = op.transpose(real, swap), op.transpose(imaginary, swap)
        cos, sin = (
            waves(op, wave, height, height, height, scale) for wave, scale in ((math.cos, 1.0), (math.sin, -1.0))
        )
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
    return magnitude(op, _parts(op))


CONVERTERS: dict[str, Row] = {
    "COMPLEX_ABS": (_complex_abs, ""),
    "IMAG": (lambda op: _parts(op).imaginary, ""),
    "REAL": (lambda op: _parts(op).real, ""),
    "RFFT2D": (_rfft2d, "Rfft2dOptions"),
}
