"""`fuzz`: random graphs of a format on every backend, judged by the format's runtime.

A graph has 1 to 10 nodes of all operators that have a row in the format's table. A seed and a number always make the
same one. The runtime computes each node as it is drawn, so only graphs that it runs are judged; of what it refuses some
are tried too, and must give a result or a typed error. Where outputs differ, numbers moved by a rounding show what
rounding makes of the graph; then the runtime node by node, the format's reference and the rules of rules.py are asked.
What none explains is made small and written to build/fuzz: the model, its inputs and a description.

Each graph has a deadline. One that ends or blocks a process is named, and the next process goes on behind it.
Exits 0 only if there is no finding.
"""

import argparse
import difflib
import json
import time
from collections.abc import Sequence
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from queue import Empty
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.judge.fuzz.tally import DRAWING, OURS, PHASES, Finding, Tally, Task
from build_scripts.judge.fuzz.tfjs.install import tfjs_step
from build_scripts.judge.fuzz.worker import format_of, work
from build_scripts.kernels.step import kernels_step
from build_scripts.paths import BUILD
from build_scripts.steps import run_steps

FORMATS = ("onnx", "tflite", "tfjs")
DEADLINE_S = 60.0  # of one graph in one phase
LISTED = 40  # lines of each list


def run(argv: list[str]) -> int:
    """0 if no graph ended in a finding."""
    options = _parse(argv)
    formats = _with_rows(options.format or FORMATS, options.only or ())
    run_steps([kernels_step(), *([tfjs_step()] if "tfjs" in formats else [])])
    start, status = time.perf_counter(), 0
    for format in formats:
        tally = survey(_task(format, options), options.processes)
        _print(format, tally, time.perf_counter() - start)
        start = time.perf_counter()
        status |= bool(tally.findings)
        if options.json:
            options.json.write_text(
                json.dumps({"graphs": tally.graphs, "findings": [vars(f) for f in tally.findings]}, indent=1)
            )
    return status


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--format", action="append", choices=FORMATS, help="only this format; may be repeated")
    parser.add_argument("--graphs", type=int, default=500, help="how many graphs a format (default 500)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first graph (default 0)")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws others (default 1)")
    parser.add_argument("--backends", default="wasm", help="names with commas between (default wasm)")
    parser.add_argument("--only", action="append", help="draw nodes of this row only; may be repeated")
    parser.add_argument("--processes", type=int, default=1, help="how many processes work (default 1)")
    parser.add_argument(
        "--sessions", type=float, default=0.1, help="share of graphs that go through `load` (default 0.1)"
    )
    parser.add_argument(
        "--open", action="store_true",
        help="files leave the sizes of inputs open; operands have sizes of 0 to 9, and every graph goes through `load`",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, help="write the findings to this file")
    return parser.parse_args(argv)


def _with_rows(formats: Sequence[str], only: Sequence[str]) -> list[str]:
    """The formats that have all of these rows.

    Raises:  BuildError if there is none
    """
    rows = {format: format_of(format).rows for format in formats}
    found = [format for format in formats if all(name in rows[format] for name in only)]
    if not found:
        known = sorted({name for names in rows.values() for name in names})
        close = [name for one in only for name in difflib.get_close_matches(one, known, 2)]
        hint = f"; did you mean {' or '.join(close)}?" if close else f"; there are {', '.join(known)}"
        raise BuildError(f"--only {' --only '.join(only)}: {' and '.join(formats)} have no such rows{hint}")
    return found


def _task(format: str, options: argparse.Namespace) -> Task:
    stop = options.first + options.graphs
    return Task(
        format, options.seed, options.first, stop, options.backends.split(","), BUILD / "fuzz",
        session_share=1.0 if options.open else options.sessions, only=tuple(options.only or ()),
        open_sizes=options.open,
    )  # fmt: skip


