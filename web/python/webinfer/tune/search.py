"""Times candidates within a budget and says which is fastest."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from webinfer.lazy_dataclass import dataclass

ROUNDS = 3  # interleaved; a candidate's median counts
MARGIN = 0.03  # share by which a candidate must beat the default: less is noise
ABORT_RATIO = 1.5  # a candidate so many times slower than the fastest is timed once only
MAX_REPEATS = 1 << 12  # of a candidate that is timed: the shortest take a microsecond


class Run(Protocol):
    """One candidate, ready to run."""

    async def elapsed(self, repeats: int) -> float:
        """Milliseconds of so many runs in a row."""

    def close(self) -> None:
        """Frees the candidate."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One search: a tuning key, its candidates with the default first, and the shape's share of the work."""

    key: str
    candidates: tuple[str, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Winner:
    """The fastest candidate of a trial, its time, and the default and its time."""

    key: str
    choice: str
    ms: float
    default_ms: float
    default: str = ""

    @property
    def changed(self) -> bool:
        """Whether it is faster than the default, so another kernel."""
        return self.ms < self.default_ms


Prepare = Callable[[Trial, str], Awaitable[Run | None]]  # None where a candidate cannot run after all


async def search(
    trials: Sequence[Trial],
    prepare: Prepare,
    clock: Callable[[], float],
    budget_ms: float,
    *,
    min_ms: float,
    found: Callable[[Winner, int, int], None] | None = None,
) -> list[Winner]:
    """The winners of as many trials as the budget allows, the heaviest shapes first.

    Each timing is repeated until it lasts `min_ms`: what the clock and its noise ask for.
    `found` is called with each winner, its number from 1, and the number of trials.
    """
    deadline, winners = clock() + budget_ms, []
    ordered = sorted((t for t in trials if len(t.candidates) > 1), key=lambda t: -t.weight)
    for number, trial in enumerate(ordered):
        if clock() >= deadline:
            break
        winners.append(await _decide(trial, prepare, min_ms, lambda: clock() >= deadline))
        if found is not None:
            found(winners[-1], number + 1, len(ordered))
    return winners


async def _decide(trial: Trial, prepare: Prepare, min_ms: float, late: Callable[[], bool]) -> Winner:
    default, runs = trial.candidates[0], dict[str, Run]()
    try:
        for candidate in trial.candidates:
            if (len(runs) < 2 or not late()) and (run := await prepare(trial, candidate)) is not None:
                runs[candidate] = run
        times = await compare(runs, min_ms, late)
    finally:
        for run in runs.values():
            run.close()
    from statistics import median

    medians = {name: median(found) for name, found in times.items()}
    choice = min(medians, key=lambda name: medians[name])
    if not beats(times[choice], times[default]):
        choice = default
    return Winner(trial.key, choice, medians[choice], medians[default], default)


def beats(times: Sequence[float], default: Sequence[float], margin: float = MARGIN) -> bool:
    """Whether a candidate is faster by more than noise."""
    from statistics import median

    found = median(times)
    return found < min(default) and found < median(default) * (1 - margin)


async def compare(
    runs: Mapping[str, Run], min_ms: float, late: Callable[[], bool] = bool, rounds: int = ROUNDS
) -> dict[str, list[float]]:
    """Milliseconds of one run of each candidate, the default first, in interleaved rounds.

    Hopeless candidates are timed once, and all of them when it is `late`.
    """
    repeats = {name: await _repeats(run, min_ms) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        best = min((found[0] for found in times.values() if found), default=math.inf)
        for position, (name, run) in enumerate(runs.items()):
            if number == 0 or position == 0 or times[name][0] <= ABORT_RATIO * best:
                times[name].append(await run.elapsed(repeats[name]) / repeats[name])
        if late():
            break
    return times


async def _repeats(run: Run, min_ms: float) -> int:
    """How often to run so that it lasts for `min_ms`; warms up on the way."""
    repeats = 1
    while True:
        elapsed = await run.elapsed(repeats)
        if elapsed >= min_ms or repeats >= MAX_REPEATS:
            return repeats
        repeats = min(longer(repeats, elapsed, min_ms), MAX_REPEATS)


def longer(repeats: int, elapsed: float, min_ms: float) -> int:
    """How often to repeat what took `elapsed` ms so often, to last for `min_ms`: at most 8 times as often."""
    most = 8.0  # what took no time by a coarse clock may take some
    return math.ceil(repeats * min(most, 1.2 * min_ms / max(elapsed, 1e-6)))
