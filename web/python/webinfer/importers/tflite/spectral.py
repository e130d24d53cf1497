"""TFLite's Fourier transforms, real and imaginary parts apart."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.fourier import transform
from webinfer.importers.core.spectral import Complex, fitted, magnitude
from webinfer.importers.tflite.operation import Operation, Row


def _rfft2d(op: Operation) -> Value:
    """The transform of real rows along the last two axes; half of the last one, the rest mirrors it."""
    x, lengths = op.value(0), op.integers(1)
    if x.type.dtype is not DType.FLOAT32 or x.type.rank < 2 or len(lengths) != 2 or min(lengths) < 1:
        op.fail(f"x is {x.type} and lengths are {lengths}; needs float32 of two axes or more, and two lengths")
    height, width = lengths
    x = fitted(op, x, x.type.rank - 2, height)
    z = transform(op, x, width, width // 2 + 1)
    if height > 1:
        swap = (*range(x.type.rank - 2), x.type.rank - 1, x.type.rank - 2)
        columns = Complex(op.transpose(z.real, swap), op.transpose(z.imaginary, swap))
        z = transform(op, columns, height, height)
        z = Complex(op.transpose(z.real, swap), op.transpose(z.imaginary, swap))
    return z


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
