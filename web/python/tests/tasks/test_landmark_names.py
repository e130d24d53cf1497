"""MediaPipe's names: points, lines between them, thresholds. The numbers are those of its Python solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.tasks.photos import model_path, photo
from tests.tasks.test_landmarks import landmarker

from webinfer.errors import InputError
from webinfer.tasks import BodyLandmark, FaceDetector, HandLandmark, PoseLandmark, hand_landmarker, pose_landmarker
from webinfer.tasks import landmark_names as names
from webinfer.tasks.landmarks import LandmarkTask, confidences
from webinfer.tasks.multi_pose import NAMES


def test_each_point_has_one_name() -> None:
    assert list(PoseLandmark) == list(range(pose_landmarker.POINTS))
    assert list(HandLandmark) == list(range(hand_landmarker.POINTS))
    assert [point.name.lower() for point in BodyLandmark] == list(NAMES)
    assert (PoseLandmark.LEFT_WRIST, PoseLandmark.RIGHT_FOOT_INDEX, HandLandmark.PINKY_TIP) == (15, 32, 20)


def test_lines_are_as_many_as_mediapipe_s_and_sides_are_the_person_s() -> None:
    counts = {name: len(value) for name, value in vars(names).items() if isinstance(value, frozenset)}
    assert counts == {
        "POSE_CONNECTIONS": 35, "HAND_CONNECTIONS": 21, "FACE_LIPS": 40, "FACE_LEFT_EYE": 16, "FACE_RIGHT_EYE": 16,
        "FACE_LEFT_EYEBROW": 8, "FACE_RIGHT_EYEBROW": 8, "FACE_LEFT_IRIS": 4, "FACE_RIGHT_IRIS": 4, "FACE_OVAL": 36,
        "FACE_CONTOURS": 124,
    }  # fmt: skip
    assert (249, 263) in names.FACE_LEFT_EYE
    assert (7, 33) in names.FACE_RIGHT_EYE
    assert (276, 283) in names.FACE_LEFT_EYEBROW
    assert (474, 475) in names.FACE_LEFT_IRIS


def test_a_threshold_may_be_called_as_mediapipe_calls_it() -> None:
    assert confidences(None, None, None, None) == (0.5, 0.5)
    assert confidences(None, None, 0.3, 0.4) == confidences(0.3, 0.4, None, None) == (0.3, 0.4)
    with pytest.raises(
        InputError, match="min_detection_score and min_detection_confidence are two names of one option"
    ):
        confidences(0.3, None, 0.3, None)
    with pytest.raises(InputError, match="min_tracking_confidence is 2"):
        confidences(None, None, None, 2.0)


@pytest.mark.parametrize("options", [{"min_detection_confidence": 0.95}, {"min_suppression_threshold": 0.9}], ids=str)
def test_thresholds_reach_the_detector(options: dict[str, Any]) -> None:
    counts = []
    for given in ({}, options):
        with run(FaceDetector.create(model_path("blazeface_short_range"), backend="wasm", **given)) as detector:
            counts.append(len(run(detector.detect(photo("face.jpg")))))
    assert counts[0] == 2
    assert counts[1] == 1 if "min_detection_confidence" in options else counts[1] > 2


def test_landmarks_are_told_in_parts_of_the_picture_too() -> None:
    picture = np.asarray(photo("astronaut.png"))[:300]
    with landmarker("wasm") as task:
        assert isinstance(task, LandmarkTask)
        (face,) = run(task.detect(picture))
    parts, xyz = np.array(face.normalized_landmarks.xyz).reshape(-1, 3), np.array(face.landmarks.xyz).reshape(-1, 3)
    np.testing.assert_allclose(parts * (512, 300, 512), xyz, rtol=1e-5)
    assert face.normalized_box.top == pytest.approx(face.box.top / 300)
