"""Files out of the engine's own wheel as addresses of blobs: kernels and scripts for pages that are not of our site."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.resources
from typing import Any

import js
from pyodide.code import run_js
from pyodide.ffi import to_js

TYPES = {"wasm": "application/wasm", "js": "text/javascript"}


def own_file(name: str) -> str | None:
    """The URL of a file of the wheel by its logical name ("kernels/...", "static/..."); None if there is none."""
    folder, _, file = name.partition("/")
    place = importlib.resources.files("webinfer") / f"_{folder}" / file
    if not place.is_file():
        return None
    kind = to_js({"type": TYPES[file.rpartition(".")[2]]}, dict_converter=js.Object.fromEntries)
    return str(js.URL.createObjectURL(js.Blob.new(to_js([place.read_bytes()]), kind)))


async def own_script(name: str) -> Any:
    """What the wheel's script "static/..." exports; None if the wheel holds no such script."""
    url = own_file(name)
    return None if url is None else await run_js("(url) => import(url)")(url)


def own_identity() -> str:
    """A hash of the installed wheel's list of files, which has the hash of each; "" if none is installed."""
    try:
        record = importlib.metadata.distribution("webinfer").read_text("RECORD") or ""
    except importlib.metadata.PackageNotFoundError:
        return ""
    return hashlib.sha256(record.encode()).hexdigest()[:16] if record else ""
