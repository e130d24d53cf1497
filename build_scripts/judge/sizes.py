"""Sizes of files, functions and products against the budgets in pyproject.toml."""

import ast
import glob
import gzip
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.options import switches
from build_scripts.paths import ROOT, settings


@dataclass(frozen=True)
class Measure:
    """One thing that was measured. `hard` is its limit, `reason` why it may break it."""

    name: str
    value: int
    unit: str
    soft: int
    hard: int
    reason: str = ""

    @property
    def red(self) -> bool:
        """Whether it is over its limit without a reason."""
        return self.value > self.hard and not self.reason

    def row(self) -> str:
        """One line of the table."""
        state = "RED" if self.red else "allowed: " + self.reason if self.value > self.hard else "over soft"
        state = "" if self.value <= self.soft else state
        return f"{self.value:>8} of {self.hard:<8}{self.unit:6} {self.name}  {state}".rstrip()


def source_files() -> list[Path]:
    """Every file that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise BuildError("git does not know this folder; clone the project with git and start again")
    return [ROOT / name for name in sorted(done.stdout.splitlines()) if (ROOT / name).is_file()]


def file_measures(files: list[Path]) -> Iterator[Measure]:
    """Lines of every file that has a budget, and of every Python function."""
    table = settings()["sizes"]
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        reason = table["allow"].get(name, "")
        budget = table["budgets"].get(file.suffix.lstrip("."))
        if budget:
            text = file.read_text(encoding="utf-8")
            yield Measure(name, len(text.splitlines()), "lines", budget[0], budget[1], reason)
            if file.suffix == ".py":
                yield from _function_measures(name, text, int(table["function_lines"]), table["allow"])


def _function_measures(name: str, text: str, limit: int, allowed: dict[str, str]) -> Iterator[Measure]:
    try:
        tree = ast.parse(text)
    except SyntaxError:  # the linter says where
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            label = f"{name}:{node.name}"
            yield Measure(label, lines, "lines", limit, limit, allowed.get(label, ""))


def product_measures() -> Iterator[Measure]:
    """Bytes of what was built so far."""
    for pattern, limit in settings()["sizes"]["products"].items():
        for path in sorted(glob.glob(str(ROOT / pattern))):
            data = Path(path).read_bytes()
            name = Path(path).relative_to(ROOT).as_posix()
            if "gzip" in limit:
                yield Measure(f"{name} (gzip)", len(gzip.compress(data, 9)), "bytes", limit["gzip"], limit["gzip"])
            else:
                yield Measure(name, len(data), "bytes", limit["bytes"], limit["bytes"])


def run(argv: list[str]) -> int:
    """Prints everything over a soft budget, all with --all; 1 when something is over a hard one."""
    options = switches("sizes", "Sizes of files and products against their budgets.", argv, all="print every size")
    sources, products = list(file_measures(source_files())), list(product_measures())
    for measure in sources:
        if options.all or measure.value > measure.soft:
            print(measure.row())
    for measure in products:
        print(measure.row())
    red = [measure for measure in (*sources, *products) if measure.red]
    print(f"sizes: {len(sources)} files and functions, {len(products)} products, {len(red)} over a hard budget")
    return 1 if red else 0
