"""Protobuf's wire format: numbers of one byte and of more, and where messages end too soon."""

import pytest

from webinfer.errors import ModelFormatError
from webinfer.importers.readers.protobuf import BYTES, FIXED32, FIXED64, VARINT, fields, varints


def test_fields_of_every_kind_are_read_whatever_length_their_numbers_have() -> None:
    data = b"\x08\x05\x10\xac\x02\x1a\x02ab\x25\x01\x00\x00\x80\x29" + bytes([255] * 8)
    long = b"\xa2\x06\x80\x01" + b"x" * 128  # field 100: number and length take two bytes each
    found = [(n, wire, value, bytes(part)) for n, wire, value, part in fields(memoryview(data + long), "m")]
    assert found == [
        (1, VARINT, 5, b""), (2, VARINT, 300, b""), (3, BYTES, 0, b"ab"), (4, FIXED32, 0x80000001, b""),
        (5, FIXED64, 2**64 - 1, b""), (100, BYTES, 0, b"x" * 128),
    ]  # fmt: skip


CUT = (b"\x08", b"\x88", b"\x1a", b"\x1a\x80", b"\x1a\x02a", b"\x25\0\0\0", b"\x02\0", b"\x0b")


@pytest.mark.parametrize("data", CUT)
def test_what_ends_too_soon_or_is_of_no_kind_is_damaged(data: bytes) -> None:
    with pytest.raises(ModelFormatError, match="m, byte"):
        list(fields(memoryview(data), "m"))


def test_packed_numbers_are_read_one_byte_each_or_longer() -> None:
    minus_one = b"\xff" * 9 + b"\x01"
    assert varints(memoryview(b"\x01\x7f\x00"), "m") == [1, 127, 0]
    assert varints(memoryview(b"\x01" + minus_one + b"\x80\x01"), "m") == [1, 2**64 - 1, 128]
    assert varints(memoryview(b""), "m") == []
    for damaged in (b"\x01\x80", b"\x80" * 11):
        with pytest.raises(ModelFormatError, match="a number"):
            varints(memoryview(damaged), "m")
