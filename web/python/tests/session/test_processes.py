"""What a session may be shared by: threads with event loops of their own, and children of fork()."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import webinfer
from webinfer.session.loop_lock import CrossLoopLock, LoopLock

ROOT = Path(__file__).resolve().parents[2]
SCALE = """
import os, sys, signal, webinfer
def doubling():
    builder = webinfer.GraphBuilder("doubling")
    x = builder.input("x", (2, 300))
    builder.output(builder.node("linear", x, a=2.0, b=0.0), "y")
    return builder
signal.alarm(60)  # a child that hangs is ended with its parent
def child(work):
    pid = os.fork()
    if not pid:
        signal.alarm(20)
        try: work(); os._exit(0)
        except webinfer.WebinferError as error: print(error.code, error, flush=True); os._exit(9)
        except BaseException as error: print(repr(error), flush=True); os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def doubles(session, value=3.0):
    found = session.run(bytes(memoryview(__import__("array").array("f", [value] * 600))))["y"].tolist()
    assert set(found) == {2 * value}, set(found)
def fresh(**options):
    with webinfer.load_sync(doubling(), **options) as session: doubles(session, 4.0)
"""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork() on this system")


def doubling() -> webinfer.GraphBuilder:
    builder = webinfer.GraphBuilder("doubling")
    x = builder.input("x", (2, 300))
    builder.output(builder.node("linear", x, a=2.0, b=0.0), "y")
    return builder


def script(text: str) -> str:
    """What a script prints in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCALE + textwrap.dedent(text)], env=env, capture_output=True, text=True,
        timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# ----- fork


@needs_fork
def test_a_child_of_fork_runs_the_session_of_its_parent_and_loads_its_own() -> None:
    said = script("""
    session = webinfer.load_sync(doubling(), backend="wasm")
    doubles(session)
    print(child(lambda: doubles(session, 5.0)), child(lambda: fresh(backend="wasm")))
    print(child(lambda: child(lambda: doubles(session, 6.0)) and os._exit(1)))  # a grandchild
    doubles(session, 7.0)  # the parent goes on
    """)
    assert said.split() == ["0", "0", "0"]


@needs_fork
def test_a_child_compiles_kernels_as_its_parent_did() -> None:
    said = script("""
    from webinfer.host import current
    names = b"\\x02\\x0f\\x01\\x03env\\x06memory\\x02\\x00\\x01"  # imports a memory
    ends = b"\\x06\\x06\\x01\\x7f\\x00\\x41\\x00\\x0b\\x07\\x0f\\x01\\x0b__heap_base\\x03\\x00"
    def compiled(): webinfer.run_sync(current().kernels(module=b"\\0asm\\1\\0\\0\\0" + names + ends))
    compiled()
    print(child(compiled))
    """)
    assert said.split() == ["0"]


@needs_fork
def test_a_fork_while_another_thread_holds_every_lock_hangs_nothing() -> None:
    said = script("""
    import asyncio, threading
    session = webinfer.load_sync(doubling(), backend="wasm")
    async def hold():
        async with session.session._live.lock, session.session._queue._lock:
            session.session.loop_lock._inside += 1
            session.session._live.executor = None
            held.set()
            await asyncio.sleep(30)
    held = threading.Event()
    threading.Thread(target=lambda: webinfer.run_sync(hold()), daemon=True).start()
    held.wait()
    print(child(lambda: doubles(session, 5.0)), flush=True)
    os._exit(0)
    """)
    assert said.split() == ["0"]


@needs_fork
def test_kernels_that_ran_at_the_fork_end_in_a_typed_error_and_the_next_run_has_new_ones() -> None:
    said = script("""
    session = webinfer.load_sync(doubling(), backend="wasm")
    session.session.executor.kernels._inside = True  # as another thread's run
    def twice():
        try: doubles(session)
        except webinfer.KernelError as error: assert "forked" in str(error); doubles(session, 5.0); return
        os._exit(8)
    print(child(twice))
    """)
    assert said.split() == ["0"]


