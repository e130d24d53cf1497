"""Facial transformation matrices: MediaPipe's for the sample photo, and those that faces were placed by."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.tasks.face_views import VIEWS
from tests.tasks.photos import model_path, photo

from webinfer.tasks import FaceLandmarker
from webinfer.tasks.face_geometry import ANCHORS, NEAR, VERTICAL_FIELD, transformation_matrix

POINTS = 468
# Three rows that mediapipe 0.10.21's FaceGeometryPipelineCalculator gives; `judge tasks --only photos` judges photos.
ANSWERS = {
    "as it is": (
        (0.9977, 0.067, 0.0143, -5.0011), (-0.0611, 0.9648, -0.2557, 22.591), (-0.0309, 0.2542, 0.9667, -69.6913),
    ),
    "mirrored": (
        (0.9987, -0.0493, -0.0084, 5.1067), (0.0456, 0.9664, -0.2529, 23.044), (0.0205, 0.2522, 0.9675, -71.0917),
    ),
    "cropped": (
        (0.9958, 0.0828, 0.0393, -8.8378), (-0.0687, 0.9577, -0.2795, 16.6387), (-0.0608, 0.2756, 0.9594, -49.8488),
    ),
}  # fmt: skip


def test_faces_lie_in_space_as_mediapipe_says() -> None:
    picture = np.asarray(photo("astronaut.png"))
    mesh, detector = model_path("face_mesh"), model_path("blazeface_short_range")
    with run(FaceLandmarker.create(mesh, detector=detector, backend="wasm")) as task:
        for name, rows in ANSWERS.items():
            (face,) = run(task.detect(VIEWS[name](picture)))
            matrix = np.array(face.transformation_matrix)
            np.testing.assert_allclose(matrix[:3, :3], np.array(rows)[:, :3], atol=2e-3, err_msg=name)
            np.testing.assert_allclose(matrix[:3, 3], np.array(rows)[:, 3], atol=0.05, err_msg=name)
            assert matrix[3].tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("size", [(640, 480), (300, 900)])
@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0), (0.5, -0.3, 0.2), (-0.4, 0.6, 2.9)], ids=str)
def test_a_face_is_found_where_it_was_placed(turn: tuple[float, float, float], size: tuple[int, int]) -> None:
    (a, b, c), place = turn, np.array([3.0, -5.0, -60.0])
    around_x = np.array([[1, 0, 0], [0, math.cos(a), -math.sin(a)], [0, math.sin(a), math.cos(a)]])
    around_y = np.array([[math.cos(b), 0, math.sin(b)], [0, 1, 0], [-math.sin(b), 0, math.cos(b)]])
    around_z = np.array([[math.cos(c), -math.sin(c), 0], [math.sin(c), math.cos(c), 0], [0, 0, 1]])
    rotation = around_z @ around_y @ around_x
    high = 2 * NEAR * math.tan(VERTICAL_FIELD / 2)
    wide = high * size[0] / size[1]
    x, y, z = (np.array([row[2:] for row in ANCHORS]) @ rotation.T + place).T
    landmarks = np.zeros((POINTS, 3))
    landmarks[:, 2] = 1 / wide  # all others lie in the middle of the face's depth
    at = [row[0] for row in ANCHORS]
    landmarks[at] = np.stack([0.5 - x / z / wide, 0.5 + y / z / high, z / place[2] / wide], 1)
    found = np.array(transformation_matrix(landmarks.ravel().tolist(), size))
    np.testing.assert_allclose(found[:3, :3], rotation, atol=0.06)
    np.testing.assert_allclose(found[:3, 3], place, rtol=0.03, atol=0.3)
    scale = np.linalg.norm(found[:3, 0])
    np.testing.assert_allclose(found[:3, :3] @ found[:3, :3].T, scale**2 * np.eye(3), atol=1e-9)
