"""One person's body, face and hands: models that say where things are, and where the next model then looks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

import webinfer
from webinfer.errors import InputError
from webinfer.models.layouts import BLAZEFACE_SHORT_RANGE, BODY, SsdLayout
from webinfer.tasks import HolisticLandmarker, PersonLandmarks, face_landmarker, pose_landmarker
from webinfer.tasks.holistic_landmarker import hand_region
from webinfer.tasks.ssd import attributes

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
SIDE = 256  # of the picture, which the body's model sees as it is
PICTURE = np.full((SIDE, SIDE, 3), 99, np.uint8)
LEFT, RIGHT = ((180.0, 120.0), (190.0, 90.0), (178.0, 88.0)), ((60.0, 120.0), (40.0, 130.0), (44.0, 142.0))
HEAD = [(128 + 12 * math.sin(i), 60 + 10 * math.cos(2 * i)) for i in range(11)]
FACE = [(50.0, 60.0), (78.0, 60.0), (64.0, 70.0), (64.0, 80.0), (40.0, 62.0), (88.0, 62.0)]
Array = np.ndarray[Any, Any]


def model(side: int, *outputs: Array) -> webinfer.GraphBuilder:
    """A model that puts out these numbers, whatever it sees."""
    builder = webinfer.GraphBuilder("part")
    seen = builder.node("reduce_mean", builder.input("x", (1, side, side, 3)), axes=(1, 2, 3))
    nothing = builder.node("mul", seen, 0.0)
    for i, array in enumerate(outputs):
        builder.output(builder.node("add", builder.constant(array.astype(np.float32)), nothing), f"y{i}")
    return builder


def detector(layout: SsdLayout, points: list[tuple[float, float]], score: float = 9.0) -> webinfer.GraphBuilder:
    """Finds one thing with these keypoints, in pixels of its input, by its first anchor."""
    anchors, side, first = attributes(layout).anchors, layout.input.width, layout.layers[0][0] / 2
    boxes, scores = np.zeros((1, anchors, 4 + 2 * len(points))), np.full((1, anchors, 1), -9.0)
    boxes[0, 0] = [0, 0, 20, 20, *(n - first for point in points for n in point)]
    scores[0, 0] = score
    return model(side, boxes, scores)


def body(visible: float = 9.0) -> webinfer.GraphBuilder:
    points = np.zeros((pose_landmarker.ALL, 5))
    points[:, 3:] = visible
    points[:11, :2] = HEAD
    points[[15, 17, 19], :2], points[[16, 18, 20], :2] = LEFT, RIGHT
    points[33], points[34] = (128, 128, 0, 9, 9), (128, 25.6, 0, 9, 9)
    cells = pose_landmarker.CELLS
    heat = np.full((1, cells, cells, pose_landmarker.ALL), -9.0)
    return model(SIDE, points.reshape(1, -1), np.array([[0.9]]), np.zeros((1, SIDE, SIDE, 1)), heat, np.zeros((1, 117)))


def around(side: int, points: int) -> Array:
    """Points whose middle is that of the input, as far around it as faces and hands reach."""
    xyz = np.random.default_rng(points).normal(0, side / 6, (points, 3))
    return np.asarray(xyz - xyz.mean(0) + side / 2).reshape(1, -1)


def holistic(target: Target = EVERYWHERE[0], **options: Any) -> HolisticLandmarker:
    """A task whose face and hands are points in the middles of their regions."""
    target.demand()
    models = {
        "model": body(),
        "pose_detector": detector(BODY, [(112, 112), (112, 22.4), (112, 90), (112, 30)]),
        "face": model(192, around(192, face_landmarker.POINTS), np.array([[9.0]])),
        "face_detector": detector(BLAZEFACE_SHORT_RANGE, FACE),
        "hand": model(224, around(224, 21), np.array([[0.9]]), np.array([[0.2]]), np.zeros((1, 63))),
        "hand_recrop": model(SIDE, np.array([128.0, 128.0, 128.0, 192.0]).reshape(1, 1, 1, 4)),
    }
    task: HolisticLandmarker = run(HolisticLandmarker.create(backend=target.backend, **models | options))
    return task


@pytest.fixture
def person() -> Iterator[PersonLandmarks]:
    with holistic() as task:
        (found,) = run(task.detect(PICTURE))
        yield found


def middle(part: Any) -> Array:
    return np.mean(part.landmarks.points(), axis=0)


def test_the_body_is_where_its_model_has_it(person: PersonLandmarks) -> None:
    assert person.score == person.pose.score == pytest.approx(0.9)
    assert np.array(person.pose.landmarks.points(range(11))) == pytest.approx(np.array(HEAD), abs=0.5)


def wanted_face() -> Array:
    """The middle of the face's region, by the letter of the calculators' options."""
    across, down = np.array(HEAD).T
    x, y = (across.min() + across.max()) / 2, (down.min() + down.max()) / 2
    side = 3 * max(np.ptp(across), np.ptp(down))
    turn = math.atan2(HEAD[2][1] - HEAD[5][1], HEAD[2][0] - HEAD[5][0])  # from the one eye's corner to the other's
    cos, sin = math.cos(turn), math.sin(turn)
    keypoints = np.array(FACE) / 128 - 0.5
    turned = np.array([[x + side * (cos * u - sin * v), y + side * (sin * u + cos * v)] for u, v in keypoints])
    right, left = turned[:2]
    lower, upper = turned.min(0), turned.max(0)
    centre, height = (lower + upper) / 2, (upper - lower)[1]
    angle = math.atan2(left[1] - right[1], left[0] - right[0])
    return centre + 0.1 * height * np.array([math.sin(angle), -math.cos(angle)])


def test_the_face_is_searched_around_the_bodys_head_and_lies_as_its_keypoints(person: PersonLandmarks) -> None:
    assert person.face is not None
    assert middle(person.face) == pytest.approx(wanted_face(), abs=0.7)


def wanted_hand(wrist: Any, little: Any, index: Any) -> Array:
    """The middle of a hand's region: its first guess, moved by a tenth, and half a region's reach by the recrop."""
    wrist, little, index = map(np.array, (wrist, little, index))
    knuckles = (2 * index + little) / 3
    along = (knuckles - wrist) / np.linalg.norm(knuckles - wrist)
    side = 2.7 * 2 * np.linalg.norm(knuckles - wrist)
    guess = knuckles + 0.1 * side / 2.7 * along
    reach = side * 64 / SIDE  # the recrop's second point lies a quarter of the region below its middle
    return np.asarray(guess + 0.1 * 2 * reach * along)


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_hands_are_recropped_from_where_the_body_has_them(target: Target) -> None:
    with holistic(target) as task:
        (person,) = run(task.detect(PICTURE))
    assert person.left_hand is not None
    assert person.right_hand is not None
    assert middle(person.left_hand) == pytest.approx(wanted_hand(*LEFT), abs=0.5)
    assert middle(person.right_hand) == pytest.approx(wanted_hand(*RIGHT), abs=0.5)
    assert person.left_hand.handedness == "Right"  # as the hand's own model says


def test_what_is_not_seen_is_not_told() -> None:
    with holistic(model=body(visible=-9.0)) as task:
        (person,) = run(task.detect(PICTURE))
    assert person.face is not None
    assert person.left_hand is person.right_hand is None
    nowhere = detector(BLAZEFACE_SHORT_RANGE, [(0, 0)] * 6, score=-9.0)
    with holistic(face_detector=nowhere) as task:
        (person,) = run(task.detect(PICTURE))
    assert person.face is None
    with holistic(pose_detector=detector(BODY, [(0, 0)] * 4, score=-9.0)) as task:
        assert run(task.detect(PICTURE)) == []


def test_face_and_hands_are_followed_without_their_detectors(monkeypatch: pytest.MonkeyPatch) -> None:
    with holistic() as task:
        (first,) = run(task.detect_for_video(PICTURE, 0.0))
        monkeypatch.setattr(task._faces, "found", None)
        monkeypatch.setattr(task._hands, "run", None)
        (second,) = run(task.detect_for_video(PICTURE, 40.0))  # a slow machine would begin a new film
        assert second.face is not None
        assert second.left_hand is not None
        monkeypatch.undo()
        task.reset()
        (again,) = run(task.detect_for_video(PICTURE))
        assert middle(again.face) == pytest.approx(middle(first.face))


def test_a_hands_first_region_points_from_the_wrist_to_the_fingers() -> None:
    region = hand_region([(10, 50), (10, 20), (10, 20)])
    assert (region.x, region.width, region.rotation) == pytest.approx((10, 162, 0))
    assert region.y == pytest.approx(20 - 6)


def test_options_are_checked_before_anything_is_loaded() -> None:
    for name in ("min_detection_score", "min_presence_score"):
        with pytest.raises(InputError, match=name):
            run(HolisticLandmarker.create("no such file", **{name: 1.5}))
