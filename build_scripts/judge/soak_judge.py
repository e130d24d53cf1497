"""What a soak must show, judged without a browser: no wrong answer, no stuck page, memory that stays flat."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from build_scripts.site.headless import intersection_over_union

MIN_IOU = 0.99  # of each box with the first answer's
MEMORY_GROWTH = 1.1  # last third's median may be this many times the first third's
CYCLES_TO_JUDGE = 6  # fewer say nothing about memory

Box = dict[str, float]


@dataclass
class Trouble:
    """One thing that was done to the page, and how it got back; `recovered_s` is None if it did not in time."""

    kind: str
    what: str
    at_s: float
    recovered_s: float | None = None
    pressed: int = 0  # times that "Try again" was needed
    said: list[str] = field(default_factory=list)  # errors that the page showed
    backend: str = ""
    memory: dict[str, float] = field(default_factory=dict)  # MiB at the end of the cycle


@dataclass
class Record:
    """Everything that a soak saw."""

    first: list[Box] = field(default_factory=list)
    answers: int = 0
    asked_again: int = 0  # answers that had to be asked for again, after an error without one
    backends: dict[str, int] = field(default_factory=dict)
    wrong: list[dict[str, Any]] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)

    def take(self, boxes: Sequence[Box], backend: str) -> bool:
        """Whether an answer is right; it is counted either way. The first one says what is right."""
        self.answers += 1
        self.backends[backend] = self.backends.get(backend, 0) + 1
        if not self.first and boxes:
            self.first = list(boxes)
        if self.first and same_faces(boxes, self.first):
            return True
        self.wrong.append({"answer": self.answers, "backend": backend, "boxes": list(boxes)})
        return False


def same_faces(found: Sequence[Box], first: Sequence[Box]) -> bool:
    """Whether there are as many boxes, each over its own of the first answer."""
    pairs = zip(found, first, strict=False)
    return len(found) == len(first) and all(intersection_over_union(a, b) >= MIN_IOU for a, b in pairs)


def memory_growth(record: Record) -> tuple[float, float] | None:
    """Medians of the first and of the last third of the cycles in MiB; None if there are too few cycles."""
    series = [sum(t.memory[part] for part in ("renderer", "gpu")) for t in record.troubles if t.memory]
    if len(series) < CYCLES_TO_JUDGE:
        return None
    third = len(series) // 3
    return statistics.median(series[:third]), statistics.median(series[-third:])


def complaints(record: Record) -> list[str]:
    """What did not hold, a sentence each; none if all did."""
    found = []
    if not record.first:
        found.append("there was no right answer at all")
    if record.wrong:
        found.append(f"{len(record.wrong)} of {record.answers} answers were wrong, the first on {record.wrong[0]}")
    found += [f"the page was stuck: {what}" for what in record.stuck]
    if not record.troubles:
        found.append("nothing was done to the page")
    growth = memory_growth(record)
    if growth and growth[1] > MEMORY_GROWTH * growth[0]:
        found.append(
            f"memory grew from {growth[0]:.0f} to {growth[1]:.0f} MiB (medians of the first and the last third)"
        )
    return found


def report(record: Record, facts: dict[str, Any]) -> dict[str, Any]:
    """The record as JSON, with the facts of the run and the verdict."""
    growth = memory_growth(record)
    memory = {"first_third": growth[0], "last_third": growth[1], "ratio": growth[1] / growth[0]} if growth else None
    bad = complaints(record)
    return {**facts, "held": not bad, "complaints": bad, "memory_mib": memory, **asdict(record)}
