"""TensorFlow's Fourier transforms of the last axis, the parts of numbers apart."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.fourier import real_of_half, transform
from webinfer.importers.core.spectral import Complex
from webinfer.importers.tfjs.operation import Convert, Operation
from webinfer.ops import elementwise as ew


def _length(op: Operation, x: Value, size: int) -> int:
    """The length of the transform, which an input may say."""
    if op.count > 1:
        size = op.integer(1)
    if size < 1 or x.type.rank < 1 or not x.type.size or x.type.dtype is not DType.FLOAT32:
        op.fail(f"a transform of {x.type} of length {size}")
    return size


def _real_to_half(op: Operation) -> Complex:
    x = op.value(0)
    size = _length(op, x, x.type.shape[-1] if x.type.rank else 0)
    return transform(op, x, size, size // 2 + 1)


def _complex(op: Operation) -> Complex:
    z = op.passed(0)
    if isinstance(z, Complex):
        return z
    x = op.value(0)
    return Complex(x, op.unary(ew.LINEAR, x, 0.0))


def _half_to_real(op: Operation) -> Value:
    z = _complex(op)
    half = z.real.type.shape[-1] if z.real.type.rank else 0
    return real_of_half(op, z, _length(op, z.real, 2 * (half - 1)))


def _whole(op: Operation) -> Complex:
    """The transform of complex rows, or its inverse."""
    z = _complex(op)
    size = _length(op, z.real, z.real.type.shape[-1] if z.real.type.rank else 0)
    return transform(op, z, size, size, inverse=op.name == "IFFT")


CONVERTERS: dict[str, Convert] = {"FFT": _whole, "IFFT": _whole, "IRFFT": _half_to_real, "RFFT": _real_to_half}
