"""Short steps are one thread's: which they are, and that a program of both kinds is computed whole."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.importers import paper_host

np = pytest.importorskip("numpy")

import webinfer  # noqa: E402
from webinfer.authoring.builder import GraphBuilder  # noqa: E402
from webinfer.backends.wasm.executor import lower_graph  # noqa: E402
from webinfer.backends.wasm.sharing import with_short_steps_alone  # noqa: E402

pytestmark = pytest.mark.skipif(not paper_host.can_plan(), reason="no kernel table")


def _model(rows: int) -> GraphBuilder:
    """A product of `rows` rows between two short sums."""
    b = GraphBuilder("shares")
    x = b.input("x", (rows, 128))
    w = b.constant(np.linspace(-1, 1, 128 * 128, dtype=np.float32).reshape(128, 128))
    short = b.node("add", x, b.constant(np.ones((1, 128), np.float32)))
    y = b.node("matmul", short, w)
    b.output(b.node("abs", b.node("reduce_sum", y, axes=(0,), keep_dims=True)), "y")
    return b


def _shares(rows: int) -> dict[str, int]:
    """In how many parts at least threads share each operator's step."""
    graph = _model(rows).graph()
    steps = with_short_steps_alone(lower_graph(graph, "relaxed", None).run_part.steps, graph, {})
    return {graph.nodes[step.node].op.name: step.shares for step in steps}


def test_steps_of_much_work_are_shared_and_short_ones_are_not() -> None:
    assert _shares(1000) == {"add": 2, "matmul": 67, "reduce_sum": 1, "abs": 0}
    assert _shares(64) == {"add": 1, "matmul": 4, "reduce_sum": 0, "abs": 0}


def test_the_operations_of_a_node_are_those_of_the_steps_that_compute() -> None:
    b = GraphBuilder("packed")
    x, w = b.input("x", (1, 6, 6, 8)), b.input("w", (8, 3, 3, 8))
    b.output(b.node("conv2d", x, w), "y")
    host = pytest.importorskip("tests.wasm.guards").BuildHost("relaxed", 1)
    rows = asyncio.run(webinfer.load(b, backend="wasm", host=host)).plan().rows
    found = {row.kernel: row.flops for row in rows}
    assert len(found) == len(rows) == 2
    assert found.pop("f32_pack_conv_weights") == 0
    assert list(found.values()) == [2 * 4 * 4 * 8 * 3 * 3 * 8]


def test_a_run_too_short_for_a_team_is_one_threads() -> None:
    assert set(_shares(16).values()) == {0}


@pytest.mark.parametrize("rows", [1000, 16])
def test_threads_compute_the_same(rows: int) -> None:
    guards = pytest.importorskip("tests.wasm.guards")
    x = np.random.default_rng(1).standard_normal((rows, 128)).astype(np.float32)

    async def run(host: Any) -> Any:
        session = await webinfer.load(_model(rows), backend="wasm", host=host)
        return np.asarray((await session.run({"x": x}))["y"])

    alone, shared = (asyncio.run(run(guards.BuildHost(build, 2))) for build in ("relaxed", "relaxed-threads"))
    assert np.array_equal(alone, shared)
