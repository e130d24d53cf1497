"""A process that draws, runs and judges graphs; the one that started it watches how long it takes."""

import time
import warnings
from typing import Any

import numpy as np

from build_scripts.judge.backends import use_engine
from build_scripts.judge.fuzz.tally import Task


def format_of(name: str) -> Any:
    """The format of this name."""
    if name == "onnx":
        from build_scripts.judge.fuzz.onnx.format import Onnx

        return Onnx()
    if name == "tflite":
        from build_scripts.judge.fuzz.tflite.format import Tflite

        return Tflite()
    if name == "tfjs":
        from build_scripts.judge.fuzz.tfjs.format import Tfjs

        return Tfjs()
    raise ValueError(f"no format is called {name!r}")


def work(task: Task, mark: Any, answers: Any) -> None:
    """Runs a task. `mark` is shared: the time, the graph and the phase; each batch's tally goes into `answers`."""
    use_engine()
    warnings.simplefilter("ignore")  # references divide by 0
    from build_scripts.judge.fuzz.batches import Batches

    batches = Batches(task, format_of(task.format), _marker(mark))
    for start in range(task.start, task.stop, task.batch):
        indices = [i for i in range(start, min(start + task.batch, task.stop)) if i not in task.skip]
        with np.errstate(all="ignore"):
            answers.put((start + task.batch, batches.run(indices)))
    answers.put((task.stop, None))


def _marker(mark: Any) -> Any:
    def set_mark(index: int, phase: int) -> None:
        mark[1], mark[2], mark[0] = index, phase, time.monotonic()

    return set_mark
