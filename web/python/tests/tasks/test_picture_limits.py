"""Pictures that are too large or no pictures are refused before their pixels are touched, by a typed error."""

from __future__ import annotations

import io
import tracemalloc
from typing import Any

import numpy as np
import pytest
from PIL import Image

from webinfer.errors import InputError, LimitError
from webinfer.host import current
from webinfer.tasks.image import MAX_SIDE, Picture, read_image

HUGE = 20_000


class Claimed(Image.Image):
    """A picture that says how large it is and whose pixels nobody may ask for."""

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__()
        self._size = size

    def convert(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the pixels were asked for")


def bitmap(width: int, height: int) -> Image.Image:
    """A file of a few bytes that claims to be so large."""
    Image.new("1", (1, 1)).save(stream := io.BytesIO(), "BMP")
    head = bytearray(stream.getvalue())
    head[18:26] = width.to_bytes(4, "little") + height.to_bytes(4, "little")
    return Image.open(io.BytesIO(bytes(head)))


LARGE = {
    "Pillow": lambda: Claimed((HUGE, HUGE)),
    "array": lambda: np.broadcast_to(np.uint8(7), (HUGE, HUGE, 3)),
    "array with alpha": lambda: np.broadcast_to(np.uint8(7), (HUGE, HUGE, 4)),
    "one long side": lambda: Claimed((MAX_SIDE + 1, 1)),
    "a file": lambda: bitmap(HUGE, 4),
    "picture": lambda: Picture(HUGE, HUGE, b""),
    "all in all": lambda: Claimed((MAX_SIDE, MAX_SIDE)),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_picture_that_is_too_large_takes_no_memory(name: str) -> None:
    source = LARGE[name]()
    tracemalloc.start()
    try:
        with pytest.raises(LimitError, match=r"(side|pixels) of the image.*: needs .*, the limit is \d+"):
            read_image(source, current())
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "source",
    [Claimed((0, 5)), np.zeros((0, 4, 3), np.uint8), np.zeros((4, 0, 4), np.uint8), Picture(0, 0, b"")],
    ids=["Pillow", "rows", "columns", "picture"],
)
def test_a_picture_without_pixels_is_refused(source: Any) -> None:
    with pytest.raises(InputError, match="needs at least one"):
        read_image(source, current())


@pytest.mark.parametrize(
    "source",
    [bitmap(64, 64), np.zeros((2, 2, 3), np.float32), np.zeros((2, 2), np.int8), np.zeros((2, 2, 5), np.uint8),
     np.array(["x"]), np.array(["2020-01-01"], "M8[s]"), None, "photo.jpg", b"\xff\xd8"],
    ids=lambda source: type(source).__name__ + str(getattr(source, "dtype", "")),
)  # fmt: skip
def test_what_is_no_picture_is_refused(source: Any) -> None:
    with pytest.raises(InputError, match=r"is not an image|cannot be read"):
        read_image(source, current())
