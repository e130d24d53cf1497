"""Fourier transforms along the last axis: short ones are products with tables of waves, long ones are made of these.

A transform of a*b elements is b transforms of a elements, a turn of each result, and a transforms of b elements
(Cooley and Tukey's). One whose length is a large prime number is a convolution with a wave that rises (Bluestein's),
and so two transforms of a power of two.
"""

from __future__ import annotations

import cmath
import math
from functools import lru_cache

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.core.operation import BaseOperation
from webinfer.importers.core.spectral import Complex, fitted, waves
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul

LONGEST = 2**20  # elements of a transform
LONGEST_PRIME = 2**16  # of one whose length has no small factors
_SHORT = 256  # elements of a transform that is one product
_SHORT_PRIME = 1024  # of one whose length is a prime number, or nearly
_LARGEST_FACTOR = 128
Parts = tuple[Value, Value | None]  # real and imaginary parts [R, L] of rows; None where all are real


def transform(op: BaseOperation, z: Value, size: int, kept: int, inverse: bool = False) -> Complex:
    """The first `kept` results of the transform of `size` elements, or of its inverse; z is cut or padded with zeros.

    Shapes:  z [..., L] -> [..., kept]
    Raises:  LimitError if the transform is too long
    """
    within(f"{op.what}: length of the transform", size, LONGEST, "use shorter frames")
    parts = [z.real, z.imaginary] if isinstance(z, Complex) else [z]
    *outer, length = z.type.shape
    rows, used = math.prod(outer), min(length, size)
    real, *more = (op.reshape(fitted(op, part, len(outer), used), (rows, used)) for part in parts)
    found = _rows(op, (real, more[0] if more else None), size, kept, 1 if inverse else -1, 1 / size if inverse else 1.0)
    return Complex(*(op.reshape(part, (*outer, kept)) for part in found))


