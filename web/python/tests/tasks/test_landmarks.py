"""Tasks that look twice: regions, what is put behind the models, options, and faces that are followed."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target
from tests.tasks.photos import model_path, photo

import webinfer
from webinfer.errors import InputError, ModelFormatError
from webinfer.session.loop_lock import LoopLock
from webinfer.tasks import FaceDetector, FaceLandmarker, HandLandmarker, Landmark, PoseLandmarker, pose_landmarker
from webinfer.tasks.base import Box
from webinfer.tasks.crop import Crop, Region
from webinfer.tasks.face_landmarker import CORNERS, FaceLandmarks
from webinfer.tasks.face_parts import LEFT_EYE, LEFT_IRIS, LIPS, PARTS, RIGHT_EYE
from webinfer.tasks.hand_landmarker import HAND_TO_REGION, HandLandmarks
from webinfer.tasks.image import Picture
from webinfer.tasks.landmarks import (
    LANDMARKS,
    ROTATION,
    SCORE,
    SHIFT,
    TURN,
    LandmarkModel,
    Landmarks,
    crop_map,
    with_landmarks,
)
from webinfer.tasks.regions import RegionRule, overlap
from webinfer.tasks.smoothing import SmoothTrack

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
PHOTO = "astronaut.png"
POINTS = 468


def turned(x: float, y: float, angle: float) -> tuple[float, float]:
    return math.cos(angle) * x - math.sin(angle) * y, math.sin(angle) * x + math.cos(angle) * y


@pytest.mark.parametrize("angle", [0.0, 0.4, -1.0, 3.0])
def test_a_region_is_turned_as_its_keypoints_are(angle: float) -> None:
    eyes = [turned(-10, 0, angle), turned(10, 0, angle)]
    region = RegionRule(0, 1, scale=1.5).region(eyes, Box(-20, -30, 40, 60))
    assert (region.x, region.y, region.width, region.height) == pytest.approx((0, 0, 90, 90))
    assert region.rotation == pytest.approx(angle)


@pytest.mark.parametrize("angle", [0.0, 0.4, -1.0])
def test_a_shifted_region_moves_along_its_own_vertical(angle: float) -> None:
    wrist_and_finger = [turned(0, 5, angle), turned(0, -5, angle)]  # the finger is above the wrist
    region = RegionRule(0, 1, math.pi / 2, scale=2.6, shift=-0.5).region(wrist_and_finger, Box(-4, -5, 8, 10))
    assert region.rotation == pytest.approx(angle)
    assert (region.x, region.y) == pytest.approx(turned(0, -5, angle))
    assert region.width == region.height == pytest.approx(26)


def test_a_region_around_its_start_reaches_to_its_end() -> None:
    region = RegionRule(0, 1, math.pi / 2, 1.25, around_start=True).region([(30, 50), (30, 10)])
    assert (region.x, region.y, region.width, region.rotation) == pytest.approx((30, 50, 100, 0))


def test_a_hands_region_is_the_box_of_its_joints_as_they_lie_turned_upright() -> None:
    joints = [(float(x), float(y)) for x, y in [(0, 20), (8, 14), (3, 2), (5, -4), (2, -20), (3, -30), (0, -22)]]
    joints += [(0.0, -32.0), (-3.0, -20.0), (-3.0, -28.0), (-6.0, -16.0), (-6.0, -22.0)]
    upright = HAND_TO_REGION.turned(joints, (0.0, -21.0))
    angle = 0.7
    leaning = HAND_TO_REGION.turned([turned(*p, angle) for p in joints], turned(0.0, -21.0, angle))
    assert leaning.rotation - upright.rotation == pytest.approx(angle)
    assert leaning.width == pytest.approx(upright.width) == pytest.approx(2 * 52)
    assert (leaning.x, leaning.y) == pytest.approx(turned(upright.x, upright.y, angle))


def test_overlap_is_intersection_over_union() -> None:
    one = Region(5, 5, 10, 10)
    assert overlap(one, one) == 1
    assert overlap(one, Region(10, 5, 10, 10)) == pytest.approx(1 / 3)
    assert overlap(one, Region(30, 5, 10, 10)) == 0


def test_the_crops_map_takes_points_where_the_crop_says_they_are() -> None:
    crop = Crop(Region(61.5, 40.25, 48.0, 36.0, 0.8), 192, 192)
    maps = {name: np.array(value) for name, value in crop_map(crop).items()}
    point = np.array([[30.0, 140.0, 12.0]])
    found = (point @ maps[TURN].reshape(3, 3) + maps[SHIFT])[0]
    assert found[:2] == pytest.approx(crop.to_image(30 / 192, 140 / 192), abs=1e-4)
    assert found[2] == pytest.approx(12 * 48 / 192)
    rotation = maps[ROTATION].reshape(3, 3)
    assert (np.array([[1.0, 0.0, 5.0]]) @ rotation)[0] == pytest.approx((math.cos(0.8), math.sin(0.8), 5.0))


def test_pictures_that_are_taken_by_their_corners_begin_there() -> None:
    region = Region(50, 40, 64, 32, 0.3)
    a, b, x, c, d, y = Crop(region, 16, 8, corners=True).matrix()
    assert (x, y) == pytest.approx(Crop(region, 16, 8).to_image(0, 0))
    assert (a, b, c, d) == pytest.approx([m for i, m in enumerate(Crop(region, 16, 8).matrix()) if i not in (2, 5)])


def test_landmarks_are_a_sequence_of_points() -> None:
    landmarks = Landmarks((1, 2, 3, 4, 5, 6), (0.5, 0.25, 1.0, 0.0))
    assert len(landmarks) == 2
    assert landmarks[0] == Landmark(1, 2, 3, 0.5, 0.25)
    assert landmarks[-1] == Landmark(4, 5, 6, 1.0, 0.0)
    assert list(landmarks) == landmarks[0:2]
    assert landmarks.points((1,)) == [(4.0, 5.0)]
    with pytest.raises(IndexError):
        landmarks[2]


def mesh_model(refined: bool) -> webinfer.GraphBuilder:
    """A face mesh whose outputs are numbers that tell where they stand; they do not depend on the picture."""
    builder = webinfer.GraphBuilder("mesh")
    nothing = builder.node(
        "mul", builder.node("reduce_mean", builder.input("x", (1, 192, 192, 3)), axes=(1, 2, 3)), 0.0
    )
    sizes = [
        (POINTS, 3, 0.0),
        *((len(part), 2, 1000.0 * (i + 1)) for i, part in enumerate(PARTS) if refined),
        (1, 1, 2.0),
    ]
    for i, (points, width, first) in enumerate(sizes):
        numbers = builder.constant([first + k for k in range(points * width)], (1, 1, 1, points * width))
        builder.output(builder.node("add", numbers, nothing), f"y{i}")
    return builder


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
@pytest.mark.parametrize("refined", [False, True])
def test_a_mesh_ends_in_pixels_of_the_picture_and_parts_take_their_own_outputs(target: Target, refined: bool) -> None:
    target.demand()
    crop = Crop(Region(100, 80, 96, 96, 0.0), 192, 192)
    with run(
        webinfer.load(with_landmarks(mesh_model(refined), FaceLandmarker.kinds), backend=target.backend)
    ) as session:
        picture = np.zeros((1, 192, 192, 3), np.float32)
        outputs = run(session.run({"x": picture, **{name: crop_map(crop)[name] for name in (TURN, SHIFT)}}))
    found = np.array(outputs[LANDMARKS].flat()).reshape(-1, 3)
    want = np.arange(3.0 * POINTS).reshape(POINTS, 3)
    if refined:
        rims = [want[list(eye[:16]), 2].mean() for eye in (LEFT_EYE, RIGHT_EYE)]
        want = np.vstack([want, *(np.tile([0, 0, depth], (len(LEFT_IRIS), 1)) for depth in rims)])
        for i, part in enumerate(PARTS):
            want[list(part), :2] = 1000.0 * (i + 1) + np.arange(2.0 * len(part)).reshape(-1, 2)
    assert found == pytest.approx(want * 0.5 + [52, 32, 0], rel=1e-5)
    assert float(outputs[SCORE].flat()[0]) == pytest.approx(1 / (1 + math.exp(-2)), abs=1e-5)


def test_the_refined_parts_are_landmarks_each_once() -> None:
    assert [len(part) for part in PARTS] == [80, 71, 71, 5, 5]
    for part in PARTS:
        assert len(set(part)) == len(part)
    assert set(LIPS).isdisjoint({*LEFT_EYE, *RIGHT_EYE})


def moved_by_heat(points: np.ndarray[Any, Any], heat: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The centre of the heat around each point, by the letter of the calculator's description."""
    out = points.copy()
    hot = 1 / (1 + np.exp(-heat[0].astype(np.float64)))
    for i, (x, y) in enumerate(points[:, :2]):
        column, row = int(x * 64 / 256), int(y * 64 / 256)
        if not (0 <= column < 64 and 0 <= row < 64):
            continue
        columns, rows = range(max(0, column - 4), min(63, column + 4) + 1), range(max(0, row - 4), min(63, row + 4) + 1)
        window = hot[rows.start : rows.stop, columns.start : columns.stop, i]
        if window.max() >= 0.5:
            out[i, 0] = (window.sum(0) * np.array(columns)).sum() / window.sum() * 4
            out[i, 1] = (window.sum(1) * np.array(rows)).sum() / window.sum() * 4
    return out


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_points_of_a_body_move_to_the_heat_around_them(target: Target) -> None:
    target.demand()
    random = np.random.default_rng(5)
    points = random.uniform(-20, 280, (pose_landmarker.ALL, 2)).astype(np.float32)
    heat = random.normal(-4, 2, (1, 64, 64, pose_landmarker.ALL)).astype(np.float32)
    builder = webinfer.GraphBuilder("heat")
    at, map_ = builder.input("points", points.shape), builder.input("heat", heat.shape)
    builder.output(pose_landmarker._refined(builder, at, map_), "y")
    with run(webinfer.load(builder, backend=target.backend)) as session:
        found = run(session.run({"points": points, "heat": heat}))["y"]
    want = moved_by_heat(points, heat)
    assert np.abs(want - points).max() > 3, "nothing was moved"
    assert np.array(found.flat()).reshape(-1, 2) == pytest.approx(want, abs=2e-2)


