"""A Python that has the engine and what it needs, and no onnxruntime beside it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[2]
NEEDED = ("jinja2", "markupsafe", "wasmtime", "numpy", "numpy.libs")


def link_engine(folder: Path) -> None:
    """Links to the engine and its requirements in a folder, for `sys.path` of `python -I -S`."""
    folder.mkdir(exist_ok=True)
    (folder / "webinfer").symlink_to(ENGINE / "webinfer")
    for name in NEEDED:
        spec = importlib.util.find_spec(name.partition(".")[0])
        if spec is None or spec.origin is None:
            pytest.skip(f"{name} is not installed")
        source = Path(spec.origin).parent.parent / name
        if source.exists():
            (folder / name).symlink_to(source)
