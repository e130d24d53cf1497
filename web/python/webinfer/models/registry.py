"""The models that webinfer knows by name, with their hashes: what is loaded is what was published."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from webinfer.errors import IntegrityError, ModelFormatError

LICENCE = "Apache-2.0"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One published model. `file` is its name in the npm package that brings it."""

    name: str
    file: str
    task: str
    source: str  # npm package
    sha256: str
    licence: str = LICENCE


_ROWS = (
    (
        "blazeface_short_range", "face_detection_short_range", "face detection", "@mediapipe/face_detection",
        "3bc182eb9f33925d9e58b5c8d59308a760f4adea8f282370e428c51212c26633",
    ),
    (
        "blazeface_full_range", "face_detection_full_range", "face detection", "@mediapipe/face_detection",
        "99bf9494d84f50acc6617d89873f71bf6635a841ea699c17cb3377f9507cfec3",
    ),
    (
        "blazeface_full_range_sparse",
        "face_detection_full_range_sparse", "face detection", "@mediapipe/face_detection",
        "671dd2f9ed11a78436fc21cc42357a803dfc6f73e9fb86541be942d5716c2dce",
    ),
    (
        "face_mesh", "face_landmark", "face mesh", "@mediapipe/face_mesh",
        "1055cb9d4a9ca8b8c688902a3a5194311138ba256bcc94e336d8373a5f30c814",
    ),
    (
        "face_mesh_attention", "face_landmark_with_attention", "face mesh", "@mediapipe/face_mesh",
        "883b7411747bac657c30c462d305d312e9dec6adbf8b85e2f5d8d722fca9455d",
    ),
    (
        "selfie_segmentation", "selfie_segmentation", "segmentation", "@mediapipe/selfie_segmentation",
        "8d13b7fae74af625c641226813616a2117bd6bca19eb3b75574621fc08557f27",
    ),
    (
        "selfie_segmentation_landscape",
        "selfie_segmentation_landscape", "segmentation", "@mediapipe/selfie_segmentation",
        "4aafe6223bb8dac6fac8ca8ed56852870a33051ef3f6238822d282a109962894",
    ),
)  # fmt: skip
MODELS = {row[0]: KnownModel(*row) for row in _ROWS}


def model_folders() -> list[Path]:
    """Where models lie on this machine: $WEBINFER_MODELS, then the checkout's build."""
    named = [Path(p) for p in os.environ.get("WEBINFER_MODELS", "").split(os.pathsep) if p]
    return [*named, Path(__file__).resolve().parents[4] / "build" / "models"]


def find_model(name: str) -> Path:
    """The file of a known model in a local folder.

    Raises:  ModelFormatError if no folder holds it
    """
    known = MODELS[name]
    for folder in model_folders():
        for stem in (known.file, known.name):
            if (path := folder / f"{stem}.tflite").is_file():
                return path
    raise ModelFormatError(
        f"model {name!r} is not in {', '.join(map(str, model_folders()))}; run `python3 -m build_scripts setup` "
        f"in the checkout, or set WEBINFER_MODELS to a folder with {known.file}.tflite (npm {known.source})"
    )


def check_integrity(name: str, data: memoryview) -> None:
    """Raises IntegrityError unless the bytes are the published model."""
    found = hashlib.sha256(data).hexdigest()
    if found != MODELS[name].sha256:
        raise IntegrityError(f"model {name!r}: sha256 is {found}, {MODELS[name].sha256} was published; fetch it again")
