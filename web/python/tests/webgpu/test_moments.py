"""Means with variances, and squeezes: what one dispatch computes together, and that it is right."""

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
from webinfer.ops.pool import Pool2dAttrs

RNG = np.random.default_rng(12)


def norm(shape: tuple[int, ...], axes: tuple[int, ...], apart: bool = False) -> Graph:
    """x, normalised along the axes; the differences are one node, or two that the result reads as well."""
    c = Chain(*shape)
    mean = c.op("reduce_mean", c.x, attrs=means(*axes))
    difference = c.op("sub", c.x, mean) if apart else None
    squared = c.op("square", difference) if difference else c.op("squared_difference", mean, c.x)
    variance = c.op("reduce_mean", squared, attrs=means(*axes))
    root = c.op("sqrt", c.op("add", variance, c.given(value=1e-3)))
    c.op("div", c.op("sub", c.x, mean), root)
    return c.graph()


@pytest.mark.parametrize(
    ("shape", "axes", "passes"),
    [
        ((1, 40, 50, 8), (1, 2), 2),
        ((2, 61, 43, 5), (1, 2), 2),
        ((1, 9, 8, 12), (1, 2), 1),
        ((70, 3, 2), (0,), 1),
        ((3, 5000, 6), (1,), 2),
    ],
)
def test_a_mean_and_its_variance_are_one_walk(shape: tuple[int, ...], axes: tuple[int, ...], passes: int) -> None:
    RingTarget("webgpu").demand()
    graph = norm(shape, axes)
    assert shaders(graph) == ["moments"] * passes + ["elementwise_chain"]
    data = (RNG.uniform(-3, 3, shape) + 40 * RNG.uniform(-1, 1, shape[-1:])).astype(np.float32)
    want = run(outputs_of(reference, graph, disguised(), data))
    got = run(outputs_of(webgpu, graph, disguised(), data))
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


def test_moments_that_cannot_be_one_walk_are_two() -> None:
    assert "moments" not in shaders(norm((3, 7, 512), (2,))), "rows"
    assert "moments" not in shaders(norm((1, 4, 4, 8), (1, 2))), "short columns"
    assert "moments" not in shaders(norm((1, 40, 50, 8), (1, 3))), "axes apart"
    assert shaders(norm((1, 9, 8, 12), (1, 2), apart=True))[0] == "moments"


def excitation(
    shape: tuple[int, ...], hidden: int, pooled: bool, last: Activation, inner: Activation = Activation.RELU
) -> Graph:
    """x times what the means of its channels become; without hidden channels by one product."""
    c = Chain(*shape)
    channels = shape[3]
    if pooled:
        mean = c.op("average_pool2d", c.x, attrs=Pool2dAttrs(shape[1:3], (1, 1)))
    else:
        mean = c.op("reduce_mean", c.x, attrs=means(1, 2))
    if hidden:
        weights = c.signed(hidden, 1, 1, channels)
        mean = c.op("conv2d", mean, weights, c.signed(hidden), attrs=Conv2dAttrs(activation=inner))
    weights = c.signed(channels, 1, 1, hidden or channels)
    gate = c.op("conv2d", mean, weights, c.signed(channels), attrs=Conv2dAttrs(activation=last))
    c.op("mul", c.x, gate)
    return c.graph()


@pytest.mark.parametrize(
    ("shape", "hidden", "pooled", "last"),
    [
        ((1, 16, 16, 96), 24, True, Activation.SIGMOID),
        ((2, 5, 7, 12), 4, False, Activation.RELU6),
        ((1, 12, 9, 20), 0, True, Activation.HARD_SWISH),
        ((1, 130, 90, 16), 8, True, Activation.SIGMOID),
        ((1, 3, 3, 260), 100, True, Activation.NONE),
        ((1, 4, 4, 100), 300, True, Activation.SIGMOID),
    ],
)
def test_a_squeeze_is_one_dispatch(shape: tuple[int, ...], hidden: int, pooled: bool, last: Activation) -> None:
    RingTarget("webgpu").demand()
    graph = excitation(shape, hidden, pooled, last)
    large = ["reduce_part"] if shape[1] == 130 else []
    excited = shaders(graph)
    assert excited[: len(large) + 1] == [*large, "squeeze"]
    assert len(excited) == len(large) + 2
    assert "squeeze" not in shaders(graph, SOFTWARE)
    data = RNG.uniform(-3, 3, shape).astype(np.float32)
    want = run(outputs_of(reference, graph, disguised(), data))
    got = run(outputs_of(webgpu, graph, disguised(), data))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def summed(shape: tuple[int, ...], activation: Activation = Activation.NONE) -> Chain:
    """A gate of the means of x and its square."""
    c = Chain(*shape)
    both = c.op("add", c.x, c.op("square", c.x), attrs=BinaryAttrs(activation))
    mean = c.op("average_pool2d", both, attrs=Pool2dAttrs(shape[1:3], (1, 1)))
    gate = c.op("conv2d", mean, c.signed(8, 1, 1, shape[3]), c.signed(8), attrs=Conv2dAttrs(activation=Activation.RELU))
    c.op("conv2d", gate, c.signed(shape[3], 1, 1, 8), c.signed(shape[3]))
    return c


