"""Elements in storage buffers: sizes, and accessors that never share a word between invocations."""

from __future__ import annotations

import pytest

from webinfer.codegen.elements import Element, bits_of, element_of, layout_of, scalar_layout, storage_bytes
from webinfer.dtypes import COMPUTED


@pytest.mark.parametrize(
    ("nbytes", "itemsize", "wanted"),
    [(0, 4, 16), (4, 4, 16), (16, 4, 16), (20, 4, 32), (3, 1, 16), (17, 1, 32), (8, 8, 32), (40, 8, 64), (2, 2, 16)],
)
def test_buffers_hold_whole_quads(nbytes: int, itemsize: int, wanted: int) -> None:
    assert storage_bytes(nbytes, itemsize) == wanted


def test_every_type_has_an_element_to_compute_with_and_one_to_move() -> None:
    for dtype in COMPUTED:
        assert layout_of(element_of(dtype)).load
        assert layout_of(bits_of(dtype)).store4
        assert bits_of(dtype).endswith(str(8 * dtype.itemsize))


@pytest.mark.parametrize("element", [e for e in Element if e not in ("f32", "i32", "u32", "bits32")])
def test_elements_that_share_words_are_not_stored_alone(element: Element) -> None:
    with pytest.raises(ValueError, match="one by one"):
        scalar_layout(element)


def test_signs_are_brought_along() -> None:
    assert "bitcast<i32>" in layout_of(Element.I8).load
    assert "bitcast<i32>" not in layout_of(Element.BITS8).load
