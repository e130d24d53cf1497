"""Photos and models that tests of tasks share: of the demo, or of ../shared."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from webinfer.host.native import NativeHost
from webinfer.models.registry import MODELS, locate_model

ROOT = Path(__file__).resolve().parents[4]


SHARED = ROOT.parent / "shared"


def model_path(name: str) -> Path:
    shared = SHARED / "models" / f"{name}.tflite"
    if shared.is_file():
        return shared
    if name not in MODELS:
        pytest.skip(f"{name}.tflite is not in ../shared/models and no npm package brings it")
    return Path(locate_model(name, NativeHost().asset))


def photo_path(name: str) -> Path | None:
    places = [folder / name for folder in (ROOT / "build" / "images", SHARED / "images")]
    return next((path for path in places if path.is_file()), None)


def photo(name: str) -> Image.Image:
    path = photo_path(name)
    if path is None:
        pytest.skip(f"photo {name} is not in build/images or ../shared/images")
    return Image.open(path).convert("RGB")
