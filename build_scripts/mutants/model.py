"""What a mutant is, where mutants are made, and the file that remembers their verdicts."""

from __future__ import annotations

import difflib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from build_scripts.files import write_json
from build_scripts.paths import BUILD, ROOT

FOLDER = BUILD / "mutants"
CAUGHT, SURVIVED, EQUIVALENT, UNTRIED = "caught", "survived", "equivalent", ""


@dataclass(frozen=True)
class Room:
    """A part of the checkout: its files, and how many of 300 mutants are made there."""

    name: str
    globs: tuple[str, ...]
    count: int


ENGINE = "web/python/webinfer"
ROOMS = (
    Room("session", (f"{ENGINE}/session/*.py",), 40),
    Room("importers", (f"{ENGINE}/importers/**/*.py",), 50),
    Room("passes", (f"{ENGINE}/passes/*.py",), 32),
    Room("plan", (f"{ENGINE}/plan/*.py",), 24),
    Room("lowering", (f"{ENGINE}/lowering/*.py", f"{ENGINE}/backends/*/lowerings/*.py"), 54),
    Room("server", ("server/*.py",), 40),
    Room("kernels", ("kernels_wasm/src/**/*.c", "kernels_wasm/include/*.h"), 40),
    Room("shaders", ("web/shaders/**/*.wgsl",), 20),
)
TOTAL = sum(room.count for room in ROOMS)


def files_of(room: Room) -> list[Path]:
    """The files of a room that people write, in order."""
    found = {path for pattern in room.globs for path in ROOT.glob(pattern)}
    return sorted(path for path in found if "tests" not in path.parts)


@dataclass
class Mutant:
    """One mistake, as a replacement in the text of one file, and what became of it."""

    room: str
    path: str  # below the checkout
    family: str  # kind of change
    offset: int  # in characters of the file
    removed: str
    inserted: str
    build: str = ""  # of the kernels, for C
    verdict: str = UNTRIED
    by: str = ""  # the test that caught it, or why there is none
    seconds: float = 0.0
    tests: int = 0  # how many tests it was shown
    line: int = 0
    diff: str = ""

    @property
    def name(self) -> str:
        """A short name: room, file, line, column and family."""
        return f"{self.room}:{Path(self.path).name}:{self.line}:{self.offset}:{self.family}"

    def applied(self, text: str) -> str:
        """The file's text with the mistake.

        Raises:  ValueError if the text is another one than that the mutant was made of
        """
        if not text.startswith(self.removed, self.offset):
            raise ValueError(f"{self.path} has changed since its mutants were made; start anew with --fresh")
        return text[: self.offset] + self.inserted + text[self.offset + len(self.removed) :]


def between(room: str, path: Path, family: str, text: str, changed: str) -> Mutant:
    """The mutant that makes `changed` of `text`, with the shortest replacement."""
    start = next(
        (i for i, (a, b) in enumerate(zip(text, changed, strict=False)) if a != b), min(len(text), len(changed))
    )
    end = 0
    while end < min(len(text), len(changed)) - start and text[-1 - end] == changed[-1 - end]:
        end += 1
    removed, inserted = text[start : len(text) - end], changed[start : len(changed) - end]
    name = path.relative_to(ROOT).as_posix()
    lines = difflib.unified_diff(text.splitlines(), changed.splitlines(), name, name, lineterm="", n=1)
    line = text.count("\n", 0, start) + 1
    return Mutant(room, name, family, start, removed, inserted, line=line, diff="\n".join([*lines][2:]))


@dataclass
class Report:
    """All mutants of one seed; saved after each verdict, so that a run that was stopped goes on."""

    seed: int
    count: int
    mutants: list[Mutant] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Writes the report in one go."""
        write_json(path, asdict(self))

    @classmethod
    def load(cls, path: Path) -> Report:
        """The report of an earlier run."""
        data = json.loads(path.read_text())
        return cls(data["seed"], data["count"], [Mutant(**mutant) for mutant in data["mutants"]])