@pytest.mark.parametrize("shape", [(1, 16, 16, 24), (2, 9, 5, 8), (1, 130, 90, 16), (2, 101, 97, 16)])
def test_a_squeeze_adds_the_two_images_of_its_sum(shape: tuple[int, ...]) -> None:
    RingTarget("webgpu").demand()
    graph = summed(shape).graph()
    large = ["reduce_part"] if shape[1] > 100 else []
    assert shaders(graph) == ["elementwise_unary", *large, "squeeze"]
    data = RNG.uniform(-3, 3, shape).astype(np.float32)
    want = run(outputs_of(reference, graph, disguised(), data))
    np.testing.assert_allclose(run(outputs_of(webgpu, graph, disguised(), data)), want, rtol=1e-4, atol=1e-4)


def test_a_sum_that_others_read_or_that_is_bounded_is_added_before_its_squeeze() -> None:
    c = summed((1, 16, 16, 24))
    assert shaders(c.graph()) == ["elementwise_unary", "squeeze"]
    assert shaders(c.graph(c.nodes[1].output)) == ["elementwise_chain", "squeeze"]
    assert shaders(summed((1, 16, 16, 24), Activation.RELU6).graph()) == ["elementwise_chain", "squeeze"]


def test_a_curve_between_the_products_of_a_squeeze_parts_them() -> None:
    graph = excitation((1, 16, 16, 96), 24, True, Activation.SIGMOID, inner=Activation.TANH)
    assert shaders(graph)[0] == "squeeze"
    assert len(shaders(graph)) == 3


@pytest.mark.parametrize(
    ("shape", "kind", "activation"),
    [
        ((1, 9, 7, 12), "conv2d", Activation.RELU),
        ((1, 40, 40, 12), "conv2d", Activation.SILU),
        ((2, 9, 7, 5), "conv2d", Activation.SIGMOID),
        ((2, 9, 7, 12), "depthwise_conv2d", Activation.PRELU),
        ((2, 9, 7, 5), "depthwise_conv2d", Activation.TANH),
    ],
)
def test_a_sum_behind_an_activation_is_in_the_dispatch_of_the_convolution(
    shape: tuple[int, ...], kind: str, activation: Activation
) -> None:
    RingTarget("webgpu").demand()
    c = Chain(*shape)
    channels = shape[3]
    weights = c.signed(*((channels, 3, 3, channels) if kind == "conv2d" else (1, 3, 3, channels)))
    slope = [None, c.signed(channels)] if activation is Activation.PRELU else []
    attrs = Conv2dAttrs(pads=(1, 1, 1, 1), activation=activation)
    c.op("add", c.x, c.op(kind, c.x, weights, c.signed(channels), *slope, attrs=attrs))
    graph = c.graph()
    for target in (HARDWARE, SOFTWARE):
        assert len(shaders(graph, target)) == 1
    data = RNG.uniform(-3, 3, shape).astype(np.float32)
    want = run(outputs_of(reference, graph, disguised(), data))
    np.testing.assert_allclose(run(outputs_of(webgpu, graph, disguised(), data)), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("channels", "kind", "name", "activation"),
    [
        (12, "conv2d", "maximum", Activation.PRELU),
        (5, "conv2d", "minimum", Activation.NONE),
        (12, "depthwise_conv2d", "maximum", Activation.HARD_SWISH),
        (5, "depthwise_conv2d", "minimum", Activation.SILU),
    ],
)
def test_a_bound_behind_a_convolution_is_in_its_dispatch(
    channels: int, kind: str, name: str, activation: Activation
) -> None:
    RingTarget("webgpu").demand()
    shape = (1, 9, 7, channels)
    c = Chain(*shape)
    weights = c.signed(*((channels, 3, 3, channels) if kind == "conv2d" else (1, 3, 3, channels)))
    slope = [None, c.signed(channels)] if activation is Activation.PRELU else []
    attrs = Conv2dAttrs(pads=(1, 1, 1, 1), activation=activation)
    inner = c.op(kind, c.x, weights, c.signed(channels), *slope, attrs=attrs)
    c.op(name, inner, c.number(-0.25 if name == "maximum" else 0.125))
    graph = c.graph()
    for target in (HARDWARE, SOFTWARE):
        assert len(shaders(graph, target)) == 1
    data = RNG.uniform(-3, 3, shape).astype(np.float32)
    data[0, 4, 3, 0] = np.nan
    want = run(outputs_of(reference, graph, disguised(), data))
    assert np.isnan(want).any()
    np.testing.assert_allclose(run(outputs_of(webgpu, graph, disguised(), data)), want, rtol=1e-4, atol=1e-4)


def test_a_result_that_others_read_is_no_late_sum() -> None:
    c = Chain(1, 9, 7, 12)
    weights, attrs = c.signed(12, 1, 1, 12), Conv2dAttrs(activation=Activation.RELU)
    inner = c.op("conv2d", c.x, weights, attrs=attrs)
    c.op("add", inner, c.x)
    assert len(shaders(c.graph())) == 1
    assert len(shaders(c.graph(inner))) == 2
