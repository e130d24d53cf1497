"""The runtimes that judge models: one row a format. Their functions run in a process of their own, see zoo_judge."""

import asyncio
import itertools
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from build_scripts.bench.rivals import MODULES
from build_scripts.setup.node import node_commands

Array = np.ndarray[Any, Any]
Shapes = dict[str, tuple[int, ...]]
OPEN_SIZES = (
    64,
    576,
    1280,
    5120,
    16000,
    288,
    16,
)  # that an axis gets which a model leaves open: the first that its runtime runs


@dataclass(frozen=True)
class Runtime:
    """What judges the models of one format.

    `shapes` gives the sizes of inputs that the model leaves open, or None if the runtime cannot run the model. `other`
    runs it with other kernels of the same runtime: how far they are apart is what the runtime's rounding amounts to.
    """

    format: str
    judge: str
    pattern: str  # of file names
    shapes: Callable[[Path], Shapes | None]
    run: Callable[[Path, Sequence[Mapping[str, Array]]], list[list[Array]]]
    other: Callable[[Path, Sequence[Mapping[str, Array]]], list[list[Array]]] | None = None


def _interpreter(model: Path, shapes: Sequence[Sequence[int] | None] = (), plain: bool = False) -> Any:
    """LiteRT with the model, its inputs in these sizes, as it is where one is None; `plain` is without XNNPACK."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if plain else OpResolverType.AUTO
    interpreter = Interpreter(model_path=str(model), num_threads=1, experimental_op_resolver_type=kernels)
    for detail, shape in zip(interpreter.get_input_details(), shapes, strict=False):
        if shape is not None and tuple(shape) != tuple(detail["shape"]):
            interpreter.resize_tensor_input(detail["index"], shape)
    interpreter.allocate_tensors()
    return interpreter


def litert_shapes(model: Path) -> Shapes | None:
    """Nothing to bind, if LiteRT can allocate the model as it is; else sizes of open axes that it can allocate."""
    from ai_edge_litert.interpreter import Interpreter

    try:
        details = Interpreter(model_path=str(model)).get_input_details()
    except (RuntimeError, ValueError):
        return None
    signatures = [[int(d) for d in detail.get("shape_signature", detail["shape"])] for detail in details]
    for size in (None, *OPEN_SIZES):
        shapes = (
            None if size is None else [[size if d < 0 and i else abs(d) for i, d in enumerate(s)] for s in signatures]
        )
        try:
            _interpreter(model, shapes or ())
        except (RuntimeError, ValueError):
            continue
        names = (detail["name"] for detail in details)
        return {} if shapes is None else {n: tuple(s) for n, s in zip(names, shapes, strict=True)}
    return None


def litert_run(model: Path, inputs: Sequence[Mapping[str, Array]], plain: bool = False) -> list[list[Array]]:
    """LiteRT's outputs for each input, in the model's order; `plain`: without XNNPACK."""
    interpreter = _interpreter(model, [array.shape for array in inputs[0].values()] if inputs else (), plain)
    results = []
    for named in inputs:
        for detail, array in zip(interpreter.get_input_details(), named.values(), strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        results.append([interpreter.get_tensor(detail["index"]).copy() for detail in interpreter.get_output_details()])
    return results


def _onnx_session(model: Path, plain: bool = False) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def onnx_shapes(model: Path) -> Shapes | None:
    """Sizes that ONNX Runtime runs the model with: one for batches and first axes, the same for each other axis."""
    try:
        session = _onnx_session(model)
    except Exception:  # its errors have no common base but this
        return None
    infos = session.get_inputs()
    if all(isinstance(size, int) for info in infos for size in info.shape):
        return {}
    unnamed = sum(d is None for info in infos for d in info.shape[1:])
    for size, *others in itertools.product(OPEN_SIZES, *[(True, False)] * min(unnamed, 4)):
        shapes = _bound(infos, size, others)
        inputs = {
            info.name: np.zeros(shapes.get(info.name, tuple(info.shape)), _ONNX_TYPES.get(info.type, "float32"))
            for info in infos
        }
        try:
            session.run(None, inputs)
        except Exception:  # this size does not suit the model
            continue
        return shapes
    return None


_ONNX_TYPES = {
    "tensor(float16)": "float16", "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(uint8)": "uint8",
    "tensor(int8)": "int8", "tensor(bool)": "bool",
}  # fmt: skip


def _bound(infos: Sequence[Any], size: int, large: Sequence[int]) -> Shapes:
    """Sizes of open inputs; of those without a name and not of a first axis, which are `large`."""
    ones = {info.shape[0] for info in infos if info.shape and isinstance(info.shape[0], str)}
    left = [*large, *[False] * 99]

    def bind(i: int, d: Any) -> int:
        if isinstance(d, int):
            return d
        if d is None and i:
            return size if left.pop(0) else 1
        return 1 if i == 0 or d in ones or "batch" in d.lower() else size

    return {
        info.name: tuple(bind(i, d) for i, d in enumerate(info.shape))
        for info in infos
        if not all(isinstance(d, int) for d in info.shape)
    }


def onnx_run(model: Path, inputs: Sequence[Mapping[str, Array]], plain: bool = False) -> list[list[Array]]:
    """ONNX Runtime's outputs for each input, in the model's order; `plain`: of the graph as the file has it."""
    session = _onnx_session(model, plain)
    return [[np.asarray(y) for y in session.run(None, dict(named))] for named in inputs]


def tfjs_shapes(model: Path) -> Shapes | None:
    """Sizes of inputs that the model leaves open, the first that TensorFlow.js runs; batches are of one."""
    infos = _tfjs_inputs(model)
    if all(isinstance(size, int) for info in infos for size in info.shape):
        return {}
    for size in OPEN_SIZES:
        shapes = {
            info.name: tuple(d if isinstance(d, int) else size if i else 1 for i, d in enumerate(info.shape))
            for info in infos
        }
        kinds = {info.name: info.dtype.value for info in infos}
        try:
            tfjs_run(model, [{name: np.zeros(shape, kinds[name]) for name, shape in shapes.items()}])
        except (RuntimeError, subprocess.TimeoutExpired):  # this size does not suit the model
            continue
        return {info.name: shapes[info.name] for info in infos if not all(isinstance(d, int) for d in info.shape)}
    return None


def _tfjs_inputs(model: Path) -> Sequence[Any]:
    """The model's inputs in the order in which TensorFlow.js takes them; none where our importer refuses the model."""
    from webinfer.errors import WebinferError
    from webinfer.session.loading import load

    async def inputs() -> Sequence[Any]:
        with await load(model, backend="reference") as session:
            return list(session.inputs)

    try:
        return asyncio.run(inputs())
    except WebinferError:
        return []


