"""Mutants of text, as C, WGSL and JavaScript: operators and constants swapped, where code stands, not comments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from build_scripts.mutants.model import Mutant, between

SWAPS = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ",
    " === ": " !== ", " !== ": " === ",
    " + ": " - ", " - ": " + ", " * ": " + ", " / ": " * ", " % ": " / ", " && ": " || ", " || ": " && ",
    " += ": " -= ", " -= ": " += ", " << ": " >> ", " >> ": " << ", " & ": " | ", " | ": " & ",
    "min(": "max(", "max(": "min(", "_add(": "_sub(", "_sub(": "_add(", "true": "false", "false": "true",
    "continue;": "break;",
}  # fmt: skip
COMPARISONS = (
    " < ",
    " <= ",
    " > ",
    " >= ",
    " == ",
    " != ",
    " === ",
    " !== ",
    " && ",
    " || ",
    "true",
    "false",
    "continue;",
)
TOKEN = re.compile(
    "|".join(re.escape(word) for word in sorted(SWAPS, key=len, reverse=True)) + r"|(?<![\w.])\d+(?:\.\d+)?(?=[uif]?\b)"
)
SILENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|^[ \t]*(?:#|\$\$)[^\n]*|\{\{.*?\}\}|\{\$.*?\$\}", re.S | re.M)
QUOTED = {  # what is not code in other languages
    ".js": re.compile(r"//[^\n]*|/\*.*?\*/|'[^'\n]*'|\"[^\"\n]*\"|`[^`]*`", re.S),
    ".py": re.compile(r"\"\"\".*?\"\"\"|#[^\n]*|\"[^\"\n]*\"", re.S),
}
NUMBER = re.compile(r"\d+(\.\d+)?$")


@dataclass(frozen=True)
class TextSite:
    """A token of a file and what would stand there instead."""

    path: Path
    family: str
    start: int
    end: int
    instead: str

    def mutant(self, room: str) -> Mutant:
        """The mutant."""
        text = self.path.read_text()
        return between(room, self.path, self.family, text, text[: self.start] + self.instead + text[self.end :])


def sites_of(path: Path) -> list[TextSite]:
    """Every token of a file that has a swap, in the file's order."""
    silent = QUOTED.get(path.suffix, SILENT)
    text = silent.sub(lambda found: re.sub(r"[^\n]", "\0", found[0]), path.read_text())
    return [
        TextSite(path, _family(found[0]), found.start(), found.end(), _instead(found[0]))
        for found in TOKEN.finditer(text)
    ]


def _family(token: str) -> str:
    if NUMBER.match(token):
        return "number"
    return "comparison" if token in COMPARISONS else "arithmetic"


def _instead(token: str) -> str:
    if not NUMBER.match(token):
        return SWAPS[token]
    return str(float(token) + 1) if "." in token else str(int(token) + 1)
