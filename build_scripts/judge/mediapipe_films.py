"""What MediaPipe's own solutions see in films. Runs in an environment that holds mediapipe; see judge/films.py.

python mediapipe_films.py OUTPUT.json FILM.npy ...      a film is an array of frames; its name begins with a solution's
"""

import json
import sys
from pathlib import Path
from typing import Any

import mediapipe  # type: ignore[import-not-found]
import numpy as np

SOLUTIONS = mediapipe.solutions
MAKERS: dict[str, Any] = {
    "face_mesh": lambda still: SOLUTIONS.face_mesh.FaceMesh(static_image_mode=still, max_num_faces=2),
    "hands": lambda still: SOLUTIONS.hands.Hands(static_image_mode=still, max_num_hands=2),
    "poses": lambda still: SOLUTIONS.pose.Pose(static_image_mode=still),
}


def things(found: Any, size: tuple[int, int]) -> list[list[list[float]]]:
    """x and y in pixels of each landmark of each thing."""
    one = getattr(found, "pose_landmarks", None)
    several = getattr(found, "multi_face_landmarks", None) or getattr(found, "multi_hand_landmarks", None) or []
    return [[[p.x * size[0], p.y * size[1]] for p in marks.landmark] for marks in ([one] if one else several)]


def main() -> None:
    """Writes the answers for all films: frame by frame as a film, and each frame as a picture."""
    output, *films = map(Path, sys.argv[1:])
    answers = {}
    for film in films:
        frames, make = np.load(film), next(make for name, make in MAKERS.items() if film.stem.startswith(name))
        found = {}
        for mode in ("film", "pictures"):
            with make(mode == "pictures") as solution:
                found[mode] = [things(solution.process(f), f.shape[1::-1]) for f in map(np.ascontiguousarray, frames)]
        answers[film.stem] = found
    output.write_text(json.dumps(answers))


main()
