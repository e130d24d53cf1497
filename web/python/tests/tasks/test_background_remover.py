"""Foreground and background, with a small model in the place of the real one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

import webinfer
from webinfer.errors import ModelFormatError
from webinfer.tasks import BackgroundRemover

SIDE = 8
EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]


def brightness(planes: bool = True) -> webinfer.GraphBuilder:
    """Bright pixels are foreground; a coarse map and features follow, as IS-Net's do."""
    builder = webinfer.GraphBuilder("small")
    x = builder.input("input", (1, 3, SIDE, SIDE) if planes else (1, SIDE, SIDE, 3))
    grey = builder.node("reduce_mean", x, axes=(1,) if planes else (3,), keep_dims=True)
    builder.output(builder.node("add", grey, 0.5), "output")
    builder.output(builder.node("mul", grey, 0.0), "coarse")
    builder.output(builder.node("relu", x), "features")
    return builder


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_a_matte_is_as_large_as_the_picture(target: Target) -> None:
    target.demand()
    picture = np.zeros((24, 40, 3), np.uint8)
    picture[:, 20:] = 255
    picture[6:18, 5:15] = (255, 128, 1)

    async def matte(model: Any) -> Any:
        with await BackgroundRemover.create(model, backend=target.backend) as task:
            assert [info.name for info in task.session.outputs] == ["matte"]
            mask = await task.matte(picture)
            return np.array(mask.values).reshape(mask.height, mask.width)

    for planes in (True, False):
        values = run(matte(brightness(planes)))
        assert values.shape == (24, 40)
        assert values[12, 30:].min() == pytest.approx(1, abs=1e-3)
        assert values[12, 10] == pytest.approx((255 + 128 + 1) / 765, abs=1e-3)
        assert values[1, 1] == pytest.approx(0, abs=1e-3)
        assert 0.2 < values[2, 20] < 0.8  # between two of the model's pixels


def test_models_without_a_map_are_refused() -> None:
    builder = webinfer.GraphBuilder("other")
    builder.output(builder.node("relu", builder.input("x", (1, SIDE, SIDE, 3))), "y")
    with pytest.raises(ModelFormatError, match="needed are a picture and a map of one channel"):
        run(BackgroundRemover.create(builder, backend="wasm"))
