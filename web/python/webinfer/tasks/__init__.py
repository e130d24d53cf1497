"""Tasks: an image in, what is on it out. Pixels, anchors and boxes are the kernels' work, not Python's.

`base` is what every task stands on; a task is one file and one row of TASKS. `crop` and `image` say which pixels a
model sees, `picture_input`, `gpu_image` and `workspace` bring them there, `ssd` reads single-shot detectors.
May import every room below the API.
"""

from typing import Any

from webinfer.tasks.base import Box, PictureTask
from webinfer.tasks.face_detector import Face, FaceDetector

__all__ = ["TASKS", "Box", "Face", "FaceDetector"]

# Tasks by name, as pages and the registry of models name them.
TASKS: dict[str, type[PictureTask[Any]]] = {task.name: task for task in (FaceDetector,)}
