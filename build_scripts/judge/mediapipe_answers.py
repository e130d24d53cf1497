"""What MediaPipe's own solutions see in photos. Runs in an environment that holds mediapipe; see judge/tasks.py.

python mediapipe_answers.py OUTPUT.json GESTURES.task PHOTO ...        masks are written beside the output, as .npy
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


def poses(image: Any, mask: Path) -> list[dict[str, Any]]:
    """The landmarks of one body; its mask is written to a file."""
    with SOLUTIONS.pose.Pose(static_image_mode=True, model_complexity=1, enable_segmentation=True) as solution:
        found = solution.process(image)
    if found.segmentation_mask is not None:
        np.save(mask, found.segmentation_mask)
    return [{"landmarks": points(found.pose_landmarks)}] if found.pose_landmarks else []


def gestures(image: Any, bundle: Path) -> list[dict[str, Any]]:
    """The landmarks of all hands and their gestures, those of the bundle's own classifier among them.

    This recognizer calls those hands left that MediaPipe's solutions, and we, call right.
    """
    vision, base = mediapipe.tasks.vision, mediapipe.tasks.BaseOptions(model_asset_path=str(bundle))
    with vision.GestureRecognizer.create_from_options(
        vision.GestureRecognizerOptions(base_options=base, num_hands=4)
    ) as recognizer:
        found = recognizer.recognize(mediapipe.Image(image_format=mediapipe.ImageFormat.SRGB, data=image))
    rows = zip(found.hand_landmarks, found.hand_world_landmarks, found.handedness, found.gestures, strict=True)
    return [
        {
            "landmarks": [[p.x, p.y, p.z] for p in hand], "world": [[p.x, p.y, p.z] for p in world],
            "side": "Left" if side[0].category_name == "Right" else "Right", "sure": side[0].score,
            "kind": told[0].category_name, "score": told[0].score,
        }
        for hand, world, side, told in rows
    ]  # fmt: skip


def person(image: Any) -> dict[str, list[dict[str, Any]]]:
    """The landmarks of one body, its face and its hands, each a list of one or of none."""
    with SOLUTIONS.holistic.Holistic(static_image_mode=True, model_complexity=1) as solution:
        found = solution.process(image)
    parts = {part: getattr(found, f"{part}_landmarks") for part in ("pose", "face", "left_hand", "right_hand")}
    return {part: [{"landmarks": points(marks)}] if marks else [] for part, marks in parts.items()}


def main() -> None:
    """Writes the answers for all photos."""
    output, bundle, *photos = map(Path, sys.argv[1:])
    answers = {}
    for photo in photos:
        image = np.array(Image.open(photo).convert("RGB"))
        answers[photo.name] = {
            "face_mesh": faces(image, False),
            "face_mesh_attention": faces(image, True),
            "hands": hands(image),
            "gestures": gestures(image, bundle),
            "poses": poses(image, output.parent / f"pose_{photo.name}.npy"),
            "holistic": person(image),
        }
        for number, name in enumerate(("selfie", "selfie_landscape")):
            with SOLUTIONS.selfie_segmentation.SelfieSegmentation(model_selection=number) as solution:
                np.save(output.parent / f"{name}_{photo.name}.npy", solution.process(image).segmentation_mask)
    output.write_text(json.dumps(answers))


main()
