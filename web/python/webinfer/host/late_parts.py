"""Parts of the engine that a site's pages do not load at first: fetched, checked and put on the path when imported.

Which parts these are stands in pyproject.toml, `[tool.webinfer.late]`. An import needs its module at once, so the
request is a synchronous one; the browser asks its cache first.
"""

from __future__ import annotations

import hashlib
import sys
import zipimport
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import js
from pyodide.ffi import JsException

from webinfer.errors import BackendUnavailableError, IntegrityError
from webinfer.host.late_table import ARCHIVES

FOLDER = Path("/lib/archives")  # of the interpreter's own file system


class LateParts:
    """Finds the first module of each late part, as importlib asks; what lies below is found in the same archive."""

    def __init__(self, assets: Mapping[str, str]) -> None:
        self._assets = assets

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where the module is, in an archive that is fetched for it; None for modules of no late part.

        Raises:  BackendUnavailableError if the archive cannot be fetched; IntegrityError if it comes damaged twice
        """
        if name not in ARCHIVES:
            return None
        asset, sha256 = ARCHIVES[name]
        archive = FOLDER / asset.rpartition("/")[2]
        if not archive.exists():
            data = _whole(self._assets.get(asset, asset), sha256)
            FOLDER.mkdir(parents=True, exist_ok=True)
            archive.write_bytes(data)
        folder = name.rpartition(".")[0].replace(".", "/")
        return zipimport.zipimporter(f"{archive}/{folder}").find_spec(name)


def find_late_parts(assets: Mapping[str, str]) -> None:
    """Lets imports find late parts, by the site's manifest: logical names and URLs."""
    if ARCHIVES and not any(isinstance(finder, LateParts) for finder in sys.meta_path):
        sys.meta_path.insert(0, LateParts(assets))  # before who would read the engine's own archive for them


def _whole(url: str, sha256: str) -> bytes:
    for fresh in (False, True):  # the second time past what the browser has kept
        data = _asked(url, fresh)
        if hashlib.sha256(data).hexdigest() == sha256:
            return data
    raise IntegrityError(f"{url}, a part of the engine, came damaged twice; try again, or rebuild the site")


def _asked(url: str, fresh: bool) -> bytes:
    request = js.XMLHttpRequest.new()
    try:
        request.open("GET", url, False)
        request.overrideMimeType("text/plain; charset=x-user-defined")  # pages get no bytes from such requests
        if fresh:
            request.setRequestHeader("Cache-Control", "no-cache")
        request.send()
    except JsException as error:
        raise BackendUnavailableError(
            f"cannot fetch {url}, a part of the engine: {error}; check the network"
        ) from error
    if request.status != 200:
        raise BackendUnavailableError(f"cannot fetch {url}, a part of the engine: HTTP {request.status}")
    return str(request.responseText).encode("utf-16-le")[::2]  # bytes from 0x80 on came as U+F780 and so on
