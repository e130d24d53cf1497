"""Verbs of the command line that run tasks: `webinfer detect photo.jpg -o out.jpg`, one row each."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from webinfer.backends.registry import AUTO
from webinfer.errors import InputError, WebinferError
from webinfer.lazy_dataclass import dataclass
from webinfer.tasks import GIVEN_MODEL_TASKS, TASKS, pipeline, task_class
from webinfer.tasks.base import Task
from webinfer.tasks.names import task_name


@dataclass(frozen=True, slots=True)
class TaskVerb:
    """A verb: the task that it runs, and what it prints."""

    verb: str
    task: str
    text: str


TASK_VERBS = (
    TaskVerb("detect", "object-detection", "find objects in pictures"),
    TaskVerb("faces", "face-detection", "find faces in pictures"),
    TaskVerb("classify", "classification", "classify pictures"),
    TaskVerb("segment", "segmentation", "separate people from the background"),
    TaskVerb("pose", "pose-landmarks", "find the landmarks of bodies in pictures"),
    TaskVerb("ocr", "text", "read text in pictures"),
    TaskVerb("transcribe", "speech-recognition", "write down what recordings say"),
    TaskVerb("speech", "voice-activity", "find speech in recordings (WAV)"),
    TaskVerb("sounds", "audio-classification", "classify the sounds in recordings (WAV)"),
    TaskVerb("embed", "sentence-embedding", "compute vectors of texts"),
    TaskVerb("filetype", "file-type", "detect the types of files"),
)
STANDARD_INPUT = "-"
ALL_TASKS = sorted((*TASKS, *GIVEN_MODEL_TASKS))


def add_task_verbs(verbs: Any) -> None:
    """Adds a parser for each row whose task there is, and `task NAME` for all of them."""
    for row in TASK_VERBS:
        if row.task in TASKS:
            _add(verbs.add_parser(row.verb, help=row.text, description=row.text), row.task)
    text = "run any task by its name"
    sub = verbs.add_parser("task", help=text, description=f"{text}: {', '.join(ALL_TASKS)}")
    sub.add_argument("task", help="the task's name, here or at Hugging Face or in MediaPipe")
    _add(sub, None)


def _add(sub: Any, task: str | None) -> None:
    what = "texts" if task is not None and TASKS[task].takes == "text" else "files, folders, patterns, addresses"
    sub.add_argument("sources", nargs="+", help=f"{what}; {STANDARD_INPUT} for standard input")
    sub.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="a picture, .json, .jsonl or .csv file; or a folder, for one picture per source",
    )
    sub.add_argument("--json", action="store_true", help="print a line of JSON for each source")
    sub.add_argument("--model", dest="task_model", help="a model file, a URL, or the name of a known model")
    sub.add_argument("--backend", default=AUTO, help="where to run (default: %(default)s)")
    sub.add_argument("--min-score", type=float, help="leave out results below this score")
    sub.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", help="another option of the task; may be repeated"
    )
    sub.set_defaults(verb=run_task, **({} if task is None else {"task": task}))


async def run_task(args: argparse.Namespace) -> int:
    """Runs the task on each source; 0, or 2 if a source could not be read. The others are still run.

    Sources that do not exist are named before the task's model is opened, which may be a long download.
    """
    from webinfer.pipelines import Batch, Results

    name = task_name(args.task, ALL_TASKS)
    options = dict(option_of(text) for text in args.set)
    if args.min_score is not None:
        options["min_score"] = args.min_score
    given = _sources(args.sources, task_class(name))
    sources = _existing(given, task_class(name).takes)
    found, status = Batch(), 2 if len(sources) < len(given) else 0
    if given and not sources:
        return status
    with await pipeline(name, args.task_model, backend=args.backend, **options) as task:
        for source in sources:
            try:
                answer = await task(source)
            except WebinferError as error:
                print(f"webinfer: {error}", file=sys.stderr)
                status = 2
                continue
            for one in [answer] if isinstance(answer, Results) else answer:
                print(one.to_json() if args.json else one, flush=True)
                found.append(one)
    if args.output is not None and found:
        single = len(found) == 1 and Path(args.output).suffix
        for path in [found[0].save(args.output)] if single else found.save(args.output):
            print(path, file=sys.stderr)
    return status


def _sources(given: list[str], task: type[Task[Any]]) -> list[Any]:
    """The sources as the task takes them; all texts are one for a task that reads several at once."""
    if task.takes == "text":
        texts = [
            line for text in given for line in (sys.stdin.read().splitlines() if text == STANDARD_INPUT else [text])
        ]
        texts = [text for text in texts if text.strip()]
        return [texts] if task.reads_several else [*texts]
    return [sys.stdin.buffer.read() if source == STANDARD_INPUT else source for source in given]


def _existing(sources: list[Any], takes: str) -> list[Any]:
    """The sources without those that name no file, folder or pattern, each of which is one line of error."""
    from webinfer.pipelines.sources import sources_of

    existing = []
    for source in sources:
        try:
            sources_of(source, takes)
        except InputError as error:
            print(f"webinfer: {error}", file=sys.stderr)
        else:
            existing.append(source)
    return existing


def option_of(text: str) -> tuple[str, Any]:
    """An option and its value: JSON where it is that, else text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"--set {text!r} is not OPTION=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
