"""Lets packages import webinfer's stand-ins under the names of the libraries that they stand in for."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from os import PathLike
from types import ModuleType
from typing import Any

from webinfer.errors import InputError
from webinfer.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StandIn:
    """A library's modules and the ones that stand in for them, and the distribution that requirements name."""

    distribution: str
    version: str  # of the library whose interface it is
    modules: dict[str, str]  # each name a package imports -> the module of ours


_ORT, _TFLITE = "webinfer.compat.onnxruntime", "webinfer.compat.tflite_runtime"
_TENSORFLOW = "webinfer.compat.tensorflow"
STAND_INS = {
    "onnxruntime": StandIn(
        "onnxruntime",
        "1.31.1",
        {
            "onnxruntime": _ORT,
            "onnxruntime.capi": f"{_ORT}.capi",
            **{
                f"onnxruntime.capi.{name}": f"{_ORT}.capi.{name}"
                for name in ("_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state")
            },
        },
    ),
    "tflite_runtime": StandIn(
        "tflite-runtime", "2.14.0", {"tflite_runtime": _TFLITE, "tflite_runtime.interpreter": f"{_TFLITE}.interpreter"}
    ),
    "ai_edge_litert": StandIn(
        "ai-edge-litert", "2.3.0", {"ai_edge_litert": _TFLITE, "ai_edge_litert.interpreter": f"{_TFLITE}.interpreter"}
    ),
    "tensorflow": StandIn(
        "tensorflow", "2.20.0", {"tensorflow": _TENSORFLOW, "tensorflow.lite": f"{_TFLITE}.interpreter"}
    ),
}


class _Loader(Loader):
    """Makes a module of its own with the names of another, whose state and identity stay as they are."""

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> None:
        """None: an ordinary new module."""

    def exec_module(self, module: ModuleType) -> None:
        """Fills it."""
        source = vars(importlib.import_module(self._target))
        own = ("__name__", "__package__", "__loader__", "__spec__", "__path__", "__cached__", "__builtins__")
        vars(module).update({name: value for name, value in source.items() if name not in own})


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` says of a stand-in."""

    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in

    def read_text(self, filename: str) -> str | None:
        """The text of METADATA; None for other files."""
        if filename != "METADATA":
            return None
        name, version = self._stand_in.distribution, self._stand_in.version
        return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: webinfer's stand-in for {name}\n"

    def locate_file(self, path: str | PathLike[str]) -> Any:
        """The path itself: there is no file."""
        from pathlib import Path

        return Path(path)


class _Finder(MetaPathFinder):
    """Finds the stand-ins that were installed. It comes last, so a real library is always found first."""

    def __init__(self) -> None:
        self.installed: dict[str, StandIn] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where a module is; None for others."""
        for stand_in in self.installed.values():
            ours = stand_in.modules.get(fullname)
            if ours is not None:
                package = any(name.startswith(f"{fullname}.") for name in stand_in.modules)
                return ModuleSpec(fullname, _Loader(ours), is_package=package)
        return None

    def find_distributions(self, context: Any = None) -> Iterator[importlib.metadata.Distribution]:
        """The distributions that requirements find."""
        wanted = getattr(context, "name", None)
        for stand_in in self.installed.values():
            if wanted is None or _normal(wanted) == _normal(stand_in.distribution):
                yield _Distribution(stand_in)


_FINDER = _Finder()
BACKENDS = ("wasm", "webgpu", "webnn")
preferred = "wasm"  # the backend of onnxruntime's sessions that ask for the CPU alone, as `install` was told


def install(*names: str, backend: str | None = None) -> None:
    """Makes `import onnxruntime` and the like give webinfer's stand-ins, and requirements on them count as met.

    In Pyodide call it before `micropip.install` of a package that needs the library. `backend`, "webgpu" or "webnn", is
    for packages that name no provider but the CPU: onnxruntime's sessions run there first, and on the CPU where it is
    missing. The other stand-ins run on the CPU, always.

    Raises:  InputError if there is no such stand-in or backend, or the library itself is installed or imported
    """
    global preferred
    if backend is not None and backend not in BACKENDS:
        raise InputError(f"there is no backend {backend!r} for stand-ins; there are {', '.join(BACKENDS)}")
    for name in names:
        if name not in STAND_INS:
            near = get_close_matches(name, STAND_INS, 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"there is no stand-in for {name!r}; there are {', '.join(STAND_INS)}{meant}")
        if name in _FINDER.installed:
            continue
        _check_absent(STAND_INS[name])
        _FINDER.installed[name] = STAND_INS[name]
        if _FINDER not in sys.meta_path:
            sys.meta_path.append(_FINDER)
        importlib.invalidate_caches()
    preferred = backend or preferred


def uninstall(*names: str) -> None:
    """Undoes `install`; without names, all of it. Modules that were imported meanwhile keep what they have."""
    global preferred
    preferred = "wasm"
    for name in names or tuple(_FINDER.installed):
        stand_in = _FINDER.installed.pop(name, None)
        for module in stand_in.modules if stand_in else ():
            sys.modules.pop(module, None)


def _check_absent(stand_in: StandIn) -> None:
    """Raises InputError if one of the modules, or the distribution, is there without us."""
    top = _tops(stand_in.modules)
    for module in top:
        found = sys.modules.get(module) or _spec(module)
        if found is not None:
            place = getattr(found, "__file__", None) or getattr(found, "origin", None) or "memory"
            raise InputError(
                f"{module} is installed here ({place}), and a stand-in never takes its place; uninstall it, or import "
                f"{stand_in.modules[module]} by its own name"
            )


def _tops(modules: Sequence[str] | dict[str, str]) -> list[str]:
    """Those modules whose packages are not of the stand-in."""
    return [name for name in modules if name.rpartition(".")[0] not in modules]


def _spec(module: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(module)
    except (ImportError, ValueError):  # a package above it is not there
        return None


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