@pytest.mark.parametrize(
    "options",
    [{"most": 0}, {"most": True}, {"most": 1.5}, {"min_detection_score": 1.5}, {"min_presence_score": math.nan}],
)
def test_options_out_of_range_are_refused_before_anything_is_loaded(options: dict[str, Any]) -> None:
    for task in (FaceLandmarker, HandLandmarker, PoseLandmarker):
        with pytest.raises(InputError, match=next(iter(options))):
            run(task.create("no such file", **options))


def test_pipelines_go_by_name_and_refuse_what_is_none() -> None:
    with pytest.raises(
        InputError, match=r"no task 'faces'; there are .*depth-estimation, face-detection.*; did you mean"
    ):
        run(webinfer.pipeline("faces"))
    with pytest.raises(InputError, match=r"face-landmarks has no option 'size'; it has .*most"):
        run(webinfer.pipeline("face-landmarks", size=3))


def test_a_model_of_another_kind_is_refused_with_what_was_found() -> None:
    path = model_path("blazeface_short_range")
    with pytest.raises(ModelFormatError, match=r"no.* a face mesh: input \(1, 128, 128, 3\)"):
        run(FaceLandmarker.create(path, detector=path, backend="wasm"))


def landmarker(backend: str, **options: Any) -> FaceLandmarker:
    mesh, detector = model_path("face_mesh"), model_path("blazeface_short_range")
    task: FaceLandmarker = run(webinfer.pipeline("face-landmarks", mesh, detector=detector, backend=backend, **options))
    return task


