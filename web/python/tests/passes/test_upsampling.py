"""Mixing channels before an upsampling gives what mixing them after it gives, for less work."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.passes.building import Build, lines, rewritten

from webinfer.backends import reference
from webinfer.graph.ir import Constant, Graph, Value
from webinfer.host.native import NativeHost
from webinfer.ops import conv, resize
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.rewrite.rules_upsampling import sink_upsample

UP = resize.ResizeAttrs((8, 10), False, True)


def _graph(b: Build, up: resize.ResizeAttrs = UP, channels: int = 64, **attrs: object) -> tuple[Value, Value]:
    """The upsampled input and the convolution of it."""
    larger = b.node(resize.RESIZE_BILINEAR, [b.input("x", 1, 4, 5, channels)], up, "u")
    weights = [b.constant(6, 1, 1, channels), b.constant(6)]
    return larger, b.node(conv.CONV2D, [larger, *weights], conv.Conv2dAttrs(**attrs), "y")  # type: ignore[arg-type]


def test_a_convolution_moves_before_the_upsampling_and_leaves_its_activation() -> None:
    b = Build()
    graph = b.output(_graph(b, activation=Activation.RELU6)[1])
    assert rewritten(sink_upsample, graph, 1) == lines(
        "%y:small = conv2d(%x, const [6x1x1x64], const [6]) -> float32[1x4x5x6]",
        "%y:large = resize_bilinear(%y:small) size=8x10 half_pixel_centers -> float32[1x8x10x6]",
        "%y = relu6(%y:large) -> float32[1x8x10x6]",
        "return %y",
    )


@pytest.mark.parametrize(
    ("up", "channels", "attrs"),
    [
        (resize.ResizeAttrs((2, 2), True), 64, {}),
        (UP, 16, {"activation": Activation.RELU}),
        (UP, 4, {}),
        (UP, 64, {"stride": (2, 2)}),
        (UP, 64, {"pads": (1, 0, 0, 0)}),
    ],
    ids=["down", "few channels and an activation", "few channels", "stride", "pads"],
)
def test_others_stay_where_they_are(up: resize.ResizeAttrs, channels: int, attrs: dict[str, object]) -> None:
    b = Build()
    rewritten(sink_upsample, b.output(_graph(b, up, channels, **attrs)[1]), 0)


def test_an_upsampling_with_two_readers_stays() -> None:
    b = Build()
    larger, y = _graph(b)
    rewritten(sink_upsample, b.output(y, b.node(ew.RELU, [larger], ew.UnaryAttrs(), "z")), 0)


def _random_graph() -> Graph:
    b = Build()
    graph = b.output(_graph(b, activation=Activation.RELU)[1])
    rng = np.random.default_rng(1)
    for value in graph.nodes[1].inputs[1:]:
        assert value is not None
        assert value.constant is not None
        data = memoryview(rng.normal(size=value.type.size).astype(np.float32)).cast("B")
        value.constant = Constant(data, value.constant.stored)
    return graph


def test_results_stay_the_same() -> None:
    x = np.random.default_rng(2).normal(size=(1, 4, 5, 64)).astype(np.float32)
    results = []
    for rewrite in (lambda graph: 0, sink_upsample):
        graph = _random_graph()
        rewrite(graph)
        executor = run(reference.build(graph, NativeHost()))
        results.append(run(executor.run({"x": memoryview(x).cast("B")}))["y"].numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-5)
