"""`zoo`: every model of a folder on every backend, judged by the runtime of its format.

TFLite models are judged by ai-edge-litert, ONNX models by onnxruntime, TensorFlow.js models (model.json in a folder of
its own) by TensorFlow.js in Node. With `--layers` it writes models of its layers first, which are judged then.

Prints model × backend → largest difference relative to the output's range, share of exact values,
arena against its lower bound, steps, bytes and time. Models that their runtime cannot run (custom operators)
are judged by the NumPy reference. Where floats differ by more than 1e-3 and the judge's own results move that far with
inputs that differ by a rounding, so may ours. Exits 0 only if every model that its runtime can run is right.

With `--guards` every build of the WASM kernels takes the place of the backends. Tensors then lie between guarded gaps;
a model is wrong whose kernels touch one, or compute something else where memory was filled otherwise.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from build_scripts.bench.rivals import rivals_step
from build_scripts.judge.backends import definition, inference_backends, use_engine
from build_scripts.judge.float_twin import float_twin
from build_scripts.judge.runtimes import RUNTIMES, Shapes, runtime_of, title, write_layers
from build_scripts.judge.zoo_judge import (
    NUDGES,
    Array,
    Judge,
    JudgeCrashed,
    Verdict,
    compare,
    model_inputs,
    nudged,
)
from build_scripts.kernels.step import kernels_step
from build_scripts.paths import ROOT
from build_scripts.steps import run_steps

SHARED = ROOT.parent / "shared"


@dataclass
class Row:
    """One model on one backend; sizes in bytes, times in milliseconds."""

    model: str
    backend: str  # or the build of the kernels
    status: str  # right, refused or wrong
    judge: str = ""
    format: str = ""
    dynamic_range: str = "float"
    max_rel_diff: float | None = None
    exact_share: float | None = None
    arena_bytes: int | None = None
    arena_bound: int | None = None
    constant_bytes: int | None = None
    steps: int | None = None
    load_ms: float | None = None
    run_ms: float | None = None
    judge_spread: float | None = None  # how far the judge's results move with inputs that differ by a rounding
    error: str = ""


def run(argv: list[str]) -> int:
    """0 if every model that its runtime can run is right on every backend asked for."""
    options = _parse(argv)
    if options.layers:
        with TemporaryDirectory() as name:
            run_steps([rivals_step()])
            write_layers(Path(name))
            return _table(options, Path(name))
    return _table(options, options.models)


def _table(options: argparse.Namespace, folder: Path) -> int:
    models = sorted(model for row in RUNTIMES for model in folder.glob(row.pattern))
    models = [model for model in models if not options.only or any(word in title(model) for word in options.only)]
    if not models:
        print(f"no model in {folder}; name a folder with --models")
        return 2
    run_steps([kernels_step(), *([rivals_step()] if any(m.suffix == ".json" for m in models) else [])])
    ways = _guarded_ways() if options.guards else _plain_ways(options.backend or inference_backends())
    rows = asyncio.run(_run(models, ways, options.images))
    if options.json:
        options.json.write_text(json.dumps({"rows": [asdict(row) for row in rows]}, indent=1))
    counts = {status: sum(row.status == status for row in rows) for status in ("right", "refused", "wrong")}
    print(f"{len(models)} models: " + ", ".join(f"{count} {status}" for status, count in counts.items()))
    return (
        1
        if any(row.status == "wrong" or (row.status == "refused" and row.judge != definition()) for row in rows)
        else 0
    )


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="zoo", description=__doc__)
    parser.add_argument(
        "--models",
        type=Path,
        default=SHARED / "models",
        help="folder of .tflite and .onnx files, or of folders with a model.json",
    )
    parser.add_argument("--layers", action="store_true", help="layers models that TensorFlow.js itself writes now")
    parser.add_argument("--images", type=Path, default=SHARED / "images", help="folder of photos to feed")
    known = [*inference_backends(), definition()]
    parser.add_argument("--backend", action="append", choices=known, help="only this backend; may be repeated")
    parser.add_argument("--guards", action="store_true", help="guard the tensors of every build of the WASM kernels")
    parser.add_argument("--only", action="append", help="only models whose name holds this word; may be repeated")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    return parser.parse_args(argv)


@dataclass(frozen=True)
class Way:
    """A way to run models: its name in the table, the backend, the host, and what holds for one model's rows."""

    name: str
    backend: str
    host: Any
    context: Callable[[], AbstractContextManager[None]] = nullcontext


