"""What the benchmark knows of each model: seeded inputs, reference outputs, work, and its forms for the rivals."""

import asyncio
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from build_scripts.bench.native_litert import Array, NativeModel
from build_scripts.bench.sources import Source
from build_scripts.bench.tfjs_graph import export_graph
from build_scripts.errors import BuildError
from build_scripts.judge.runtimes import RUNTIMES
from webinfer.errors import WebinferError


@dataclass
class TensorFile:
    """One input or output: its bytes lie in `file`, a path below the site."""

    name: str
    dtype: str
    shape: list[int]
    file: str
    range: float = 0.0  # largest minus smallest value


@dataclass
class ModelEntry:
    """One model as the page's config.json has it."""

    name: str
    files: dict[str, str]  # the model's own first, then those that it names: name -> path below the site
    format: str
    quantised: bool
    inputs: list[TensorFile]
    outputs: list[TensorFile]  # empty where the reference cannot run the model
    flops: int | None = None
    onnx: str | None = None
    tfjs: dict[str, str] | None = None
    tfjs_why: str = ""
    package: str | None = None  # as the player takes it
    package_why: str = "no package was asked for"
    shapes: dict[str, list[int]] = field(default_factory=dict)  # of inputs that the model leaves open
    arrays: list[Array] = field(default_factory=list, repr=False)

    def plain(self) -> dict[str, Any]:
        """The entry as JSON."""
        return {key: value for key, value in asdict(self).items() if key != "arrays"}


def prepare(source: Source, site: Path, judge: Any = None, packaged: str = "", reference: bool = True) -> ModelEntry:
    """Writes the model, its inputs, its reference outputs, if any are asked for, and its other forms into the site.

    `packaged` is the backend that the player's package is for, or empty for no package.
    """
    name, path, files = source.name, source.path, source.files()
    for folder in ("models", "data"):
        (site / folder).mkdir(parents=True, exist_ok=True)
    graph, why = _graph(source, files)
    native, native_why = _native(source)
    if native is not None:
        specs = [(d["name"], np.dtype(d["dtype"]).name, [int(n) for n in d["shape"]]) for d in native.inputs]
    elif graph is not None:
        specs = [(v.name, str(v.type.dtype), list(v.type.shape)) for v in graph.inputs]
    else:
        raise BuildError(f"{path.name}: neither LiteRT ({native_why}) nor webinfer ({why}) reads it")
    arrays = [_random_array(name, i, dtype, shape) for i, (_, dtype, shape) in enumerate(specs)]
    names = [spec[0] for spec in specs]
    given = dict(zip(names, arrays, strict=True))
    results = _reference(native, graph, source, given, judge) if reference else []
    inputs = [_write(site, f"{name}.in{i}", names[i], array) for i, array in enumerate(arrays)]
    outputs = [_write(site, f"{name}.out{i}", *result) for i, result in enumerate(results)]
    entry = ModelEntry(
        name, _placed(site, path, files), source.format, _quantised(graph, specs), inputs, outputs, arrays=arrays
    )
    entry.shapes = {key: list(shape) for key, shape in source.shapes.items()}
    onnx_version = path.parent / "onnx" / f"{name}.onnx"
    if source.format == "onnx":
        entry.onnx = entry.files[path.name]
    elif source.format == "tflite" and onnx_version.is_file():
        (site / "models" / onnx_version.name).write_bytes(onnx_version.read_bytes())
        entry.onnx = f"models/{onnx_version.name}"
    entry.flops = None if graph is None else _flops(graph)
    if source.format != "tfjs":
        entry.tfjs, entry.tfjs_why = _for_tfjs(graph, why, entry, site)
    if packaged:
        entry.package, entry.package_why = _package(path, entry, site, packaged)
    return entry


