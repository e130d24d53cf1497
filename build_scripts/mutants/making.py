"""The sample: the same mutants for the same seed and checkout, spread over rooms and kinds of change."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.mutants import text_mutants
from build_scripts.mutants.model import EQUIVALENT, FOLDER, ROOMS, TOTAL, Mutant, Report, Room, files_of
from build_scripts.mutants.trees import Tree
from build_scripts.paths import ROOT

WEIGHTS = {"comparison": 2, "boolean": 2, "deletion": 2, "number": 2}  # others 1: most of them end in an exception
MODULES = FOLDER / "modules"
C_BUILDS = ("simd128", "scalar", "relaxed", "simd128-threads")
COMPILE_S = 300.0


def sampled(seed: int, count: int) -> Report:
    """Mutants of every room, `count` in all."""
    report = Report(seed, count)
    for room in ROOMS:
        share = round(room.count * count / TOTAL)
        report.mutants += _of_room(room, share, random.Random(f"{seed} {room.name}"))
    return report


def _of_room(room: Room, count: int, draw: random.Random) -> list[Mutant]:
    by_family: dict[str, list[Any]] = defaultdict(list)
    for path in files_of(room):
        for site in _sites(path):
            by_family[site.family].append(site)
    if not by_family:
        raise BuildError(f"there is nothing to mutate in {', '.join(room.globs)}")
    families = sorted(by_family)
    weights = [WEIGHTS.get(family, 1) for family in families]
    made: dict[tuple[str, int, str], Mutant] = {}
    for _ in range(50 * count):
        if len(made) == count:
            break
        mutant = draw.choice(by_family[draw.choices(families, weights)[0]]).mutant(room.name)
        if mutant is not None:
            made.setdefault((mutant.path, mutant.offset, mutant.inserted), mutant)
    return sorted(made.values(), key=lambda mutant: (mutant.path, mutant.offset))


def _sites(path: Path) -> list[Any]:
    if path.suffix != ".py":
        return [*text_mutants.sites_of(path)]
    from build_scripts.mutants import python_mutants

    return [*python_mutants.sites_of(path)]


def compile_kernel(mutant: Mutant, tree: Tree) -> None:
    """Compiles a mutant of C in a tree, for the first build whose code it changes.

    One that changes no build's code is equivalent; so is one that the compiler refuses, as nobody could land it.
    """
    source = tree.folder / mutant.path
    text = source.read_text()
    source.write_text(mutant.applied(text))
    try:
        mutant.build = next((build for build in C_BUILDS if _differs(mutant, build, tree)), "")
    except BuildError as error:
        mutant.by = f"does not compile: {error}"
    finally:
        source.write_text(text)
    if not mutant.build:
        mutant.verdict, mutant.by = EQUIVALENT, mutant.by or "every build compiles to the same bytes"


def _differs(mutant: Mutant, build: str, tree: Tree) -> bool:
    import sys

    command = [sys.executable, "-m", "build_scripts.kernels.compile", "--only", build]
    done = tree.run(command, COMPILE_S)
    if done.status:
        raise BuildError(next((line for line in done.said.splitlines() if "error" in line), "no reason given"))
    module = Path("build/kernels") / f"webinfer-{build}.wasm"
    if (tree.folder / module).read_bytes() == (ROOT / module).read_bytes():
        return False
    target = module_of(mutant)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(tree.folder / module, target)
    return True


def module_of(mutant: Mutant) -> Path:
    """Where the module with a mutant of C is kept."""
    return MODULES / f"{Path(mutant.path).stem}-{mutant.offset}-{mutant.family}.wasm"
