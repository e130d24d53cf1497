"""TensorFlow's Fourier transforms of the last axis: products with tables of waves, the parts of numbers apart."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.core.spectral import Complex, fitted, waves
from webinfer.importers.tfjs.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul

LONGEST = 2048  # elements of a transform; its tables have this many times as many


def _tables(op: Operation, size: int, rows: int, columns: int, scale: float, doubled: bool = False) -> list[Value]:
    """[rows, columns] of a cosine and of a sine."""
    return [waves(op, wave, size, rows, columns, scale, doubled) for wave in (math.cos, math.sin)]


def _times(op: Operation, x: Value, table: Value) -> Value:
    y = op.emit(matmul.MATMUL, [op.reshape(x, (x.type.size // x.type.shape[-1], x.type.shape[-1])), table],
                matmul.MatmulAttrs())  # fmt: skip
    return op.reshape(y, (*x.type.shape[:-1], table.type.shape[1]))


def _length(op: Operation, x: Value, size: int) -> int:
    """The length of the transform, which an input may say."""
    if op.count > 1:
        size = op.integer(1)
    within(f"{op.what}: length of the transform", size, LONGEST, "use shorter frames")
    if size < 1 or x.type.rank < 1 or not x.type.size or x.type.dtype is not DType.FLOAT32:
        op.fail(f"a transform of {x.type} of length {size}")
    return size


def _real_to_half(op: Operation) -> Complex:
    x = op.value(0)
    size = _length(op, x, x.type.shape[-1] if x.type.rank else 0)
    cos, sin = _tables(op, size, size, size // 2 + 1, 1.0)
    x = fitted(op, x, x.type.rank - 1, size)
    return Complex(_times(op, x, cos), op.unary(ew.NEG, _times(op, x, sin)))


def _complex(op: Operation) -> Complex:
    z = op.passed(0)
    if isinstance(z, Complex):
        return z
    x = op.value(0)
    return Complex(x, op.unary(ew.LINEAR, x, 0.0))


def _half_to_real(op: Operation) -> Value:
    z = _complex(op)
    half = z.real.type.shape[-1] if z.real.type.rank else 0
    size = _length(op, z.real, 2 * (half - 1))
    used = min(half, size // 2 + 1)
    cos, sin = _tables(op, size, used, size, 1.0 / size, doubled=True)
    real, imaginary = (fitted(op, part, part.type.rank - 1, used) for part in (z.real, z.imaginary))
    return op.binary(ew.SUB, _times(op, real, cos), _times(op, imaginary, sin))


def _whole(op: Operation) -> Complex:
    """The transform of complex rows, or its inverse."""
    z = _complex(op)
    size = _length(op, z.real, z.real.type.shape[-1] if z.real.type.rank else 0)
    forward = op.name == "FFT"
    cos, sin = _tables(op, size, size, size, 1.0 if forward else 1.0 / size)
    a, b, c, d = (_times(op, part, table) for part in (z.real, z.imaginary) for table in (cos, sin))
    first, second = (ew.ADD, ew.SUB) if forward else (ew.SUB, ew.ADD)
    return Complex(op.binary(first, a, d), op.binary(second, c, b))


CONVERTERS: dict[str, Convert] = {"FFT": _whole, "IFFT": _whole, "IRFFT": _half_to_real, "RFFT": _real_to_half}
