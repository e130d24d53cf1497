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
_WIRES = (VARINT, FIXED64, BYTES, FIXED32)


def fields(data: memoryview, what: str) -> Iterator[tuple[int, int, int, memoryview]]:
    """(field number, wire type, number, bytes) of each field of a message, in the file's order.

    Varints and fixed numbers are numbers from 0 up, with no bytes; strings, nested messages and packed lists are bytes.

    Raises:  ModelFormatError naming `what` and the byte, if a field is cut off or of an unknown wire type
    """
    at, size, nothing = 0, len(data), data[:0]
    while at < size:
        start, key = at, data[at]  # numbers of one byte, which most are, are read here
        at += 1
        if key >= 0x80:
            key, at = _varint(data, start, what)
        number, wire = key >> 3, key & 7
        if number == 0 or wire not in _WIRES:
            raise _damaged(what, start, f"field {number} of wire type {wire}, which is not in use")
        if wire == BYTES:
            length = data[at] if at < size else 0x80
            at += 1
            if length >= 0x80:
                length, at = _varint(data, at - 1, what)
            if length > size - at:
                raise _damaged(what, start, f"field {number} of {length} bytes, {size - at} are left")
            yield number, wire, 0, data[at : at + length]
            at += length
        elif wire == VARINT:
            value = data[at] if at < size else 0x80
            at += 1
            if value >= 0x80:
                value, at = _varint(data, at - 1, what)
            yield number, wire, value, nothing
        else:
            width = 4 if wire == FIXED32 else 8
            if width > size - at:
                raise _damaged(what, start, f"field {number} is cut off")
            yield number, wire, int.from_bytes(data[at : at + width], "little"), nothing
            at += width


def varints(data: memoryview, what: str) -> list[int]:
    """The numbers of a packed list, from 0 up."""
    packed = bytes(data)
    if packed.isascii():  # one byte each
        return list(packed)
    numbers, at = list[int](), 0
    while at < len(packed):
        number, at = _varint(packed, at, what)
        numbers.append(number)
    return numbers


def signed(number: int) -> int:
    """The 64-bit number with its sign, as int32, int64 and enumerations are stored."""
    return number - 2**64 if number >> 63 else number


def real(number: int) -> float:
    """The float32 whose bits a fixed 32-bit field holds."""
    value: float = struct.unpack("<f", struct.pack("<I", number))[0]
    return value


def text(data: memoryview) -> str:
    """A string; bytes that are not UTF-8 are replaced."""
    return str(data, "utf-8", "replace")


def _varint(data: memoryview | bytes, at: int, what: str) -> tuple[int, int]:
    value, shift = 0, 0
    for byte in data[at : at + _MAX_VARINT_BYTES]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + shift // 7
    if shift < 7 * _MAX_VARINT_BYTES:
        raise _damaged(what, at, "a number is cut off")
    raise _damaged(what, at, f"a number of more than {_MAX_VARINT_BYTES} bytes")


def _damaged(what: str, at: int, problem: str) -> ModelFormatError:
    return ModelFormatError(f"{what}, byte {at}: {problem}; the file is damaged; download it again")
