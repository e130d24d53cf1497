"""The models that webinfer knows by name, with their hashes: what is loaded is what was published."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from webinfer.errors import IntegrityError, ModelFormatError
from webinfer.models.layouts import (
    BLAZEFACE_FULL_RANGE,
    BLAZEFACE_SHORT_RANGE,
    FACE_MESH,
    SELFIE,
    SELFIE_LANDSCAPE,
    PictureInput,
    SsdLayout,
)

LICENCE = "Apache-2.0"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One published model, with the numbers that a task needs to run it."""

    name: str
    file: str  # in the package that brings it
    task: str  # the name of a task; tasks.TASKS has those that can be run
    source: str  # npm package
    sha256: str  # of the file
    input: PictureInput
    output: SsdLayout | None = None  # None: its outputs are tensors without a layout of their own
    licence: str = LICENCE
    other_editions: tuple[str, ...] = ()  # hashes of the same model as other packages publish it


_ROWS = (
    KnownModel(
        "blazeface_short_range", "face_detection_short_range.tflite", "face-detection", "@mediapipe/face_detection",
        "3bc182eb9f33925d9e58b5c8d59308a760f4adea8f282370e428c51212c26633",
        BLAZEFACE_SHORT_RANGE.input, BLAZEFACE_SHORT_RANGE,
    ),
    KnownModel(
        "blazeface_full_range", "face_detection_full_range.tflite", "face-detection", "@mediapipe/face_detection",
        "99bf9494d84f50acc6617d89873f71bf6635a841ea699c17cb3377f9507cfec3",
        BLAZEFACE_FULL_RANGE.input, BLAZEFACE_FULL_RANGE,
    ),
    KnownModel(
        "blazeface_full_range_sparse", "face_detection_full_range_sparse.tflite", "face-detection",
        "@mediapipe/face_detection",
        "671dd2f9ed11a78436fc21cc42357a803dfc6f73e9fb86541be942d5716c2dce",
        BLAZEFACE_FULL_RANGE.input, BLAZEFACE_FULL_RANGE,
    ),
    KnownModel(
        "face_mesh", "face_landmark.tflite", "face-landmarks", "@mediapipe/face_mesh",
        "c603fa6149219a3e9487dc9abd7a0c24474c77263273d24868378cdf40aa26d1", FACE_MESH,
        other_editions=("1055cb9d4a9ca8b8c688902a3a5194311138ba256bcc94e336d8373a5f30c814",),  # PyPI's mediapipe
    ),
    KnownModel(
        "face_mesh_attention", "face_landmark_with_attention.tflite", "face-landmarks", "@mediapipe/face_mesh",
        "883b7411747bac657c30c462d305d312e9dec6adbf8b85e2f5d8d722fca9455d", FACE_MESH,
    ),
    KnownModel(
        "selfie_segmentation", "selfie_segmentation.tflite", "segmentation", "@mediapipe/selfie_segmentation",
        "8d13b7fae74af625c641226813616a2117bd6bca19eb3b75574621fc08557f27", SELFIE,
    ),
    KnownModel(
        "selfie_segmentation_landscape", "selfie_segmentation_landscape.tflite", "segmentation",
        "@mediapipe/selfie_segmentation",
        "4aafe6223bb8dac6fac8ca8ed56852870a33051ef3f6238822d282a109962894", SELFIE_LANDSCAPE,
    ),
)  # fmt: skip
MODELS = {row.name: row for row in _ROWS}


def known_model(source: object) -> KnownModel | None:
    """The published model that a source of `webinfer.load` names; None for anything else."""
    return MODELS.get(str(source)) if isinstance(source, (str, PurePath)) else None


def locate_model(name: str, asset: Callable[..., str]) -> str:
    """The URL or path of a known model's file. `asset` finds a published file by its logical names (host.Host.asset).

    Raises:  ModelFormatError or BackendUnavailableError saying where the file was looked for
    """
    known = MODELS[name]
    try:
        return asset(f"models/{known.file}", f"models/{known.name}{PurePath(known.file).suffix}")
    except ModelFormatError as error:
        raise ModelFormatError(f"model {name!r} (npm {known.source}): {error}") from error


def check_integrity(name: str, data: memoryview) -> None:
    """Raises IntegrityError unless the bytes are the published model."""
    found, known = hashlib.sha256(data).hexdigest(), MODELS[name]
    if found not in (known.sha256, *known.other_editions):
        raise IntegrityError(f"model {name!r}: sha256 is {found}, {known.sha256} was published; fetch it again")