def survey(task: Task, processes: int = 1) -> Tally:
    """What came of all graphs of a task, shared among so many processes."""
    count = task.stop - task.start
    cuts = [task.start + count * i // processes for i in range(processes + 1)]
    watched = [_Watched(_part(task, start=a, stop=b)) for a, b in pairwise(cuts) if b > a]
    total = Tally()
    while any(not one.done for one in watched):
        for one in watched:
            if not one.done:
                one.look(total)
    return total


def _part(task: Task, **changes: Any) -> Task:
    return Task(**{**vars(task), **changes})


class _Watched:
    """A process that works, and another in its place where it ends or exceeds its deadline."""

    def __init__(self, task: Task) -> None:
        self._whole, self._at, self.done = task, task.start, False
        self._skip: set[int] = set()
        self._start(task)

    def _start(self, task: Task) -> None:
        self._task, context = task, get_context("spawn")
        self._mark, self._answers = (
            context.Array("d", [time.monotonic() + 60, task.start, DRAWING], lock=False),
            context.Queue(),
        )
        self._process = context.Process(target=work, args=(task, self._mark, self._answers), daemon=True)
        self._process.start()

    def look(self, total: Tally) -> None:
        """Takes an answer, or sees that there is none."""
        try:
            self._at, tally = self._answers.get(timeout=0.5)
        except Empty:
            late = time.monotonic() - self._mark[0] > DEADLINE_S
            if late or (not self._process.is_alive() and self._answers.empty()):
                self._broken(total, late)
            return
        if tally is not None:
            total.add(tally)
            for finding in tally.findings:
                print(f"  {finding}", flush=True)
            return
        self._process.join()
        if self._task.stop < self._whole.stop:  # it went one by one through a batch in which one ended
            self._start(_part(self._whole, start=self._task.stop, skip=frozenset(self._skip)))
        else:
            self.done = True

    def _broken(self, total: Tally, late: bool) -> None:
        """Names the graph and goes on behind it; a batch goes one by one first, as any of its graphs may be it."""
        self._process.kill()
        self._process.join()
        index, phase = int(self._mark[1]), int(self._mark[2])
        if self._process.exitcode == 1:
            raise BuildError(
                f"the fuzzer failed at graph {index} of seed {self._task.seed}; its process says why above"
            )
        how = f"no end after {DEADLINE_S:g} s" if late else f"the process ended with {self._process.exitcode}"
        if phase == OURS and self._task.batch > 1:
            self._start(
                _part(
                    self._whole,
                    start=self._at,
                    stop=min(self._at + self._whole.batch, self._whole.stop),
                    batch=1,
                    skip=frozenset(self._skip),
                )
            )
            return
        self._skip.add(index)
        if phase == OURS:
            total.findings.append(
                Finding("hang" if late else "crash", self._task.backends[0], index, how, f"seed {self._task.seed}")
            )
        else:
            total.crashes.append(f"graph {index}: {PHASES[phase]}: {how}")
        self._start(_part(self._task, start=self._at, skip=frozenset(self._skip)))


def _print(format: str, tally: Tally, seconds: float) -> None:
    rate = tally.graphs / max(seconds, 1e-9)
    print(f"{format}: {tally.graphs} graphs of {tally.nodes} nodes in {seconds:.0f} s, {rate:.1f} a second")
    print("  seconds: " + ", ".join(f"{name} {s:.1f}" for name, s in tally.seconds.items()))
    print(f"  pieces that the runtime refuses: {tally.pieces_refused}")
    for (backend, kind), count in sorted(tally.verdicts.items()):
        print(f"  {backend}: {kind} {count}")
    for title, counts in (("explained", tally.rules), ("refused here", tally.refusals)):
        for (backend, why), count in counts.most_common(LISTED):
            print(f"  {title} on {backend}: {count} × {why}")
    for name, count in tally.failed.most_common(8):
        print(f"  nothing drawn: {count} × {name}")
    for line in tally.crashes:
        print(f"  not ours: {line}")
