"""Threads of kernels in CPython, and calls of several threads that run side by side."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from pathlib import Path

import pytest

import webinfer
from webinfer.host import cores, current, wait_here

pytest.importorskip("wasmtime")
from webinfer.host.threads_native import ThreadPoolKernels

ROWS, WIDTH = 64, 256  # work enough that threads share it: 8 products of 8 million operations


def model() -> webinfer.GraphBuilder:
    b = webinfer.GraphBuilder("products")
    x = b.input("x", (ROWS, WIDTH))
    weight = b.constant([(i * 7 % 11 - 5) / 40 for i in range(WIDTH * WIDTH)], (WIDTH, WIDTH))
    for _ in range(8):
        x = b.node("tanh", b.node("matmul", x, weight))
    b.output(x, "y")
    return b


class NewWorkers:
    """The threads of kernels that were started after this was made; an earlier test's may end meanwhile."""

    def __init__(self) -> None:
        self._others = set(self._all())

    @staticmethod
    def _all() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith("webinfer kernels")]

    def count(self) -> int:
        return len(set(self._all()) - self._others)

    def settled(self, wanted: int) -> int:
        """How many there are, once there are as many as wanted, or 5 seconds later."""
        end = time.monotonic() + 5
        while self.count() != wanted and time.monotonic() < end:
            time.sleep(0.01)
        return self.count()


def test_threads_mean_what_they_say_and_give_the_same_bits() -> None:
    workers = NewWorkers()
    with webinfer.load_sync(model(), backend="wasm", threads=1) as one:
        alone = one.run(one.noise(3))["y"].tobytes()
        assert workers.count() == 0
    for threads in (2, 3):
        with webinfer.load_sync(model(), backend="wasm", threads=threads) as team:
            assert team.executor.kernels.threads == threads
            assert workers.count() == threads - 1
            assert {team.run(team.noise(3))["y"].tobytes() for _ in range(20)} == {alone}
        assert workers.settled(0) == 0


def test_a_session_that_nobody_has_any_more_leaves_no_thread() -> None:
    workers = NewWorkers()
    kernels = ThreadPoolKernels("relaxed", 3)
    assert workers.count() == 2
    del kernels
    gc.collect()
    assert workers.settled(0) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork() on this system")
def test_a_child_of_fork_goes_on_with_one_thread_and_opens_threads_of_its_own() -> None:
    with webinfer.load_sync(model(), backend="wasm", threads=2) as session:
        told = session.run(session.noise(1))["y"].tobytes()
        if not (child := os.fork()):
            try:
                same = session.run(session.noise(1))["y"].tobytes() == told
                with webinfer.load_sync(model(), backend="wasm", threads=2) as own:
                    same = same and own.run(own.noise(1))["y"].tobytes() == told
                session.close()
                os._exit(0 if same else 3)
            finally:
                os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert session.run(session.noise(1))["y"].tobytes() == told


def test_other_threads_of_python_run_while_kernels_do() -> None:
    """The call gives up the GIL."""
    kernels = ThreadPoolKernels("relaxed", 2)
    turns, over = [0], threading.Event()

    def count() -> None:
        while not over.is_set():
            turns[0] += 1

    with webinfer.load_sync(model(), backend="wasm", threads=1) as session:
        plan = session.executor
        threading.Thread(target=count, daemon=True).start()
        before = turns[0]
        for _ in range(50):
            plan.execute()
        over.set()
    kernels.close()
    assert turns[0] - before > 50


def test_calls_of_several_threads_are_inside_at_once() -> None:
    barrier, met = threading.Barrier(2), list[str]()

    async def meet() -> None:
        barrier.wait(20)
        met.append(threading.current_thread().name)

    threads = [threading.Thread(target=lambda: wait_here(meet()), name=name) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(met) == ["a", "b"]


def test_a_call_inside_of_a_loop_waits_on_the_engines_thread() -> None:
    async def inner() -> str:
        return threading.current_thread().name

    async def outer() -> str:
        return wait_here(inner())

    assert asyncio.run(outer()) == "webinfer"
    assert wait_here(inner()) == threading.current_thread().name


def test_what_a_signal_interrupts_is_cancelled_and_the_next_call_works() -> None:
    cancelled = list[bool]()

    async def interrupted() -> None:
        asyncio.get_running_loop().call_soon(stop)
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    def stop() -> None:
        raise KeyboardInterrupt

    async def three() -> int:
        return 3

    with pytest.raises(KeyboardInterrupt):
        wait_here(interrupted())
    assert cancelled == [True]
    assert wait_here(three()) == 3


@pytest.mark.parametrize(
    ("told", "affinity", "quota", "threads"),
    [
        ("", 2, "max 100000", 2), ("", 8, "max 100000", 4), ("", 64, "max 100000", 8), ("", 64, "150000 100000", 2),
        ("", 4, "nonsense", 4), ("3", 64, "max 100000", 3), ("1,2", 64, "max 100000", 1), ("0", 2, "max 100000", 2),
        ("many", 2, "max 100000", 2),
    ],
)  # fmt: skip
def test_threads_by_default_are_this_processs_share(
    told: str, affinity: int, quota: str, threads: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(cores, "QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda process: set(range(affinity)), raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert cores.default_threads() == threads
    found = {capability.name: capability for capability in current().capabilities()}
    assert found["threads"].value == str(threads)
    with webinfer.load_sync(model(), backend="wasm") as session:
        assert session.executor.kernels.threads == threads
