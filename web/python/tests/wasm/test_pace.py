"""Runs of a team of threads: where other work takes their cores, one thread goes on alone, and tries the team again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.importers import paper_host

np = pytest.importorskip("numpy")

import webinfer  # noqa: E402
from webinfer.authoring.builder import GraphBuilder  # noqa: E402
from webinfer.backends.wasm.thread_count import ThreadCountController  # noqa: E402

ALONE = 1.9  # milliseconds of one thread, where an undisturbed team takes 1.0
RANDOM = random.Random(5)


def _undisturbed() -> float:
    return RANDOM.uniform(1.0, 1.1)


def _disturbed() -> float:
    """A team whose second thread loses its core now and then for some milliseconds."""
    return RANDOM.choice([1.0, 1.0, 4.5, 1.1, 3.0, 5.0])


def _mean(pace: ThreadCountController, team: Callable[[], float], runs: int) -> float:
    total = 0.0
    for _ in range(runs):
        ms = team() if pace.team else ALONE
        pace.took(ms)
        total += ms
    return total / runs


def test_an_undisturbed_team_loses_one_percent_to_trials() -> None:
    assert _mean(ThreadCountController(), _undisturbed, 3000) < 1.05 * 1.02


def test_a_disturbed_team_is_never_five_percent_slower_than_one_thread() -> None:
    assert sum(_disturbed() for _ in range(3000)) / 3000 > 1.2 * ALONE  # what it would be without
    assert _mean(ThreadCountController(), _disturbed, 3000) < 1.05 * ALONE


def test_first_runs_of_code_that_is_not_final_decide_nothing() -> None:
    pace, together = ThreadCountController(), 0
    for run in range(60):
        together += pace.team
        slower = 5.0 if run < 8 else 1.0
        pace.took(slower * (1.0 if pace.team else ALONE))
    assert together >= 56


def test_a_team_whose_core_was_compiling_is_tried_again_soon() -> None:
    pace = ThreadCountController()
    for run in range(310):
        team = 3.0 if run < 250 else 0.8  # a compiler keeps the second core busy
        pace.took(team if pace.team else 1.4)
    assert pace.team


def test_the_faster_way_is_found_again_when_the_machine_changes() -> None:
    pace = ThreadCountController()
    _mean(pace, _undisturbed, 2000)
    _mean(pace, _disturbed, 100)
    assert _mean(pace, _disturbed, 1000) < 1.05 * ALONE
    _mean(pace, _undisturbed, 150)
    assert _mean(pace, _undisturbed, 500) < 1.15


@pytest.mark.skipif(not paper_host.can_plan(), reason="no kernel table")
def test_a_plan_goes_on_with_one_thread_where_the_team_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    guards = pytest.importorskip("tests.wasm.guards")
    from webinfer.host.threads_native import ThreadPoolKernels

    b = GraphBuilder("paced")
    x = b.input("x", (1000, 128))
    w = b.constant(np.linspace(-1, 1, 128 * 128, dtype=np.float32).reshape(128, 128))
    b.output(b.node("matmul", x, w), "y")
    data = np.random.default_rng(1).standard_normal((1000, 128)).astype(np.float32)
    done, clock = [], [0.0]

    def team(self: Any, program: int, first: int, count: int) -> None:
        done.append("team")
        clock[0] += 9.0
        run(self, program, first, count)

    def alone(self: Any, name: str, *args: Any) -> Any:
        if name == "run":
            done.append("one")
            clock[0] += 2.0
        return call(self, name, *args)

    async def main() -> list[Any]:
        session = await webinfer.load(b, backend="wasm", host=host, threads=2)
        return [np.asarray((await session.run({"x": data}))["y"]).copy() for _ in range(60)]

    host = guards.BuildHost("relaxed-threads", 2)
    monkeypatch.setattr(host, "now_ms", lambda: clock[0], raising=False)
    run, call = ThreadPoolKernels.run, ThreadPoolKernels.call
    monkeypatch.setattr(ThreadPoolKernels, "run", team)
    monkeypatch.setattr(ThreadPoolKernels, "call", alone)
    results = asyncio.run(main())
    assert all(np.array_equal(results[0], result) for result in results)
    assert done[:10] == ["team"] * 10
    assert done[-30:].count("one") >= 20
