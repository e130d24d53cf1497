"""What the benchmark knows of each model: seeded inputs, reference outputs, work, and its forms for the rivals."""

import asyncio
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from build_scripts.bench.native_litert import Array, NativeModel
from build_scripts.bench.tfjs_graph import export_graph
from build_scripts.errors import BuildError
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
    file: str
    quantised: bool
    inputs: list[TensorFile]
    outputs: list[TensorFile]  # empty where the reference cannot run the model
    flops: int | None = None
    onnx: str | None = None
    tfjs: dict[str, str] | None = None
    tfjs_why: str = ""
    arrays: list[Array] = field(default_factory=list, repr=False)

    def plain(self) -> dict[str, Any]:
        """The entry as JSON."""
        return {key: value for key, value in asdict(self).items() if key != "arrays"}


def models_in(folder: Path, only: str | None) -> list[Path]:
    """The .tflite files of a folder, by name; `only` picks some."""
    paths = sorted(folder.glob("*.tflite"))
    if only:
        wanted = only.split(",")
        paths = [path for path in paths if path.stem in wanted]
        if missing := set(wanted) - {path.stem for path in paths}:
            raise BuildError(f"{folder} has no {', '.join(sorted(missing))}.tflite")
    if not paths:
        raise BuildError(f"{folder} has no .tflite file; give another folder with --models")
    return paths


def prepare(path: Path, site: Path) -> ModelEntry:
    """Writes the model, its inputs, its reference outputs and its other forms into the site."""
    name = path.stem
    for folder in ("models", "data"):
        (site / folder).mkdir(parents=True, exist_ok=True)
    data = path.read_bytes()
    (site / "models" / path.name).write_bytes(data)
    graph, why = _graph(data, name)
    native, native_why = _native(path)
    if native is not None:
        specs = [(d["name"], np.dtype(d["dtype"]).name, [int(n) for n in d["shape"]]) for d in native.inputs]
    elif graph is not None:
        specs = [(v.name, str(v.type.dtype), list(v.type.shape)) for v in graph.inputs]
    else:
        raise BuildError(f"{path.name}: neither LiteRT ({native_why}) nor webinfer ({why}) reads it")
    arrays = [_random_array(name, i, dtype, shape) for i, (_, dtype, shape) in enumerate(specs)]
    names = [spec[0] for spec in specs]
    results = _reference(native, graph, dict(zip(names, arrays, strict=True)))
    inputs = [_write(site, f"{name}.in{i}", names[i], array) for i, array in enumerate(arrays)]
    outputs = [_write(site, f"{name}.out{i}", *result) for i, result in enumerate(results)]
    entry = ModelEntry(name, f"models/{path.name}", _quantised(specs), inputs, outputs, arrays=arrays)
    twin = path.parent / "onnx" / f"{name}.onnx"
    if twin.is_file():
        (site / "models" / twin.name).write_bytes(twin.read_bytes())
        entry.onnx = f"models/{twin.name}"
    entry.flops = None if graph is None else _flops(graph)
    entry.tfjs, entry.tfjs_why = _for_tfjs(graph, why, entry, site)
    return entry


def _graph(data: bytes, name: str) -> tuple[Any, str]:
    """The imported and optimised graph, or why there is none."""
    from webinfer.importers import read_model
    from webinfer.passes.pipeline import optimize

    try:
        graph = read_model(data, name)
        optimize(graph)
        return graph, ""
    except WebinferError as error:
        return None, str(error)


def _native(path: Path) -> tuple[NativeModel | None, str]:
    try:
        return NativeModel(path, 1), ""
    except (RuntimeError, ValueError) as error:  # a custom operator that LiteRT lacks
        return None, str(error)


def _reference(native: NativeModel | None, graph: Any, inputs: dict[str, Array]) -> list[tuple[str, Array]]:
    """Outputs by LiteRT, else by webinfer's NumPy backend, else none: then nothing can be compared."""
    if native is not None:
        return [(d["name"], array) for d, array in zip(native.outputs, native.run(list(inputs.values())), strict=True)]
    if graph is None:
        return []
    from webinfer.backends.reference import build

    async def compute() -> dict[str, Any]:
        from webinfer.host import current

        executor = await build(graph, current())
        return dict(await executor.run({name: memoryview(array.tobytes()) for name, array in inputs.items()}))

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


def _quantised(specs: list[tuple[str, str, list[int]]]) -> bool:
    return any(np.dtype(dtype).kind != "f" for _, dtype, _ in specs)


def _flops(graph: Any) -> int:
    total = 0
    for node in graph.nodes:
        inputs = [None if value is None else value.type for value in node.inputs]
        total += node.op.cost(inputs, [value.type for value in node.outputs], node.attrs).flops
    return total


def _for_tfjs(graph: Any, why: str, entry: ModelEntry, site: Path) -> tuple[dict[str, str] | None, str]:
    if graph is None:
        return None, f"webinfer cannot export its graph: {why}"
    if entry.quantised:
        return None, "quantised: TF.js has no integer kernels"
    try:
        return export_graph(graph, site / "models", entry.name), ""
    except ValueError as error:
        return None, f"no graph for TF.js: {error}"
