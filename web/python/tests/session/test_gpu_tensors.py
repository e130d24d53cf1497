"""Results that stay on the GPU, and answers that resume their task at once."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target
from tests.session.models import IMAGE, opened

from webinfer.errors import ClosedError, InputError
from webinfer.host.immediate import ImmediateFuture


def test_results_stay_on_the_gpu_until_they_are_read() -> None:
    Target("webgpu").demand()
    with opened("webgpu", strict=True) as session:
        want = run(session.run(IMAGE))["y"].numpy()
        kept = run(session.run_on_gpu(IMAGE))["y"]
        run(session.run(-IMAGE))  # what was kept stays as it is
        assert (kept.shape, kept.nbytes, kept.buffer.size) == ((1, 36), 144, 144)
        np.testing.assert_array_equal(run(kept.read()).numpy(), want)
        with pytest.raises(InputError, match=r"needs float32 \(1, 6, 6, 2\)"):
            run(session.run(kept))
        with pytest.raises(InputError, match="is a GPU buffer of 144 bytes, needs 288"):
            run(session.run(kept.buffer))
        kept.close()
        kept.close()
        with pytest.raises(ClosedError, match="closed"):
            run(kept.read())


def test_results_stay_on_no_cpu() -> None:
    with opened("wasm") as session, pytest.raises(InputError, match="only on webgpu"):
        run(session.run_on_gpu(IMAGE))


def test_an_immediate_future_resumes_its_task_inside_the_call() -> None:
    async def scenario() -> list[str]:
        loop, steps = asyncio.get_running_loop(), list[str]()
        answer = ImmediateFuture()

        async def waiter() -> None:
            steps.append(f"got {await answer}")

        task = asyncio.create_task(waiter())
        await asyncio.sleep(0)

        def arrive() -> None:  # a callback of the platform: no task is running
            answer.set_result(1)
            steps.append("settled")

        loop.call_soon(arrive)
        await task
        return steps

    assert asyncio.run(scenario()) == ["got 1", "settled"]


def test_an_answer_given_by_another_task_waits_for_the_loop() -> None:
    async def scenario() -> list[str]:
        steps, answer = list[str](), ImmediateFuture()

        async def waiter() -> None:
            steps.append(f"got {await answer}")

        task = asyncio.create_task(waiter())
        await asyncio.sleep(0)
        answer.set_result(2)
        steps.append("settled")
        await task
        return steps

    assert asyncio.run(scenario()) == ["settled", "got 2"]


def test_a_wait_for_an_answer_can_be_given_up_and_can_fail() -> None:
    async def scenario() -> None:
        async def waiter(answer: ImmediateFuture) -> None:
            await answer

        lost, late = ImmediateFuture(), ImmediateFuture()
        failing, cancelled = asyncio.create_task(waiter(lost)), asyncio.create_task(waiter(late))
        await asyncio.sleep(0)
        lost.set_exception(ValueError("lost"))
        cancelled.cancel()
        with pytest.raises(ValueError, match="lost"):
            await failing
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert late.cancelled()

    asyncio.run(scenario())
