"""A lower bound behind a PReLU is fused into the convolution's epilogue."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import BUILDS, Target
from tests.passes.building import Build

from webinfer.backends import reference, wasm
from webinfer.graph.ir import Constant, Graph, Node
from webinfer.host.native import NativeHost
from webinfer.ops import conv
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation

WINDOWS = {"squares": (8, 3, 3, 12), "lines": (24, 1, 3, 24), "one output": (1, 3, 3, 5), "one tap": (8, 1, 1, 8)}


def _graph(window: tuple[int, ...], both: bool = False) -> Graph:
    b, rng = Build(), np.random.default_rng(3)
    x = b.input("x", 1, 14, 15, window[3])
    attrs = conv.Conv2dAttrs(activation=Activation.PRELU, pads=(window[1] // 2,) * 2 + (window[2] // 2,) * 2)
    weights = [b.constant(*window), b.constant(window[0]), None, b.constant(window[0])]
    y = b.node(conv.CONV2D, [x, *weights], attrs, "y")
    z = b.node(ew.MAXIMUM, [b.number(-0.25), y], ew.BinaryAttrs(), "z")
    for value in weights:
        if value is not None:
            data = rng.normal(0, 0.3, value.type.size).astype(np.float32)
            value.constant = Constant(memoryview(data).cast("B"), value.type.dtype)
    return b.output(*([z, y] if both else [z]))


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_results_are_bounded(target: Target, window: tuple[int, ...]) -> None:
    target.demand()
    graph, x = _graph(window), np.random.default_rng(4).normal(size=(1, 14, 15, window[3])).astype(np.float32)
    x[0, 3, 4, 0] = np.nan
    given = {"x": memoryview(x).cast("B")}
    want = run(run(reference.build(graph, NativeHost())).run(given))["z"].numpy()
    executor = run(wasm.build(graph, NativeHost(), **dict(target.options)))
    got = run(executor.run(given))["z"].numpy()
    assert (want == np.float32(-0.25)).any()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert any("maximum" in row.kernel for row in executor.rows()) == (window[1:3] == (1, 1))


def test_what_others_read_is_not_bounded() -> None:
    graph, x = _graph(WINDOWS["squares"], both=True), np.ones((1, 14, 15, 12), np.float32)
    got = run(run(wasm.build(graph, NativeHost())).run({"x": memoryview(x).cast("B")}))
    assert got["y"].numpy().min() < -0.25 == got["z"].numpy().min()


def test_probes_show_what_is_computed() -> None:
    graph, x = _graph(WINDOWS["squares"]), np.ones((1, 14, 15, 12), np.float32)
    executor = run(wasm.build(graph, NativeHost()))

    async def seen() -> list[Node]:
        return [node async for node, _, _ in executor.probe({"x": memoryview(x).cast("B")})]

    assert [node.op.name for node in run(seen())] == ["maximum"]