def real_of_half(op: BaseOperation, z: Complex, size: int) -> Value:
    """The real rows of which z holds half of the transform; each other result stands for its mirrored one too.

    Shapes:  z [..., L] -> [..., size]
    Raises:  LimitError if the transform is too long
    """
    within(f"{op.what}: length of the transform", size, LONGEST, "use shorter frames")
    *outer, length = z.type.shape
    rows, used = math.prod(outer), min(length, size // 2 + 1)
    parts = [op.reshape(fitted(op, part, len(outer), used), (rows, used)) for part in (z.real, z.imaginary)]
    if size <= _SHORT:
        cos, sin = (waves(op, wave, size, used, size, 1 / size, doubled=True) for wave in (math.cos, math.sin))
        y = op.binary(ew.SUB, _product(op, parts[0], cos), _product(op, parts[1], sin))
    else:
        times = op.constant([2.0 if i and 2 * i != size else 1.0 for i in range(used)], DType.FLOAT32)
        doubled = [op.binary(ew.MUL, part, times) for part in parts]
        y, _ = _rows(op, (doubled[0], doubled[1]), size, size, 1, 1 / size)
    return op.reshape(y, (*outer, size))


def _product(op: BaseOperation, x: Value, table: Value) -> Value:
    return op.emit(matmul.MATMUL, [x, table], matmul.MatmulAttrs())


def _rows(op: BaseOperation, parts: Parts, size: int, kept: int, sign: int, scale: float) -> tuple[Value, Value]:
    """The transform of each row, which may be shorter than `size`. Shapes:  [R, L] -> [R, kept]"""
    a = _factor(size)
    if size <= _SHORT or (a == 1 and size <= _SHORT_PRIME):
        return _short(op, parts, size, kept, sign, scale)
    if a == 1:
        return _chirped(op, parts, size, kept, sign, scale)
    b, rows = size // a, parts[0].type.shape[0]
    real, *more = (_turned(op, fitted(op, part, 1, size), (rows, a, b)) for part in parts if part)
    first = _short(op, (real, more[0] if more else None), a, a, sign, scale)  # [rows * b, a]
    angles = [sign * 2 * math.pi * (i * k % size) / size for i in range(b) for k in range(a)]
    wave = [op.constant([f(t) for t in angles], DType.FLOAT32, (b, a)) for f in (math.cos, math.sin)]
    shaped = [op.reshape(part, (rows, b, a)) for part in first]
    real, imaginary = (_turned(op, part, (rows, b, a)) for part in _times(op, (shaped[0], shaped[1]), *wave))
    width = -(-kept // a)
    second = _rows(op, (real, imaginary), b, width, sign, 1.0)  # [rows * a, width]
    results = [
        op.cut(op.reshape(_turned(op, part, (rows, a, width)), (rows, width * a)), 1, 0, kept) for part in second
    ]
    return results[0], results[1]


def _factor(size: int) -> int:
    """The largest factor of a length that is not beyond its root."""
    return max(n for n in range(1, min(math.isqrt(size), _LARGEST_FACTOR) + 1) if size % n == 0)


def _turned(op: BaseOperation, x: Value, shape: tuple[int, int, int]) -> Value:
    """x as rows of this shape with the last two axes exchanged. Shapes:  [R, a, b] -> [R * b, a]"""
    rows, a, b = shape
    return op.reshape(op.transpose(op.reshape(x, shape), (0, 2, 1)), (rows * b, a))


def _short(op: BaseOperation, parts: Parts, size: int, kept: int, sign: int, scale: float) -> tuple[Value, Value]:
    """One product with a table for each part. Shapes:  [R, L] -> [R, kept]"""
    real, imaginary = parts
    length = real.type.shape[1]
    cos, sin = (
        waves(op, wave, size, length, kept, factor) for wave, factor in ((math.cos, scale), (math.sin, sign * scale))
    )
    a, b = _product(op, real, cos), _product(op, real, sin)
    if imaginary is None:
        return a, b
    c, d = _product(op, imaginary, cos), _product(op, imaginary, sin)
    return op.binary(ew.SUB, a, d), op.binary(ew.ADD, b, c)


def _times(op: BaseOperation, parts: Parts, real: Value, imaginary: Value) -> tuple[Value, Value]:
    """Complex numbers times constant ones."""
    a, b = op.binary(ew.MUL, parts[0], real), op.binary(ew.MUL, parts[0], imaginary)
    if parts[1] is None:
        return a, b
    c, d = op.binary(ew.MUL, parts[1], real), op.binary(ew.MUL, parts[1], imaginary)
    return op.binary(ew.SUB, a, d), op.binary(ew.ADD, b, c)


def _chirped(op: BaseOperation, parts: Parts, size: int, kept: int, sign: int, scale: float) -> tuple[Value, Value]:
    """Rows times a chirp, convolved with the chirp turned back, times it again: i*k = (i² + k² - (k - i)²) / 2."""
    within(f"{op.what}: length of the transform, of a large prime factor", size, LONGEST_PRIME, "pad the frames")
    padded, length = 1 << (2 * size - 2).bit_length(), parts[0].type.shape[1]
    chirp, spectrum = _chirp(size, padded, sign)

    def constants(numbers: list[complex]) -> list[Value]:
        return [op.constant([getattr(n, part) for n in numbers], DType.FLOAT32) for part in ("real", "imag")]

    risen = _times(op, parts, *constants(chirp[:length]))
    there = _times(op, _rows(op, risen, padded, padded, -1, 1.0), *constants(spectrum))
    back = _rows(op, there, padded, kept, 1, scale / padded)
    return _times(op, back, *constants(chirp[:kept]))


@lru_cache(maxsize=4)
def _chirp(size: int, padded: int, sign: int) -> tuple[list[complex], list[complex]]:
    """A chirp of `size` elements, and the transform of `padded` elements of what it is convolved with."""
    chirp = [cmath.exp(sign * 1j * math.pi * (i * i % (2 * size)) / size) for i in range(size)]
    back = [n.conjugate() for n in chirp]
    return chirp, _spectrum([*back, *([0j] * (padded - 2 * size + 1)), *back[:0:-1]])


def _spectrum(x: list[complex]) -> list[complex]:
    """The transform of a power of two of numbers."""
    half = len(x) // 2
    if not half:
        return x
    even, odd = _spectrum(x[::2]), _spectrum(x[1::2])
    turned = [cmath.exp(-1j * math.pi * k / half) * n for k, n in enumerate(odd)]
    return [a + b for a, b in zip(even, turned, strict=True)] + [a - b for a, b in zip(even, turned, strict=True)]
