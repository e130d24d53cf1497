"""Ids through a video, and films that jump: another time, another scene, another size of frame."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.tasks.photos import model_path, photo
from tests.tasks.test_landmarks import landmarker

from webinfer.errors import InputError
from webinfer.tasks import FaceDetector
from webinfer.tasks.base import Box
from webinfer.tasks.tracking import REMEMBERED_MS, Tracker

FRAME_MS = 33.0


def square(x: float, y: float = 100.0, side: float = 40.0) -> Box:
    return Box(x - side / 2, y - side / 2, side, side)


def test_things_keep_their_ids_in_whatever_order_they_come() -> None:
    tracker, random = Tracker(), np.random.default_rng(5)
    for frame in range(30):
        boxes = [square(100.0 + 200 * i + 3 * frame + random.normal(), 80.0 + frame) for i in range(4)]
        order = random.permutation(4)
        ids = tracker.ids([boxes[i] for i in order], FRAME_MS * frame)
        if frame == 0:
            names = {int(i): number for i, number in zip(order, ids, strict=True)}
            assert sorted(ids) == [1, 2, 3, 4]
        assert [names[int(i)] for i in order] == ids


@pytest.mark.parametrize("hidden", [False, True], ids=["both seen", "one hidden"])
def test_two_that_cross_keep_their_ids(hidden: bool) -> None:
    tracker = Tracker()
    for frame in range(60):
        right, left = square(100.0 + 5 * frame), square(400.0 - 5 * frame, 104.0)
        covered = hidden and 27 <= frame <= 33
        ids = tracker.ids([right] if covered else [left, right], FRAME_MS * frame)
        if frame == 0:
            first, second = ids
        assert ids == ([second] if covered else [first, second]), frame


def test_what_is_another_kind_or_far_off_or_long_gone_is_another_thing() -> None:
    tracker = Tracker()
    assert tracker.ids([square(100)], 0.0, ["cat"]) == [1]
    assert tracker.ids([square(100)], 10.0, ["dog"]) == [2]
    assert tracker.ids([square(400)], 20.0, ["cat"]) == [3]
    assert tracker.ids([square(100, side=200)], 30.0, ["cat"]) == [4]
    assert tracker.ids([square(100)], 40.0, ["cat"]) == [1]
    assert tracker.ids([square(100)], 41.0 + REMEMBERED_MS, ["cat"]) == [5]
    assert tracker.ids([square(100)], 0.0, ["cat"]) == [6]  # time went back
    tracker.reset()
    assert tracker.ids([square(100)], 1.0, ["cat"]) == [7]
    assert tracker.ids([], 2.0) == []


def test_a_film_that_is_looped_cut_or_resized_loses_no_frame() -> None:
    picture = np.asarray(photo("astronaut.png"))
    aside, small = np.roll(picture, -150, axis=1), picture[::2, ::2]
    with landmarker("wasm", smooth=True) as task:
        alone = {name: run(task.detect(p))[0] for name, p in (("as", picture), ("cut", aside), ("small", small))}
        film = [("as", picture, 1000), ("as", picture, 1033), ("cut", aside, 1066), ("small", small, 1100),
                ("as", picture, 1133), ("as", picture, 0), ("cut", aside, 0), ("as", picture, 33)]  # fmt: skip
        for at, (name, frame, time_ms) in enumerate(film):
            (face,) = run(task.detect_for_video(frame, float(time_ms)))
            gaps = np.hypot(*(np.array(face.landmarks.points()) - alone[name].landmarks.points()).T)
            assert gaps.mean() < 0.02 * face.box.width, (at, name)
            assert face.image_size == (frame.shape[1], frame.shape[0])
            assert face.id is not None
        with pytest.raises(InputError, match="time_ms is nan"):
            run(task.detect_for_video(picture, math.nan))


def test_a_detector_follows_boxes_too() -> None:
    picture = np.asarray(photo("face.jpg"))
    with run(FaceDetector.create(model_path("blazeface_short_range"), backend="wasm")) as detector:
        alone = run(detector.detect(picture))
        assert [face.id for face in alone] == [None, None]
        frames = [run(detector.detect_for_video(np.roll(picture, 4 * i, axis=1), FRAME_MS * i)) for i in range(4)]
        for faces in frames:
            ids = [face.id for face in sorted(faces, key=lambda face: face.box.left)]
            assert ids == [face.id for face in sorted(frames[0], key=lambda face: face.box.left)]
        again = run(detector.detect_for_video(picture[::2], 200.0))
        assert not {face.id for face in again} & {face.id for face in frames[0]}
        box = frames[0][0].normalized_box
        assert (box.left * 512, box.height * 355) == pytest.approx((frames[0][0].box.left, frames[0][0].box.height))
