"""Winograd's 3x3 convolutions of bytes: every sum is exact, up to the largest that the kernel takes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import dense, run
from tests.ops.targets import BUILDS, Target
from tests.wasm.guards import GuardedExecutor

from webinfer.backends.reference.executor import compute
from webinfer.backends.wasm.executor import lower_graph
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Quantization, TensorType, Value, apply
from webinfer.host.native import NativeHost
from webinfer.ops.conv import CONV2D, Conv2dAttrs


def node_of(dtype: DType, ci: int, co: int, zeros: tuple[int, int]) -> Node:
    """A 3x3 convolution without numbers in its weights; the zero points of data and weights."""
    x = TensorType((1, 17, 19, ci), dtype, Quantization((1.0,), (zeros[0],)))
    w = TensorType((co, 3, 3, ci), dtype, Quantization((1.0,), (zeros[1],)))
    values = [Value("x", x), Value("w", w, dense(np.zeros(w.shape, w.dtype.inner.value), w))]
    # A result counts in 2^18: the largest sums do not leave its range.
    y = (dtype, Quantization((2.0**18,), (0 if dtype is DType.INT8 else 128,)))
    return apply(CONV2D, values, Conv2dAttrs(pads=(1, 1, 1, 1), out_type=y), "conv")


def kernels(node: Node, isa: str = "relaxed") -> list[str]:
    """The kernels of the node's steps."""
    graph = Graph("conv", node.inputs[:1], node.outputs, [node])
    return [step.kernel for step in lower_graph(graph, isa, None).run_part.steps]


@pytest.mark.parametrize(
    ("dtype", "ci", "co", "zeros"),
    [
        (DType.INT8, 112, 24, (-128, 0)),
        (DType.INT8, 112, 24, (127, 0)),
        (DType.UINT8, 56, 24, (0, 0)),
        (DType.UINT8, 56, 100, (0, 255)),
    ],
    ids=str,
)
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_the_largest_sums_are_exact(target: Target, dtype: DType, ci: int, co: int, zeros: tuple[int, int]) -> None:
    target.demand()
    node, (low, high) = node_of(dtype, ci, co, zeros), dtype.range
    rng, stored = np.random.default_rng(7), dtype.value
    x = np.where(rng.random(node.inputs[0].type.shape) < 0.95, high, low).astype(stored)
    x[0, :8] = rng.integers(low, high, x[0, :8].shape, endpoint=True)
    w = rng.integers(low, high, (co, 3, 3, ci), endpoint=True).astype(stored)
    w[0], w[1], w[2, 1], w[3, :, 1] = low, high, low, high
    w[4] = np.where(rng.random(w[4].shape) < 0.9, low, high)
    node.required_input(1).constant = dense(w, node.required_input(1).type)
    (want,) = compute(node, [x, w])
    assert len(np.unique(want)) > 20
    graph = Graph("conv", node.inputs[:1], node.outputs, [node])
    builder = lower_graph(graph, "relaxed-threads", None)
    assert [step.kernel for step in builder.run_part.steps] == ["q8_conv2d_nhwc_winograd"]
    assert builder.run_part.steps[0].units == (6 if co == 100 else 3)  # blocks, or halves of their panels
    executor = GuardedExecutor(
        graph, NativeHost(), run(NativeHost().kernels(str(dict(target.options)["isa"]))), builder
    )
    try:
        got = np.array(run(executor.run({"x": memoryview(x.tobytes())}))[node.output.name].numpy())
    finally:
        executor.close()
    np.testing.assert_array_equal(got, want)


def test_larger_sums_and_other_builds_take_windows() -> None:
    assert kernels(node_of(DType.INT8, 112, 24, (0, 0))) == ["q8_conv2d_nhwc_winograd"]
    assert kernels(node_of(DType.INT8, 120, 24, (0, 0))) == ["q8_conv2d_nhwc"]
    assert kernels(node_of(DType.UINT8, 64, 24, (0, 128))) == ["q8_conv2d_nhwc"]
    assert kernels(node_of(DType.INT8, 112, 24, (0, 0)), "scalar") == ["q8_conv2d_nhwc"]
