"""The tuning log: winners and verdicts as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from typing import Any

from webinfer.errors import ModelFormatError
from webinfer.lazy_dataclass import dataclass
from webinfer.tune.search import Winner


@dataclass(frozen=True, slots=True)
class About:
    """Where timings hold: the adapter, what drives it with its version, the engine's version."""

    adapter: str
    browser: str
    engine: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A whole plan tuned against its default, in milliseconds on the GPU; `kept` says which one runs.

    `plan` stands for the plan's keys, `changed` counts those whose kernel is not the default.
    """

    plan: str
    model: str
    default_ms: float
    tuned_ms: float
    changed: int
    kept: bool


@dataclass(frozen=True, slots=True)
class TuningReport:
    """What a tuning found: of `shapes` that several kernels can compute, `timed` were timed and `known` before.

    `lines` is its part of the log.
    """

    about: About
    verdict: Verdict
    timed: int
    known: int
    shapes: int
    lines: str

    @property
    def gain(self) -> float:
        """Share of the default's time that the plan in use saves."""
        return 1 - self.verdict.tuned_ms / self.verdict.default_ms if self.verdict.kept else 0.0

    def __str__(self) -> str:
        v = self.verdict
        outcome = f"{self.gain:.1%} saved" if v.kept else "the default stays"
        return (
            f"{v.model} on {self.about.adapter}: {self.timed} shapes timed, {self.known} known of {self.shapes}; "
            f"{v.changed} changed; default {v.default_ms:.3f} ms, tuned {v.tuned_ms:.3f} ms: {outcome}"
        )


@dataclass(slots=True)
class Log:
    """What was found in one place (`about`). `skipped` counts lines of other places."""

    about: About
    winners: dict[str, Winner] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    skipped: int = 0

    def text(self) -> str:
        """One JSON object a line: the place, then a key and its winner, or a plan and its verdict."""
        rows: list[Winner | Verdict] = [*self.winners.values(), *self.verdicts.values()]
        place = asdict(self.about)
        return "".join(json.dumps({**place, **asdict(row)}) + "\n" for row in rows)

    def read(self, text: str) -> list[str]:
        """Adds lines to the log, and returns a text for each that cannot be read.

        A later line of the same key or plan replaces an earlier one.
        """
        problems, place = [], asdict(self.about)
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if any(row[name] != value for name, value in place.items()):
                    self.skipped += 1
                elif "plan" in row:
                    self.verdicts[str(row["plan"])] = _verdict(row)
                else:
                    winner = _winner(row)
                    self.winners[winner.key] = winner
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                problems.append(f"line {number}: {error!r}")
        return problems


def _winner(row: Mapping[str, Any]) -> Winner:
    default = str(row.get("default", ""))
    return Winner(str(row["key"]), str(row["choice"]), float(row["ms"]), float(row["default_ms"]), default)


def _verdict(row: Mapping[str, Any]) -> Verdict:
    times = float(row["default_ms"]), float(row["tuned_ms"])
    return Verdict(str(row["plan"]), str(row["model"]), *times, int(row["changed"]), row["kept"] is True)


def to_lines(winners: Iterable[Winner]) -> str:
    """One JSON object a line, keyed by shape."""
    return "".join(
        json.dumps({"key": w.key, "choice": w.choice, "ms": w.ms, "default_ms": w.default_ms}) + "\n" for w in winners
    )


def from_lines(text: str) -> list[Winner]:
    """The winners in a log; a later line of the same key replaces an earlier one.

    Raises:  ModelFormatError naming the line that cannot be read
    """
    winners: dict[str, Winner] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            winner = _winner(json.loads(line))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ModelFormatError(f"tuning log, line {number}: {error!r}; tune again") from error
        winners[winner.key] = winner
    return list(winners.values())


def tuned_of(winners: Iterable[Winner]) -> Mapping[str, str]:
    """The tuned kernels: the winner's name for each tuning key."""
    return {w.key: w.choice for w in winners}
