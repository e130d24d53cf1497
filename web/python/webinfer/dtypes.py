"""Element types and their sizes. Imports nothing of ours."""

from __future__ import annotations

import enum


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

    @property
    def inner(self) -> DType:
        """The type that values of this one are computed in: itself, or a wider one that holds them all or nearly so."""
        if self in _LETTER:
            return self
        return DType.FLOAT32 if self.is_float else DType.UINT8 if self.startswith("u") else DType.INT8

    @property
    def bits(self) -> int:
        """Bits of one element where a file packs elements side by side."""
        return int(self[-1]) if self in _SMALL else 4 if self is DType.FLOAT4_E2M1FN else 8 * self.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEMSIZE.get(self, 1)

    @property
    def letter(self) -> str:
        """The `struct` letter of one element (little-endian by our convention)."""
        return _LETTER[self]

    @property
    def is_float(self) -> bool:
        """Whether the type holds real numbers."""
        return "float" in self

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        if self.is_float:
            raise ValueError(f"{self} has no integer range")
        if self is DType.BOOL:
            return (0, 1)
        bits = self.bits
        return (0, 2**bits - 1) if self.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


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
COMPUTED = tuple(_LETTER)  # the types that kernels know
