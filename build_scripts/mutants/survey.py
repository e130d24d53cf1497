"""`judge mutation-test`: small mistakes put into the code, one at a time; how many of them do the tests notice?"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import sys
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from build_scripts.kernels.step import kernels_step
from build_scripts.mutants.model import (
    CAUGHT,
    EQUIVALENT,
    FOLDER,
    ROOMS,
    SURVIVED,
    TOTAL,
    UNTRIED,
    Mutant,
    Report,
)
from build_scripts.mutants.planting import planted_in
from build_scripts.mutants.selection import LINES, Round, Selection
from build_scripts.mutants.trees import Tree
from build_scripts.setup.sequence import set_up
from build_scripts.steps import run_steps

REPORT = FOLDER / "report.json"
EXPLAINED = Path(__file__).with_name("explained.toml")
WANTED = 0.9  # of the mutants that a test could catch
RECORDING_S = 3600.0
DEADLINE_FACTOR, DEADLINE_SPARE_S = 3.0, 10.0
START_S = 8.0  # of pytest, on a machine that does other things too
ROOM_NAMES = tuple(room.name for room in ROOMS)
RINGS = ("web/python/tests", "kernels_wasm/tests", "server/tests", "build_scripts/tests")


def run(argv: list[str]) -> int:
    """0 if the tests caught at least 90 % of the mutants that they could catch."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts judge mutation-test", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other mutants")
    parser.add_argument("--count", type=int, default=TOTAL, help=f"mutants in all (default {TOTAL})")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="copies of the checkout that work")
    parser.add_argument("--room", action="append", help=f"only this room; one of {', '.join(r.name for r in ROOMS)}")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier run recorded, made and found")
    parser.add_argument("--again", action="store_true", help="try the survivors of an earlier run once more")
    parser.add_argument("--planted", type=int, help="only so many, in the rooms of planted.py, with narrow tests")
    parser.add_argument("--stop-after", choices=["making", "recording"], help="do no more than this")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no mutant after this time")
    parser.add_argument("--json", type=Path, help="write the report to this file too")
    options = parser.parse_args(argv)
    if options.planted:
        from build_scripts.mutants import planted

        run_steps([kernels_step()])
        report = planted.run(options.seed, options.planted, options.room or ())
        explain(report)
        return told(report, sorted({mutant.room for mutant in report.mutants}))
    set_up()
    end = time.monotonic() + 60 * options.minutes
    if options.fresh:
        shutil.rmtree(FOLDER, ignore_errors=True)
    with ThreadPoolExecutor(options.workers) as pool:
        trees: queue.Queue[Tree] = queue.Queue()
        for tree in pool.map(Tree.make, range(options.workers)):
            trees.put(tree)
        report = _made(options.seed, options.count)
        _compile(report, options.room or [room.name for room in ROOMS], trees)
        if options.stop_after != "making":
            _record(pool, trees, options.workers)
        if options.stop_after is None:
            _try_all(report, options, pool, trees, end)
    explain(report)
    report.save(REPORT)
    if options.json is not None:
        report.save(options.json)
    return told(report)


def _made(seed: int, count: int) -> Report:
    """The report of an earlier run with this seed, or a new one."""
    if REPORT.is_file() and ((report := Report.load(REPORT)).seed, report.count) == (seed, count):
        print(f"{len(report.mutants)} mutants, {sum(m.verdict != UNTRIED for m in report.mutants)} of them done")
        return report
    from build_scripts.mutants.making import sampled

    report = sampled(seed, count)
    print(f"{len(report.mutants)} mutants made", flush=True)
    report.save(REPORT)
    return report


def _compile(report: Report, rooms: list[str], trees: queue.Queue[Tree]) -> None:
    """Compiles the mutants of C that are not compiled yet; the report is saved after each."""
    from build_scripts.mutants.making import compile_kernel

    todo = [m for m in report.mutants if m.room == "kernels" in rooms and not m.build and m.verdict == UNTRIED]
    if not todo:
        return
    print(f"compiling {len(todo)} mutants of C", flush=True)
    tree = trees.get()
    for mutant in todo:
        compile_kernel(mutant, tree)
        report.save(REPORT)
    shutil.copytree(FOLDER.parent / "kernels", tree.folder / "build" / "kernels", dirs_exist_ok=True)
    trees.put(tree)


