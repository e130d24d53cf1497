"""BlazeFace on photos: raw outputs against ai-edge-litert, boxes against a detector built on them.

The models come from npm (build/models) and, where the folder lies beside the checkout, from ../shared/models.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target
from tests.tasks.photos import ROOT, model_path, photo, photo_path

from webinfer.host import current
from webinfer.session.loading import load
from webinfer.tasks import Face, FaceDetector
from webinfer.tasks.crop import Crop, Sampling
from webinfer.tasks.image import prepare_image, read_image
from webinfer.tasks.workspace import Workspace

NAMES = ("blazeface_short_range", "blazeface_front_2020", "blazeface_back_2021", "blazeface_full_range")
PHOTOS = ("astronaut.png", "face.jpg", "couple.jpg", "grace_hopper.bmp")
CLOSE = {"astronaut.png": 1, "face.jpg": 2, "grace_hopper.bmp": 1}  # photos with near faces
BOUND = 1e-3  # largest absolute difference of a raw output
# Of an output's range. back_2021's logits reach 9,600: LiteRT's own two kernel sets differ by 3.6e-6 of a picture's
# range, and Winograd's transform, which the first layer runs by, is off by 5.3e-6 of it where LiteRT is by 2.8e-6.
ROUNDING = 6e-6
OVERLAP = 0.98  # intersection over union of a box


def photos() -> list[Image.Image]:
    return [photo(name) for name in PHOTOS if photo_path(name) is not None]


@lru_cache(maxsize=1)
def workspace() -> Workspace:
    return Workspace(run(current().kernels()))


def looked_at(picture: Image.Image, size: int) -> Crop:
    """All of a picture as MediaPipe's graph lays it in: the input's first pixel shows the region's corner."""
    return replace(Crop.fit(picture.width, picture.height, size, size), corners=True)


def prepared(picture: Image.Image, size: int) -> np.ndarray[Any, Any]:
    box = looked_at(picture, size)
    pixels, numbers = read_image(picture, current()), {"scale": 2 / 255, "offset": -1.0}
    data = prepare_image(workspace(), pixels, box, **numbers, sampling=Sampling.FIXED)
    return np.frombuffer(data, np.float32).reshape(1, size, size, 3)


@lru_cache(maxsize=16)
def litert(path: Path) -> Any:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    return interpreter


def litert_outputs(path: Path, x: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    interpreter = litert(path)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return {d["name"]: interpreter.get_tensor(d["index"]).copy() for d in interpreter.get_output_details()}


def sigmoid(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    result: np.ndarray[Any, Any] = 1 / (1 + np.exp(-np.clip(x, -100, 100)))
    return result


def anchors(size: int, count: int) -> np.ndarray[Any, Any]:
    layers = {(128, 896): ((8, 2), (16, 6)), (256, 896): ((16, 2), (32, 6)), (192, 2304): ((4, 1),)}[size, count]
    centres = []
    for stride, per_cell in layers:
        line = (np.arange(size // stride) + 0.5) / (size // stride)
        grid = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
        centres.append(np.repeat(grid, per_cell, axis=0))
    return np.concatenate(centres)


def expected_boxes(
    outputs: dict[str, np.ndarray[Any, Any]], size: int, box: Crop, least: float
) -> list[tuple[float, ...]]:
    """(left, top, right, bottom, score) in pixels: decoding and weighted suppression in NumPy."""
    raw, logits = sorted((o[0] for o in outputs.values()), key=lambda o: -o.shape[-1])
    scores = sigmoid(logits[:, 0].astype(np.float64))
    centre = raw[:, :2] / size + anchors(size, len(raw))
    corners = np.concatenate([centre - raw[:, 2:4] / size / 2, centre + raw[:, 2:4] / size / 2], axis=1)
    alive, found = [i for i in np.argsort(-scores, kind="stable") if scores[i] >= least], []
    while alive:
        best = alive[0]
        near = [i for i in alive if i == best or iou(corners[i], corners[best]) > 0.3]
        mean = np.average(corners[near], axis=0, weights=scores[near])
        found.append((*box.to_image(*mean[:2]), *box.to_image(*mean[2:]), float(scores[best])))
        alive = [i for i in alive if i not in near]
    return found


def iou(a: Any, b: Any) -> float:
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if w <= 0 or h <= 0:
        return 0.0
    return float(w * h / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h))


def corners(face: Face) -> tuple[float, float, float, float]:
    b = face.box
    return b.left, b.top, b.left + b.width, b.top + b.height


DEFAULTS = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]


@pytest.mark.parametrize("target", DEFAULTS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_raw_outputs_are_litert_s(target: Target, name: str, record_property: Any) -> None:
    target.demand()
    path = model_path(name)
    size = int(litert(path).get_input_details()[0]["shape"][1])
    inputs = [prepared(picture, size) for picture in photos()]
    cases = [(x, litert_outputs(path, x)) for x in inputs]

    async def worst() -> tuple[float, float]:
        off = over = 0.0
        with await load(path, backend=target.backend, strict=True) as session:
            for x, want in cases:
                got = await session.run(x)
                for n in want:
                    difference = float(np.abs(got[n].numpy() - want[n]).max())
                    off = max(off, difference)
                    over = max(over, difference / max(BOUND, ROUNDING * float(np.ptp(want[n]))))
        return off, over

    found, over = run(worst())
    record_property("max_abs_difference", found)
    print(f"{name} on {target}: max abs difference {found:.2e}")
    assert over <= 1


@pytest.fixture(scope="module")
def detector(target: Target, name: str, apart: bool) -> Iterator[FaceDetector]:
    """One for all photos: loading takes more processor time than looking at a photo."""
    target.demand()
    opened = FaceDetector.create(model_path(name), backend=target.backend, strict=True, decode_apart=apart)
    with run(opened) as detector:
        yield detector


@pytest.mark.parametrize("file", PHOTOS)
@pytest.mark.parametrize("name", NAMES, scope="module")
@pytest.mark.parametrize("apart", [False, True], ids=["in the plan", "apart"], scope="module")
@pytest.mark.parametrize("target", DEFAULTS, ids=str, scope="module")
def test_boxes_are_those_of_a_detector_on_litert_s_outputs(detector: FaceDetector, name: str, file: str) -> None:
    path, picture = model_path(name), photo(file)
    faces, size = run(detector.detect(picture)), detector.session.inputs[0].shape[1]
    outputs = litert_outputs(path, prepared(picture, size))
    least = 0.6 if name == "blazeface_full_range" else 0.5  # those of MediaPipe's graphs
    want = expected_boxes(outputs, size, looked_at(picture, size), least)
    assert len(faces) == len(want)
    if name == "blazeface_short_range" and file in CLOSE:
        assert len(faces) == CLOSE[file]
    for face, expected in zip(faces, want, strict=True):
        assert iou(corners(face), expected[:4]) >= OVERLAP
        assert face.score == pytest.approx(expected[4], abs=1e-4)


def test_ci_has_the_sample_photo() -> None:
    if os.environ.get("WEBINFER_CI"):
        assert (ROOT / "build" / "images" / "astronaut.png").is_file()
