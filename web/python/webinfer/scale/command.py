"""`webinfer batch`: a model or a task over files, folders and tables."""

from __future__ import annotations

import argparse
import contextlib
import signal
from typing import Any

from webinfer.errors import InputError
from webinfer.host.progress_bar import shown
from webinfer.task_verbs import option_of


def add_batch_verb(verbs: Any) -> None:
    """Adds the parser."""
    text = "run a model or a task on all files of a folder, or all rows of tables"
    more = "After an interruption or a crash, the same command resumes. Errors of a row are in its column `error`."
    sub = verbs.add_parser("batch", help=text, description=f"{text}. {more}")
    sub.add_argument("model", help="a model file, a URL, the name of a known model, or the name of a task")
    sub.add_argument(
        "inputs", nargs="+", help="files, folders, patterns, URLs of fsspec; .parquet and .jsonl are tables"
    )
    sub.add_argument("-o", "--output", required=True, help="a .parquet or .jsonl file, or a folder for Parquet files")
    sub.add_argument("--engine", default="local", help="local, ray, dask or spark (default: %(default)s)")
    sub.add_argument("--address", help="address of the engine's cluster; without it, one is started here")
    sub.add_argument("--processes", type=int, help="number of processes on this machine (default: one per core)")
    sub.add_argument("--task", help="the task that runs the model")
    sub.add_argument("--backend", help="where to run")
    sub.add_argument("--batch-size", type=int, help="rows per run, if the model's first axis is dynamic")
    sub.add_argument("--part-rows", type=int, help="rows per written part")
    sub.add_argument(
        "--column", action="append", default=[], metavar="[INPUT=]COLUMN", help="the column that an input is read from"
    )
    sub.add_argument("--result", action="append", metavar="OUTPUT[=COLUMN]", help="an output to write, and its column")
    sub.add_argument("--read", action="append", metavar="COLUMN", help="a column of Parquet to read (default: all)")
    sub.add_argument("--pixels", default="0,1", help="values for black and white (default: %(default)s)")
    sub.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", help="an option of load or of the task"
    )
    sub.add_argument("--quiet", action="store_true", help="no progress bar")
    sub.set_defaults(verb=run)


async def run(args: argparse.Namespace) -> int:
    """Runs the batch; prints what was done."""
    from webinfer.scale.batch import PART_ROWS, run_batch
    from webinfer.scale.predictor import BATCH_SIZE, Predictor

    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ctrl-C ends it at once; the same command goes on
    options = dict(option_of(text) for text in args.set)
    if args.backend is not None:
        options["backend"] = args.backend
    predictor = Predictor(
        args.model, task=args.task, batch_size=args.batch_size or BATCH_SIZE, columns=_columns(args.column),
        outputs=_outputs(args.result), pixels=_pixels(args.pixels), **options,
    )  # fmt: skip
    with contextlib.nullcontext() if args.quiet else shown(None, args.model) as progress:
        report = run_batch(
            predictor, args.inputs, args.output, engine=args.engine, processes=args.processes, address=args.address,
            part_rows=args.part_rows or PART_ROWS, columns=args.read, progress=progress,
        )  # fmt: skip
    print(f"{args.output}: {report}")
    return 0


def _columns(given: list[str]) -> dict[str, str] | str | None:
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    if any("=" not in text for text in given):
        raise InputError("with several --column options, each needs INPUT=COLUMN")
    return dict(text.split("=", 1) for text in given) or None


def _outputs(given: list[str] | None) -> dict[str, str] | None:
    return None if given is None else {(pair := text.partition("="))[0]: pair[2] or pair[0] for text in given}


def _pixels(given: str) -> tuple[float, float]:
    try:
        low, high = map(float, given.split(","))
    except ValueError:
        raise InputError(f"--pixels {given!r} is not two numbers; write --pixels=-1,1") from None
    return low, high
