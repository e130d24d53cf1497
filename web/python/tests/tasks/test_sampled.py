"""Parts of pictures that are brought to the kernel: few bytes, and the same input bit for bit as of all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run

from webinfer.host import current
from webinfer.tasks import sampled as module
from webinfer.tasks.crop import Border, Crop, Region, Sampling
from webinfer.tasks.image import prepare_image, read_image
from webinfer.tasks.sampled import sampled
from webinfer.tasks.workspace import Workspace

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(33)
CROPS = 40  # of each picture


@lru_cache(maxsize=1)
def workspace() -> Workspace:
    return Workspace(run(current().kernels()))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pieces are copied wherever they are smaller, however many."""
    monkeypatch.setattr(module, "PIECE_BYTES", 0)
    module._pieces.cache_clear()
    yield
    module._pieces.cache_clear()


def views(rgb: Array) -> dict[str, Array]:
    """A picture as arrays hold it."""
    return {
        "RGB": rgb, "BGR": rgb[..., ::-1], "RGBA": np.concatenate([rgb, rgb[..., :1]], 2), "grey": rgb[..., 1],
        "upside down": rgb[::-1], "mirrored": rgb[:, ::-1], "turned back": rgb[::-1, ::-1, ::-1],
        "cut out": rgb[2:-3, 3:-1], "every second": rgb[::2, ::2], "16 bits": rgb.astype(np.uint16) * 256 + 9,
        "planes": np.moveaxis(np.ascontiguousarray(np.moveaxis(rgb, 2, 0)), 0, 2),
    }  # fmt: skip


def crops(width: int, height: int) -> Iterator[Crop]:
    """All of the picture, and regions of it, upright and turned, that reach past its edges or lie beside it."""
    for out in ((16, 16), (7, 5), (1, 1)):
        yield Crop.fit(width, height, *out)
        yield Crop(Region.whole(width, height), *out, corners=True)
    for _ in range(CROPS):
        side, turned = float(RNG.uniform(1, 1.5 * height)), RNG.random() < 0.4
        x, y = RNG.uniform(-0.2 * width, 1.2 * width), RNG.uniform(-0.2 * height, 1.2 * height)
        if RNG.random() < 0.3:
            x, y = round(4 * x) / 4, round(4 * y) / 4
        region = Region(float(x), float(y), side, float(RNG.uniform(1, 1.5 * height)), 0.7 * math.pi if turned else 0.0)
        yield Crop(region, *map(int, RNG.integers(1, 24, 2)), corners=bool(RNG.random() < 0.5))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("size", [(203, 331), (97, 52), (3, 150), (2, 2)], ids=str)
def test_parts_of_a_picture_give_the_input_of_all_of_it(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    taken = pairs = 0
    rgb = RNG.integers(0, 256, (*size, 3), np.uint8)
    for name, array in views(rgb).items():
        if not array.size:
            continue
        picture = read_image(array, current())
        for crop in crops(picture.width, picture.height):
            how = {"border": Border(int(RNG.integers(2))), "sampling": Sampling(int(RNG.integers(2)))}
            seen = sampled(picture, crop, how["sampling"])
            taken, pairs = taken + isinstance(seen.data, list), pairs + (seen.pairs[0] > 0)
            got = bytes(prepare_image(workspace(), picture, crop, scale=2 / 255, offset=-1.0, **how))
            with monkeypatch.context() as whole:
                whole.setattr(module, "_pieces", lambda *_: None)
                want = bytes(prepare_image(workspace(), picture, crop, scale=2 / 255, offset=-1.0, **how))
            assert got == want, (name, crop, how, seen.rows, seen.pairs)
    if size[0] > 50:
        assert taken > 50
        assert pairs > 20


def test_of_large_pictures_few_bytes_are_copied() -> None:
    picture = read_image(np.zeros((2160, 3840, 3), np.uint8), current())
    whole = sampled(picture, Crop.fit(3840, 2160, 128, 128), Sampling.FIXED)
    assert whole.nbytes == sum(map(len, whole.data)) < 2 * 75 * 3840 * 3
    face = sampled(picture, Crop(Region(900, 800, 400, 400, 0.3), 192, 192), Sampling.FIXED)
    assert face.nbytes < 520 * 520 * 3
    small = read_image(np.zeros((300, 300, 3), np.uint8), current())
    assert not isinstance(sampled(small, Crop.fit(300, 300, 256, 256), Sampling.FIXED).data, list)