def _plain_ways(backends: Sequence[str]) -> list[Way]:
    from webinfer.host.native import NativeHost

    host = NativeHost()
    return [Way(name, name, host) for name in backends]


def _guarded_ways() -> list[Way]:
    use_engine()
    from tests.wasm import guards

    return [Way(isa, "wasm", guards.BuildHost(isa, threads=3), guards.guarded) for isa in guards.BUILDS]


async def _run(models: Sequence[Path], ways: Sequence[Way], images: Path) -> list[Row]:
    rows = list[Row]()
    print(
        f"{'model':36} {'backend':15} {'status':8} {'judge':10} {'rel diff':>9} {'exact':>8} "
        f"{'arena':>11} {'/bound':>7} {'steps':>6} {'constants':>10} {'load ms':>8} {'run ms':>8}"
    )
    with Judge() as judge:
        for model in models:
            for row in await _model_rows(model, ways, images, judge):
                rows.append(row)
                _print(row)
    return rows


async def _model_rows(model: Path, ways: Sequence[Way], images: Path, judge: Judge) -> list[Row]:
    """A row for each way.

    A model with 8-bit weights beside float activations is judged twice: in real numbers by its twin with float32
    weights, with rounded activations as it is.
    """
    shapes = judge.shapes(model)
    twin = float_twin(model.read_bytes()) if shapes is not None and model.suffix == ".tflite" else None
    if twin is None:
        return await _rows(model, model, ways, images, judge, shapes)
    with TemporaryDirectory() as folder:
        other = Path(folder) / model.name
        other.write_bytes(twin)
        rows = await _rows(model, other, ways, images, judge, shapes)
    return rows + await _rows(model, model, ways, images, judge, shapes, "int8")


async def _rows(
    model: Path, judged: Path, ways: Sequence[Way], images: Path, judge: Judge, shapes: Shapes | None,
    dynamic_range: str = "float",
) -> list[Row]:  # fmt: skip
    """A row for each way; the judge works once for all of them, on the file `judged`."""
    wanted: list[list[Array]] | None = None
    inputs: list[dict[str, Array]] = []
    runtime, spread, shaken = runtime_of(model), 0.0, 0.0
    verdict_by = definition() if shapes is None else runtime.judge
    rows = []
    for way in ways:
        row = Row(title(model), way.name, "refused", verdict_by, runtime.format, dynamic_range)
        rows.append(row)
        with way.context():
            session = await _load(way, model, row, shapes or None)
            if session is None:
                continue
            try:
                if wanted is None:
                    inputs = model_inputs(session.inputs, images)
                    inputs, wanted = _judged(judge, judged, inputs) if shapes is not None else (inputs, None)
                    if dynamic_range == "int8" and wanted is not None:
                        spread = _spread(judge, judged, inputs, wanted)
                if wanted is None:
                    wanted, verdict_by = await _referee(way.host, model, inputs), definition()
                    row.judge = verdict_by
                outputs = await _outputs(session, inputs, row)
                _judge(row, outputs, wanted, 4 * spread)
                if row.status == "wrong" and row.max_rel_diff is not None and row.judge == runtime.judge and not spread:
                    row.judge_spread = shaken = shaken or _spread(judge, judged, inputs, wanted)
                    _judge(row, outputs, wanted, 2 * shaken)  # of its results and of ours
            except Exception as error:  # whatever a model provokes is a row, not the end of the table
                row.status, row.error = "wrong", f"{type(error).__name__}: {error}"
            finally:
                session.close()
    return rows


