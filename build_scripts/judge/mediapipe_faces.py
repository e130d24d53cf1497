"""Where MediaPipe's face detection sees faces. Runs in an environment that holds mediapipe; see judge/faces.py.

python mediapipe_faces.py OUTPUT.json PICTURE ...
"""

import json
import sys
from pathlib import Path
from typing import Any

import mediapipe  # type: ignore[import-not-found]
import numpy as np
from PIL import Image


def faces(solution: Any, image: Any) -> list[dict[str, Any]]:
    """Boxes and keypoints in pixels, with their scores; thresholds are the graph's own."""
    height, width = image.shape[:2]
    found = []
    for one in solution.process(image).detections or []:
        box = one.location_data.relative_bounding_box
        found.append({
            "score": one.score[0],
            "box": [box.xmin * width, box.ymin * height, box.width * width, box.height * height],
            "keypoints": [[p.x * width, p.y * height] for p in one.location_data.relative_keypoints],
        })  # fmt: skip
    return found


def main() -> None:
    """Writes the answers of both models for all pictures."""
    output, *pictures = map(Path, sys.argv[1:])
    answers = {}
    for number, name in enumerate(("short", "full")):
        with mediapipe.solutions.face_detection.FaceDetection(model_selection=number) as solution:
            answers[name] = {p.name: faces(solution, np.asarray(Image.open(p).convert("RGB"))) for p in pictures}
    output.write_text(json.dumps(answers))


main()