@needs_fork
def test_a_gpu_is_refused_in_a_child_at_once_and_wasm_runs_there() -> None:
    said = script("""
    try: session = webinfer.load_sync(doubling(), backend="webgpu")
    except webinfer.BackendUnavailableError: print("no GPU"); sys.exit()
    other = webinfer.load_sync(doubling(), backend=["webgpu", "wasm"])
    doubles(session), doubles(other)
    print(child(lambda: doubles(session, 5.0)), child(lambda: fresh(backend="webgpu")), end=" ")
    print(child(lambda: doubles(other, 5.0)))
    doubles(session, 6.0)
    """)
    if said.strip() == "no GPU":
        pytest.skip("this machine has no GPU for wgpu")
    lines = said.strip().splitlines()
    assert lines[-1].split() == ["9", "9", "0"]
    assert sum("backend-unavailable" in line and "'spawn' or 'forkserver'" in line for line in lines) == 2


def test_pools_of_processes_load_models_however_they_start() -> None:
    script("""
    import multiprocessing
    from tests.session.child_process import run_in_a_process
    run_in_a_process(1.0)  # the parent has kernels and a thread
    for method in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.map(run_in_a_process, [1.5, 2.5]) == [3.0, 5.0], method
    """)


# ----- threads


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_event_loops_of_several_threads_share_a_session(backend: str) -> None:
    try:
        session = asyncio.run(webinfer.load(doubling(), backend=backend, strict=True))
    except webinfer.BackendUnavailableError as error:
        pytest.skip(str(error))
    wrong: list[object] = []

    def work(number: int) -> None:
        async def turns() -> None:
            for turn in range(40):
                x = np.full((2, 300), number * 1000 + turn, np.float32)
                found = await asyncio.gather(*(session.run(x) for _ in range(3)))
                wrong.extend(y for y in found if not np.array_equal(y["y"].numpy(), 2 * x))

        try:
            asyncio.run(turns())
        except Exception as error:
            wrong.append(error)

    in_threads(*(lambda number=number: work(number) for number in range(3)))  # type: ignore[misc]
    session.close()
    assert wrong == []


def in_threads(*works: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


def test_sessions_of_two_threads_share_a_gpu() -> None:
    wrong: list[object] = []

    def work() -> None:
        try:
            with webinfer.load_sync(doubling(), backend="webgpu", strict=True) as session:

                async def runs() -> None:
                    for turn in range(30):
                        found = await session.session.run(np.full((2, 300), turn, np.float32))
                        wrong.extend(y for y in set(found["y"].tolist()) if y != 2.0 * turn)

                asyncio.run(runs())
        except webinfer.BackendUnavailableError:
            return
        except Exception as error:
            wrong.append(error)

    in_threads(work, work)
    assert wrong == []


def test_a_busy_loop_lets_another_one_in_and_its_nested_calls_pass() -> None:
    loop_lock, order, inside, asked = LoopLock(), list[str](), threading.Event(), threading.Event()

    async def nested() -> None:
        await loop_lock.acquire(True)
        loop_lock.release()

    async def busy() -> None:
        await loop_lock.acquire()
        inside.set()
        while loop_lock._asked[0] is None:
            await asyncio.sleep(0.001)
        await nested()
        follower = asyncio.ensure_future(loop_lock.acquire())  # comes behind who waits
        await asyncio.sleep(0.005)
        assert not follower.done()
        loop_lock.release()
        await follower
        order.append("busy")
        loop_lock.release()

    async def other() -> None:
        inside.wait(10)
        asked.set()
        await loop_lock.acquire()
        order.append("other")
        loop_lock.release()

    in_threads(lambda: asyncio.run(busy()), lambda: asyncio.run(other()))
    assert order == ["other", "busy"]


def test_a_loop_that_stands_still_keeps_nobody_out() -> None:
    loop_lock, lock, loop = LoopLock(), CrossLoopLock(), asyncio.new_event_loop()

    async def stay() -> None:
        await loop_lock.acquire()
        await lock.__aenter__()

    loop.run_until_complete(stay())

    async def come() -> None:
        await asyncio.wait_for(loop_lock.acquire(), 5)
        await asyncio.wait_for(lock.__aenter__(), 5)
        await lock.__aexit__(None, None, None)
        loop_lock.release()

    asyncio.run(come())
    loop.close()


def test_one_conversation_at_a_time_in_all_threads() -> None:
    lock, most, now = CrossLoopLock(), [0], [0]

    def work() -> None:
        async def turns() -> None:
            async def one() -> None:
                async with lock:
                    now[0] += 1
                    most[0] = max(most[0], now[0])
                    await asyncio.sleep(0.0002)
                    now[0] -= 1

            await asyncio.gather(*(one() for _ in range(15)))

        asyncio.run(turns())

    in_threads(work, work)
    assert (most, now) == ([1], [0])
