"""Protobuf's wire format, read with every length checked before use: the fields of one message after the other.

Nothing here recurses and no bytes are copied: a nested message is a view that the caller reads in its turn. The
`protobuf` package would not do: it needs generated code, and each page would have to load it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from webinfer.errors import ModelFormatError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10
_U32 = struct.Struct("<I").unpack_from
_U64 = struct.Struct("<Q").unpack_from


def fields(data: memoryview, what: str) -> Iterator[tuple[int, int, int, memoryview]]:
    """(field number, wire type, number, bytes) of each field of a message, in the file's order.

    Varints and fixed numbers are numbers from 0 up, with no bytes; strings, nested messages and packed lists are bytes.

    Raises:  ModelFormatError naming `what` and the byte, if a field is cut off or of an unknown wire type
    """
    at, size, nothing = 0, len(data), data[:0]
    while at < size:
        start = at
        key, at = _varint(data, at, what)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise _damaged(what, start, "field number 0")
        if wire == VARINT:
            value, at = _varint(data, at, what)
            yield number, wire, value, nothing
        elif wire == BYTES:
            length, at = _varint(data, at, what)
            if length > size - at:
                raise _damaged(what, start, f"field {number} of {length} bytes, {size - at} are left")
            yield number, wire, 0, data[at : at + length]
            at += length
        elif wire in (FIXED32, FIXED64):
            width, unpack = (4, _U32) if wire == FIXED32 else (8, _U64)
            if width > size - at:
                raise _damaged(what, start, f"field {number} is cut off")
            yield number, wire, unpack(data, at)[0], nothing
            at += width
        else:
            raise _damaged(what, start, f"field {number} of wire type {wire}, which is not in use")


def varints(data: memoryview, what: str) -> Iterator[int]:
    """The numbers of a packed list, from 0 up."""
    at, size = 0, len(data)
    while at < size:
        number, at = _varint(data, at, what)
        yield number


def signed(number: int) -> int:
    """The 64-bit number with its sign, as int32, int64 and enumerations are stored."""
    return number - 2**64 if number >> 63 else number


def real(number: int) -> float:
    """The float32 whose bits a fixed 32-bit field holds."""
    value: float = struct.unpack("<f", struct.pack("<I", number))[0]
    return value


def text(data: memoryview) -> str:
    """A string; bytes that are not UTF-8 are replaced."""
    return bytes(data).decode("utf-8", "replace")


def _varint(data: memoryview, at: int, what: str) -> tuple[int, int]:
    value = 0
    for i in range(_MAX_VARINT_BYTES):
        if at + i >= len(data):
            raise _damaged(what, at, "a number is cut off")
        byte = data[at + i]
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + i + 1
    raise _damaged(what, at, f"a number of more than {_MAX_VARINT_BYTES} bytes")


def _damaged(what: str, at: int, problem: str) -> ModelFormatError:
    return ModelFormatError(f"{what}, byte {at}: {problem}; the file is damaged, get it again")
