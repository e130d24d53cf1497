"""Files out of the engine's own wheel as addresses of blobs: kernels and scripts for pages that are not of our site."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.resources
import os
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


def published_file(*names: str) -> str | None:
    """The address of the first of these models that a folder of $WEBINFER_MODELS or a package has; None if none does.

    The variable names one address, whose files are not looked for before they are fetched. Pages of our site ask their
    manifest alone: their engine has no table of packages.
    """
    files = [name.partition("/")[2] for name in names if name.startswith("models/")]
    if not files or not (importlib.resources.files("webinfer") / "_published.json").is_file():
        return None
    if folder := os.environ.get("WEBINFER_MODELS"):
        return f"{folder.rstrip('/')}/{files[0]}"
    from webinfer.host.published_table import address_of

    return address_of(*files)


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
