"""Pictures as users of CPython have them: arrays of any strides, Pillow's modes, files, EXIF, 16 bits, transparency."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from webinfer.errors import InputError
from webinfer.host import array_memory, current
from webinfer.host.pictures import python_picture
from webinfer.tasks.crop import Crop, Region, Sampling
from webinfer.tasks.image import Picture, read_image
from webinfer.tasks.sampled import sampled

Array = np.ndarray[Any, Any]
SCENE = np.random.default_rng(9).integers(0, 256, (40, 52, 3), np.uint8)
LOW, HIGH, GREY, EXIF_TURN = 77, 256, SCENE[..., 1], 0x0112


def seen(source: Any) -> Array:
    """The red, green and blue that the kernel is told to read of a source, [height, width, 3]."""
    return pixels(read_image(source, current()))


def pixels(picture: Picture) -> Array:
    first, row, pixel, channel = picture.steps
    y, x, c = np.indices((picture.height, picture.width, 3))
    data = np.frombuffer(bytes(memoryview(picture.pixels).cast("B")), np.uint8)
    found: Array = data[first + y * row + x * pixel + c * channel]
    return found


def every(array: Array) -> dict[str, Array]:
    """Views of an array [H, W, C], which no copy of theirs may differ from."""
    fixed = np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)
    planes = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 2, 0)), 0, 2)
    return {
        "as it is": array, "cut out": array[3:31, 7:40], "upside down": array[::-1], "mirrored": array[:, ::-1],
        "every second": array[::2, ::2], "one of ten": array[::10, ::10], "turned": array.transpose(1, 0, 2),
        "planes": planes, "planes, turned": planes[::-1, ::-1], "read only": fixed,
    }  # fmt: skip


@pytest.mark.parametrize("without_ctypes", [False, True], ids=["memory", "copied"])
def test_arrays_are_read_as_they_lie(without_ctypes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if without_ctypes:
        monkeypatch.setattr(array_memory, "memory_of", lambda *_: None)
    alpha = np.concatenate([SCENE, SCENE[..., :1]], axis=2)
    for name, view in every(SCENE).items():
        np.testing.assert_array_equal(seen(view), view, err_msg=name)
        np.testing.assert_array_equal(seen(view[..., ::-1]), view[..., ::-1], err_msg=f"{name}, BGR")
        np.testing.assert_array_equal(seen(view[..., 0]), np.repeat(view[..., :1], 3, 2), err_msg=f"{name}, grey")
        np.testing.assert_array_equal(seen(view[..., 1:2]), np.repeat(view[..., 1:2], 3, 2), err_msg=name)
    for name, view in every(alpha).items():
        np.testing.assert_array_equal(seen(view), view[..., :3], err_msg=f"{name}, RGBA")
    for name, view in every(SCENE.astype(np.uint16) * HIGH + LOW).items():
        np.testing.assert_array_equal(seen(view), view // HIGH, err_msg=f"{name}, 16 bits")
    np.testing.assert_array_equal(seen(np.broadcast_to(GREY[..., None], SCENE.shape))[..., 2], GREY)
    np.testing.assert_array_equal(seen(memoryview(SCENE)[::-1]), SCENE[::-1])


def test_an_array_is_not_copied() -> None:
    array = SCENE.copy()
    picture = read_image(array[::-1, :, ::-1], current())
    array[:] = 7
    assert (pixels(picture) == 7).all()


def test_only_the_rows_that_a_crop_shows_are_brought() -> None:
    picture = read_image(SCENE[::-1], current())
    for region in (Region(20, 9, 12, 6), Region(20, 39, 8, 8, 0.5), Region(9, -50, 4, 4), Region(9, 90, 4, 4)):
        crop = Crop(region, 8, 8)
        found = sampled(picture, crop, Sampling.EXACT)
        rows, data, nbytes = found.rows, found.data, found.nbytes
        _, _, _, bx, by, b0 = crop.matrix()
        at = [b0 + bx * i + by * j for i in range(8) for j in range(8)]
        needed = {min(max(int(np.floor(y)) + more, 0), 39) for y in at for more in (0, 1)}
        assert needed <= set(rows)
        assert len(rows) <= len(needed) + 3
        assert nbytes == len(data) <= len(rows) * 52 * 3


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    image.save(stream := io.BytesIO(), form, **options)
    return stream.getvalue()


def test_files_are_read_by_path_and_by_bytes(tmp_path: Path) -> None:
    data = saved(Image.fromarray(SCENE), "PNG")
    (path := tmp_path / "scene.png").write_bytes(data)
    for source in (path, str(path), data, bytearray(data)):
        np.testing.assert_array_equal(seen(source), SCENE)
    with pytest.raises(InputError, match=r"nothing\.png cannot be read"):
        read_image(tmp_path / "nothing.png", current())


def test_a_drawing_is_named_as_what_it_is(tmp_path: Path) -> None:
    drawing = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>'
    (tmp_path / "drawing.svg").write_bytes(drawing)
    for source in (drawing, tmp_path / "drawing.svg"):
        with pytest.raises(InputError, match="is an SVG file, which can only be rendered in a page; save it as PNG"):
            read_image(source, current())
    with pytest.raises(InputError, match="cannot be read"):
        read_image(b"<!doctype html><title>404</title>", current())


def test_without_pillow_a_path_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("webinfer.host.pictures.importlib.import_module", missing)
    with pytest.raises(InputError, match="without Pillow; pip install pillow"):
        python_picture("photo.jpg", lambda width, height: None)


@pytest.mark.parametrize("turn", range(1, 9))
def test_photos_are_seen_as_their_exif_data_turn_them(turn: int) -> None:
    back: dict[int, Callable[[Array], Array]] = {
        1: lambda a: a, 2: lambda a: a[:, ::-1], 3: lambda a: a[::-1, ::-1], 4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2), 6: lambda a: np.rot90(a, 1), 7: lambda a: np.rot90(a, 2).transpose(1, 0, 2),
        8: lambda a: np.rot90(a, -1),
    }  # fmt: skip
    exif = Image.Exif()
    exif[EXIF_TURN] = turn
    data = saved(Image.fromarray(np.ascontiguousarray(back[turn](SCENE))), "PNG", exif=exif)
    for source in (data, Image.open(io.BytesIO(data))):
        np.testing.assert_array_equal(seen(source), SCENE)


def test_pillow_s_modes_are_seen_as_a_page_shows_them() -> None:
    deep = GREY.astype(np.uint16) * HIGH + LOW
    grey = np.repeat(GREY[..., None], 3, 2)
    image = Image.fromarray(SCENE)
    alpha = image.convert("RGBA")
    alpha.putalpha(Image.fromarray(np.where(GREY > 99, GREY, 0).astype(np.uint8)))
    shares = np.where(GREY > 99, GREY, 0)[..., None] / 255
    assert np.abs((seen(alpha) - SCENE.astype(int)) * shares).max() <= 1, "rounded by their alpha, as browsers do"
    assert not seen(alpha)[GREY <= 99].any(), "fully transparent pixels are black"
    palette, lines = image.quantize(16), image.convert("1")
    for source, want in (
        (image, SCENE), (image.convert("CMYK"), 255 - np.asarray(image.convert("CMYK"))[..., :3]),
        (Image.fromarray(GREY), grey), (Image.fromarray(deep), grey), (Image.fromarray(deep.astype(np.int32)), grey),
        (Image.fromarray(deep.astype(">u2")), grey), (Image.fromarray(GREY.astype(np.int32)), grey),
        (palette, np.asarray(palette.convert("RGB"))), (lines, np.asarray(lines.convert("RGB"))),
    ):  # fmt: skip
        np.testing.assert_array_equal(seen(source), want, err_msg=source.mode)
