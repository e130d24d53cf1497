"""What the blocks about tasks find: a photo, a recording, a film. Models that are not on this machine skip them."""

from __future__ import annotations

import importlib.machinery
import io
import os
import sys
import types
import wave
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.docs.given import Given, Names
from tests.tasks.photos import photo

import webinfer
from webinfer.errors import ModelFormatError
from webinfer.host.native import NativeHost

RATE = 16_000


@contextmanager
def local_models() -> Iterator[None]:
    """Skips what would download a model: no test needs the network."""
    find = NativeHost.asset

    def asset(host: NativeHost, *names: str) -> str:
        with suppress(ModelFormatError):
            if os.path.exists(found := find(host, *names)):
                return found
        pytest.skip(f"{names[0]} is not in build/models: python3 -m build_scripts build models")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NativeHost, "asset", asset)
        yield


@asynccontextmanager
async def tasks(text: str) -> AsyncIterator[Names]:
    """A photo as `rgb` and `picture`, and a second of a recording as call.wav and `samples`."""
    samples = np.random.default_rng(1).normal(0, 0.01, RATE).astype(np.float32)
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((samples * 32767).astype("<i2").tobytes())
    Path("call.wav").write_bytes(data.getvalue())
    picture = photo("astronaut.png")
    names: Names = {
        "webinfer": webinfer,
        "Path": Path,
        "picture": picture,
        "rgb": np.array(picture),
        "samples": samples,
    }
    with local_models():
        yield names
    assert "probabilities" not in names or len(names["probabilities"]) == len(samples) // 512
    assert "vectors" not in names or [len(one) for one in names["vectors"]] == [384, 384]


@asynccontextmanager
async def mediapipe(text: str) -> AsyncIterator[Names]:
    """MediaPipe itself, and a photo."""
    mp = pytest.importorskip("mediapipe", reason="mediapipe is not installed")
    file = "gesture_recognizer.task"
    if file in text:
        with local_models():
            Path(file).write_bytes(Path(NativeHost().asset(f"models/{file}")).read_bytes())
    rgb = np.array(photo("astronaut.png"))
    yield {"mp": mp, "rgb": rgb, "width": rgb.shape[1], "height": rgb.shape[0]}


@asynccontextmanager
async def film(text: str) -> AsyncIterator[Names]:
    """film.mp4, which a stand-in for OpenCV reads: the photo twice."""
    frames = [np.asarray(photo("astronaut.png"))[..., ::-1]] * 2

    class Capture:
        def __init__(self, path: str) -> None:
            self.frames = list(frames)

        def isOpened(self) -> bool:
            return True

        def get(self, _: int) -> float:
            return 33.3 * (len(frames) - len(self.frames))

        def read(self) -> tuple[bool, Any]:
            return bool(self.frames), self.frames.pop() if self.frames else None

        def release(self) -> None:
            pass

    opencv: Any = types.ModuleType("cv2")
    opencv.__spec__ = importlib.machinery.ModuleSpec("cv2", None)
    opencv.VideoCapture, opencv.CAP_PROP_POS_MSEC = Capture, 0
    Path("film.mp4").write_bytes(b"")
    printed: list[Any] = []
    with pytest.MonkeyPatch.context() as patch, webinfer.pipeline("face-detection", backend="wasm") as detect_faces:
        patch.setitem(sys.modules, "cv2", opencv)
        patch.setitem(sys.modules, "av", None)
        yield {"detect_faces": detect_faces, "print": lambda *given: printed.append(given)}
    assert printed == [("film.mp4#0", [1]), ("film.mp4#1", [1])]


TASKS: dict[str, Given] = {"tasks": tasks, "mediapipe": mediapipe, "film": film}
