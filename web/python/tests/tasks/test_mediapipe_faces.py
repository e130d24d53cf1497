"""Boxes of faces are MediaPipe's: what mediapipe 0.10.21's face detection says of views of the sample photo."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.tasks.face_views import VIEWS
from tests.tasks.photos import model_path, photo

from webinfer.tasks import FaceDetector

# Left, top, width, height, x and y of the nose in pixels; score. `tasks --only faces` judges 216 pictures.
ANSWERS: dict[str, dict[str, list[tuple[float, ...]]]] = {
    "blazeface_short_range": {
        "as it is": [(177.57, 82.87, 95.34, 95.34, 220.43, 127.26, 0.9217)],
        "mirrored": [(243.0, 83.71, 93.67, 93.67, 292.74, 133.35, 0.956)],
        "dark": [(177.36, 82.04, 93.76, 93.76, 218.9, 128.36, 0.8987)],
        "grey": [(175.23, 79.06, 97.7, 97.7, 211.07, 126.88, 0.8383)],
        "half": [(88.78, 41.44, 47.67, 47.67, 110.21, 63.63, 0.9217)],
        "cropped": [(112.11, 39.01, 105.75, 105.75, 164.03, 94.84, 0.9374)],
        "wide": [(175.63, 37.6, 98.78, 98.78, 226.43, 90.17, 0.915)],
        "narrow": [(49.82, 80.44, 97.56, 97.56, 91.34, 128.13, 0.9262)],
        "enlarged": [(252.93, 156.96, 314.79, 314.75, 407.82, 333.87, 0.888)],
        "two": [
            (81.09, 77.42, 95.11, 95.11, 118.09, 124.08, 0.9392),
            (434.22, 51.85, 87.27, 87.27, 473.89, 97.38, 0.9217),
        ],
    },
    "blazeface_full_range_sparse": {
        "as it is": [(173.66, 67.78, 103.93, 103.93, 223.97, 132.28, 0.9121)],
        "mirrored": [(233.2, 67.36, 107.33, 107.35, 289.38, 131.95, 0.9299)],
        "dark": [(173.09, 67.39, 105.11, 105.1, 222.68, 130.03, 0.8935)],
        "grey": [(175.41, 69.49, 102.17, 102.18, 225.54, 128.83, 0.9334)],
        "half": [(86.56, 33.71, 52.18, 52.18, 111.53, 65.67, 0.9026)],
        "cropped": [(111.36, 31.0, 107.52, 107.56, 161.65, 95.2, 0.9539)],
        "wide": [(174.27, 30.14, 102.31, 102.3, 224.28, 89.84, 0.9649)],
        "narrow": [(42.71, 67.55, 105.54, 105.55, 93.46, 132.17, 0.85)],
        "enlarged": [(236.48, 130.92, 347.12, 347.13, 405.23, 334.96, 0.9044)],
        "two": [
            (420.73, 38.46, 103.97, 103.98, 477.11, 100.57, 0.9209),
            (70.8, 64.42, 110.48, 110.48, 124.58, 132.99, 0.8509),
        ],
    },
}
EXACT = 0.05  # pixels: float16 weights of two runtimes
SURE = 2e-3


@pytest.mark.parametrize(
    ("model", "backend"),
    [("blazeface_short_range", "wasm"), ("blazeface_short_range", "webgpu"), ("blazeface_full_range_sparse", "wasm")],
)
def test_faces_are_where_mediapipe_has_them(model: str, backend: str) -> None:
    picture = np.asarray(photo("astronaut.png"))
    with run(FaceDetector.create(model_path(model), backend=backend)) as detector:
        for name, view in VIEWS.items():
            found = []
            for face in run(detector.detect(view(picture))):
                box = face.box
                found.append((box.left, box.top, box.width, box.height, *face.keypoints["nose_tip"], face.score))
            want = ANSWERS[model][name]
            assert len(found) == len(want), name
            size = max(row[2] for row in want)
            for mine, theirs in zip(found, want, strict=True):
                assert mine[:6] == pytest.approx(theirs[:6], abs=EXACT * size / 50), name
                assert mine[6] == pytest.approx(theirs[6], abs=SURE), name
