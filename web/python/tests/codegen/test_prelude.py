"""The generated head and the packed parameters agree."""

from __future__ import annotations

import re
import struct

import pytest

from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import Access, Param, Slot, f32, i32, i32x8, pack, prelude, u32, u32x8

PARAMS = (
    *u32(count=7, channels=3_000_000_000),
    *i32(pad_top=-2),
    *u32x8(size=(5, 6, 7)),
    *f32(scale=0.1),
    *i32x8(stride=(-1, 2, -3, 4, -5, 6, -7, 8)),
)
SLOTS = (Slot("x", Element.F32, Access.READ), Slot("y", Element.U8, Access.WRITE))
MEMBER = re.compile(r"^    (\w+): (u32|i32|f32|array<vec4<(\w+)>, 2>),$", re.MULTILINE)


def _read_back(text: str, data: bytes) -> dict[str, object]:
    """The values of a uniform, found by WGSL's own rules of alignment from the struct's text."""
    struct_text = text[text.index("struct Params {") : text.index("}", text.index("struct Params {"))]
    found: dict[str, object] = {}
    offset = 0
    for name, kind, inner in MEMBER.findall(struct_text):
        alignment, size = (16, 32) if inner else (4, 4)
        offset = -(-offset // alignment) * alignment
        letter = {"u32": "I", "i32": "i", "f32": "f"}[inner or kind]
        values = struct.unpack_from(f"<{size // 4}{letter}", data, offset)
        found[name] = values if inner else values[0]
        offset += size
    assert -(-offset // 16) * 16 == len(data)
    return found


def test_packed_bytes_are_read_back_through_the_struct() -> None:
    found = _read_back(prelude(SLOTS, PARAMS), pack(PARAMS))
    assert found.pop("scale") == pytest.approx(0.1)
    assert found == {
        "count": 7,
        "channels": 3_000_000_000,
        "pad_top": -2,
        "size": (5, 6, 7, 0, 0, 0, 0, 0),
        "stride": (-1, 2, -3, 4, -5, 6, -7, 8),
    }


def test_bindings_are_numbered_in_order_and_the_uniform_comes_last() -> None:
    text = prelude(SLOTS, PARAMS)
    assert re.findall(r"@binding\((\d)\) var<(\w+)", text) == [("0", "storage"), ("1", "storage"), ("2", "uniform")]
    assert "var<storage, read> x_words: array<vec4<f32>>;" in text
    assert "var<storage, read_write> y_words: array<u32>;" in text


def test_accessors_follow_the_access() -> None:
    text = prelude((*SLOTS, Slot("z", Element.I32, Access.UPDATE, single=True)), ())
    assert "fn load4_x(" in text
    assert "fn store4_x(" not in text
    assert "fn store4_y(" in text
    assert "fn load_y(" not in text
    assert "fn store_z(" in text
    assert "fn load_z(" in text
    assert "Params" not in text


def test_what_is_fetched_early_is_widened_late() -> None:
    text = prelude((Slot("w", Element.F16, Access.READ, staged=True), Slot("x", Element.F32, Access.READ)), ())
    assert "fn fetch4_w(q: u32) -> vec2<u32> { return w_words[q]; }" in text
    assert "fn widen_w(w: vec2<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(" in text
    assert "fetch4_x" not in text


def test_nothing_to_pack_needs_no_uniform() -> None:
    assert pack(()) == b""


def test_too_many_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match="size has 9 entries"):
        u32x8(size=range(9))


def test_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(struct.error):
        pack((Param("count", u32(n=0)[0].type, -1),))
