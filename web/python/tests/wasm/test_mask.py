"""The kernel that lays a mask over the picture that a model saw a part of."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.targets import BUILDS, Target
from tests.wasm.memory import Array, Memory

from webinfer.tasks.crop import Crop, Region
from webinfer.tasks.pose_landmarker import KERNEL, mask_map

CROPS = {
    "as it is": Crop(Region(4.0, 3.0, 8.0, 6.0), 8, 6),
    "larger than the picture": Crop(Region(10.0, 9.0, 44.0, 44.0), 7, 7),
    "a part, turned": Crop(Region(9.0, 8.0, 9.0, 7.0, 0.6), 12, 10),
    "elsewhere": Crop(Region(-1e9, 3.0, 8.0, 6.0), 8, 6),
}


def laid(mask: Array, crop: Crop, height: int, width: int) -> Array:
    """By from_image, pixel by pixel: bilinear, nothing outside."""
    rows, columns = np.indices((height, width)).astype(float)
    at = np.array([crop.from_image(x, y) for x, y in zip(columns.ravel(), rows.ravel(), strict=True)])
    x, y = at[:, 0] * crop.width, at[:, 1] * crop.height
    left, top = np.floor(x), np.floor(y)
    total = np.zeros(len(at))
    for dy in (0, 1):
        for dx in (0, 1):
            column, row = left + dx, top + dy
            inside = (column >= 0) & (row >= 0) & (column < crop.width) & (row < crop.height)
            weight = (1 - np.abs(x - column)) * (1 - np.abs(y - row)) * inside
            values = mask[np.where(inside, row, 0).astype(int), np.where(inside, column, 0).astype(int)]
            total += weight * values
    return total.reshape(height, width)


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("name", CROPS)
def test_masks_lie_where_the_model_saw_what_they_show(name: str, target: Target) -> None:
    target.demand()
    crop, height, width = CROPS[name], 16, 19
    mask = np.random.default_rng(5).random((crop.height, crop.width), np.float32)
    memory, y = Memory(str(dict(target.options)["isa"])), np.empty((height, width), np.float32)
    source, place = memory.put(mask), memory.room(y.nbytes)
    for part in ((9, height), (0, 9)):
        memory.kernels.call(KERNEL, source, place, crop.width, crop.height, width, *mask_map(crop), *part)
    np.testing.assert_allclose(memory.get(place, y), laid(mask, crop, height, width), atol=2e-5)
