"""Several bodies: painted maps of PoseNet and rows of MoveNet, on every backend, beside the published decoder."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target
from tests.reference.test_pose import STRIDE, H, Scene, W, person
from tests.tasks.test_objects import model

import webinfer
from build_scripts.judge.published import PoseMaps, sigmoid
from webinfer.dtypes import DType
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import TensorType
from webinfer.ops.pose import EDGES
from webinfer.tasks import BodyPose, MultiPoseDetector
from webinfer.tasks.multi_pose import MOST, NAMES, POINTS

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
SIZE = ((H - 1) * STRIDE + 1, (W - 1) * STRIDE + 1)  # of the input, height before width
PICTURE = TensorType((1, *SIZE, 3))
WALL = np.full((2 * SIZE[0], 2 * SIZE[1], 3), 120, np.uint8)
Array = np.ndarray[Any, Any]


def bodies(source: Any, image: Array = WALL, target: Target = EVERYWHERE[0], **options: Any) -> list[BodyPose]:
    target.demand()
    with run(MultiPoseDetector.create(source, backend=target.backend, **options)) as task:
        found: list[BodyPose] = run(task.detect(image))
        return found


@cache
def two() -> Scene:
    scene = Scene()
    scene.paint(person(4, 4), score=2.0)
    scene.paint(person(13.25, 16.5), score=4.0)
    return scene


def posenet(scene: Scene, split: bool) -> webinfer.GraphBuilder:
    """A PoseNet that sees this scene: with both displacements in one map, as TFLite models have it, or in two."""
    forward, backward = scene.middle[..., : 2 * EDGES], scene.middle[..., 2 * EDGES :]
    maps = [forward, scene.heat, backward, scene.short] if split else [scene.heat, scene.short, scene.middle]
    return model(maps, PICTURE)


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
@pytest.mark.parametrize("split", [False, True], ids=["one map", "two maps"])
def test_bodies_of_a_posenet_are_where_they_were_painted(target: Target, split: bool) -> None:
    strong, weak = bodies(posenet(two(), split), target=target)
    assert strong.score > weak.score > 0.5
    for body, points in ((strong, person(13.25, 16.5)), (weak, person(4, 4))):
        away = np.array(body.landmarks.points()) - 2 * STRIDE * points[:, ::-1]
        assert np.abs(away[1:]).max() < 2 * STRIDE  # the nose is not reached by a map of its own: see ops/pose.py
        assert np.abs(away[1:]).mean() < 4
        seen = [mark.visibility for mark in body.landmarks]
        assert np.mean(seen) == pytest.approx(body.score, abs=1e-4)
        left, top = np.array(body.landmarks.points()).min(0)
        assert (body.box.left, body.box.top) == pytest.approx((left, top), abs=1e-3)


def test_the_published_decoder_finds_the_same_bodies() -> None:
    scene = two()
    heat, short, middle = (m[0] for m in (scene.heat, scene.short, scene.middle))
    maps = PoseMaps(sigmoid(heat), short, middle[..., : 2 * EDGES], middle[..., 2 * EDGES :], STRIDE)
    theirs = sorted(maps.poses(MOST, 0.1, 20.0), key=lambda pose: -pose[0])
    ours = bodies(posenet(scene, True))
    assert len(theirs) == len(ours) == 2
    for (_, points, _), body in zip(theirs, ours, strict=True):
        gaps = np.hypot(*(np.array(body.landmarks.points()) - 2 * points[:, ::-1])[1:].T)
        assert np.median(gaps) < 2


def test_options_choose_which_bodies_are_told() -> None:
    source = posenet(two(), False)
    assert len(bodies(source, most=1)) == 1
    assert len(bodies(source, min_score=0.9)) == 1
    assert bodies(source, min_score=1.0) == []
    for wrong in ({"most": 0}, {"most": MOST + 1}, {"min_score": -1}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            run(MultiPoseDetector.create("no such file", **wrong))


def rows(count: int, extra: bool) -> Array:
    """Rows as MoveNet writes them: y, x, score of each point; then the box and the score of each body."""
    table = np.random.default_rng(7).uniform(0.1, 0.9, (count, 3 * POINTS))
    return (
        np.hstack([table, np.tile([0.1, 0.1, 0.9, 0.9], (count, 1)), [[0.2 + 0.1 * i] for i in range(count)]])
        if extra
        else table
    )


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
@pytest.mark.parametrize("several", [False, True])
def test_points_of_a_movenet_are_in_pixels_of_the_picture(target: Target, several: bool) -> None:
    table = rows(6, True) if several else rows(1, False)
    output = table[None] if several else table.reshape(1, 1, POINTS, 3)
    wide = np.zeros((100, 300, 3), np.uint8)  # fitted into a square: from 100 pixels above it to 100 below
    found = bodies(model([output], TensorType((1, 32, 32, 3), DType.INT32)), wide, target)
    assert [b.score for b in found] == pytest.approx([0.7, 0.6, 0.5, 0.4, 0.3] if several else [table[0, 2::3].mean()])
    best = table[-1]
    want = np.stack([300 * best[1:51:3], 300 * best[0:51:3] - 100], axis=1)
    assert np.array(found[0].landmarks.points()) == pytest.approx(want, abs=1e-2)
    assert [mark.visibility for mark in found[0].landmarks] == pytest.approx(best[2:51:3].tolist())
    assert all(mark.z == 0 for mark in found[0].landmarks)


def test_bodies_that_a_model_has_decoded_are_taken_as_they_are() -> None:
    points = np.random.default_rng(2).uniform(0, 30, (1, 2, POINTS, 2))
    outputs = [points, np.full((1, 2, POINTS), 0.75), np.array([[0.8, 0.0]]), np.array([1])]
    (body,) = bodies(model(outputs), np.zeros((64, 64, 3), np.uint8))
    assert np.array(body.landmarks.points()) == pytest.approx(2 * points[0, 0, :, ::-1], abs=1e-3)
    assert body.score == pytest.approx(0.8)


def test_another_model_is_refused_with_what_was_found() -> None:
    for outputs in (
        [np.zeros((1, 9, 9, 17))],
        [np.zeros((1, 16, 3))],
        [np.zeros((1, 9, 9, 17)), np.zeros((1, 9, 9, 34))],
    ):
        with pytest.raises(ModelFormatError, match=r"not a multi-pose model.*\(1, 32, 32, 3\)"):
            bodies(model(outputs))


def test_points_have_names_from_the_persons_own_side() -> None:
    assert len(NAMES) == POINTS
    assert NAMES[:3] == ("nose", "left_eye", "right_eye")
    assert NAMES[-1] == "right_ankle"
