"""A team whose threads are late, asleep in the middle of a step, or gone: runs take longer, and are right."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

np = pytest.importorskip("numpy")
native_threads = pytest.importorskip("webinfer.host.threads_native")

from tests.ops.case_graphs import run  # noqa: E402
from tests.wasm.guards import BuildHost  # noqa: E402

from webinfer.authoring.builder import GraphBuilder  # noqa: E402
from webinfer.backends.wasm.compilation import build  # noqa: E402
from webinfer.backends.wasm.executor import WasmExecutor, lower_graph  # noqa: E402
from webinfer.host import current  # noqa: E402

ROWS, WIDTH, LAYERS = 96, 192, 24  # so little memory that each step's result lies where a recent one was read
X = np.random.default_rng(3).standard_normal((ROWS, WIDTH)).astype(np.float32)
RANGES = 16  # of a pool: more threads than these have none of their own


def _layers() -> Any:
    """Products of some hundred microseconds, each after a short step that one thread does, and a sum that is shared."""
    b = GraphBuilder("layers")
    rng = np.random.default_rng(2)
    x = b.input("x", (ROWS, WIDTH))
    for _ in range(LAYERS):
        w = b.constant((rng.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32))
        scale = b.node("reduce_max", b.node("abs", x), axes=(0, 1), keep_dims=True)
        x = b.node("add", b.node("tanh", b.node("matmul", b.node("div", x, scale), w)), x)
    b.output(x, "y")
    return b.graph()


@contextmanager
def _team(threads: int) -> Iterator[Any]:
    graph = _layers()
    kernels = native_threads.ThreadPoolKernels("relaxed", threads)
    plan = WasmExecutor(graph, current(), kernels, lower_graph(graph, "relaxed", {}))
    plan.pace = None  # all threads do every run
    try:
        yield plan
    finally:
        plan.close()


def _result(plan: Any) -> bytes:
    return bytes(run(plan.run({"x": memoryview(X.tobytes())}))["y"].tobytes())


@pytest.fixture(scope="module")
def alone() -> bytes:
    """What one thread makes of it."""
    graph = _layers()
    plan = WasmExecutor(graph, current(), run(current().kernels("relaxed")), lower_graph(graph, "relaxed", {}))
    result = _result(plan)
    plan.close()
    return result


@pytest.mark.parametrize("threads", [2, 3 * (os.cpu_count() or 1), RANGES + 3])
def test_threads_that_lose_their_core_in_the_middle_of_a_step_change_nothing(alone: bytes, threads: int) -> None:
    """Where there are more threads than cores, some sleep at any time, wherever they were."""
    with _team(threads) as plan:
        assert [_result(plan) == alone for _ in range(30)] == [True] * 30


def test_a_team_whose_threads_are_gone_is_waited_for_by_nobody(alone: bytes) -> None:
    with _team(3) as plan:
        first = _result(plan)
        plan.kernels.call("thread_pool_dismiss", plan.kernels._pool)
        for worker in plan.kernels._workers:
            worker.join()
        assert [first, _result(plan), _result(plan)] == [alone] * 3


def test_plans_are_lowered_for_the_threads_that_run_them() -> None:
    b, rng = GraphBuilder("small map of many outputs"), np.random.default_rng(4)
    w = rng.standard_normal((128, 3, 3, 64)).astype(np.float32)
    b.output(b.node("conv2d", b.input("x", (1, 8, 8, 64)), w, pads=(1, 1, 1, 1)), "y")
    x, found, reasons = {"x": memoryview(rng.random(64 * 64, dtype=np.float32).tobytes())}, [], []
    for isa, threads in (("relaxed", 1), ("relaxed-threads", 2)):
        plan = run(build(b.graph(), BuildHost(isa, threads), threads=threads))
        found.append(bytes(run(plan.run(x))["y"].tobytes()))
        reasons.append(plan.rows()[0].why.split(", ")[1])
        plan.close()
    assert found[0] == found[1]
    assert reasons == ["relaxed build", "relaxed-threads build"]
