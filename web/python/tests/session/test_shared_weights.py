"""Plans of one session for several sizes hold their weights once, in the memory of one kernel instance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
from onnx import helper
from tests.session.test_open_sizes import judged, saved, with_session

import webinfer
from webinfer.backends.wasm import compilation
from webinfer.backends.wasm.executor import WasmExecutor
from webinfer.errors import ClosedError, KernelError
from webinfer.session import open_plans, recovery

DRAW = np.random.default_rng(11)
WIDTH, HIDDEN = 128, 1024
WEIGHTS = 2 * 4 * WIDTH * HIDDEN  # bytes


def words() -> bytes:
    """Positions of a table that is as long as the words, and two products behind them: y [n, WIDTH]."""
    nodes = [
        helper.make_node("Shape", ["x"], ["size"]),
        helper.make_node("Slice", ["size", "zero", "one", "zero"], ["n"]),
        helper.make_node("Slice", ["places", "zero", "n", "zero"], ["first"]),
        helper.make_node("Add", ["x", "first"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("MatMul", ["c", "v"], ["y"]),
    ]
    weights = {
        "w": DRAW.normal(size=(WIDTH, HIDDEN)).astype("f4") / 12,
        "v": DRAW.normal(size=(HIDDEN, WIDTH)).astype("f4") / 32,
        "places": DRAW.normal(size=(64, WIDTH)).astype("f4"),
    }
    numbers = {"zero": np.array([0]), "one": np.array([1])}
    return saved(nodes, {"x": ["n", WIDTH]}, ["y"], **weights, **numbers)


MODEL = words()


def fed(n: int) -> dict[str, Any]:
    return {"x": DRAW.normal(size=(n, WIDTH)).astype("f4")}


async def right(session: webinfer.Session, n: int) -> WasmExecutor:
    """Runs n words and compares; the executor that ran them."""
    inputs = fed(n)
    np.testing.assert_allclose((await session.run(inputs))["y"].numpy(), judged(MODEL, inputs)[0], atol=1e-4)
    assert isinstance(session.executor, WasmExecutor)
    return session.executor


def test_weights_are_there_once_for_all_sizes() -> None:
    async def work(session: webinfer.Session) -> None:
        first = await right(session, 8)
        alone, scratch = first.kernels.size(), first.scratch(100)
        first.kernels.write(scratch, b"\xa5" * 100)
        assert session.memory().shared == 0
        for n in (40, 16, 64, 8, 40):  # all with kernels of one width, for which weights are packed
            plan = await right(session, n)
            assert plan.kernels is first.kernels
            if n != 8:
                assert session.memory().shared >= WEIGHTS
                assert session.memory().constants - session.memory().shared < WEIGHTS / 4
        assert first.kernels.size() - alone < WEIGHTS / 2
        assert bytes(first.kernels.read(scratch, 100)) == b"\xa5" * 100

    with_session(work, MODEL, threads=1)


def test_plans_that_are_dropped_leave_the_others_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "MAX_PLANS", 3)
    monkeypatch.setattr(open_plans, "MAX_FAILURES", 0)  # a plan for each set of sizes

    async def work(session: webinfer.Session) -> None:
        first = await right(session, 8)
        kernels = first.kernels
        for n in (16, 20, 40, 64, 20, 8):
            last = await right(session, n)
        assert first.closed
        assert last.kernels is kernels
        session.close()
        assert last.closed
        with pytest.raises(ClosedError):
            kernels.size()

    with_session(work, MODEL, threads=1)


def test_where_too_much_is_dead_the_next_plan_has_an_instance_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "MAX_DEAD_BYTES", -1)

    async def work(session: webinfer.Session) -> None:
        first = await right(session, 8)
        assert (await right(session, 16)).kernels is not first.kernels
        assert session.memory().shared == 0

    with_session(work, MODEL, threads=1)


def test_a_trap_ends_all_plans_of_an_instance_and_the_next_run_works(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(session: webinfer.Session) -> None:
        first = await right(session, 8)
        second = await right(session, 16)

        def trap(*given: Any) -> None:
            raise KernelError("a trap")

        monkeypatch.setattr(first.kernels, "run", trap)
        with pytest.raises(KernelError):
            await session.run(fed(16))
        assert first.closed
        assert second.closed
        for n in (16, 8):
            await right(session, n)

    with_session(work, MODEL, threads=1)
