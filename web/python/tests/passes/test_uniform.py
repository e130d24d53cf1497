"""Channels that are the same at every pixel are multiplied once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.passes.building import Build, lines, rewritten

from webinfer.backends import reference
from webinfer.graph.ir import Constant, Graph, Value
from webinfer.host.native import NativeHost
from webinfer.ops import conv, movement, resize
from webinfer.rewrite.rules_upsampling import join_uniform

UP = resize.ResizeAttrs((8, 9), True, False)


def _graph(b: Build, pixel: tuple[int, int] = (1, 1), batch: int = 1, **attrs: object) -> tuple[Value, Value]:
    """The upsampled pixel, and the convolution of it between two other maps."""
    up = b.node(resize.RESIZE_BILINEAR, [b.input("p", batch, *pixel, 5)], UP, "u")
    maps = [b.input("x", batch, 8, 9, 4), up, b.input("z", batch, 8, 9, 3)]
    joined = b.node(movement.CONCAT, maps, movement.ConcatAttrs(3), "c")
    weights = [b.constant(6, 1, 1, 12), b.constant(6)]
    return up, b.node(conv.CONV2D, [joined, *weights], conv.Conv2dAttrs(**attrs), "y")  # type: ignore[arg-type]


def test_what_a_repeated_pixel_gives_becomes_the_bias() -> None:
    b = Build()
    graph = b.output(_graph(b, stride=(1, 1))[1])
    assert rewritten(join_uniform, graph, 1) == lines(
        "%y:pixel = conv2d(%p, const [6x1x1x5], const [6]) -> float32[1x1x1x6]",
        "%y:bias = reshape(%y:pixel) shape=6 -> float32[6]",
        "%c = concat(%x, %z) axis=3 -> float32[1x8x9x7]",
        "%y = conv2d(%c, const [6x1x1x7], %y:bias) -> float32[1x8x9x6]",
        "return %y",
    )


@pytest.mark.parametrize(
    "given",
    [{"pixel": (2, 1)}, {"batch": 2}, {"pads": (1, 0, 0, 0)}, {"stride": (2, 2)}],
    ids=["two pixels", "a batch", "pads", "few pixels"],
)
def test_others_stay(given: dict[str, object]) -> None:
    b = Build()
    rewritten(join_uniform, b.output(_graph(b, **given)[1]), 0)  # type: ignore[arg-type]


def test_a_map_with_two_readers_is_repeated() -> None:
    b = Build()
    graph = b.output(*_graph(b))
    rewritten(join_uniform, graph, 0)


def _random_graph() -> Graph:
    b, rng = Build(), np.random.default_rng(1)
    graph = b.output(_graph(b)[1])
    for value in graph.nodes[-1].inputs[1:]:
        assert value is not None
        assert value.constant is not None
        value.constant = Constant(memoryview(rng.normal(size=value.type.size).astype("f4")).cast("B"), value.type.dtype)
    return graph


def test_results_stay_the_same() -> None:
    rng, results, given = np.random.default_rng(2), [], dict[str, memoryview]()
    for rewrite in (lambda graph: 0, join_uniform):
        graph = _random_graph()
        rewrite(graph)
        for x in graph.inputs:
            given.setdefault(x.name, memoryview(rng.normal(size=x.type.size).astype("f4")).cast("B"))
        results.append(run(run(reference.build(graph, NativeHost())).run(given))["y"].numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-5)
