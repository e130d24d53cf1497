"""Element types and their sizes. Imports nothing of ours."""

from __future__ import annotations

import enum
import math
import struct
from array import array
from collections.abc import Iterable


class DType(enum.StrEnum):
    """An element type, named as NumPy names it."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    BOOL = "bool"
    # Of inputs and outputs alone, one byte or more an element: kernels compute in `inner`.
    FLOAT64 = "float64"
    BFLOAT16 = "bfloat16"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8_E8M0FNU = "float8_e8m0fnu"
    FLOAT4_E2M1FN = "float4_e2m1fn"
    INT4 = "int4"
    UINT4 = "uint4"
    INT2 = "int2"
    UINT2 = "uint2"

    inner: DType  # what values of this one are computed in: itself, or a wider one that holds them all or nearly so
    bits: int  # of one element where a file packs elements side by side
    itemsize: int  # bytes of one element
    letter: str  # the `struct` letter of one element (little-endian by our convention), of types that kernels know
    is_float: bool  # whether the type holds real numbers

    __hash__ = str.__hash__  # types are looked up all the time

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        if self.is_float:
            raise ValueError(f"{self} has no integer range")
        if self is DType.BOOL:
            return (0, 1)
        half = 2 ** (self.bits - 1)
        return (0, 2 * half - 1) if self.startswith("u") else (-half, half - 1)


_ITEMSIZE = {
    DType.FLOAT32: 4, DType.FLOAT16: 2, DType.INT8: 1, DType.UINT8: 1, DType.INT16: 2,
    DType.UINT16: 2, DType.INT32: 4, DType.UINT32: 4, DType.INT64: 8, DType.UINT64: 8, DType.BOOL: 1,
    DType.FLOAT64: 8, DType.BFLOAT16: 2,
}  # fmt: skip
_SMALL = (DType.INT4, DType.UINT4, DType.INT2, DType.UINT2)
_LETTER = {
    DType.FLOAT32: "f", DType.FLOAT16: "e", DType.INT8: "b", DType.UINT8: "B", DType.INT16: "h",
    DType.UINT16: "H", DType.INT32: "i", DType.UINT32: "I", DType.INT64: "q", DType.UINT64: "Q", DType.BOOL: "?",
}  # fmt: skip
for _dtype in DType:  # plain attributes: loading a model asks for them thousands of times
    _dtype.is_float = "float" in _dtype
    _dtype.itemsize = _ITEMSIZE.get(_dtype, 1)
    _dtype.bits = int(_dtype[-1]) if _dtype in _SMALL else 4 if _dtype is DType.FLOAT4_E2M1FN else 8 * _dtype.itemsize
    if _dtype in _LETTER:
        _dtype.letter, _dtype.inner = _LETTER[_dtype], _dtype
    else:
        _dtype.inner = DType.FLOAT32 if _dtype.is_float else DType.UINT8 if _dtype.startswith("u") else DType.INT8
COMPUTED = tuple(_LETTER)  # the types that kernels know


def round_to_f32(x: float) -> float:
    """The nearest float32; arithmetic on such numbers, rounded again, is float32 arithmetic."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


def all_to_f32(numbers: Iterable[float]) -> list[float]:
    """The nearest float32 of each number, as `round_to_f32` makes them one by one: quantised models have thousands."""
    return array("f", numbers).tolist()
