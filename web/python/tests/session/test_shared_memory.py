"""Plans of two models of a task lie in one memory, with one team of threads, and are still each its own."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.session.models import IMAGE, model
from tests.session.visits import Visitor, answer, host
from tests.tasks.test_holistic import PICTURE, holistic

import webinfer
from webinfer.backends.wasm import WasmExecutor, compilation, memory
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.stored_plan import RestoredExecutor
from webinfer.errors import KernelError
from webinfer.plan import program
from webinfer.plan.blocks import Block, Kind, Ref, Step
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session

__all__ = ["host"]


async def _pair(host: Visitor) -> tuple[Session, Session]:
    first = await webinfer.load(model(), host=host, backend="wasm", tuning_ms=0)
    first.executor.scratch(1000)  # as a picture that was looked at before the second model came
    source = WithPostprocessing(model(), "second", shared_memory_with=first)
    second = await webinfer.load(source, host=host, backend="wasm", tuning_ms=0)
    await asyncio.sleep(0.02)
    while compilation._tasks:
        await asyncio.sleep(0.01)
    return first, second


def pair(host: Visitor) -> tuple[Any, Any]:
    """Two sessions, the second beside the first, when their plans are stored."""
    return run(_pair(host))


def test_a_program_is_moved_as_if_it_had_been_made_there() -> None:
    blocks = [Block(name, 64, Kind.ARENA, address=at) for name, at in (("x", 1024), ("y", 2048))]
    x, y = map(Ref, blocks)
    steps = [
        Step("f32_clamp", KERNELS["f32_clamp"].arranged({"x": x, "y": y + 16, "a": 1024.0, "b": 2048.0}, 8), 8, 0),
        Step("f32_clamp", KERNELS["f32_clamp"].arranged({"x": None, "y": x, "a": 0.0, "b": 1.0}, 1024), 1024, 1),
    ]
    text = program.encode(steps, KERNELS)
    for block in blocks:
        block.address += 4096
    assert program.moved(text, 4096, KERNELS) == program.encode(steps, KERNELS) != text


def test_a_stored_plan_runs_at_another_place(host: Visitor) -> None:
    for kind in (WasmExecutor, RestoredExecutor):
        first, second = pair(host)
        assert type(first.executor) is type(second.executor) is kind
        assert first.executor.kernels is second.executor.kernels
        assert second.executor.layout.base >= first.executor.layout.top
        want = answer(first)
        np.testing.assert_array_equal(answer(second), want)
        np.testing.assert_array_equal(answer(first), want)
        assert run(second.verify(against="reference")).ok
        assert len(run(second.profile()).rows) == len(second.plan().rows)
        first.close()
        np.testing.assert_array_equal(answer(second), want)
        second.close()
    host.store = {name: data for name, data in host.store.items() if name.endswith("second")}
    source = WithPostprocessing(model(), "second")
    with run(webinfer.load(source, host=host, backend="wasm", tuning_ms=0)) as alone:  # was stored behind the first
        assert type(alone.executor) is RestoredExecutor
        np.testing.assert_array_equal(answer(alone), want)


def test_scratch_is_there_once(host: Visitor) -> None:
    first, second = pair(host)
    with first, second:
        address = first.executor.scratch(100_000)
        assert second.executor.scratch(50_000) == address
        assert second.executor.scratch(10_000_000) == first.executor.scratch(1)


def test_where_both_have_no_room_the_second_has_an_instance_of_its_own(
    host: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "MAX_DEAD_BYTES", -1)
    monkeypatch.setattr(compilation, "MAX_DEAD_BYTES", -1)
    first, second = pair(host)
    with first, second:
        assert first.executor.kernels is not second.executor.kernels
        np.testing.assert_array_equal(answer(second), answer(first))


def test_a_trap_of_one_model_is_no_error_of_the_other(host: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = pair(host)
    with first, second:
        want = answer(second)

        def trap(*given: Any) -> None:
            raise KernelError("a trap")

        monkeypatch.setattr(first.executor.kernels, "run", trap)
        with pytest.raises(KernelError):
            run(first.run({"image": IMAGE}))
        np.testing.assert_array_equal(answer(second), want)
        np.testing.assert_array_equal(answer(first), want)


def test_all_models_of_a_person_share_one_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with holistic() as task:
        parts = [task, task._face, task._faces, task._hand, task._hands, task._pose._finder]
        assert len({id(part.session.executor.kernels) for part in parts}) == 1
        together = run(task.detect(PICTURE))
    monkeypatch.setattr(compilation, "_shared_memory", lambda *given: None)
    with holistic() as task:
        assert task.session.executor.kernels is not task._face.session.executor.kernels
        assert repr(run(task.detect(PICTURE))) == repr(together)
