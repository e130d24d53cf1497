"""Option maps of custom operators: what is in them, and what is no such map."""

from __future__ import annotations

import random

import pytest
from flatbuffers import flexbuffers
from tests.importers.sample_models import SIZE_3_4

from webinfer.errors import ModelFormatError
from webinfer.importers.readers.flexbuffer import read_map

OPTIONS = {
    "count": 20,
    "large": 2**40,
    "negative": -7,
    "scale": 1.5,
    "small": 0.1,
    "flag": True,
    "off": False,
    "indices": [61, 146, 405],
    "signed": [-1, 2**33],
    "weights": [0.5, -0.25],
}


def _packed(options: dict[str, object]) -> memoryview:
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in options.items():
            builder.Key(key)
            if isinstance(value, list):
                builder.TypedVectorFromElements(value)
            else:
                builder.Add(value)
    return memoryview(bytes(builder.Finish()))


def test_numbers_and_vectors_are_read_by_key() -> None:
    read = read_map(_packed(OPTIONS), "here")
    assert set(read) == set(OPTIONS)
    for key, value in OPTIONS.items():
        assert read[key] == (tuple(value) if isinstance(value, list) else pytest.approx(value))


def test_indirect_numbers_are_followed_and_texts_left_out() -> None:
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("far")
        builder.IndirectInt(-123456)
        builder.Key("name")
        builder.String("evil")
        builder.Key("ratio")
        builder.IndirectFloat(2.5)
    assert read_map(memoryview(bytes(builder.Finish())), "here") == {"far": -123456, "ratio": 2.5}


def test_the_smallest_map() -> None:
    assert read_map(memoryview(SIZE_3_4), "here") == {"output_height": 3, "output_width": 4}
    assert read_map(_packed({}), "here") == {}


@pytest.mark.parametrize("data", [b"", b"\0", b"\x04\x04\x01", b"\x24\x01", b"\xff" * 64, b"\x03\x04\x01"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ModelFormatError, match="operator 5: its options are not a FlexBuffer map"):
        read_map(memoryview(data), "operator 5")


def test_damaged_maps_are_read_or_refused() -> None:
    whole = bytes(_packed(OPTIONS))
    rng = random.Random(5)
    refused = 0
    for _ in range(3000):
        copy = bytearray(whole[: rng.randrange(len(whole) + 1)] if rng.random() < 0.2 else whole)
        for _ in range(rng.randrange(1, 4)):
            if copy:
                copy[rng.randrange(len(copy))] = rng.randrange(256)
        try:
            assert isinstance(read_map(memoryview(bytes(copy)), "x"), dict)
        except ModelFormatError:
            refused += 1
    assert refused > 100