def _record(pool: ThreadPoolExecutor, trees: queue.Queue[Tree], workers: int) -> None:
    """Runs every test once, without a mutant, and notes which lines it runs."""
    if any(LINES.glob("*.json")):
        return
    tree = trees.get()
    listed = tree.run([sys.executable, "-m", "pytest", "-q", "--co", *RINGS], RECORDING_S).said.splitlines()
    trees.put(tree)
    tests = [line for line in listed if "::" in line and not line.startswith(("ERROR", "FAILED"))]
    print(f"recording which lines {len(tests)} tests run", flush=True)
    LINES.mkdir(parents=True, exist_ok=True)
    parts = 4 * workers if workers > 2 else workers
    size = -(-len(tests) // parts)

    def record(part: int) -> str:
        tree = trees.get()
        try:
            plugin = ("-p", "build_scripts.mutants.recording")
            mine, store = tests[part * size : (part + 1) * size], str(LINES / str(part))
            done = tree.pytest(mine, RECORDING_S, *plugin, WEBINFER_RECORDING=store)
            return "" if done.green else done.said[-3000:]
        finally:
            trees.put(tree)

    for said in pool.map(record, range(parts)):
        if said:
            print(said, file=sys.stderr)


def _try_all(
    report: Report, options: argparse.Namespace, pool: ThreadPoolExecutor, trees: queue.Queue[Tree], end: float
) -> None:
    explain(report)
    selection = Selection()
    if selection.red:
        print(f"{len(selection.red)} tests fail without any mutant and are left out: {', '.join(selection.red[:5])}")
    wanted = {UNTRIED, SURVIVED} if options.again else {UNTRIED}
    todo = [m for m in report.mutants if m.verdict in wanted and m.room in (options.room or [r.name for r in ROOMS])]
    planned = [(mutant, selection.rounds(mutant)) for mutant in todo]
    planned.sort(key=lambda pair: -sum(each.seconds for each in pair[1]))

    def attempt(mutant: Mutant, rounds: list[Round]) -> Mutant | None:
        if time.monotonic() > end:
            return None
        tree = trees.get()
        try:
            _attempt(mutant, rounds, tree)
        finally:
            trees.put(tree)
        return mutant

    for done in as_completed([pool.submit(attempt, *pair) for pair in planned]):
        if (mutant := done.result()) is not None:
            print(f"{mutant.verdict:10} {mutant.seconds:6.1f} s  {mutant.name}  {mutant.by[-90:]}", flush=True)
            report.save(REPORT)


def _attempt(mutant: Mutant, rounds: list[Round], tree: Tree) -> None:
    """Puts the mutant into a tree, runs its rounds until one is red, and takes it out again."""
    begin = time.monotonic()
    verdict, by, shown = SURVIVED, "no test runs it" if not rounds else "", 0
    with planted_in(mutant, tree):
        for each in rounds:
            deadline = DEADLINE_FACTOR * (each.seconds + START_S) + DEADLINE_SPARE_S
            outcome = tree.pytest(each.tests, deadline, "-x", PYTHONDONTWRITEBYTECODE="1")
            shown += len(each.tests)
            if not outcome.green:
                reason = "the deadline" if outcome.status is None else f"collection ({outcome.said[-300:]})"
                verdict, by = CAUGHT, outcome.red or reason
                break
    mutant.verdict, mutant.by, mutant.tests = verdict, by, shown
    mutant.seconds = round(time.monotonic() - begin, 1)


def explanations() -> list[dict[str, str]]:
    """The mutants that no test can catch: file, the line as it was, as it is, and why."""
    rows: list[dict[str, str]] = tomllib.loads(EXPLAINED.read_text())["mutant"]
    return rows


def explain(report: Report) -> None:
    """Survivors that explained.toml knows are equivalent."""
    known = {(row["file"], row["was"].strip(), row["is"].strip()): row["because"] for row in explanations()}
    for mutant in report.mutants:
        lines = mutant.diff.splitlines()
        was, now = (" ".join(line[1:].strip() for line in lines if line[0] == mark) for mark in "-+")
        if mutant.verdict == SURVIVED and (reason := known.get((mutant.path, was, now))):
            mutant.verdict, mutant.by = EQUIVALENT, reason


def told(report: Report, rooms: Sequence[str] = ROOM_NAMES) -> int:
    """Prints survivors and the table; 0 if enough were caught."""
    for mutant in report.mutants:
        if mutant.verdict == SURVIVED:
            print(f"\nsurvived {mutant.tests} tests: {mutant.path}\n{mutant.diff}")
    print(f"\n{'room':12} {'made':>5} {'caught':>7} {'survived':>9} {'equivalent':>11} {'untried':>8}")
    for name in [*rooms, "all"]:
        mine = [m.verdict for m in report.mutants if name in (m.room, "all")]
        counts = [mine.count(verdict) for verdict in (CAUGHT, SURVIVED, EQUIVALENT, UNTRIED)]
        print(f"{name:12} {len(mine):5} {counts[0]:7} {counts[1]:9} {counts[2]:11} {counts[3]:8}")
    verdicts = [m.verdict for m in report.mutants]
    tried = verdicts.count(CAUGHT) + verdicts.count(SURVIVED)
    share = verdicts.count(CAUGHT) / tried if tried else 1.0
    print(f"caught {100 * share:.1f} % of the {tried} that a test could catch; {REPORT} has all")
    return 0 if share >= WANTED else 1
