"""Landmarks of videos: the one euro filter by the letter of its publication, and what it does to a trembling track."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.tasks.photos import photo
from tests.tasks.test_landmarks import PHOTO, landmarker

from webinfer.host import current
from webinfer.tasks import PoseLandmarker, PoseLandmarks
from webinfer.tasks.base import Box
from webinfer.tasks.landmarks import Landmarks
from webinfer.tasks.smoothing import FRESH, Smoothing, SmoothTrack

POINTS, FRAMES = 6, 40
Array = np.ndarray[Any, Any]


class OneEuro:
    """One number's filter, as Casiez et al. publish it."""

    def __init__(self, least: float, slope: float, unit: float) -> None:
        self.least, self.slope, self.unit = least, slope, unit
        self.last: float | None = None
        self.smooth = self.speed = 0.0

    def __call__(self, value: float, rate: float) -> float:
        def alpha(cutoff: float) -> float:
            return 1 / (1 + rate / (2 * math.pi * cutoff))

        if self.last is None:
            self.smooth = value
        else:
            speed = (value - self.last) * self.unit * rate
            self.speed += alpha(1.0) * (speed - self.speed)
            self.smooth += alpha(self.least + self.slope * abs(self.speed)) * (value - self.smooth)
        self.last = value
        return self.smooth


def track() -> tuple[Array, Array]:
    """Points that tremble by a pixel, and from frame 20 on run to the right; as they are and as they are seen."""
    random = np.random.default_rng(4)
    true = np.tile(random.uniform(50, 200, (POINTS, 3)), (FRAMES, 1, 1))
    true[20:, :, 0] += 12 * np.arange(1, 21)[:, None]
    return true, true + random.normal(0, 1, true.shape)


def body(points: Array, visible: float = 0.8) -> PoseLandmarks:
    confidences = [n for _ in range(POINTS) for n in (visible, 0.9)]
    places = Landmarks(points.ravel().tolist(), confidences)
    world = Landmarks((points / 200).ravel().tolist(), confidences)
    return PoseLandmarks(Box(0, 0, 1, 1), 0.9, places, world, ((100.0, 100.0), (100.0, float(points[0, 0]))))


def through(frames: list[PoseLandmarks], size: float = 120.0) -> list[PoseLandmarks]:
    smoothing = Smoothing(current(), PoseLandmarker.smooths)
    one = SmoothTrack(smoothing)
    found = [run(one.smoothed(frame, 33.0 * i, size)) for i, frame in enumerate(frames)]
    smoothing.close()
    return found


def test_every_number_goes_through_a_one_euro_filter_of_its_part() -> None:
    _, seen = track()
    frames = through([body(points) for points in seen])
    rate = 1000 / 33
    for filters, part, numbers in (
        ((0.05, 80.0, 1 / 120), "landmarks", seen), ((0.1, 40.0, 1.0), "world", seen / 200),
    ):  # fmt: skip
        each = [OneEuro(*filters) for _ in range(3 * POINTS)]
        want = [[one(float(v), rate) for one, v in zip(each, frame.ravel(), strict=True)] for frame in numbers]
        got = np.array([getattr(frame, part).xyz for frame in frames])
        assert np.abs(got - want).max() < 2e-3 * np.abs(want).max()
    reach = OneEuro(0.01, 10.0, 1 / 120)
    want = [reach(float(points[0, 0]), rate) for points in seen]
    assert [frame.anchors[1][1] for frame in frames] == pytest.approx(want, rel=2e-3)
    assert all(frame.anchors[0] == (100.0, 100.0) for frame in frames)


def test_trembling_goes_and_movements_stay() -> None:
    true, seen = track()
    smooth = np.array([frame.landmarks.xyz for frame in through([body(points) for points in seen])])
    smooth = smooth.reshape(true.shape)
    still = np.diff(seen[5:20], axis=0).std(), np.diff(smooth[5:20], axis=0).std()
    assert still[1] < 0.5 * still[0]
    behind = np.abs(smooth - true)[25:, :, 0].mean()
    assert behind < 12, "more than a frame behind"


def test_a_box_lies_around_smooth_landmarks_and_visibility_changes_slowly() -> None:
    points = track()[1][0]
    first, second = through([body(points, 0.2), body(points + 9, 1.0)])
    across, down = np.array(second.landmarks.points()).T
    assert (second.box.left, second.box.top) == pytest.approx((across.min(), down.min()))
    assert first.landmarks[3].visibility == pytest.approx(0.2)
    assert second.landmarks[3].visibility == pytest.approx(0.2 + FRESH * 0.8)
    assert second.landmarks[3].presence == pytest.approx(0.9)


def test_a_frame_of_the_same_time_replaces_the_last() -> None:
    smoothing = Smoothing(current(), PoseLandmarker.smooths)
    a, b, c = (body(points) for points in track()[1][:3])
    one, other = SmoothTrack(smoothing), SmoothTrack(smoothing)
    seen = [run(one.smoothed(frame, time, 100)) for frame, time in ((a, 10.0), (c, 40.0), (b, 40.0), (b, 40.0))]
    want = [run(other.smoothed(frame, time, 100)) for frame, time in ((a, 10.0), (b, 40.0))][1]
    for again in seen[2:]:
        assert list(again.landmarks.xyz) == list(want.landmarks.xyz)
        assert list(again.landmarks.confidences) == list(want.landmarks.confidences)
    assert list(seen[1].landmarks.xyz) != list(want.landmarks.xyz)
    smoothing.close()


def test_where_time_goes_back_the_filter_starts_anew() -> None:
    smoothing = Smoothing(current(), PoseLandmarker.smooths)
    frames = [body(points, 0.1 * i) for i, points in enumerate(track()[1][:4])]
    looped, fresh = SmoothTrack(smoothing), SmoothTrack(smoothing)
    for i, frame in enumerate(frames):
        run(looped.smoothed(frame, 1000.0 + 33 * i, 100))
    for i, frame in enumerate(reversed(frames)):
        again, want = (run(one.smoothed(frame, 33.0 * i, 100)) for one in (looped, fresh))
        assert list(again.landmarks.xyz) == list(want.landmarks.xyz)
        assert list(again.landmarks.confidences) == list(want.landmarks.confidences)
    smoothing.close()


def test_faces_in_videos_are_smooth_unless_that_is_not_wanted() -> None:
    picture = np.asarray(photo(PHOTO))
    moved = [np.roll(picture, 3 * (i % 2), axis=1) for i in range(4)]
    paths = {}
    for smooth in (True, False):
        with landmarker("wasm", smooth=smooth) as task:
            faces = [run(task.detect_for_video(frame, 33.0 * i))[0] for i, frame in enumerate(moved)]
            paths[smooth] = np.array([face.landmarks.points() for face in faces])
    assert paths[True][0] == pytest.approx(paths[False][0])
    steps = [np.abs(np.diff(paths[smooth], axis=0)).mean() for smooth in (True, False)]
    assert steps[0] < 0.7 * steps[1]
