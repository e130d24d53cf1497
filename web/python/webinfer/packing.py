"""Element types that no kernel knows: from the bytes of users and files to the type that is computed in, and back.

Nothing is rounded here. Who makes values of such a type rounds them first, as a step of the graph.
"""

from __future__ import annotations

import functools
import math
import struct
from array import array

from webinfer.dtypes import DType
from webinfer.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """A float of up to 8 bits: how many of them are the fraction, the exponent's bias, and what is special.

    `largest` is its largest number. `nan` is its only NaN, 0 where it has those of IEEE 754, None where it has none.
    `zero` is the code of minus zero, `is_signed` whether it has a sign.
    """

    fraction: int
    bias: int
    largest: float
    nan: int | None
    zero: int
    is_signed: bool = True


SMALL_FLOATS = {
    DType.FLOAT8_E4M3FN: SmallFloat(3, 7, 448.0, 0x7F, 0x80),
    DType.FLOAT8_E4M3FNUZ: SmallFloat(3, 8, 240.0, 0x80, 0),
    DType.FLOAT8_E5M2: SmallFloat(2, 15, 57344.0, 0, 0x80),
    DType.FLOAT8_E5M2FNUZ: SmallFloat(2, 16, 57344.0, 0x80, 0),
    DType.FLOAT8_E8M0FNU: SmallFloat(0, 127, 2.0**127, 0xFF, 0, is_signed=False),
    DType.FLOAT4_E2M1FN: SmallFloat(1, 1, 6.0, None, 8),
}


def _decoded(kind: SmallFloat, code: int, bits: int) -> float:
    if code == kind.nan and kind.nan:
        return math.nan
    if not kind.is_signed:
        return math.ldexp(1.0, code - kind.bias)
    top = 1 << (bits - 1)
    low, sign = code % top, -1.0 if code & top else 1.0
    if kind.nan and low == 0x7F and kind.zero:  # the NaN of either sign
        return math.nan
    exponent, part = low >> kind.fraction, low % (1 << kind.fraction)
    if kind.nan == 0 and exponent == 2 * kind.bias + 1:
        return math.nan if part else sign * math.inf
    whole = part + (1 << kind.fraction if exponent else 0)
    return math.ldexp(sign * whole, max(exponent, 1) - kind.bias - kind.fraction)


@functools.cache
def _values(dtype: DType) -> tuple[float, ...]:
    """The number of each byte; bits that the type lacks are not looked at."""
    count = 1 << dtype.bits
    return tuple(_decoded(SMALL_FLOATS[dtype], code % count, dtype.bits) for code in range(256))


@functools.cache
def _codes(dtype: DType) -> dict[int, int]:
    """The byte of each number, by the bits of its float32."""
    kind, values = SMALL_FLOATS[dtype], _values(dtype)
    listed = [(struct.unpack("<I", struct.pack("<f", values[code]))[0], code) for code in range(1 << dtype.bits)]
    return {0x80000000: kind.zero, **dict(reversed(listed))}


@functools.cache
def _integers(dtype: DType) -> bytes:
    """The inner byte of each byte, of which only the type's bits count."""
    size, top = 1 << dtype.bits, dtype.range[1]
    return bytes((code % size - (size if code % size > top else 0)) & 255 for code in range(256))


def to_inner(data: memoryview, dtype: DType) -> memoryview:
    """Elements of `dtype`, in whole bytes each, as bytes of the type that they are computed in."""
    if dtype.inner is dtype:
        return data
    if dtype is DType.FLOAT64:
        return memoryview(array("f", data.cast("B").cast("d"))).cast("B")
    if dtype is DType.BFLOAT16:
        words = bytearray(2 * data.nbytes)
        words[2::4], words[3::4] = data[0::2], data[1::2]
        return memoryview(words)
    if not dtype.is_float:
        return memoryview(bytes(data).translate(_integers(dtype)))
    return memoryview(array("f", map(_values(dtype).__getitem__, data))).cast("B")


def from_inner(data: memoryview, dtype: DType) -> memoryview:
    """What `to_inner` was given, from values that the type holds."""
    if dtype.inner is dtype:
        return data
    if dtype is DType.FLOAT64:
        return memoryview(array("d", data.cast("B").cast("f"))).cast("B")
    if dtype is DType.BFLOAT16:
        halves = bytearray(data.nbytes // 2)
        halves[0::2], halves[1::2] = data[2::4], data[3::4]
        return memoryview(halves)
    if not dtype.is_float:
        low = bytes(code % (1 << dtype.bits) for code in range(256))
        return memoryview(bytes(data).translate(low))
    codes, nan = _codes(dtype), SMALL_FLOATS[dtype].nan
    lost = 0x7F if nan == 0 else nan or 0
    return memoryview(bytes(codes.get(bits, lost) for bits in data.cast("B").cast("I")))


def spread(data: memoryview, dtype: DType, count: int) -> memoryview:
    """`count` elements that a file packs side by side, the first in the low bits, in a byte each."""
    if dtype.bits >= 8:
        return data
    each = 8 // dtype.bits
    apart, raw = bytearray(data.nbytes * each), bytes(data)
    for i in range(each):
        apart[i::each] = raw.translate(bytes((code >> i * dtype.bits) % (1 << dtype.bits) for code in range(256)))
    return memoryview(apart)[:count]


def file_bytes(dtype: DType, count: int) -> int:
    """Bytes of `count` elements that a file packs side by side."""
    return -(-count * dtype.bits // 8)
