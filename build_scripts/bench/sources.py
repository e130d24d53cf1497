"""The models of a folder: their files, their formats, and the sizes that they are measured with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError

SUFFIXES = {".tflite": "tflite", ".onnx": "onnx", ".json": "tfjs"}
PATTERNS = ("*.tflite", "*.onnx", "model.json", "*/model.json")
READERS = {"litertjs": {"tflite"}, "native": {"tflite"}, "ortweb": {"tflite", "onnx"}}  # others read everything
TOKENS = (16, 128, 512)  # lengths at which a model that reads tokens is measured


@dataclass(frozen=True)
class Source:
    """A model file. `shapes` binds the sizes of inputs that it leaves open; `native`: LiteRT can run it as it is."""

    name: str
    path: Path
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    native: bool = True

    @property
    def format(self) -> str:
        """tflite, onnx or tfjs."""
        return SUFFIXES[self.path.suffix]

    def files(self) -> dict[str, bytes]:
        """Its own bytes, first, and those of the files that it names, by their names."""
        from webinfer.errors import WebinferError
        from webinfer.importers import files_beside

        data = self.path.read_bytes()
        try:
            names = files_beside(data, self.name)
        except WebinferError as error:
            raise BuildError(f"{self.path.name}: {error}") from error
        return {self.path.name: data, **{name: (self.path.parent / name).read_bytes() for name in names}}


def models_in(folder: Path, only: str | None = None) -> list[Source]:
    """The models of a folder, by name; `only` picks some. A model.json is named like its folder."""
    from build_scripts.judge.runtimes import title

    found = sorted((Source(title(path), path) for path in _paths(folder)), key=lambda source: source.name)
    if only:
        wanted = only.split(",")
        found = [source for source in found if source.name in wanted]
        if missing := set(wanted) - {source.name for source in found}:
            raise BuildError(f"{folder} has no model {', '.join(sorted(missing))}")
    if not found:
        raise BuildError(f"{folder} has no .tflite or .onnx file and no model.json; give another folder with --models")
    return found


def _paths(folder: Path) -> set[Path]:
    return {path for pattern in PATTERNS for path in folder.glob(pattern)}


def readers(systems: Iterable[str], folder: Path) -> list[str]:
    """Those of the systems that read a format of this folder."""
    formats = {SUFFIXES[path.suffix] for path in _paths(folder)} or {"tflite"}
    return [name for name in systems if formats & READERS.get(name, formats)]


def sized(source: Source, judge: Any) -> list[Source]:
    """The model with the sizes that its runtime accepts where it leaves some open; one that reads tokens at `TOKENS`.

    `judge` is `build_scripts.judge.zoo_judge.Judge`.
    """
    from build_scripts.judge.runtimes import RUNTIMES

    if not any(source.path.match(row.pattern) for row in RUNTIMES):
        return [source]
    found = judge.shapes(source.path)  # in a process of its own, which some models end
    shapes = found or {}
    if source.format == "tflite":
        return [Source(source.name, source.path, shapes, native=found == {})]
    rows = [Source(f"{source.name}@{n}", source.path, dict.fromkeys(shapes, (1, n))) for n in TOKENS]
    if shapes and all(_reads_tokens(row) for row in rows):
        return rows
    return [Source(source.name, source.path, shapes)]


def _reads_tokens(source: Source) -> bool:
    """Whether every input is a row of whole numbers, as many as `shapes` says."""
    from webinfer.errors import WebinferError
    from webinfer.importers import read_model

    try:
        graph = read_model(source.path.read_bytes(), source.name, source.shapes)
    except WebinferError:
        return False
    return all(not v.type.dtype.is_float and source.shapes.get(v.name) == v.type.shape for v in graph.inputs)
