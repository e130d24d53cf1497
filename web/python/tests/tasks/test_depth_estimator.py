"""Depth of pictures, with small models of random weights in the place of real ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

import webinfer
from webinfer.errors import ModelFormatError
from webinfer.models.layouts import IMAGENET
from webinfer.tasks import DepthEstimator, DepthMap

SIDE, CELLS = 16, 8
EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
WEIGHTS = np.random.default_rng(3).normal(size=(1, 2, 2, 3)).astype(np.float32)
PICTURE = np.random.default_rng(4).integers(0, 256, (SIDE, SIDE, 3), np.uint8)


def small(shape: tuple[int, ...]) -> webinfer.GraphBuilder:
    """A random convolution of the picture, of stride 2: a map of another size than the input, in this shape."""
    builder = webinfer.GraphBuilder("depth")
    x = builder.input("pixel_values", (1, SIDE, SIDE, 3))
    depth = builder.node("conv2d", x, builder.constant(WEIGHTS.ravel().tolist(), WEIGHTS.shape), stride=(2, 2))
    builder.output(builder.node("reduce_mean", x, axes=(1, 2)), "features")
    builder.output(builder.node("reshape", depth, shape=shape), "predicted_depth")
    return builder


def expected() -> np.ndarray[Any, Any]:
    values = (PICTURE - np.array(IMAGENET.mean)) / np.array(IMAGENET.deviation)
    blocks = values.reshape(CELLS, 2, CELLS, 2, 3).transpose(0, 2, 1, 3, 4)
    return np.asarray((blocks * WEIGHTS[0]).sum((2, 3, 4)))


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_depth_is_as_large_as_the_picture_and_of_0_to_1(target: Target) -> None:
    target.demand()

    async def depth(shape: tuple[int, ...]) -> DepthMap:
        with await DepthEstimator.create(small(shape), backend=target.backend) as task:
            return await task.estimate(PICTURE)

    wanted = expected()
    for shape in ((1, CELLS, CELLS), (1, 1, CELLS, CELLS), (1, CELLS, CELLS, 1)):
        found = run(depth(shape))
        assert (found.width, found.height) == (SIDE, SIDE)
        assert (found.low, found.high) == pytest.approx((wanted.min(), wanted.max()), abs=1e-3)
        values = found.array()
        assert values.min() >= 0
        assert values.max() <= 1
        part = (wanted - wanted.min()) / np.ptp(wanted)
        corner = values[0, 0], values[-1, -1]  # of cells that have no neighbours on those sides
        assert corner == pytest.approx((part[0, 0], part[-1, -1]), abs=1e-3)


def test_models_without_a_map_are_refused() -> None:
    builder = webinfer.GraphBuilder("other")
    builder.output(builder.node("reduce_mean", builder.input("x", (1, SIDE, SIDE, 3)), axes=(1, 2)), "y")
    with pytest.raises(ModelFormatError, match="needed are a picture and a map of one channel"):
        run(DepthEstimator.create(builder, backend="wasm"))
