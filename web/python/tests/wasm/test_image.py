"""The kernel that lays a picture into a model's input: crop, rotation, letterbox, borders, normalisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from tests.ops.targets import BUILDS, Target
from tests.wasm.memory import Array, Memory

from webinfer.kernel_constants import BORDER_BLACK, BORDER_REPEAT, SAMPLING_EXACT, SAMPLING_FIXED

SPARE_PIXELS = 3  # at the end of each row, never to be seen


@dataclass(frozen=True)
class View:
    """An output of `out` pixels; pixel (x, y) samples at (ax*x + ay*y + a0, bx*x + by*y + b0)."""

    out: tuple[int, int]
    matrix: tuple[float, float, float, float, float, float]
    border: int = BORDER_BLACK
    scale: float = 2 / 255
    offset: float = -1.0
    sampling: int = SAMPLING_EXACT


def picture(height: int, width: int) -> Array:
    """RGBA rows with spare pixels of 255 behind them."""
    rng = np.random.default_rng(3)
    image = np.full((height, width + SPARE_PIXELS, 4), 255, np.uint8)
    image[:, :width] = rng.integers(0, 256, (height, width, 4))
    return image


def expected(image: Array, view: View) -> Array:
    """Bilinear samples in float64; outside the image lies black, or its edge goes on.

    Fixed ones are OpenCV's: weights of 1/32, sums rounded to whole numbers, halves upwards (remap in imgwarp.cpp).
    """
    height, width = image.shape[0], image.shape[1] - SPARE_PIXELS
    rgb = image[:, :width, :3].astype(np.float64)
    rows, columns = np.indices(view.out)
    ax, ay, a0, bx, by, b0 = view.matrix
    at_x, at_y = ax * columns + ay * rows + a0, bx * columns + by * rows + b0
    if view.sampling == SAMPLING_FIXED:
        at_x, at_y = np.rint(at_x * 32) / 32, np.rint(at_y * 32) / 32
    x, y = np.floor(at_x).astype(int), np.floor(at_y).astype(int)

    def texel(dy: int, dx: int) -> Array:
        inside = (y + dy >= 0) & (y + dy < height) & (x + dx >= 0) & (x + dx < width)
        found = rgb[np.clip(y + dy, 0, height - 1), np.clip(x + dx, 0, width - 1)]
        return found if view.border == BORDER_REPEAT else found * inside[..., None]

    wx, wy = (at_x - x)[..., None], (at_y - y)[..., None]
    top = texel(0, 0) * (1 - wx) + texel(0, 1) * wx
    bottom = texel(1, 0) * (1 - wx) + texel(1, 1) * wx
    found = top * (1 - wy) + bottom * wy
    return view.offset + view.scale * (np.floor(found + 0.5) if view.sampling == SAMPLING_FIXED else found)


def sampled(isa: str, image: Array, view: View) -> Array:
    """What the kernel writes, its rows in two parts."""
    return laid(isa, image, 0, (4 * image.shape[1], 4, 1), (image.shape[1] - SPARE_PIXELS, image.shape[0]), view)


def laid(isa: str, data: Array, first: int, steps: tuple[int, int, int], size: tuple[int, int], view: View) -> Array:
    """The same of a picture of `size` whose first red byte lies at `first`; `steps` are of rows, pixels, channels."""
    memory, (oh, ow) = Memory(isa), view.out
    y = np.empty((oh, ow, 3), np.float32)
    source, target = memory.put(data), memory.room(y.nbytes)
    how = (ow, view.border, view.sampling, 0, 0)
    args = (source + first, target, *size, *steps, *how, *map(float, view.matrix), view.scale, view.offset)
    for part in ((oh // 2, oh), (0, oh // 2)):
        memory.kernels.call("u8_picture_to_f32", *args, *part)
    return memory.get(target, y)


VIEWS = {
    "as it is": View((7, 9), (1, 0, 0, 0, 1, 0)),
    "smaller": View((4, 5), (1.75, 0, 0.375, 0, 1.75, 0.375)),
    "larger": View((15, 20), (0.45, 0, -0.25, 0, 0.45, -0.25)),
    "larger, edge goes on": View((15, 20), (0.45, 0, -0.25, 0, 0.45, -0.25), BORDER_REPEAT),
    "letterbox": View((12, 12), (0.75, 0, -0.125, 0, 0.75, -1.125)),
    "crop": View((3, 3), (1, 0, 2, 0, 1, 3)),
    "a quarter turn": View((9, 7), (0, 1, 0, -1, 0, 6)),
    "turned, edge goes on": View((8, 8), (0.8, -0.6, 2.2, 0.6, 0.8, -1.7), BORDER_REPEAT),
    "far outside": View((2, 3), (1, 0, 1e9, 0, 1, -1e9)),
    "far outside, edge goes on": View((2, 3), (1, 0, 1e9, 0, 1, -1e9), BORDER_REPEAT),
    "other range": View((7, 9), (1, 0, 0, 0, 1, 0), scale=1 / 255, offset=0.0),
    "fixed": View((9, 8), (0.8, -0.6, 2.2, 0.6, 0.8, -1.7), BORDER_REPEAT, 1.0, 0.0, SAMPLING_FIXED),
    "fixed, halves of 1/32": View(
        (7, 9), (1, 0, 0.015625, 0, 1, 0.046875), scale=1.0, offset=0.0, sampling=SAMPLING_FIXED
    ),
    "one pixel": View((1, 1), (1, 0, 4.25, 0, 1, 3.5)),
}


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("name", VIEWS)
def test_pictures_are_sampled_as_the_map_says(name: str, target: Target) -> None:
    target.demand()
    isa, image, view = str(dict(target.options)["isa"]), picture(7, 9), VIEWS[name]
    np.testing.assert_allclose(sampled(isa, image, view), expected(image, view), rtol=0, atol=3e-6)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_a_picture_of_one_pixel_has_an_edge_everywhere(target: Target) -> None:
    target.demand()
    isa, image = str(dict(target.options)["isa"]), picture(1, 1)
    view = View((3, 4), (0.5, 0, -1.0, 0, 0.5, -1.0), BORDER_REPEAT)
    np.testing.assert_allclose(sampled(isa, image, view), expected(image, view), rtol=0, atol=3e-6)


def layouts(rgb: Array) -> dict[str, tuple[Array, int, tuple[int, int, int]]]:
    """The same picture as others hold it: bytes, the first red one, steps of rows, pixels and channels."""
    height, width, _ = rgb.shape
    row, planes = 3 * width, np.ascontiguousarray(np.moveaxis(rgb, 2, 0))
    deep = rgb.astype(np.uint16) * 256 + 77
    every_second = np.full((height, 2 * width, 3), 255, np.uint8)
    every_second[:, ::2] = rgb
    far = np.full((height, 7 * width, 3), 255, np.uint8)
    far[:, ::7] = rgb
    return {
        "RGB": (rgb, 0, (row, 3, 1)),
        "BGR": (np.ascontiguousarray(rgb[..., ::-1]), 2, (row, 3, -1)),
        "upside down": (np.ascontiguousarray(rgb[::-1]), (height - 1) * row, (-row, 3, 1)),
        "mirrored": (np.ascontiguousarray(rgb[:, ::-1]), row - 3, (row, -3, 1)),
        "mirrored BGR": (np.ascontiguousarray(rgb[:, ::-1, ::-1]), row - 1, (row, -3, -1)),
        "planes": (planes, 0, (width, 1, height * width)),
        "16 bits": (deep, 1, (2 * row, 6, 2)),
        "every second pixel": (every_second, 0, (2 * row, 6, 1)),
        "every seventh pixel": (far, 0, (7 * row, 21, 1)),
        "turned": (np.ascontiguousarray(np.moveaxis(rgb, 1, 0)), 0, (3, 3 * height, 1)),
    }


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_a_picture_is_the_same_however_its_bytes_lie(target: Target) -> None:
    target.demand()
    isa, image, view = str(dict(target.options)["isa"]), picture(7, 9), VIEWS["turned, edge goes on"]
    want, rgb = sampled(isa, image, view), image[:, :9, :3]
    for name, (data, first, steps) in layouts(np.ascontiguousarray(rgb)).items():
        np.testing.assert_array_equal(laid(isa, data, first, steps, (9, 7), view), want, err_msg=name)
    grey = np.ascontiguousarray(image[..., 1])
    image[..., 0] = image[..., 2] = image[..., 1]
    got = laid(isa, grey, 0, (grey.shape[1], 1, 0), (9, 7), view)
    np.testing.assert_array_equal(got, sampled(isa, image, view), err_msg="grey")
