"""How far the answers of two sides to the same samples lie apart: boxes, points, masks, texts, scores, numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from build_scripts.judge import faces
from build_scripts.judge.rows import edits

# The least or most that may lie between the two, as between us and the judges of tasks.
LEAST_OVERLAP = 0.98  # of boxes and of masks
MOST_WRONG = 0.05  # of letters
LEAST_SAME = 0.99  # of pixels that belong to the same part

Array = np.ndarray[Any, Any]


@dataclass
class Gaps:
    """How far the answers of two sides lie apart, over all samples of a case."""

    things: int = 0  # of the first side
    others: int = 0
    missed: int = 0
    overlap: float = 1.0  # of boxes, the least
    points: float = 0.0  # % of the width of a thing, the most
    mask: float = 1.0  # intersection over union of masks, the least
    parts: float = 1.0  # pixels of the same part, of the most that differ
    score: float = 0.0
    numbers: float = 0.0
    letters: int = 0
    wrong: int = 0
    different: list[str] = field(default_factory=list)  # labels and names that are not the same

    def lists(self, ours: Sequence[Any], theirs: Sequence[Any], counts: bool = True) -> None:
        """Compares things of a sample: each with that of the other side whose box fits best, else by their order."""
        if counts:
            self.things, self.others = self.things + len(ours), self.others + len(theirs)
        left = list(theirs)
        for one in ours:
            found = self._like(one, left)
            if found is None:
                self.missed += 1
                continue
            left = [other for other in left if other is not found]
            self.compare("", one, found, one)
        self.missed += len(left)

    @staticmethod
    def _like(one: Any, left: Sequence[Any]) -> Any:
        if not isinstance(one, dict) or "box" not in one:
            return left[0] if left else None
        best = max(left, key=lambda other: _overlap(one["box"], other["box"]), default=None)
        return best if best is not None and _overlap(one["box"], best["box"]) >= faces.SAME else None

    def compare(self, name: str, one: Any, other: Any, thing: Any) -> None:
        """Compares values of a field `name`; `thing` is what they belong to, whose box says how large it is."""
        if isinstance(one, bool | str | type(None)) or isinstance(other, bool | str | type(None)):
            self._words(name, one, other)
        elif isinstance(one, np.ndarray):
            self._arrays(name, one, other, thing)
        elif isinstance(one, dict):
            self._fields(name, one, other, thing)
        elif isinstance(one, list):
            self._rows(name, one, other, thing)
        elif "score" in name or name == "confidence":
            self.score = max(self.score, abs(one - other))
        elif isinstance(one, int) and isinstance(other, int):
            self._words(name, str(one), str(other))
        else:
            self.numbers = max(self.numbers, abs(one - other))

    def _words(self, name: str, one: Any, other: Any) -> None:
        if name == "text" and isinstance(one, str) and isinstance(other, str):
            self.letters, self.wrong = self.letters + len(other), self.wrong + edits(one, other)
        elif one != other:
            self.different.append(f"{name}: {_short(one)} for {_short(other)}")

    def _fields(self, name: str, one: Any, other: Any, thing: Any) -> None:
        if name == "keypoints":  # by name
            self._rows(name, [*one.values()], [*other.values()], thing)
        elif name == "box":
            self.overlap = min(self.overlap, _overlap(one, other))
        elif "xyz" in one and name != "world":
            self._points(one["xyz"].reshape(-1, 3)[:, :2], other["xyz"].reshape(-1, 3)[:, :2], thing)
        elif {"width", "height", "values"} <= {*one}:
            self._masks(one, other, thing)
        else:
            inner = one if "box" in one else thing
            for key in one:
                self.compare(key, one[key], other.get(key), inner)

    def _rows(self, name: str, one: Any, other: Any, thing: Any) -> None:
        if name in ("quad", "corners", "keypoints", "anchors") and len(one) == len(other) > 0:
            self._points(np.array(one)[:, :2], np.array(other)[:, :2], thing)
        else:
            self.lists(one, other, counts=False)

    def _points(self, one: Array, other: Array, thing: Any) -> None:
        width = thing["box"]["width"] if "box" in thing else float(np.ptp(other[:, 0]))
        self.points = max(self.points, 100 * float(np.hypot(*(one - other).T).mean()) / max(width, 1.0))

    def _masks(self, one: Any, other: Any, thing: Any) -> None:
        a, b = one["values"], other["values"]
        if a.shape != b.shape:
            self.different.append(f"{len(a)} pixels for {len(b)}")
            return
        union = int(((a > 0.5) | (b > 0.5)).sum())
        self.mask = min(self.mask, int(((a > 0.5) & (b > 0.5)).sum()) / union if union > len(a) / 1000 else 1.0)
        for key in ("parts", "people"):
            if key in one:
                self.parts = min(self.parts, float((one[key] == other[key]).mean()))
        if "bodies" in one:
            self.lists(one["bodies"], other["bodies"], counts=False)

    def _arrays(self, name: str, one: Array, other: Array, thing: Any) -> None:
        if one.shape != other.shape:
            self.different.append(f"{name}: {len(one)} numbers for {len(other)}")
        elif name == "confidences":
            self.score = max(self.score, float(np.abs(one - other).max(initial=0)))
        else:
            self.numbers = max(self.numbers, float(np.abs(one - other).max(initial=0)))

    def told(self) -> str:
        """The gaps in words; those that are none are left out."""
        told = [f"{self.missed} missed"] if self.missed else []
        told += [f"IoU {self.overlap:.4f} at least"] if self.overlap < 1 else []
        told += [f"points {self.points:.3f} % of the width"] if self.points else []
        told += [f"masks {self.mask:.4f} IoU"] if self.mask < 1 else []
        told += [f"{100 * self.parts:.2f} % of the parts"] if self.parts < 1 else []
        told += [f"scores {self.score:.1e}"] if self.score else []
        told += [f"numbers {self.numbers:.1e}"] if self.numbers else []
        told += [f"{self.wrong} of {self.letters} letters"] if self.wrong else []
        told += [f"{len(self.different)} differ ({'; '.join(self.different[:3])})"] if self.different else []
        return ", ".join(told) or "the same"

    def within(self, near: float, farthest: float, own: "Gaps | None" = None) -> bool:
        """Whether all gaps are small: `near` is for scores and numbers, `farthest` for points in % of the width.

        `own` are gaps of one side to itself over samples that hardly differ; ours may be as large.
        """
        own = own or Gaps()
        whole = not self.missed and not self.different and self.wrong <= MOST_WRONG * self.letters
        areas = self.overlap >= min(LEAST_OVERLAP, own.overlap) and self.mask >= min(LEAST_OVERLAP, own.mask)
        values = self.score <= max(near, own.score) and self.numbers <= max(near, own.numbers)
        return whole and areas and values and self.parts >= LEAST_SAME and self.points <= max(farthest, own.points)


def _short(value: Any) -> str:
    return "nothing" if value is None else str(value)[:40]


def _overlap(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    sides = [[box[side] for side in ("left", "top", "width", "height")] for box in (one, other)]
    return faces.overlap(*sides)