def _spread(judge: Judge, model: Path, inputs: list[dict[str, Array]], wanted: list[list[Array]]) -> float:
    """How far the judge's own results move with inputs that differ by a rounding."""
    return max(_difference(wanted, judge.run(model, nudged(inputs, by))).float_diff or 0.0 for by in NUDGES)


def _judged(
    judge: Judge, model: Path, inputs: list[dict[str, Array]]
) -> tuple[list[dict[str, Array]], list[list[Array]] | None]:
    """The inputs and the runtime's outputs, None if it crashed; integers that it refuses become smaller."""
    small = [
        {name: a if a.dtype.kind == "f" else (a % 2).astype(a.dtype) for name, a in named.items()} for named in inputs
    ]
    try:
        return inputs, judge.run(model, inputs)
    except JudgeCrashed:
        return inputs, None
    except Exception:  # its errors have no common base but this
        return small, judge.run(model, small)


async def _load(way: Way, model: Path, row: Row, shapes: Shapes | None) -> Any:
    """The session, or None with the reason in the row: a typed error refuses, anything else is wrong."""
    from webinfer.errors import WebinferError
    from webinfer.session.loading import load

    start = time.perf_counter()
    try:
        session = await load(
            model, backend=[way.backend], host=way.host, shapes=shapes, dynamic_range=row.dynamic_range
        )
        memory = session.memory()  # an error where sizes are open that no runtime bound
    except WebinferError as error:
        row.error = f"{type(error).__name__}: {error}"
        return None
    except Exception as error:  # an untyped error is a defect of ours
        row.status, row.error = "wrong", f"{type(error).__name__}: {error}"
        return None
    row.load_ms = 1e3 * (time.perf_counter() - start)
    row.arena_bytes, row.arena_bound, row.constant_bytes = memory.arena, memory.arena_bound, memory.constants
    row.steps = len(session.executor.rows())
    return session


async def _outputs(session: Any, inputs: Sequence[Mapping[str, Array]], row: Row | None = None) -> list[list[Array]]:
    results, times = [], []
    for named in inputs:
        start = time.perf_counter()
        outputs = await session.run(named)
        times.append(1e3 * (time.perf_counter() - start))
        results.append([outputs[info.name].numpy().copy() for info in session.outputs])
    if row is not None:
        row.run_ms = min(times)
    return results


async def _referee(host: Any, model: Path, inputs: Sequence[Mapping[str, Array]]) -> list[list[Array]]:
    from webinfer.session.loading import load

    with await load(model, backend=definition(), host=host) as session:
        return await _outputs(session, inputs)


def _difference(got: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]]) -> Verdict:
    verdict = Verdict()
    for ours, theirs in zip(got, wanted, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            compare(a, b, verdict)
    return verdict


def _judge(row: Row, got: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]], spread: float) -> None:
    """Fills in the verdict; `spread` is how far the judge's own results may be apart, if that is more than we allow."""
    verdict = _difference(got, wanted)
    row.max_rel_diff, row.exact_share, row.error = verdict.max_rel_diff, verdict.exact_share, verdict.problem(spread)
    row.status = "wrong" if row.error else "right"


def _print(row: Row) -> None:
    def number(value: float | None, style: str) -> str:
        return "-" if value is None else format(value, style)

    bound = row.arena_bytes / row.arena_bound if row.arena_bytes and row.arena_bound else None
    name = row.model if row.dynamic_range == "float" else f"{row.model} {row.dynamic_range}"
    print(
        f"{name:36} {row.backend:15} {row.status:8} {row.judge:10} "
        f"{number(row.max_rel_diff, '9.1e'):>9} {number(row.exact_share, '8.4f'):>8} "
        f"{number(row.arena_bytes, ',d'):>11} {number(bound, '.2f'):>7} {number(row.steps, 'd'):>6} "
        f"{number(row.constant_bytes, ',d'):>10} "
        f"{number(row.load_ms, '.0f'):>8} {number(row.run_ms, '.1f'):>8}"
    )
    if row.judge_spread is not None:
        print(f"    the judge's own results move by {row.judge_spread:.1e} with inputs that differ by a rounding")
    if row.error:
        print("    " + row.error.replace("\n", "\n    "))
