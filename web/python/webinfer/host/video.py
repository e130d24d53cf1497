"""Frames of video files in CPython, with PyAV or OpenCV, whichever is installed; of cameras with OpenCV."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from typing import Any

from webinfer.errors import InputError


def frames(path: str) -> Iterator[tuple[Any, float]]:
    """Each frame as an RGB array of uint8, and its time in milliseconds.

    Raises:  InputError if neither PyAV nor OpenCV is installed, or the file cannot be read
    """
    if importlib.util.find_spec("av") is not None:
        yield from _with_av(path)
    elif importlib.util.find_spec("cv2") is not None:
        yield from _with_opencv(path)
    else:
        raise InputError(f"reading the video {path!r} needs PyAV or OpenCV: pip install av")


def camera_frames(number: int) -> Iterator[tuple[Any, float]]:
    """Each frame of the camera of this number as an RGB array of uint8, and milliseconds since the first one.

    It goes on until the caller ends it, which frees the camera, or the camera is gone.

    Raises:  InputError if OpenCV is not installed, or there is no such camera
    """
    if importlib.util.find_spec("cv2") is None:
        raise InputError(f"reading the camera {number} needs OpenCV: pip install opencv-python-headless")
    capture = importlib.import_module("cv2").VideoCapture(number)
    try:
        if not capture.isOpened():
            raise InputError(f"there is no camera {number}, or another program is using it")
        first = None
        while True:
            there, frame = capture.read()
            if not there:
                return
            now = time.monotonic()
            first = now if first is None else first
            yield frame[..., ::-1], (now - first) * 1e3
    finally:
        capture.release()


def _with_av(path: str) -> Iterator[tuple[Any, float]]:
    av = importlib.import_module("av")
    try:
        with av.open(path) as container:
            for frame in container.decode(video=0):
                yield frame.to_ndarray(format="rgb24"), 1e3 * float(frame.time or 0.0)
    except (OSError, IndexError) as error:
        raise InputError(f"the video {path!r} cannot be read: {error}") from error


def _with_opencv(path: str) -> Iterator[tuple[Any, float]]:
    cv2 = importlib.import_module("cv2")
    capture = cv2.VideoCapture(path)
    if not capture.isOpened():
        raise InputError(f"the video {path!r} cannot be read by OpenCV")
    try:
        while True:
            at = capture.get(cv2.CAP_PROP_POS_MSEC)
            there, frame = capture.read()
            if not there:
                return
            yield frame[..., ::-1], at
    finally:
        capture.release()
