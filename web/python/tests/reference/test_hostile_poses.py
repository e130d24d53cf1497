"""PoseNet's decoder on maps that no model makes: every backend answers, and wasm answers what the reference does."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target
from tests.reference.test_pose import ATTRS, STRIDE, H, Scene, W, person

import webinfer
from webinfer.ops.pose import EDGES, KEYPOINTS

Array = np.ndarray[Any, np.dtype[Any]]
EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
MAPS = {"heat": KEYPOINTS, "short": 2 * KEYPOINTS, "middle": 4 * EDGES, "long": 2 * KEYPOINTS}  # channels
VALUES = (math.nan, math.inf, -math.inf, 3e38)


@cache
def session(backend: str) -> webinfer.Session:
    """The decoder, compiled once for all maps."""
    g = webinfer.GraphBuilder("poses")
    inputs = [g.input(name, (1, H, W, channels)) for name, channels in MAPS.items()]
    numbers = {"score_threshold": ATTRS.score_threshold, "stride": STRIDE, "nms_radius": ATTRS.nms_radius}
    for i, value in enumerate(g.node("posenet_decoder", *inputs, max_detections=ATTRS.max_detections, **numbers)):
        g.output(value, f"y{i}")
    return run(webinfer.load(g, backend=backend, strict=True))


def decoded(maps: list[Array], backend: str) -> dict[str, Array]:
    outputs = run(session(backend).run(dict(zip(MAPS, maps, strict=True))))
    return {name: tensor.numpy().copy() for name, tensor in outputs.items()}


def scene() -> Scene:
    found = Scene()
    found.paint(person(5, 5))
    found.paint(person(14, 18), score=3.0)
    found.claim(slice(0, H // 2), slice(0, W), person(5, 5))
    return found


def hostile(name: str, value: float, everywhere: bool) -> list[Array]:
    """The scene's maps with this value in one of them: at every place, or at one in 101.

    Of the heat map it is the first 170 places only: the reference tries every peak.
    """
    maps = scene()
    spoiled = getattr(maps, name).reshape(-1)
    spoiled[: 10 * KEYPOINTS if name == "heat" and everywhere else None : 1 if everywhere else 101] = value
    return [maps.heat, maps.short, maps.middle, maps.long]


@pytest.mark.parametrize("everywhere", [True, False], ids=["everywhere", "here and there"])
@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_no_map_breaks_the_decoder(target: Target, name: str, value: float, everywhere: bool) -> None:
    target.demand()
    maps = hostile(name, value, everywhere)
    got = decoded(maps, target.backend)
    count = int(got["y3"][0])
    assert 0 <= count <= ATTRS.max_detections
    points = got["y0"]
    assert np.isfinite(points).all()
    assert points.min() >= 0
    assert points[..., 0].max() <= (H - 1) * STRIDE
    assert points[..., 1].max() <= (W - 1) * STRIDE
    assert not got["y2"][0, count:].any()
    if target.backend == "wasm":
        for key, want in decoded(maps, "reference").items():
            np.testing.assert_allclose(got[key], want, rtol=1e-3, atol=1e-3, err_msg=key)


def maps_of(scene: Scene) -> list[Array]:
    return [scene.heat, scene.short, scene.middle, scene.long]


def same_as_the_reference(scene: Scene, backend: str) -> int:
    """How many poses both find."""
    got = decoded(maps_of(scene), backend)
    for key, want in decoded(maps_of(scene), "reference").items():
        np.testing.assert_allclose(got[key], want, rtol=1e-3, atol=1e-3, err_msg=key)
    return int(got["y3"][0])


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_half_a_person_that_the_best_pose_has_already_is_dropped(target: Target) -> None:
    target.demand()
    shared, found = person(4, 4), Scene()
    moved = shared + np.where(np.arange(KEYPOINTS)[:, None] < KEYPOINTS // 2, 0, (0, 12)).astype(np.float32)
    found.paint(shared, score=4.0)
    found.paint(moved, score=3.0)
    assert same_as_the_reference(found, target.backend) == 1


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_a_picture_has_nobody_of_the_one_before(target: Target) -> None:
    target.demand()
    two, one = Scene(), Scene()
    for points in (person(4, 4), person(14, 18)):
        two.paint(points, score=4.0)
    one.paint(person(9, 9), score=1.0)
    assert same_as_the_reference(two, target.backend) == 2
    assert same_as_the_reference(one, target.backend) == 1
