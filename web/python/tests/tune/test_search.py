"""The search: budget, order, noise, candidates that cannot run. Time is counted, not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from webinfer.tune.search import ABORT_RATIO, MARGIN, ROUNDS, Trial, Winner, beats, search


class Bench:
    """A clock that only runs take time on; `costs` are milliseconds of each candidate."""

    def __init__(self, costs: dict[str, float], jitter: Sequence[float] = (1.0,)) -> None:
        self.costs, self.jitter = costs, jitter
        self.now, self.measured, self.open = 0.0, list[tuple[str, str, int]](), 0

    def clock(self) -> float:
        return self.now

    async def prepare(self, trial: Trial, name: str) -> Any:
        if name not in self.costs:
            return None
        self.open += 1
        return _Run(self, trial.key, name)


class _Run:
    def __init__(self, bench: Bench, key: str, name: str) -> None:
        self.bench, self.key, self.name = bench, key, name

    async def elapsed(self, repeats: int) -> float:
        bench = self.bench
        spent = bench.costs[self.name] * repeats * bench.jitter[len(bench.measured) % len(bench.jitter)]
        bench.measured.append((self.key, self.name, repeats))
        bench.now += spent
        return spent

    def close(self) -> None:
        self.bench.open -= 1


def run(work: Coroutine[Any, Any, list[Winner]]) -> list[Winner]:
    return asyncio.run(work)


def winners(bench: Bench, trials: Sequence[Trial], budget: float = 1e9, **more: Callable[..., None]) -> list[Winner]:
    return run(search(trials, bench.prepare, bench.clock, budget, min_ms=5.0, **more))


def test_the_fastest_wins_and_everything_is_freed() -> None:
    bench = Bench({"a": 1.0, "b": 0.5, "c": 2.0})
    (winner,) = winners(bench, [Trial("k", ("a", "b", "c"), 1)])
    assert (winner.choice, winner.default, winner.changed) == ("b", "a", True)
    assert (winner.ms, winner.default_ms) == (0.5, 1.0)
    assert bench.open == 0


def test_every_timing_lasts_long_enough_for_the_clock() -> None:
    bench = Bench({"a": 0.01, "b": 0.02})
    winners(bench, [Trial("k", ("a", "b"), 1)])
    last = {name: repeats for _, name, repeats in bench.measured}
    assert last["a"] * 0.01 >= 5.0
    assert last["b"] * 0.02 >= 5.0


def test_less_than_the_margin_is_noise() -> None:
    (winner,) = winners(Bench({"a": 1.0, "b": 1.0 - 0.9 * MARGIN}), [Trial("k", ("a", "b"), 1)])
    assert (winner.choice, winner.changed) == ("a", False)


def test_a_default_that_was_once_as_fast_stays() -> None:
    assert not beats([0.8, 0.8, 0.8], [1.0, 0.79, 1.0])
    assert beats([0.8, 0.8, 3.0], [1.0, 0.9, 1.0])


def test_hopeless_candidates_are_timed_once() -> None:
    bench = Bench({"a": 6.0, "b": 6.0 * ABORT_RATIO * 1.1})
    winners(bench, [Trial("k", ("a", "b"), 1)])
    names = [name for _, name, _ in bench.measured]
    assert names.count("a") == 1 + ROUNDS  # one warms up
    assert names.count("b") == 2


def test_heavy_shapes_come_first_and_the_budget_ends_the_search() -> None:
    bench = Bench({"a": 6.0, "b": 6.0})
    trials = [Trial("light", ("a", "b"), 1), Trial("heavy", ("a", "b"), 9), Trial("single", ("a",), 99)]
    heard: list[tuple[str, int, int]] = []
    found = winners(bench, trials, 10.0, found=lambda w, number, total: heard.append((w.key, number, total)))
    assert [w.key for w in found] == ["heavy"]
    assert heard == [("heavy", 1, 2)]


def test_a_late_trial_takes_one_round_of_two_candidates() -> None:
    bench = Bench({"a": 6.0, "b": 6.0, "c": 6.0})
    winners(bench, [Trial("k", ("a", "b", "c"), 1)], 5.0)
    assert [name for _, name, _ in bench.measured].count("a") == 2


def test_candidates_that_cannot_run_are_left_out() -> None:
    (winner,) = winners(Bench({"a": 1.0, "c": 0.5}), [Trial("k", ("a", "b", "c"), 1)])
    assert winner.choice == "c"
