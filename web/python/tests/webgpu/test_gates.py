"""Factors of channels in the dispatch of the 1x1 convolution behind them: what is joined, and that it is right."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.chained import Chain
from tests.webgpu.devices import HARDWARE, SOFTWARE
from tests.webgpu.disguised import disguised
from tests.webgpu.fused_blocks import outputs_of
from tests.webgpu.planned import means, shaders

from webinfer.backends import reference, webgpu
from webinfer.graph.ir import Graph
from webinfer.ops.activation import Activation
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.elementwise import BinaryAttrs

RNG = np.random.default_rng(15)
POINT = Conv2dAttrs((1, 1), (0, 0, 0, 0))


def gated(
    shape: tuple[int, ...], co: int, swapped: bool = False, lifted: bool = False, attrs: Conv2dAttrs = POINT,
    window: int = 1,
) -> Graph:  # fmt: skip
    """A squeeze of x, excited, times x, plus the square of x if `lifted`, and a convolution of that."""
    c, channels = Chain(*shape), shape[3]
    squeezed = c.op("reduce_mean", c.x, attrs=means(1, 2))
    excited = Conv2dAttrs((1, 1), (0, 0, 0, 0), activation=Activation.SIGMOID)
    gate = c.op("conv2d", squeezed, c.signed(channels, 1, 1, channels), c.signed(channels), attrs=excited)
    scaled = c.op("mul", *((gate, c.x) if swapped else (c.x, gate)))
    if lifted:
        square = c.op("square", c.x)
        scaled = c.op("add", *((square, scaled) if swapped else (scaled, square)))
    c.op("conv2d", scaled, c.signed(co, window, window, channels), c.signed(co), attrs=attrs)
    return c.graph()


@pytest.mark.parametrize(
    ("shape", "co", "shader"),
    [
        ((1, 16, 16, 96), 32, "conv2d_split_k"),
        ((1, 13, 17, 140), 61, "conv2d_split_k"),
        ((1, 64, 64, 16), 16, "conv2d_tiled"),
        ((1, 65, 63, 28), 21, "conv2d_tiled"),
        ((1, 7, 5, 260), 13, "conv2d_gemv"),
        ((1, 9, 4, 128), 40, "conv2d_gemv"),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("lifted", [False, True])
def test_a_gate_is_part_of_the_convolution_behind_it(
    shape: tuple[int, ...], co: int, shader: str, swapped: bool, lifted: bool
) -> None:
    RingTarget("webgpu").demand()
    graph = gated(shape, co, swapped, lifted)
    assert shaders(graph)[-1] == shader
    assert not {"elementwise_binary", "elementwise_chain"} & {*shaders(graph)}
    data = RNG.uniform(-3, 3, shape).astype(np.float32)
    want = run(outputs_of(reference, graph, disguised(), data))
    got = run(outputs_of(webgpu, graph, disguised(), data))
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=5e-4)


def test_other_products_stay_nodes_of_their_own() -> None:
    mul = "elementwise_binary"
    assert mul in shaders(gated((2, 16, 16, 96), 32)), "two images"
    assert mul in shaders(gated((1, 16, 16, 94), 32)), "no quads"
    assert mul in shaders(gated((1, 16, 16, 96), 32, attrs=Conv2dAttrs((1, 1), (1, 1, 1, 1)), window=3)), "a window"
    assert mul in shaders(gated((1, 16, 16, 96), 32), SOFTWARE)
    c = Chain(1, 16, 16, 96)
    scaled = c.op("mul", c.x, c.op("reduce_max", c.x, attrs=means(1, 2)), attrs=BinaryAttrs(Activation.RELU))
    c.op("conv2d", scaled, c.signed(32, 1, 1, 96), attrs=POINT)
    assert mul in shaders(c.graph(), HARDWARE), "an activation"
    c = Chain(1, 16, 16, 96)
    scaled = c.op("mul", c.x, c.op("reduce_max", c.x, attrs=means(1, 2)))
    c.op("conv2d", scaled, c.signed(32, 1, 1, 96), attrs=POINT)
    assert mul not in shaders(c.graph(), HARDWARE)
    assert mul in shaders(c.graph(scaled), HARDWARE), "an output"