def tfjs_run(model: Path, inputs: Sequence[Mapping[str, Array]], plain: bool = False) -> list[list[Array]]:
    """TensorFlow.js' outputs for each input, in the model's order; `plain`: without SIMD."""
    script = Path(__file__).parent / "tfjs.cjs"
    with TemporaryDirectory() as name:
        folder, runs = Path(name), []
        for i, named in enumerate(inputs):
            for k, array in enumerate(named.values()):
                (folder / f"input-{i}-{k}").write_bytes(array.tobytes())
            runs.append(
                [
                    {"dtype": str(array.dtype), "shape": array.shape, "file": f"input-{i}-{k}"}
                    for k, array in enumerate(named.values())
                ]
            )
        (folder / "inputs.json").write_text(json.dumps(runs))
        command = [
            next(node_commands()),
            str(script),
            str(MODULES),
            str(model),
            str(folder),
            *(["plain"] if plain else []),
        ]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)
        if done.returncode:
            raise RuntimeError(f"TensorFlow.js cannot run {title(model)}: {done.stderr.strip()[-400:]}")
        listed = json.loads((folder / "outputs.json").read_text())
        return [
            [np.frombuffer((folder / o["file"]).read_bytes(), o["dtype"]).reshape(o["shape"]) for o in outputs]
            for outputs in listed
        ]


def write_layers(folder: Path) -> None:
    """Writes models of TensorFlow.js' layers, each to a folder of its own."""
    command = [next(node_commands()), str(Path(__file__).parent / "layers_models.cjs"), str(MODULES), str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=600)


RUNTIMES = (
    Runtime("tflite", "litert", "*.tflite", litert_shapes, litert_run, partial(litert_run, plain=True)),
    Runtime("onnx", "onnxruntime", "*.onnx", onnx_shapes, onnx_run, partial(onnx_run, plain=True)),
    Runtime("tfjs", "tfjs", "*/model.json", tfjs_shapes, tfjs_run, partial(tfjs_run, plain=True)),
)


def runtime_of(model: Path) -> Runtime:
    """The runtime that judges this file."""
    return next(row for row in RUNTIMES if model.match(row.pattern))


def title(model: Path) -> str:
    """What a model is called in tables: a model.json has the name of its folder."""
    return model.parent.name if model.name == "model.json" else model.stem
