"""Parts of the engine that a site's pages do not load at first: fetched, checked and put on the path when imported.

Which parts these are stands in pyproject.toml, `[tool.webinfer.late]`. An import needs its module at once, so the
request is a synchronous one; the browser asks its cache first.

A part is one file: zlib's form of a marshalled table, from names to compiled modules and other files. It is unpacked
once: from a zip archive, each module costs two searches and an inflation of its own, 80 of 290 ms for ONNX's importer.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
import zlib
from collections.abc import Mapping
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import js
from pyodide.ffi import JsException

from webinfer.errors import BackendUnavailableError, IntegrityError
from webinfer.host.late_table import PARTS

FOLDER = "/lib/late"  # where modules say that they are from; nothing lies there
PYC_HEADER_BYTES = 16


class LateParts(Loader):
    """Finds and loads the modules of late parts, as importlib asks; the first one of a part brings all of it."""

    def __init__(self, assets: Mapping[str, str]) -> None:
        self._assets, self._files = assets, dict[str, bytes]()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where the module is, in a part that is fetched for it; None for modules of no late part.

        Raises:  BackendUnavailableError if the part cannot be fetched; IntegrityError if it comes damaged twice
        """
        file = name.replace(".", "/")
        places = (f"{file}/__init__.pyc", f"{file}.pyc")
        if name in PARTS and self._files.keys().isdisjoint(places):
            asset, sha256 = PARTS[name]
            self._files |= marshal.loads(zlib.decompress(_whole(self._assets.get(asset, asset), sha256)))
        for place in places:
            if place in self._files:
                spec = ModuleSpec(name, self, origin=f"{FOLDER}/{place}", is_package=place is places[0])
                spec.has_location = True
                return spec
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        """None: modules are made as importlib makes them."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module's code."""
        exec(marshal.loads(self.get_data(str(module.__file__))[PYC_HEADER_BYTES:]), module.__dict__)

    def get_data(self, path: str) -> bytes:
        """A file of a late part, by its place below FOLDER.

        Raises:  FileNotFoundError
        """
        try:
            return self._files[path.removeprefix(f"{FOLDER}/")]
        except KeyError:
            raise FileNotFoundError(path) from None


def find_late_parts(assets: Mapping[str, str]) -> None:
    """Lets imports find late parts, by the site's manifest: logical names and URLs."""
    if PARTS and not any(isinstance(finder, LateParts) for finder in sys.meta_path):
        sys.meta_path.insert(0, LateParts(assets))  # before who would read the engine's own archive for them


def _whole(url: str, sha256: str) -> bytes:
    for fresh in (False, True):  # the second time past what the browser has kept
        data = _asked(url, fresh)
        if hashlib.sha256(data).hexdigest() == sha256:
            return data
    raise IntegrityError(f"{url}, a part of the engine, arrived damaged twice; try again, or rebuild the site")


def _asked(url: str, fresh: bool) -> bytes:
    request = js.XMLHttpRequest.new()
    try:
        request.open("GET", url, False)
        in_worker = not hasattr(js, "document")  # windows get no bytes from such requests
        if in_worker:
            request.responseType = "arraybuffer"
        else:
            request.overrideMimeType("text/plain; charset=x-user-defined")
        if fresh:
            request.setRequestHeader("Cache-Control", "no-cache")
        request.send()
    except JsException as error:
        raise BackendUnavailableError(
            f"cannot fetch {url}, a part of the engine: {error}; check the network"
        ) from error
    if request.status != 200:
        raise BackendUnavailableError(f"cannot fetch {url}, a part of the engine: HTTP {request.status}")
    if in_worker:
        data: bytes = request.response.to_bytes()
        return data
    return str(request.responseText).encode("utf-16-le")[::2]  # bytes from 0x80 on came as U+F780 and so on