@pytest.mark.parametrize("target", [t for t in EVERYWHERE if t.backend in ("wasm", "webgpu")], ids=str)
def test_a_face_has_its_eyes_where_the_detector_sees_them(target: Target) -> None:
    target.demand()
    with landmarker(target.backend) as task, run(FaceDetector.create(model_path("blazeface_short_range"))) as detector:
        (face,) = run(task.detect(photo(PHOTO)))
        (seen,) = run(detector.detect(photo(PHOTO)))
        assert task.times["infer_ms"] > 0
    assert face.score > 0.9
    assert len(face.landmarks) == POINTS
    for rim, eye in ((LEFT_EYE[:16], "right_eye"), (RIGHT_EYE[:16], "left_eye")):
        middle = np.mean(face.landmarks.points(rim), axis=0)
        assert np.hypot(*(middle - seen.keypoints[eye])) < 0.08 * face.box.width
    assert face.box.left < seen.box.left + seen.box.width / 2 < face.box.left + face.box.width


def test_a_face_in_a_video_is_followed_without_the_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    with landmarker("wasm") as task:
        picture = photo(PHOTO)
        (first,) = run(task.detect_for_video(picture))
        searched = []
        monkeypatch.setattr(task._finder, "regions", lambda image: searched.append(image))
        (second,) = run(task.detect_for_video(picture))
        assert not searched
        gaps = np.hypot(*(np.array(first.landmarks.points()) - second.landmarks.points()).T)
        assert gaps.mean() < 0.02 * first.box.width
        monkeypatch.undo()
        blank = np.zeros((200, 200, 3), np.uint8)
        assert run(task.detect_for_video(blank)) == []
        (again,) = run(task.detect_for_video(picture))
        assert np.array(again.landmarks.xyz) == pytest.approx(np.array(first.landmarks.xyz))
        task.reset()
        assert task.following(again) == task.following(first)


