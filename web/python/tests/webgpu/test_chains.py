"""Chains of elementwise nodes in one dispatch: what joins, how operands are read, and that it is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.chained import RNG, Chain
from tests.webgpu.devices import HARDWARE, LIMITS, SOFTWARE
from tests.webgpu.disguised import disguised
from tests.webgpu.fused_blocks import outputs_of

from webinfer.backends import reference, webgpu
from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.schedule import Schedule, make_schedule
from webinfer.graph.ir import Graph
from webinfer.ops import OPS
from webinfer.ops.activation import Activation
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.elementwise import BinaryAttrs, UnaryAttrs
from webinfer.ops.pool import Pool2dAttrs
from webinfer.ops.registry import NoAttrs
from webinfer.ops.resize import ResizeAttrs


def gelu(c: Chain) -> None:
    half = c.op("mul", c.x, c.given(1, value=0.5))
    curve = c.op("erf", c.op("div", c.x, c.given(value=2**0.5)))
    c.op("mul", half, c.op("add", curve, c.given(value=1.0)))


def scaled_channels(c: Chain) -> None:
    """What becomes of an instance norm behind its moments: small values first, through reshapes."""
    channels = c.x.type.shape[-1]
    root = c.op("rsqrt", c.op("add", c.op("abs", c.given(1, 1, 1, channels)), c.given(value=1e-5)))
    scale = c.op("mul", root, c.op("reduce_mean", c.x, attrs=_axes(0, 1, 2)))
    bias = c.op("sub", c.given(1, 1, 1, channels), c.op("mul", scale, c.given(1, 1, 1, channels)))
    row = c.reshape(c.reshape(scale, channels), 1, 1, 1, channels)
    attrs = Conv2dAttrs((1, 1), (0, 0, 0, 0), activation=Activation.SIGMOID)
    c.op("depthwise_conv2d", c.x, row, c.reshape(bias, channels), attrs=attrs)


def stretched(c: Chain) -> None:
    """Operands that lie in the middle, in front and on both sides of what they are spread over."""
    n, h, w, k = c.x.type.shape
    middle = c.op("mul", c.op("tanh", c.given(h, 1, 1)), c.op("reduce_max", c.x, attrs=_axes(0, 2, 3)))
    total = c.op("add", c.x, middle, attrs=BinaryAttrs(Activation.RELU))
    flat = c.op("square", c.reshape(total, n * h, w * k))
    c.op("sub", c.reshape(flat, n, h, w, k), c.op("exp", c.op("reduce_min", c.x, attrs=_axes(3))))


def _axes(*axes: int) -> Any:
    return OPS["reduce_mean"].attrs(axes, True)


def chosen(c: Chain) -> None:
    bound = c.op("reduce_mean", c.x, attrs=_axes(1, 2, 3))
    upper = c.op("greater", c.x, bound)
    low, high = c.op("leaky_relu", c.op("neg", c.x), attrs=UnaryAttrs(0.2)), c.op("clamp", c.x, attrs=_clamp())
    c.op("maximum", c.op("where", upper, high, low, attrs=NoAttrs()), c.op("elu", c.x, attrs=UnaryAttrs(0.7)))


def _clamp() -> UnaryAttrs:
    return UnaryAttrs(-0.5, float("inf"))


def powers(c: Chain) -> None:
    c.op("silu", c.op("pow", c.op("abs", c.x), c.given(value=1.5)), attrs=UnaryAttrs(1.702))
    c.op("hard_sigmoid", c.op("minimum", c.nodes[-1].output, c.x), attrs=UnaryAttrs(0.2, 0.5))


def mirrored(c: Chain) -> None:
    """Pads of each kind and resizes behind each other, behind a chain and behind nothing."""
    c.op("exp", c.op("mul", c.x, c.given(value=0.3)))
    c.op("resize_nearest", c.nodes[-1].output, attrs=ResizeAttrs((9, 11), half_pixel_centers=True))
    c.pad("reflect", (0, 2, 1, 0), (0, 0, 3, 0))
    c.op("max_pool2d", c.nodes[-1].output, attrs=Pool2dAttrs((2, 2), (1, 1)))
    c.pad("symmetric", (0, 1, 0, 0), (0, 2, 2, 0))
    c.op("resize_nearest", c.nodes[-1].output, attrs=ResizeAttrs((5, 22), align_corners=True))
    c.op("sigmoid", c.nodes[-1].output)
    c.pad("edge", (0, 3, 1, 0), (0, 0, 2, 0))


CHAINS: dict[str, Callable[[Chain], None]] = {
    f.__name__: f for f in (gelu, scaled_channels, stretched, chosen, powers, mirrored)
}
SHAPES: Sequence[tuple[int, ...]] = ((1, 6, 5, 8), (2, 3, 7, 5), (1, 1, 1, 3), (3, 4, 2, 12))


def built(name: str, shape: Sequence[int]) -> Graph:
    chain = Chain(*shape)
    CHAINS[name](chain)
    return chain.graph()


def chains_of(schedule: Schedule) -> int:
    return sum(step.dispatch.shader == "elementwise_chain" for step in schedule.run)


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_one_dispatch_with_the_numbers_of_its_nodes(name: str) -> None:
    RingTarget("webgpu").demand()
    host = disguised()
    for shape in SHAPES if name != "mirrored" else ((1, 6, 5, 8), (2, 4, 7, 12)):
        graph = built(name, shape)
        assert chains_of(make_schedule(graph, HARDWARE)) >= 1
        data = RNG.uniform(-3, 3, shape).astype(np.float32)
        want = run(outputs_of(reference, graph, host, data))
        got = run(outputs_of(webgpu, graph, host, data))
        np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-6, err_msg=str(shape))


@pytest.mark.parametrize("name", ["gelu", "chosen"])
def test_numbers_that_are_none_stay_so(name: str) -> None:
    RingTarget("webgpu").demand()
    graph, host = built(name, (1, 2, 2, 4)), disguised()
    data = RNG.uniform(-3, 3, (1, 2, 2, 4)).astype(np.float32)
    if name == "gelu":
        data.flat[[1, 6, 11]] = np.nan, np.inf, -np.inf
    else:
        data.flat[3] = 3e38
    want = run(outputs_of(reference, graph, host, data))
    np.testing.assert_allclose(run(outputs_of(webgpu, graph, host, data)), want, rtol=3e-5, atol=3e-6)


def test_only_values_that_nobody_else_reads_are_on_the_way() -> None:
    for target in (HARDWARE, SOFTWARE):
        assert len(make_schedule(built("gelu", (1, 6, 5, 8)), target).run) == 1
        chain = Chain(1, 6, 5, 8)
        inner = chain.op("exp", chain.x)
        chain.op("tanh", chain.op("neg", inner))
        assert len(make_schedule(chain.graph(inner), target).run) == 2


def test_what_jumps_reads_what_is_stored() -> None:
    chain = Chain(1, 6, 5, 8)
    chain.op("floor", chain.op("mul", chain.x, chain.given(8)))
    assert len(make_schedule(chain.graph(), HARDWARE).run) == 2


def test_a_chain_binds_no_more_buffers_than_the_device_has() -> None:
    chain = Chain(1, 6, 5, 8)
    last = chain.x
    for _ in range(9):
        last = chain.op("add", last, chain.given(8))
    most = 4
    schedule = make_schedule(chain.graph(), Target({**LIMITS, "maxStorageBuffersPerShaderStage": most}))
    assert 3 <= len(schedule.run) < 9
    assert all(len(step.regions) <= most for step in schedule.run)


def test_equal_chains_are_one_pipeline() -> None:
    chain = Chain(1, 6, 5, 8)
    first = chain.op("exp", chain.op("mul", chain.x, chain.given(value=0.1)))
    second = chain.op("softmax", first, attrs=OPS["softmax"].attrs(3))
    chain.op("exp", chain.op("mul", second, chain.given(value=0.3)))
    steps = [s for s in make_schedule(chain.graph(), HARDWARE).run if s.dispatch.shader == "elementwise_chain"]
    assert len(steps) == 2
    assert steps[0].pipeline == steps[1].pipeline


def test_pads_and_resizes_are_where_a_chain_stores_its_result() -> None:
    schedule = make_schedule(built("mirrored", (1, 6, 5, 8)), HARDWARE)
    assert [step.dispatch.shader for step in schedule.run] == [
        "elementwise_chain",
        "described",
        "elementwise_chain",
        "elementwise_chain",
    ]
    assert len(make_schedule(built("mirrored", (1, 6, 5, 6)), HARDWARE).run) == 8, "channels in quads alone move"
