"""A team of threads is timed against one thread before it is used."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.ops.case_graphs import run

from webinfer.backends.wasm import thread_teams as team
from webinfer.errors import BackendUnavailableError
from webinfer.host import current
from webinfer.host.interface import Kernels
from webinfer.host.threads_native import ThreadPoolKernels

MANY = 8  # that a browser might name


class Host:
    """This process with threads: `claimed` where nobody says how many."""

    knows_cores = False

    def __init__(self, claimed: int, broken: bool = False) -> None:
        self.claimed, self.broken, self.asked = claimed, broken, list[int | None]()
        self.now_ms = current().now_ms

    async def kernels(self, isa: str | None = None, threads: int | None = 1) -> Kernels:
        self.asked.append(threads)
        wanted = self.claimed if threads is None else threads
        if self.broken and wanted > 1:
            raise BackendUnavailableError("kernel threads do not start: they are refused")
        return await current().kernels(isa) if wanted == 1 else ThreadPoolKernels(isa or "relaxed", wanted)


@pytest.fixture(autouse=True)
def _nothing_is_known() -> Iterator[None]:
    team._fast.clear()
    yield
    team._fast.clear()


def test_more_threads_than_are_fast_are_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(team, "trial", lambda host, kernels: (float(kernels.threads), 2.5))  # two are, four are not
    host = Host(MANY)
    with caplog.at_level(logging.WARNING, "webinfer"):
        kernels = run(team.open_threads(host, None, None))
    assert (kernels.threads, host.asked) == (2, [None, 4, 2])
    kernels.close()
    assert f"{MANY} threads are slower" in caplog.text
    run(team.open_threads(host, None, None)).close()
    assert host.asked[-1] == kernels.threads, "it was tried again"


def test_as_many_as_a_stored_plan_was_made_for_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "trial", lambda host, kernels: pytest.fail("it was timed"))
    for proven in (MANY, 4, 1):
        team._fast.clear()
        kernels = run(team.open_threads(Host(MANY), None, None, proven))
        assert kernels.threads == proven
        kernels.close()


def test_more_than_there_are_were_proven_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "trial", lambda host, kernels: (1.0, 2.0))
    kernels = run(team.open_threads(Host(4), None, None, MANY))
    assert kernels.threads == 4
    kernels.close()


def test_fewer_threads_than_are_offered_are_tried_again_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    speed = {"team": 3.0}
    monkeypatch.setattr(team, "trial", lambda host, kernels: (speed["team"], 2.0))
    host = Host(2)
    assert run(team.better_thread_count(host, "relaxed")) is None, "nothing is used yet"
    run(team.open_threads(host, None, None)).close()
    assert run(team.better_thread_count(host, "relaxed")) is None, "they are slow still"
    assert team._fast == [1]
    speed["team"] = 1.0
    kernels = run(team.better_thread_count(host, "relaxed"))
    assert kernels is not None
    assert kernels.threads == 2
    kernels.close()
    assert run(team.better_thread_count(host, "relaxed")) is None, "there are no more"
    run(team.open_threads(host, None, None)).close()
    assert host.asked[-1] == 2


def test_a_number_that_is_asked_for_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "trial", lambda host, kernels: pytest.fail("it was timed"))
    kernels = run(team.open_threads(Host(MANY), "simd128", 3))
    assert (kernels.isa, kernels.threads) == ("simd128", 3)
    kernels.close()


def test_threads_that_do_not_start_leave_one_and_a_word(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "webinfer"):
        kernels = run(team.open_threads(Host(4, broken=True), None, None))
    assert kernels.threads == 1
    kernels.close()
    assert "one thread is used: kernel threads do not start: they are refused" in caplog.text
    with pytest.raises(BackendUnavailableError, match="refused"):
        run(team.open_threads(Host(4, broken=True), None, 4))


def test_a_clock_of_sixty_ticks_a_second_can_still_tell() -> None:
    host = Host(1)
    host.now_ms = lambda: current().now_ms() // 16.7 * 16.7
    kernels = ThreadPoolKernels("relaxed", MANY)
    many, one = team.trial(host, kernels)
    used = kernels.size() - kernels.heap_base
    assert kernels.read(kernels.heap_base, used) == bytes(used), "the trial left something behind"
    kernels.close()
    assert many > 0 < one
