"""Winners as JSON lines, and what is applied of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from webinfer.errors import ModelFormatError
from webinfer.tune.search import Winner


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
            row = json.loads(line)
            winner = Winner(str(row["key"]), str(row["choice"]), float(row["ms"]), float(row["default_ms"]))
        except (ValueError, TypeError, KeyError) as error:
            raise ModelFormatError(f"tuning log, line {number}: {error!r}; tune again") from error
        winners[winner.key] = winner
    return list(winners.values())


def choices_of(winners: Iterable[Winner]) -> Mapping[str, str]:
    """What a backend's builder takes: a choice for each key."""
    return {w.key: w.choice for w in winners}