def test_a_followed_face_is_turned_as_its_eyes_are() -> None:
    xyz = [0.0] * (3 * POINTS)
    for place, (x, y) in zip(CORNERS, ((10, 10), (20, 20)), strict=True):
        xyz[3 * place : 3 * place + 2] = x, y
    face = FaceLandmarks(Box(0, 0, 40, 20), 1.0, Landmarks(xyz))
    region = FaceLandmarker.following(None, face)  # type: ignore[arg-type]
    assert (region.x, region.y, region.width) == (20, 10, 60)
    assert region.rotation == pytest.approx(math.pi / 4)


def test_a_face_whose_score_is_below_the_least_one_is_not_told() -> None:
    with landmarker("wasm", min_presence_score=1.0) as task:
        task.min_score = 2.0
        assert run(task.detect(photo(PHOTO))) == []
    assert isinstance(FaceLandmarker.kinds[0], LandmarkModel)
    assert struct.calcsize("f") == Landmarks((0, 0, 0)).xyz.itemsize


def test_a_thing_that_is_followed_is_not_found_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def hand(left: float) -> HandLandmarks:
        points = Landmarks([left, 10.0, 0.0, left + 40.0, 50.0, 0.0])
        return HandLandmarks(points.box, 0.9, "Left", 0.9, points, points)

    async def looked(self: Any, picture: Any, regions: Any) -> list[list[HandLandmarks]]:
        self.times = {"prepare_ms": 0.0, "infer_ms": 0.0, "decode_ms": 0.0}
        return [[hand(region.x)] for region in regions]

    async def searched(self: Any, picture: Any) -> tuple[list[Region], float]:
        return [Region(12, 0, 40, 40), Region(200, 0, 40, 40)], 0.0

    monkeypatch.setattr(HandLandmarker, "_landmarks", looked)
    monkeypatch.setattr(HandLandmarker, "_searched", searched)
    task = object.__new__(HandLandmarker)
    task.loop_lock = LoopLock()
    task.most, task._smoothing = 4, None  # type: ignore[assignment]
    tracked = [(Region(0, 60, 40, 40), SmoothTrack(None))]  # type: ignore[arg-type]  # its region has moved on
    found = run(task._followed(Picture(1, 1, b""), tracked))
    assert [one.box.left for one, _ in found] == [0, 200]
