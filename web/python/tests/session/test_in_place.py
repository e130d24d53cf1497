"""Inputs that their owner writes to where the executor reads them, and memory to write them with."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.session.models import IMAGE, opened, spoil
from tests.session.visits import Visitor, host
from tests.session.visits import opened as visited

from webinfer.backends.base import Executor, InPlace, KernelExecutor
from webinfer.backends.wasm import memory
from webinfer.backends.wasm.stored_plan import RestoredExecutor
from webinfer.errors import ClosedError, InputError, KernelError, LimitError
from webinfer.session.session import Session

__all__ = ["host"]  # a fixture


def writing(image: Any = IMAGE) -> InPlace:
    def write(executor: Executor) -> None:
        executor.kernels.write(executor.input_address("image"), image.tobytes())

    return InPlace(write)


def answer(session: Session, image: Any) -> Any:
    return run(session.run({"image": image}))["y"].numpy()


def test_an_input_that_is_written_in_place_gives_the_same_result() -> None:
    with opened() as session:
        want = answer(session, IMAGE)
        for _ in range(2):
            np.testing.assert_array_equal(answer(session, writing()), want)
        np.testing.assert_array_equal(run(session.run(writing()))["y"].numpy(), want)
        assert not np.array_equal(answer(session, writing(IMAGE * 2)), want)


def test_a_restored_plan_takes_inputs_in_place_and_has_scratch_behind_it(host: Visitor) -> None:
    with visited(host) as first:
        want = answer(first, IMAGE)
    with visited(host) as second:
        executor = second.executor
        assert isinstance(executor, RestoredExecutor)
        address = executor.scratch(1000)
        assert address >= executor.layout.top
        executor.kernels.write(address, b"\xa5" * 1000)
        np.testing.assert_array_equal(answer(second, writing()), want)
        assert bytes(executor.kernels.read(address, 1000)) == b"\xa5" * 1000


def test_scratch_grows_where_it_lies_and_keeps_its_bytes() -> None:
    with opened() as session:
        executor = session.executor
        address = executor.scratch(64)
        assert address % 16 == 0
        executor.kernels.write(address, b"here")
        assert executor.scratch(10_000_000) == address
        assert executor.kernels.size() >= address + 10_000_000
        assert bytes(executor.kernels.read(address, 4)) == b"here"
        assert answer(session, IMAGE).shape == (1, 36)


def test_scratch_counts_against_the_limit_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as session:
        with pytest.raises(LimitError, match="4294901760"):
            session.executor.scratch(2**32)
        monkeypatch.setattr(memory, "MEMORY_MAX_BYTES", 1 << 20)
        with pytest.raises(LimitError, match="the limit is 1048576"):
            session.executor.scratch(1 << 20)
        assert answer(session, writing()).shape == (1, 36)


def test_an_executor_that_does_not_run_in_kernel_memory_refuses() -> None:
    with opened("reference") as session:
        with pytest.raises(InputError, match="which needs a session on wasm, not on ref"):
            answer(session, writing())
        assert not isinstance(session.executor, KernelExecutor)
        assert answer(session, IMAGE).shape == (1, 36)


def test_after_a_trap_the_input_is_written_to_the_new_kernels() -> None:
    with opened() as session:
        want, before = answer(session, IMAGE), session.executor.kernels
        spoil(session, KernelError("trapped"))
        with pytest.raises(KernelError):
            answer(session, writing())
        np.testing.assert_array_equal(answer(session, writing()), want)
        assert session.executor.kernels is not before


def test_what_the_writer_raises_is_raised_and_the_next_run_works() -> None:
    def refuse(executor: Executor) -> None:
        raise InputError("no picture")

    with opened() as session:
        with pytest.raises(InputError, match="no picture"):
            answer(session, InPlace(refuse))
        assert answer(session, writing()).shape == (1, 36)


def test_a_session_that_was_closed_has_no_memory() -> None:
    session = opened()
    executor = session.executor
    session.close()
    for ask in (lambda: executor.scratch(1), lambda: executor.kernels, lambda: answer(session, writing())):
        with pytest.raises(ClosedError, match="load the model again"):
            ask()


def test_a_profile_between_two_runs_does_not_disturb_them() -> None:
    async def together(session: Session) -> list[Any]:
        runs = (session.run(writing(IMAGE * k)) for k in range(1, 4))
        _, *outputs = await asyncio.gather(session.profile(rounds=2), *runs)
        return outputs

    with opened() as session:
        for k, outputs in enumerate(run(together(session)), 1):
            np.testing.assert_array_equal(outputs["y"].numpy(), answer(session, IMAGE * k))
