"""Timing candidates within a budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

ROUNDS = 3  # interleaved; the fastest of a candidate counts
MARGIN = 0.03  # share by which a candidate must beat the default: less is noise
LEAST_MS = 0.05  # a timing shorter than this is repeated until it is not


class Run(Protocol):
    """One candidate, ready to run."""

    def __call__(self, repeats: int) -> None:
        """Runs it so many times."""

    def close(self) -> None:
        """Frees it."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What may be chosen under one key: candidates, the default first, and the work of the shape."""

    key: str
    candidates: tuple[str, ...]
    flops: int


@dataclass(frozen=True, slots=True)
class Winner:
    """The fastest candidate of a trial: its time, and the default's."""

    key: str
    choice: str
    ms: float
    default_ms: float

    @property
    def changed(self) -> bool:
        """Whether it is another than the default."""
        return self.ms < self.default_ms


async def search(
    trials: Sequence[Trial],
    prepare: Callable[[Trial, str], Awaitable[Run]],
    clock: Callable[[], float],
    budget_ms: float,
    progress: Callable[[int, int], None] | None = None,
) -> list[Winner]:
    """The winners of as many trials as the budget allows, the heaviest shapes first."""
    start, winners = clock(), []
    ordered = sorted((t for t in trials if len(t.candidates) > 1), key=lambda t: -t.flops)
    for number, trial in enumerate(ordered):
        if clock() - start >= budget_ms:
            break
        winners.append(await _decide(trial, prepare, clock))
        if progress is not None:
            progress(number + 1, len(ordered))
    return winners


async def _decide(trial: Trial, prepare: Callable[[Trial, str], Awaitable[Run]], clock: Callable[[], float]) -> Winner:
    runs: dict[str, Run] = {}
    try:
        for candidate in trial.candidates:
            runs[candidate] = await prepare(trial, candidate)
        repeats = _repeats(runs[trial.candidates[0]], clock)
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(ROUNDS):
            for candidate, run in runs.items():
                begin = clock()
                run(repeats)
                best[candidate] = min(best[candidate], (clock() - begin) / repeats)
    finally:
        for run in runs.values():
            run.close()
    default_ms = best[trial.candidates[0]]
    choice = min(best, key=lambda c: best[c])
    if best[choice] > default_ms * (1 - MARGIN):
        choice = trial.candidates[0]
    return Winner(trial.key, choice, best[choice], default_ms)


def _repeats(run: Run, clock: Callable[[], float]) -> int:
    """How often to run so that the clock sees at least LEAST_MS; warms up on the way."""
    repeats = 1
    while repeats < 1 << 12:
        begin = clock()
        run(repeats)
        if clock() - begin >= LEAST_MS:
            break
        repeats *= 2
    return repeats
