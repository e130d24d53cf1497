"""Crops: the map there and back, and the pixels that they pick, against NumPy and Pillow."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.ops.case_graphs import run

from webinfer.host import current
from webinfer.models.layouts import PictureInput
from webinfer.tasks.base import Detection
from webinfer.tasks.crop import Border, Crop, InputSpec, Region
from webinfer.tasks.image import Picture, prepare_image, read_image
from webinfer.tasks.workspace import Workspace

ANGLES = (0.0, 0.3, -1.1, math.pi / 2, math.pi, 4.0)
REGIONS = [Region(61.5, 40.25, 48.0, 36.0, angle) for angle in ANGLES]


@lru_cache(maxsize=1)
def workspace() -> Workspace:
    return Workspace(run(current().kernels()))


@lru_cache(maxsize=1)
def scene() -> Image.Image:
    """Smooth everywhere, so that two ways of sampling differ by rounding only, and nowhere symmetric."""
    x, y = np.meshgrid(np.arange(120), np.arange(80))
    planes = [127 + 90 * np.sin(x / 17 + y / 29), 2 * x, 3 * y]
    return Image.fromarray(np.stack(planes, -1).round().astype(np.uint8))


def cropped(crop: Crop, border: Border = Border.BLACK) -> np.ndarray[Any, Any]:
    """The crop of the scene in 0..255."""
    data = prepare_image(workspace(), read_image(scene(), current()), crop, scale=1.0, offset=0.0, border=border)
    return np.frombuffer(data, np.float32).reshape(crop.height, crop.width, 3)


@pytest.mark.parametrize("region", REGIONS, ids=lambda r: f"{r.rotation:.1f}")
def test_points_find_their_way_back(region: Region) -> None:
    crop = Crop(region, 128, 96)
    assert crop.to_image(0.5, 0.5) == pytest.approx((region.x, region.y))
    for point in ((0.0, 0.0), (1.0, 0.25), (0.3, 1.0), (-0.5, 2.0)):
        assert crop.from_image(*crop.to_image(*point)) == pytest.approx(point, abs=1e-12)
    (x, y), (right, _) = crop.to_image(0.0, 0.5), crop.to_image(1.0, 0.5)
    assert math.dist((x, y), crop.to_image(1.0, 0.5)) == pytest.approx(region.width)
    assert right - x == pytest.approx(region.width * math.cos(region.rotation), abs=1e-9)


@pytest.mark.parametrize("region", REGIONS, ids=lambda r: f"{r.rotation:.1f}")
def test_the_matrix_maps_centres_of_pixels(region: Region) -> None:
    crop = Crop(region, 24, 12)
    ax, ay, a0, bx, by, b0 = crop.matrix()
    for i, j in ((0, 0), (23, 0), (0, 11), (7, 5)):
        x, y = crop.to_image((i + 0.5) / 24, (j + 0.5) / 12)
        assert (ax * i + ay * j + a0, bx * i + by * j + b0) == pytest.approx((x - 0.5, y - 0.5), abs=1e-9)


@pytest.mark.parametrize("angle", ANGLES)
def test_a_turned_crop_is_pillow_s_turned_picture(angle: float) -> None:
    region = Region(60.0, 40.0, 40.0, 30.0, angle)
    turned = scene().rotate(math.degrees(angle), Image.Resampling.BILINEAR, center=(60.0, 40.0))
    want = np.asarray(turned.crop((40, 25, 80, 55)), np.float32)
    np.testing.assert_allclose(cropped(Crop(region, 40, 30)), want, atol=1.01)


@pytest.mark.parametrize("size", [(128, 128), (192, 192), (256, 144)])
@pytest.mark.parametrize("picture", [(640, 480), (1280, 720), (511, 513), (31, 977)])
def test_the_whole_picture_is_centred_with_its_aspect(picture: tuple[int, int], size: tuple[int, int]) -> None:
    crop = Crop.fit(*picture, *size)
    scale = max(picture[0] / size[0], picture[1] / size[1])
    left, top = ((side * scale - shown) / 2 for side, shown in zip(size, picture, strict=True))
    want = (scale, 0, 0.5 * scale - 0.5 - left, 0, scale, 0.5 * scale - 0.5 - top)
    np.testing.assert_array_equal(np.float32(crop.matrix()), np.float32(want))
    assert crop.from_image(0, 0) == pytest.approx((left / scale / size[0], top / scale / size[1]))


def test_an_aspect_is_kept_by_showing_more_or_given_up_by_stretching() -> None:
    wide = PictureInput(64, 32, 1.0, 0.0)
    region = Region(60.0, 40.0, 20.0, 30.0, 0.7)
    kept = InputSpec(wide).crop(region).region
    assert (kept.width, kept.height, kept.rotation) == (60.0, 30.0, 0.7)
    assert InputSpec(wide).crop(Region(60.0, 40.0, 100.0, 10.0)).region.height == 50.0
    assert InputSpec(wide, keep_aspect=False).crop(region).region == region
    stretched = cropped(InputSpec(wide, keep_aspect=False).crop(Region.whole(120, 80)))
    want = np.asarray(scene().transform((64, 32), Image.Transform.AFFINE, (120 / 64, 0, 0, 0, 80 / 32, 0), 2))
    np.testing.assert_allclose(stretched[1:-1, 1:-1], want[1:-1, 1:-1].astype(np.float32), atol=1.01)


def test_outside_lies_black_or_the_edge_goes_on() -> None:
    crop = Crop(Region(0.0, 0.0, 40.0, 40.0, 0.2), 40, 40)
    first = np.asarray(scene(), np.float32)[0, 0]
    assert not cropped(crop)[0, 0].any()
    np.testing.assert_allclose(cropped(crop, Border.EDGE)[0, 0], first, atol=1e-3)


def test_values_are_scaled_and_offset() -> None:
    picture = Picture(1, 1, bytes((255, 51, 0, 255)))
    data = prepare_image(workspace(), picture, Crop.fit(1, 1, 1, 1), scale=2 / 255, offset=-1.0)
    np.testing.assert_allclose(np.frombuffer(data, np.float32), [1.0, -0.6, -1.0], atol=1e-6)


@pytest.mark.parametrize("angle", ANGLES)
def test_the_box_of_a_detection_in_a_turned_crop_holds_its_corners(angle: float) -> None:
    crop = Crop(Region(60.0, 40.0, 50.0, 30.0, angle), 128, 128)
    corners = [crop.to_image(x, y) for x in (0.2, 0.9) for y in (0.1, 0.4)]
    box = Detection(0.2, 0.1, 0.9, 0.4, 1.0, ()).box(crop)
    (left, right), (top, bottom) = ((min(v), max(v)) for v in zip(*corners, strict=True))
    assert (box.left, box.top) == pytest.approx((left, top), abs=1e-9)
    assert (box.left + box.width, box.top + box.height) == pytest.approx((right, bottom), abs=1e-9)
