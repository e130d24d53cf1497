"""BodyPix: maps that are painted become masks as large as the picture."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target
from tests.reference.test_pose import STRIDE, H, Scene, W, person
from tests.tasks.test_objects import model

from build_scripts.judge.published import enlarged, sigmoid
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import TensorType
from webinfer.ops.pose import KEYPOINTS
from webinfer.tasks import BodyMask, BodySegmenter
from webinfer.tasks.body_segmenter import PARTS

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
SIZE = ((H - 1) * STRIDE + 1, (W - 1) * STRIDE + 1)
PICTURE = TensorType((1, *SIZE, 3))
WALL = np.full((*SIZE, 3), 120, np.uint8)
HALF = W // 2
Array = np.ndarray[Any, Any]


def maps(scene: Scene) -> list[Array]:
    """The maps of a BodyPix that sees people everywhere below row 4: torsos left, hands right."""
    people, parts = np.full((1, H, W, 1), 5.0), np.zeros((1, H, W, len(PARTS)))
    people[0, :4] = -5.0
    parts[0, :, :HALF, PARTS.index("torso_front")] = 4.0
    parts[0, :, HALF:, PARTS.index("right_hand")] = 4.0
    return [scene.heat, scene.short, scene.middle, people, parts, scene.long]


@cache
def couple() -> Scene:
    """Two people, each of whom has a half of the picture."""
    scene, left, right = Scene(), person(4, 3), person(14, 18)
    scene.paint(left, score=2.0)
    scene.paint(right, score=4.0)
    scene.claim(slice(0, H), slice(0, HALF), left)
    scene.claim(slice(0, H), slice(HALF, W), right)
    for points in (left, right):  # at the keypoints the long offsets lead nowhere else
        for y, x in np.rint(points).astype(int):
            scene.long[0, y - 1 : y + 2, x - 1 : x + 2] = 0.0
    return scene


def segmented(source: Any, image: Array = WALL, target: Target = EVERYWHERE[0], **options: Any) -> BodyMask:
    target.demand()
    with run(BodySegmenter.create(source, backend=target.backend, **options)) as task:
        mask: BodyMask = run(task.segment(image))
        return mask


def planes(mask: BodyMask) -> list[Array]:
    return [np.array(m).reshape(mask.height, mask.width) for m in (mask.values, mask.parts, mask.people)]


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_masks_are_as_large_as_the_picture_and_say_who_and_which_part(target: Target) -> None:
    painted = maps(couple())
    mask = segmented(model(painted, PICTURE), target=target)
    values, parts, people = planes(mask)
    assert values.shape == SIZE
    want = sigmoid(enlarged(painted[3][0, ..., 0], SIZE, slice(None), slice(None)))
    assert np.abs(values - want).max() < 1e-4
    assert np.array_equal(parts > 0, want >= 0.7)
    left, right = (
        (slice(5 * STRIDE, None), slice(0, (HALF - 1) * STRIDE)),
        (slice(5 * STRIDE, None), slice(HALF * STRIDE, None)),
    )
    assert set(parts[left].ravel()) == {PARTS.index("torso_front") + 1}
    assert set(parts[right].ravel()) == {PARTS.index("right_hand") + 1}
    strong, weak = mask.bodies
    assert strong.score > weak.score > 0.7
    assert (people[right] == 1).mean() > 0.95  # the stronger one comes first
    assert (people[left] == 2).mean() > 0.95
    assert not people[: 3 * STRIDE].any()


def test_a_picture_of_another_shape_is_fitted_in_and_its_middle_is_told() -> None:
    tall = np.full((3 * SIZE[0], SIZE[1], 3), 120, np.uint8)  # beside it the model sees black
    mask = segmented(model(maps(couple()), PICTURE), tall)
    values, parts, _ = planes(mask)
    assert values.shape == tall.shape[:2]
    assert (values[: 8 * STRIDE] < 0.1).all()
    assert (values[14 * STRIDE :] > 0.9).all()
    edge = np.flatnonzero(np.diff(parts[-1].astype(int)))
    assert abs(edge - (HALF - 0.5) / (W - 1) * 3 * SIZE[1] + SIZE[1]).max() < STRIDE


def test_nobody_owns_a_pixel_where_no_body_was_found() -> None:
    values, parts, people = planes(segmented(model(maps(Scene()), PICTURE)))
    assert values.max() > 0.9
    assert parts.any()
    assert not people.any()


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_bodies_that_the_model_has_decoded_bring_their_masks(target: Target) -> None:
    points, owned = np.full((1, 2, KEYPOINTS, 2), 8.0), np.zeros((1, 2, 3, 3))
    owned[0, 1] = 1.0
    decoded = [points, np.ones((1, 2, KEYPOINTS)), np.array([[0.9, 0.6]]), np.array([2]), owned]
    people, parts = np.full((1, 3, 3, 1), 9.0), np.zeros((1, 3, 3, len(PARTS)))
    mask = segmented(model([*decoded, people, parts]), np.zeros((32, 32, 3), np.uint8), target)
    _, parts, who = planes(mask)
    assert (parts == 1).all()
    assert (who == 2).all()
    assert [body.score for body in mask.bodies] == pytest.approx([0.9, 0.6])
    assert mask.bodies[0].landmarks[0].x == pytest.approx(8)


def test_another_model_or_threshold_is_refused() -> None:
    with pytest.raises(InputError, match="threshold"):
        run(BodySegmenter.create("no such file", threshold=2))
    for outputs in (maps(Scene())[:5], maps(Scene())[:3], [np.zeros((1, 16, 3))]):
        with pytest.raises(ModelFormatError, match="is not BodyPix"):
            segmented(model(outputs, PICTURE))
