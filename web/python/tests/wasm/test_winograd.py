"""Winograd's convolutions: as exact as they must be, and nothing infinite leaves its own windows."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import Array, dense, run
from tests.ops.targets import BUILDS, Target
from tests.wasm.guards import GuardedExecutor

from webinfer.backends.reference.executor import compute
from webinfer.backends.wasm.executor import WasmExecutor, lower_graph
from webinfer.backends.wasm.lowerings.conv import tuning_key
from webinfer.backends.wasm.lowerings.winograd import NAME
from webinfer.graph.ir import Graph, Node, TensorType, Value, apply
from webinfer.host.native import NativeHost
from webinfer.ops.conv import CONV2D, Conv2dAttrs

KERNELS = {(3, 3): "f32_conv2d_nhwc_winograd", (1, 3): "f32_conv2d_nhwc_winograd_line"}
KERNELS[3, 1] = KERNELS[1, 3]
KERNELS[5, 5] = KERNELS[6, 6] = KERNELS[3, 3]  # of a picture, by two pixels
PICTURES = {(5, 5): (1, 2, 2, 1), (6, 6): (2, 2, 2, 2)}  # their pads


def node_of(channels: int, window: tuple[int, int], outputs: int = 12) -> tuple[Node, Array, Array]:
    """A convolution, its input and its weights."""
    rng, pads = np.random.default_rng(5), PICTURES.get(window)
    channels, step = (3, 2) if pads else (channels, 1)
    x = rng.standard_normal((1, 14 * step, 15 * step, channels)).astype(np.float32)
    w = rng.standard_normal((outputs, *window, channels)).astype(np.float32)
    values = [Value("x", TensorType(x.shape)), Value("w", TensorType(w.shape), dense(w, TensorType(w.shape)))]
    down, across = (size // 2 for size in window)
    attrs = Conv2dAttrs(stride=(step, step), pads=pads or (down, down, across, across))
    return apply(CONV2D, values, attrs, "conv"), x, w


def result(target: Target, node: Node, x: Array) -> Array:
    """What a build makes of it with Winograd's kernel."""
    graph = Graph("conv", node.inputs[:1], node.outputs, [node])
    builder = lower_graph(graph, "relaxed", {tuning_key(node): NAME})
    assert [step.kernel for step in builder.run_part.steps] == [KERNELS[node.required_input(1).type.shape[1:3]]]
    executor = WasmExecutor(graph, NativeHost(), run(NativeHost().kernels(str(dict(target.options)["isa"]))), builder)
    try:
        return np.array(run(executor.run({"x": memoryview(x.tobytes())}))[node.output.name].numpy())
    finally:
        executor.close()


@pytest.mark.parametrize("window", KERNELS, ids=str)
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_sums_of_many_channels_keep_to_a_hundred_thousandth_of_the_range(
    target: Target, window: tuple[int, int]
) -> None:
    target.demand()
    node, x, w = node_of(128, window)
    (want,) = compute(node, [x, w])
    assert np.abs(result(target, node, x) - want).max() <= 1e-5 * np.ptp(want)


@pytest.mark.parametrize("window", KERNELS, ids=str)
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_what_is_not_finite_stays_in_its_windows(target: Target, window: tuple[int, int]) -> None:
    target.demand()
    node, x, w = node_of(8, window)
    height, width = x.shape[1:3]
    x[0, 2, 2, 0], x[0, height - 5, 3, 1], x[0, height - 1, width - 1, 2] = np.inf, np.nan, 3e38
    w[1] = np.inf
    node.required_input(1).constant = dense(w, TensorType(w.shape))
    with np.errstate(all="ignore"):
        (want,) = compute(node, [x, w])
    got = result(target, node, x)
    assert 500 < np.isfinite(want).sum() < want.size
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


@pytest.mark.parametrize("window", KERNELS, ids=str)
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_threads_share_the_panels_of_a_block(target: Target, window: tuple[int, int]) -> None:
    target.demand()
    node, x, w = node_of(8, window, outputs=52)
    graph = Graph("conv", node.inputs[:1], node.outputs, [node])
    builder = lower_graph(graph, "relaxed-threads", {tuning_key(node): NAME})
    step, alone = builder.run_part.steps[0], lower_graph(graph, "relaxed", {tuning_key(node): NAME})
    assert step.units >= 2 * alone.run_part.steps[0].units > 2
    executor = GuardedExecutor(
        graph, NativeHost(), run(NativeHost().kernels(str(dict(target.options)["isa"]))), builder
    )
    try:
        got = np.array(run(executor.run({"x": memoryview(x.tobytes())}))[node.output.name].numpy())
    finally:
        executor.close()
    (want,) = compute(node, [x, w])
    assert np.abs(got - want).max() <= 1e-5 * np.ptp(want)
