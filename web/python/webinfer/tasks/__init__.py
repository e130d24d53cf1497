"""Tasks: an image in, what is on it out. Pixels, anchors and boxes are the kernels' work, not Python's.

`workspace` is kernel memory for pre- and post-processing, `image` brings pictures in, `ssd` reads
single-shot detectors; the detectors themselves stand on top. May import every room below the API.
"""

from webinfer.tasks.face_detector import Box, Face, FaceDetector

__all__ = ["Box", "Face", "FaceDetector"]
