"""`judge mutation-test --planted N`: a few mistakes a room, each shown to the narrow tests of that room alone.

The survey records which test runs which line of Python, which takes an hour. Here a table says which tests belong to a
room, so that forty mistakes take a quarter of one. Rooms that no recording sees are here: shaders, kernels in C, the
player's JavaScript, and the values that importers take for attributes that a file leaves out.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.mutants import text_mutants
from build_scripts.mutants.making import compile_kernel
from build_scripts.mutants.model import (
    CAUGHT,
    ENGINE,
    EQUIVALENT,
    FOLDER,
    SURVIVED,
    UNTRIED,
    Report,
    Room,
    files_of,
)  # fmt: skip
from build_scripts.mutants.planting import planted_in
from build_scripts.mutants.text_mutants import TextSite
from build_scripts.mutants.trees import Tree

REPORT = FOLDER / "planted.json"
DEADLINE_S = 900.0
MOST_RED = 5
DEFAULT = re.compile(r"\.(?:real|whole|number|flag|reals|wholes)\(\s*\"\w+\", (-?\d[\d.e-]*|True|False)(?=[,)])")
OPERATORS = "web/python/tests/test_ops_on_backends.py"


def defaults_of(path: Path) -> list[TextSite]:
    """Every default of an attribute: another number or the other truth value."""
    return [
        TextSite(path, "default", found.start(1), found.end(1), _other(found[1]))
        for found in DEFAULT.finditer(path.read_text())
    ]


def _other(word: str) -> str:
    return {"True": "False", "False": "True"}.get(word) or (
        f"{float(word) + 1}" if "." in word or "e" in word else str(int(word) + 1)
    )


@dataclass(frozen=True)
class Part:
    """Files, the arguments of pytest that show their tests, and how many of 40 mistakes are made there."""

    name: str
    globs: tuple[str, ...]
    tests: tuple[str, ...]
    count: int
    sites: Callable[[Path], Sequence[TextSite]] = text_mutants.sites_of


_IMPORTERS = "web/python/tests/importers"
PARTS = (
    Part(
        "defaults", tuple(f"{ENGINE}/importers/{format}/*.py" for format in ("onnx", "tflite", "tfjs")),
        ("build_scripts/tests/test_onnx_defaults.py", f"{_IMPORTERS}/test_tfjs_operators.py",
         f"{_IMPORTERS}/test_operators_match_litert.py", f"{_IMPORTERS}/test_onnx_operators.py",
         f"{_IMPORTERS}/test_onnx_as_written.py", f"{_IMPORTERS}/test_onnx_by_definition.py"),
        10, defaults_of,
    ),
    Part("shaders", ("web/shaders/**/*.wgsl",),
         (OPERATORS, "web/python/tests/ops/test_special_values.py", "web/python/tests/webgpu", "-k", "webgpu",
          "--ignore=web/python/tests/webgpu/test_float16_kernels.py",
          "--ignore=web/python/tests/webgpu/test_lowered_cases.py"), 10),
    Part("kernels", ("kernels_wasm/src/**/*.c", "kernels_wasm/include/**/*.h"),
         (OPERATORS, "kernels_wasm/tests/test_kernels.py", "-k", "wasm or kernels"), 6),
    Part("tokenizer", (f"{ENGINE}/language/tokenizer.py", f"{ENGINE}/language/pretokenizer.py"),
         ("web/python/tests/language", "-k", "not webgpu"), 7),
    Part("player", ("web/player/src/*.js",),
         ("build_scripts/tests/test_player_bounds.py", "build_scripts/tests/test_player_hostile.py",
          "e2e_tests/test_player.py", "-k", "not other_browsers"), 7),
)  # fmt: skip


def sampled(seed: int, count: int) -> Report:
    """Mistakes of every room, `count` in all."""
    report, total = Report(seed, count), sum(part.count for part in PARTS)
    for part in PARTS:
        files = files_of(Room(part.name, part.globs, part.count))
        sites = [site for path in files for site in part.sites(path)]
        draw = random.Random(f"{seed} {part.name}")
        chosen = draw.sample(sites, min(round(part.count * count / total), len(sites)))
        report.mutants += [site.mutant(part.name) for site in chosen]
    return report


def _green(part: Part, tree: Tree) -> tuple[str, ...]:
    """The arguments that show the room's tests, less those that are red where nothing is planted.

    Raises:  BuildError if many are
    """
    arguments = part.tests
    for _ in range(MOST_RED + 1):
        outcome = tree.pytest(arguments, DEADLINE_S, "-x")
        if outcome.green:
            return arguments
        print(f"{part.name}: red without any mistake and left out: {outcome.red}", flush=True)
        arguments += (f"--deselect={outcome.red}",)
    raise BuildError(f"more than {MOST_RED} tests of {part.name} are red where nothing is planted")


def run(seed: int, count: int, rooms: Sequence[str]) -> Report:
    """Plants each mistake of these rooms, or of all, in a copy of the checkout, and shows it to its room's tests."""
    report, parts = sampled(seed, count), {part.name: part for part in PARTS}
    tests: dict[str, tuple[str, ...]] = {}
    if REPORT.is_file() and (known := Report.load(REPORT)).seed == seed:
        done = {mutant.name: mutant for mutant in known.mutants if mutant.verdict != UNTRIED}
        report.mutants = [done.get(mutant.name, mutant) for mutant in report.mutants]
    tree = Tree.make(0)
    for mutant in report.mutants:
        if mutant.verdict != UNTRIED or (rooms and mutant.room not in rooms):
            continue
        if mutant.room == "kernels":
            compile_kernel(mutant, tree)
        if mutant.verdict != EQUIVALENT:
            tests[mutant.room] = tests.get(mutant.room) or _green(parts[mutant.room], tree)
            with planted_in(mutant, tree):
                outcome = tree.pytest(tests[mutant.room], DEADLINE_S, "-x", PYTHONDONTWRITEBYTECODE="1")
            mutant.verdict = SURVIVED if outcome.green else CAUGHT
            mutant.by = outcome.red or ("" if outcome.green else outcome.said[-200:])
            mutant.seconds = round(outcome.seconds, 1)
        print(f"{mutant.verdict:10} {mutant.seconds:6.1f} s  {mutant.name}  {mutant.by[-90:]}", flush=True)
        report.save(REPORT)
    return report
