"""The kernels that cut lines of text out of pictures and stretch them, beside what OpenCV 5 made of the same pixels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import BUILDS, Target
from tests.wasm.memory import Array

from webinfer.host.native import NativeHost
from webinfer.host.pictures import PixelLayout
from webinfer.tasks.image import Picture
from webinfer.tasks.text_pixels import Normalisation, Quad, TextPixels, padding, projective
from webinfer.tasks.workspace import Workspace

PLAIN = Normalisation((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255))  # 0..255 as they are
A = -0.75  # of OpenCV's cubic


def pixels_of(target: Target) -> TextPixels:
    target.demand()
    return TextPixels(Workspace(run(NativeHost().kernels(str(dict(target.options)["isa"])))))


def image(height: int, width: int) -> Array:
    return np.random.default_rng(7).integers(0, 256, (height, width, 3), np.uint8)


def picture_of(rgb: Array) -> Picture:
    return Picture(rgb.shape[1], rgb.shape[0], memoryview(rgb.tobytes()), PixelLayout(0, 3 * rgb.shape[1], 3, 1))


def resized(rgb: Array, width: int, height: int) -> Array:
    """As resize.cpp: weights of 1/2048, the sums along rows lose 4 bits, those of columns 16 each."""

    def taps(count: int, size: int, columns: bool) -> tuple[Array, Array, Array, Array]:
        at = ((np.arange(count) + 0.5) * (size / count) - 0.5).astype(np.float32)
        first = np.floor(at).astype(int)
        weight = at - first.astype(np.float32)
        if columns:
            weight[(first < 0) | (first >= size - 1)] = 0
        a, b = np.rint((1 - weight) * np.float32(2048)), np.rint(weight * np.float32(2048))
        return np.clip(first, 0, size - 1), np.clip(first + 1, 0, size - 1), a.astype(int), b.astype(int)

    left, right, a, b = taps(width, rgb.shape[1], True)
    upper, lower, c, d = taps(height, rgb.shape[0], False)
    sums = (rgb[:, left] * a[None, :, None] + rgb[:, right] * b[None, :, None]) >> 4
    return ((sums[upper] * c[:, None, None] >> 16) + (sums[lower] * d[:, None, None] >> 16) + 2) >> 2


def cut(rgb: Array, quad: Quad) -> Array:
    """As warpPerspective with INTER_CUBIC and BORDER_REPLICATE, in float64."""
    a, b, c, d = quad
    width, height = int(max(math.dist(a, b), math.dist(c, d))), int(max(math.dist(a, d), math.dist(b, c)))
    ax, ay, a0, bx, by, b0, wx, wy = projective(quad, width, height)
    y, x = np.mgrid[:height, :width].astype(float)
    whole = wx * x + wy * y + 1
    at_x, at_y = (ax * x + ay * y + a0) / whole, (bx * x + by * y + b0) / whole

    def weights(at: Array) -> list[Array]:
        x = at - np.floor(at)
        y = 1 - x
        first = ((A * (x + 1) - 5 * A) * (x + 1) + 8 * A) * (x + 1) - 4 * A
        middle = [((A + 2) * one - (A + 3)) * one * one + 1 for one in (x, y)]
        return [first, *middle, 1 - first - middle[0] - middle[1]]

    left, top, total = np.floor(at_x).astype(int) - 1, np.floor(at_y).astype(int) - 1, np.zeros((height, width, 3))
    for j, down in enumerate(weights(at_y)):
        for i, across in enumerate(weights(at_x)):
            rows, columns = np.clip(top + j, 0, rgb.shape[0] - 1), np.clip(left + i, 0, rgb.shape[1] - 1)
            total += rgb[rows, columns] * (down * across)[..., None]
    return np.clip(np.rint(total), 0, 255).astype(int)


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize(
    ("size", "to"), [((37, 61), (96, 48)), ((60, 50), (40, 48)), ((64, 128), (64, 32)), ((1, 1), (5, 48))]
)
def test_pages_are_stretched_as_opencv_stretches_bytes(
    size: tuple[int, int], to: tuple[int, int], target: Target
) -> None:
    rgb, pixels = image(*size), pixels_of(target)
    tall = np.concatenate([rgb] * (1 if padding(size[1], size[0]) == 0 else 40))  # not so low that black is put around
    got = pixels.page(picture_of(tall), *to, PLAIN)
    assert got.shape == (1, 3, to[1], to[0])
    np.testing.assert_array_equal(got.numpy()[0].transpose(1, 2, 0)[..., ::-1], resized(tall, *to))
    pixels.close()


QUADS: dict[str, Quad] = {
    "as it lies": ((10, 8), (50, 8), (50, 28), (10, 28)),
    "turned": ((12, 20), (60, 5), (66, 21), (17, 37)),
    "not quite a rectangle": ((3, 6), (70, 11), (69, 29), (2, 25)),
    "over the edge": ((-9, -4), (79, -2), (78, 9), (-10, 8)),
}


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("name", QUADS)
def test_lines_are_cut_out_as_opencv_cuts_them(name: str, target: Target) -> None:
    rgb, pixels, quad = image(40, 72), pixels_of(target), QUADS[name]
    (line,) = pixels.lines(picture_of(rgb), [quad])
    want = cut(rgb, quad)
    got = np.frombuffer(line.pixels, np.uint8).reshape(line.height, line.width, 3)
    assert got.shape == want.shape
    assert np.abs(got.astype(int) - want).max() <= 1  # positions are float32 here: halves may round the other way
    assert (got != want).mean() < 0.01
    pixels.close()


@pytest.mark.parametrize("quarters", range(4))
def test_lines_are_turned_before_they_are_stretched_and_what_is_not_used_is_0(quarters: int) -> None:
    rgb, pixels = image(20, 50), pixels_of(BUILDS[-1])
    got = pixels.line(picture_of(rgb), quarters, 48, 160, 130, PLAIN).numpy()[0].transpose(1, 2, 0)
    np.testing.assert_array_equal(got[:, :130, ::-1], resized(np.rot90(rgb, quarters), 130, 48))
    assert not got[:, 130:].any()
    pixels.close()


def test_low_and_wide_pictures_get_black_above_and_below() -> None:
    assert [padding(*size) for size in ((640, 480), (640, 80), (640, 31), (640, 30), (100, 20), (9, 3))] == [
        0, 0, 64, 65, 20, 28,
    ]  # fmt: skip
    rgb, pixels = image(20, 40), pixels_of(BUILDS[-1])
    got = pixels.page(picture_of(rgb), 40, 60, PLAIN).numpy()[0].transpose(1, 2, 0)[..., ::-1]
    np.testing.assert_array_equal(got, np.pad(rgb, ((20, 20), (0, 0), (0, 0))))
    pixels.close()


def test_a_page_is_read_as_its_bytes_lie() -> None:
    rgb, pixels = image(40, 48), pixels_of(BUILDS[-1])
    want = resized(rgb, 32, 64)
    planes = np.ascontiguousarray(np.moveaxis(rgb, 2, 0))
    bgr = memoryview(np.ascontiguousarray(rgb[..., ::-1]).tobytes())
    for data, layout in (
        (bgr, PixelLayout(2, 3 * 48, 3, -1)),
        (memoryview(planes.tobytes()), PixelLayout(0, 48, 1, 40 * 48)),
        (memoryview(rgb[::-1].tobytes()), PixelLayout(39 * 3 * 48, -3 * 48, 3, 1)),
    ):
        got = pixels.page(Picture(48, 40, data, layout), 32, 64, PLAIN).numpy()[0].transpose(1, 2, 0)[..., ::-1]
        np.testing.assert_array_equal(got, want)
    pixels.close()
