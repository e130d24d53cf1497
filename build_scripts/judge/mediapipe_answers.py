"""What MediaPipe's own solutions see in photos. Runs in an environment that holds mediapipe; see judge/tasks.py.

python mediapipe_answers.py OUTPUT.json PHOTO ...        masks are written beside the output, as .npy
"""

import json
import sys
from pathlib import Path
from typing import Any

import mediapipe  # type: ignore[import-not-found]
import numpy as np
from PIL import Image

SOLUTIONS = mediapipe.solutions


def points(found: Any) -> list[list[float]]:
    """x and y of each landmark, relative to the picture, and z."""
    return [[p.x, p.y, p.z] for p in found.landmark]


def faces(image: Any, refined: bool) -> list[dict[str, Any]]:
    """The landmarks of all faces."""
    options = {"static_image_mode": True, "max_num_faces": 4, "refine_landmarks": refined}
    with SOLUTIONS.face_mesh.FaceMesh(**options) as solution:
        return [{"landmarks": points(one)} for one in solution.process(image).multi_face_landmarks or []]


def hands(image: Any) -> list[dict[str, Any]]:
    """The landmarks of all hands, and which hand each is."""
    with SOLUTIONS.hands.Hands(static_image_mode=True, max_num_hands=4, model_complexity=1) as solution:
        found = solution.process(image)
    rows = zip(found.multi_hand_landmarks or [], found.multi_handedness or [], strict=True)
    return [{"landmarks": points(one), "kind": side.classification[0].label} for one, side in rows]


def poses(image: Any) -> list[dict[str, Any]]:
    """The landmarks of one body."""
    with SOLUTIONS.pose.Pose(static_image_mode=True, model_complexity=1) as solution:
        found = solution.process(image)
    return [{"landmarks": points(found.pose_landmarks)}] if found.pose_landmarks else []


def person(image: Any) -> dict[str, list[dict[str, Any]]]:
    """The landmarks of one body, its face and its hands, each a list of one or of none."""
    with SOLUTIONS.holistic.Holistic(static_image_mode=True, model_complexity=1) as solution:
        found = solution.process(image)
    parts = {part: getattr(found, f"{part}_landmarks") for part in ("pose", "face", "left_hand", "right_hand")}
    return {part: [{"landmarks": points(marks)}] if marks else [] for part, marks in parts.items()}


def main() -> None:
    """Writes the answers for all photos."""
    output, *photos = map(Path, sys.argv[1:])
    answers = {}
    for photo in photos:
        image = np.array(Image.open(photo).convert("RGB"))
        answers[photo.name] = {
            "face_mesh": faces(image, False),
            "face_mesh_attention": faces(image, True),
            "hands": hands(image),
            "poses": poses(image),
            "holistic": person(image),
        }
        for number, name in enumerate(("selfie", "selfie_landscape")):
            with SOLUTIONS.selfie_segmentation.SelfieSegmentation(model_selection=number) as solution:
                np.save(output.parent / f"{name}_{photo.name}.npy", solution.process(image).segmentation_mask)
    output.write_text(json.dumps(answers))


main()