def _placed(site: Path, path: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Writes a model's files; where each lies below the site, the model's own first."""
    folder = f"models/{path.parent.name}" if path.suffix == ".json" else "models"
    for name, data in files.items():
        target = site / folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return {name: f"{folder}/{name}" for name in files}


def _graph(source: Source, files: Mapping[str, bytes]) -> tuple[Any, str]:
    """The imported and optimised graph, or why there is none."""
    from webinfer.importers import read_model
    from webinfer.passes.pipeline import optimize

    try:
        own, *others = files
        beside = {name: memoryview(files[name]) for name in others}
        graph = read_model(files[own], source.name, source.shapes or None, files=beside)
        optimize(graph)
        return graph, ""
    except WebinferError as error:
        return None, str(error)


def _native(source: Source) -> tuple[NativeModel | None, str]:
    if source.format != "tflite" or not source.native:
        return None, "it runs .tflite alone, with the sizes that the file names"
    try:
        return NativeModel(source.path, 1), ""
    except (RuntimeError, ValueError) as error:  # a custom operator that LiteRT lacks
        return None, str(error)


def _reference(
    native: NativeModel | None, graph: Any, source: Source, inputs: dict[str, Array], judge: Any
) -> list[tuple[str, Array]]:
    """Outputs by the format's own runtime, else by webinfer's NumPy backend, else none: then nothing is compared."""
    names = [d["name"] for d in native.outputs] if native is not None else [v.name for v in graph.outputs]
    if judge is not None and any(source.path.match(row.pattern) for row in RUNTIMES):
        try:
            (results,) = judge.run(source.path, [inputs])  # in a process of its own, which some models end
            return list(zip(names, results, strict=True))
        except Exception as error:  # runtimes' errors have no common base but this
            print(f"  {source.name}: {error}")
    elif native is not None:
        return list(zip(names, native.run(list(inputs.values())), strict=True))
    if graph is None or len(graph.inputs) != len(inputs):  # the others are its state
        print(f"  {source.name}: no reference outputs: no runtime here computes them")
        return []
    from webinfer.backends.reference import build

    async def compute() -> dict[str, Any]:
        from webinfer.host import current

        executor = await build(graph, current())
        arrays = zip(graph.inputs, inputs.values(), strict=True)  # its names, where LiteRT has its own
        return dict(await executor.run({value.name: memoryview(array.tobytes()) for value, array in arrays}))

    try:
        return [(name, tensor.numpy()) for name, tensor in asyncio.run(compute()).items()]
    except WebinferError as error:
        print(f"  {graph.name}: no reference outputs: {error}")
        return []


def _random_array(name: str, index: int, dtype: str, shape: list[int]) -> Array:
    """Seeded values: [-1, 1) for floats, the whole range for bytes, 0 and 1 for other integers and truth values.

    Raises:  BuildError if the type is none of these
    """
    source = np.random.default_rng(zlib.crc32(f"{name} {index}".encode()))
    if np.dtype(dtype).kind == "f":
        return (2 * source.random(shape, dtype=np.float32) - 1).astype(dtype)
    if dtype == "bool":
        return source.integers(0, 1, shape, dtype=np.uint8, endpoint=True).astype(dtype)
    if np.dtype(dtype).kind not in "iu":
        raise BuildError(f"{name}: input {index} is of type {dtype}, for which no values are drawn")
    info = np.iinfo(dtype)
    low, high = (info.min, info.max) if info.bits == 8 else (0, 1)
    return source.integers(low, high, shape, dtype=dtype, endpoint=True)


def _write(site: Path, stem: str, name: str, array: Array) -> TensorFile:
    file = f"data/{stem}.bin"
    (site / file).write_bytes(np.ascontiguousarray(array).tobytes())
    spread = float(np.max(array).astype(np.float64) - np.min(array).astype(np.float64)) if array.size else 0.0
    return TensorFile(name, array.dtype.name, list(array.shape), file, spread)


def _quantised(graph: Any, specs: list[tuple[str, str, list[int]]]) -> bool:
    """Whether most of a model's arithmetic is on stored numbers; if nobody reads it, whether its inputs are such."""
    if graph is None:
        return any(dtype in ("uint8", "int8", "int16") for _, dtype, _ in specs)
    from webinfer.lowering.affine import is_stored

    read = [(node, value) for node in graph.nodes for value in node.inputs[:1] if value is not None]
    stored = sum(node.cost().flops for node, value in read if is_stored(value.type))
    return bool(2 * stored > _flops(graph))


def _package(path: Path, entry: ModelEntry, site: Path, backend: str) -> tuple[str | None, str]:
    """Where the compiled package lies below the site, or why there is none."""
    from webinfer.package import compile_model

    try:
        data = asyncio.run(compile_model(str(path), backend=backend, shapes=entry.shapes or None))
    except WebinferError as error:
        return None, f"no package: {error}"
    place = f"models/{entry.name}.webinfer"
    (site / place).write_bytes(data)
    return place, ""


def _flops(graph: Any) -> int:
    return sum(node.cost().flops for node in graph.nodes)


def _for_tfjs(graph: Any, why: str, entry: ModelEntry, site: Path) -> tuple[dict[str, str] | None, str]:
    if graph is None:
        return None, f"webinfer cannot export its graph: {why}"
    if entry.quantised:
        return None, "quantised: TF.js has no integer kernels"
    try:
        return export_graph(graph, site / "models", entry.name), ""
    except ValueError as error:
        return None, f"no graph for TF.js: {error}"
