"""The tests of a mutant, nearest first: those that run its line, then whatever else could see it."""

from __future__ import annotations

import importlib
import json
import re
import sqlite3
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from build_scripts.mutants.model import FOLDER, Mutant
from build_scripts.paths import ROOT

LINES = FOLDER / "lines"
TEXT_ROOMS = ("kernels", "shaders")
NEAREST = 60  # tests of the first round, before their siblings
NEAR_S = 20.0  # what the first round may take
STARTERS = re.compile(r"subprocess|sys\.executable")  # a file of tests that starts processes, which nothing records
RULES = ("web/python/tests/test_layers.py", "web/python/tests/docs", "build_scripts/tests")


@dataclass(frozen=True)
class Round:
    """Tests that run together, and how long they take where nothing is wrong."""

    tests: tuple[str, ...]
    seconds: float


def stem(test: str) -> str:
    """What a test shares with its siblings: the name up to the last part of its parameters.

    Siblings often share one result that the first of them makes, so that only this one is seen to run a line.
    """
    head, bracket, parameters = test.partition("[")
    return head + bracket + (parameters.rpartition("-")[0] + "-" if "-" in parameters else "")


class Selection:
    """What the recording knows, asked for one mutant at a time."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.red: list[str] = []
        for path in sorted(LINES.glob("*.json")):
            for test, (outcome, seconds) in json.loads(path.read_text()).items():
                if outcome == "passed":
                    self.seconds[test] = seconds
                elif outcome == "failed":
                    self.red.append(test)
        self.stores = [_opened(path) for path in sorted(LINES.glob("*.db"))]

    @cached_property
    def siblings(self) -> dict[str, list[str]]:
        """Tests by stem."""
        found = defaultdict(list)
        for test in self.seconds:
            found[stem(test)].append(test)
        return found

    @cached_property
    def files(self) -> dict[str, list[str]]:
        """Tests by file."""
        found = defaultdict(list)
        for test in self.seconds:
            found[test.partition("::")[0]].append(test)
        return found

    @cached_property
    def breadth(self) -> Counter[str]:
        """In how many files of the project each test runs lines: the fewer, the nearer to what it tests."""
        query = "select context.context, count(*) from line_bits join context on context.id = context_id group by 1"
        return Counter({test: files for store in self.stores for test, files in store.execute(query)})

    def rounds(self, mutant: Mutant) -> list[Round]:
        """Disjoint rounds of tests; none of them catches it if no test can."""
        near, wide, last = self._of_text(mutant) if mutant.room in TEXT_ROOMS else self._of_python(mutant)
        rounds: list[Round] = []
        seen: set[str] = set()
        for tests in (near, wide, last):
            fresh = [test for test in dict.fromkeys(tests) if test in self.seconds and test not in seen]
            seen.update(fresh)
            if fresh:
                rounds.append(Round(tuple(fresh), sum(self.seconds[test] for test in fresh)))
        return rounds

    def _of_python(self, mutant: Mutant) -> tuple[list[str], list[str], list[str]]:
        text = (ROOT / mutant.path).read_text()
        first = text.count("\n", 0, mutant.offset) + 1
        last = first + mutant.removed.count("\n")
        running = sorted(self._running(mutant.path, first, last), key=lambda test: (self.breadth[test], test))
        importing: list[str] = []
        if not running:  # read once, when the module is imported
            running = sorted(self._running(mutant.path, 1, 10**6), key=lambda test: (self.breadth[test], test))
            importing = self._naming(mutant.path)
        near: list[str] = []
        spent = 0.0
        for test in running:
            spent += self.seconds.get(test, 0.0)
            if len(near) >= NEAREST or (near and spent > NEAR_S):
                break
            near.append(test)
        wide = [sibling for test in running for sibling in self.siblings[stem(test)]]
        files = dict.fromkeys([*importing, *(test.partition("::")[0] for test in running), *self._starters])
        rest = [test for file in files for test in self.files[file]]
        return [s for t in near[:20] for s in [t, *self.siblings[stem(t)][:40]]] + near, wide, rest

    def _naming(self, path: str) -> list[str]:
        """The files of tests that name a module or its package, or lie beside it."""
        parts = Path(path).with_suffix("").parts
        module, package = ".".join(parts).removeprefix("web.python."), ".".join(parts[:-1]).removeprefix("web.python.")
        words, beside = (module, f"{package} import"), f"{parts[0]}/tests/"
        return [f for f in self.files if f.startswith(beside) or any(w in (ROOT / f).read_text() for w in words)]

    def _of_text(self, mutant: Mutant) -> tuple[list[str], list[str], list[str]]:
        family = Path(mutant.path).parent.name
        target = "webgpu" if mutant.room == "shaders" else f"wasm-{mutant.build}"
        mine = [test for test in self.seconds if target in test or f"/{target.partition('-')[0]}/" in test]
        words = {*_operators(family), *_kernels(mutant)}
        near = [test for test in mine if words & set(re.split(r"[\[\]-]", test))]
        return near, mine, self.files["web/python/tests/importers/test_operators_match_litert.py"]

    def _running(self, path: str, first: int, last: int) -> set[str]:
        """The tests that run one of these lines."""
        lines = range(first, last + 1) if last - first < 50 else None
        query = (
            "select context.context, numbits from line_bits join context on context.id = context_id "
            "join file on file.id = file_id where file.path = ? and context.context != ''"
        )
        asked = [f"num_in_numbits({line}, numbits)" for line in lines or ()]
        query += f" and ({' or '.join(asked)})" if asked else ""
        found = {test for store in self.stores for test, _ in store.execute(query, (path,))}
        return {test for test in found if test in self.seconds}

    @cached_property
    def _starters(self) -> list[str]:
        """The files of tests that no recording sees whole, and those that hold rules over the sources."""
        return [file for file in self.files if STARTERS.search((ROOT / file).read_text()) or file.startswith(RULES)]


def _opened(path: Path) -> sqlite3.Connection:
    from coverage.numbits import register_sqlite_functions

    store = sqlite3.connect(path, check_same_thread=False)
    register_sqlite_functions(store)
    return store


def _operators(family: str) -> set[str]:
    """The names of a family's operators."""
    if str(ROOT / "web" / "python") not in sys.path:
        sys.path.insert(0, str(ROOT / "web" / "python"))
    from webinfer.graph.ir import Op

    try:
        module = importlib.import_module(f"webinfer.ops.{family}")
    except ModuleNotFoundError:
        return set()
    return {value.name for value in vars(module).values() if isinstance(value, Op)}


def _kernels(mutant: Mutant) -> set[str]:
    """The kernels that a C file is compiled into, also by way of headers."""
    if mutant.room != "kernels":
        return set()
    from build_scripts.kernels.kernel_list import read_rows, source_files

    name, sources = Path(mutant.path).name, source_files()
    including = {name}
    headers = [*(ROOT / "kernels_wasm" / "include").glob("*.h"), *sources.values()]
    texts = {path.name: path.read_text() for path in headers}
    while more := {n for n, text in texts.items() if n not in including and any(f'"{i}"' in text for i in including)}:
        including |= more
    return {row.name for row in read_rows() if row.source in including}
