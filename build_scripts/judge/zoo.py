"""`zoo`: every model of a folder on every backend, judged by the runtime of its format.

TFLite models are judged by ai-edge-litert, ONNX models by onnxruntime, TensorFlow.js models (model.json in a folder of
its own) by TensorFlow.js in Node. With `--layers` it writes models of its layers first, which are judged then.

Prints model × backend → largest difference relative to the range of the output or of a channel of it, share of exact
values, arena against its lower bound, steps, bytes and time. Models that their runtime cannot run (custom operators)
are judged by the NumPy reference. Where floats differ by more than 1e-3 and the judge's own results move that far with
inputs that differ by a rounding, or with other kernels of its own, so may ours in the same channel.

A model is "not judged" if agreement says nothing: an output stays constant, saturated or without a finite value
whatever goes in, the runtime takes none of the inputs, or the model takes photos and there are none. Exits 0 only if
every model that its runtime can run is right, but for one in fifty that may go unjudged.

With `--guards` every build of the WASM kernels takes the place of the backends. Tensors then lie between guarded gaps;
a model is wrong whose kernels touch one, or compute something else where memory was filled otherwise.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from build_scripts.bench.rivals import rivals_step
from build_scripts.judge.answers import Answers, Asked, NotJudged, answers_of, outputs_of, spread_of
from build_scripts.judge.backends import definition, inference_backends, use_engine
from build_scripts.judge.comparison import Comparison, compared
from build_scripts.judge.float_twin import float_twin
from build_scripts.judge.model_inputs import photos_in
from build_scripts.judge.runtimes import RUNTIMES, Shapes, runtime_of, title, write_layers
from build_scripts.judge.zoo_judge import Array, Judge
from build_scripts.kernels.step import kernels_step
from build_scripts.paths import IMAGES, ROOT
from build_scripts.steps import run_steps

SHARED = ROOT.parent / "shared"
NOT_JUDGED = "not judged"
MOST_UNJUDGED = 0.02  # share of all rows


@dataclass
class Row:
    """One model on one backend; sizes in bytes, times in milliseconds."""

    model: str
    backend: str  # or the build of the kernels
    status: str  # right, refused, wrong or "not judged"
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
    photos = photos_in(options.images, IMAGES)
    if not photos:
        print(f"no photos in {options.images}: models that take images are not judged; name a folder with --images")
    rows = asyncio.run(_run(models, ways, photos))
    if options.json:
        options.json.write_text(json.dumps({"rows": [asdict(row) for row in rows]}, indent=1))
    statuses = ("right", "refused", "wrong", NOT_JUDGED)
    counts = {status: sum(row.status == status for row in rows) for status in statuses}
    print(f"{len(models)} models: " + ", ".join(f"{count} {status}" for status, count in counts.items()))
    refused = any(row.status == "refused" and row.judge != definition() for row in rows)
    return int(counts["wrong"] > 0 or refused or counts[NOT_JUDGED] > MOST_UNJUDGED * len(rows))


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


async def _run(models: Sequence[Path], ways: Sequence[Way], photos: Sequence[Path]) -> list[Row]:
    rows = list[Row]()
    print(
        f"{'model':36} {'backend':15} {'status':10} {'judge':10} {'rel diff':>9} {'exact':>8} "
        f"{'arena':>11} {'/bound':>7} {'steps':>6} {'constants':>10} {'load ms':>8} {'run ms':>8}"
    )
    with Judge() as judge:
        for model in models:
            for row in await _model_rows(model, ways, photos, judge):
                rows.append(row)
                _print(row)
    return rows


async def _model_rows(model: Path, ways: Sequence[Way], photos: Sequence[Path], judge: Judge) -> list[Row]:
    """A row for each way.

    A model with 8-bit weights beside float activations is judged twice: in real numbers by a copy with float32
    weights, with rounded activations as it is.
    """
    shapes = judge.shapes(model)
    float_copy = float_twin(model.read_bytes()) if shapes is not None and model.suffix == ".tflite" else None
    if float_copy is None:
        return await _rows(model, model, ways, photos, judge, shapes)
    with TemporaryDirectory() as folder:
        other = Path(folder) / model.name
        other.write_bytes(float_copy)
        rows = await _rows(model, other, ways, photos, judge, shapes)
    return rows + await _rows(model, model, ways, photos, judge, shapes, "int8")


async def _rows(
    model: Path, judged: Path, ways: Sequence[Way], photos: Sequence[Path], judge: Judge, shapes: Shapes | None,
    dynamic_range: str = "float",
) -> list[Row]:  # fmt: skip
    """A row for each way; the judge works once for all of them, on the file `judged`."""
    runtime, answers = runtime_of(model), None
    rows = []
    for way in ways:
        judged_by = answers.judge if answers else definition() if shapes is None else runtime.judge
        row = Row(title(model), way.name, "refused", judged_by, runtime.format, dynamic_range)
        rows.append(row)
        with way.context():
            session = await _load(way, model, row, shapes or None)
            if session is None:
                continue
            try:
                if answers is None:
                    asked = Asked(model, judged, judge, way.host, None if shapes is None else runtime.judge)
                    answers = await answers_of(asked, session, photos)
                    if dynamic_range == "int8" and answers.judge == runtime.judge:
                        answers.spread, answers.times = spread_of(judge, judged, answers, other=False), 4
                row.judge = answers.judge
                outputs, row.run_ms = await outputs_of(session, answers.inputs)
                _judge(row, outputs, answers, partial(spread_of, judge, judged, answers))
            except NotJudged as error:
                row.status, row.error = NOT_JUDGED, str(error)
            except Exception as error:  # whatever a model provokes is a row, not the end of the table
                row.status, row.error = "wrong", f"{type(error).__name__}: {error}"
            finally:
                session.close()
    return rows


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


def _judge(row: Row, got: Sequence[Sequence[Array]], answers: Answers, spread: Callable[[], Comparison]) -> None:
    """Fills in the verdict. Where floats differ, results may be as far apart as the judge's own and ours may move."""
    found = compared(got, answers.wanted)
    row.max_rel_diff, row.exact_share = found.max_rel_diff, found.exact_share
    row.error = found.problem(answers.spread, answers.times)
    if row.error and found.diffs and row.judge != definition():
        if answers.spread is None:
            answers.spread, answers.times = spread(), 2  # of its results and of ours
            row.error = found.problem(answers.spread, answers.times)
        row.judge_spread = answers.spread.float_diff
    row.status = "wrong" if row.error else "right"
    if not row.error and answers.silent:
        row.status = NOT_JUDGED
        row.error = "; ".join(f"output {number} {reason}" for number, reason in answers.silent.items())


def _print(row: Row) -> None:
    def number(value: float | None, style: str) -> str:
        return "-" if value is None else format(value, style)

    bound = row.arena_bytes / row.arena_bound if row.arena_bytes and row.arena_bound else None
    name = row.model if row.dynamic_range == "float" else f"{row.model} {row.dynamic_range}"
    print(
        f"{name:36} {row.backend:15} {row.status:10} {row.judge:10} "
        f"{number(row.max_rel_diff, '9.1e'):>9} {number(row.exact_share, '8.4f'):>8} "
        f"{number(row.arena_bytes, ',d'):>11} {number(bound, '.2f'):>7} {number(row.steps, 'd'):>6} "
        f"{number(row.constant_bytes, ',d'):>10} "
        f"{number(row.load_ms, '.0f'):>8} {number(row.run_ms, '.1f'):>8}"
    )
    if row.judge_spread is not None:
        print(f"    the judge's own results move by {row.judge_spread:.1e} with a rounding of inputs or other kernels")
    if row.error:
        print("    " + row.error.replace("\n", "\n    "))
