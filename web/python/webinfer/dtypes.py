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
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    BOOL = "bool"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEMSIZE[self]

    @property
    def letter(self) -> str:
        """The `struct` letter of one element (little-endian by our convention)."""
        return _LETTER[self]

    @property
    def is_float(self) -> bool:
        """Whether the type holds real numbers."""
        return self in (DType.FLOAT32, DType.FLOAT16)

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        if self.is_float:
            raise ValueError(f"{self} has no integer range")
        if self is DType.BOOL:
            return (0, 1)
        bits = 8 * self.itemsize
        return (0, 2**bits - 1) if self.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


_ITEMSIZE = {
    DType.FLOAT32: 4, DType.FLOAT16: 2, DType.INT8: 1, DType.UINT8: 1, DType.INT16: 2,
    DType.INT32: 4, DType.UINT32: 4, DType.INT64: 8, DType.UINT64: 8, DType.BOOL: 1,
}  # fmt: skip
_LETTER = {
    DType.FLOAT32: "f", DType.FLOAT16: "e", DType.INT8: "b", DType.UINT8: "B", DType.INT16: "h",
    DType.INT32: "i", DType.UINT32: "I", DType.INT64: "q", DType.UINT64: "Q", DType.BOOL: "?",
}  # fmt: skip
