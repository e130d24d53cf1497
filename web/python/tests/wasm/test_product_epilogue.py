"""A gelu behind a product is the end of the product's step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import BUILDS, Target
from tests.passes.building import Build

from webinfer.backends import reference, wasm
from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Op, TensorType, Value
from webinfer.host.native import NativeHost
from webinfer.ops import conv
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import movement as mv

SIZES = [(1, 8, 8), (7, 5, 3), (13, 12, 22), (30, 64, 5), (6, 4, 32), (25, 7, 9)]  # rows, depth, columns


def _graph(op: Op, rows: int, k: int, n: int, batch: int = 1, both: bool = False) -> Graph:
    """A product of x and w, and the gelu behind it."""
    b = Build()
    x = b.input("x", *((batch,) if batch > 1 else ()), rows, k)
    w = b.input("w", *((batch,) if batch > 1 else ()), k, n)
    product = b.node(mm.MATMUL, [x, w], mm.MatmulAttrs(), "p")
    end = b.node(op, [product], ew.UnaryAttrs(), "y")
    return b.output(*([end, product] if both else [end]))


def _outputs(graph: Graph, target: Target) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(7)
    inputs = {v.name: memoryview(rng.normal(size=v.type.shape).astype("f4")).cast("B") for v in graph.inputs}
    want = run(run(reference.build(graph, NativeHost())).run(inputs))["y"].numpy()
    executor = run(wasm.build(graph, NativeHost(), **dict(target.options)))
    kernels = [row.kernel for row in executor.rows() if "pack" not in row.kernel]
    return run(executor.run(inputs))["y"].numpy(), want, kernels


@pytest.mark.parametrize("op", [ew.GELU, ew.GELU_TANH], ids=lambda op: op.name)
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_it_is_one_step_and_gives_what_two_give(target: Target, op: Op) -> None:
    target.demand()
    for sizes in SIZES:
        got, want, kernels = _outputs(_graph(op, *sizes), target)
        assert [name.rpartition("_")[0] for name in kernels] == ["f32_conv2d_nhwc"]
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5, err_msg=str(sizes))


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_its_error_is_that_of_a_sum_and_tails_have_the_same_bits(target: Target) -> None:
    target.demand()
    rows, n = 25, 37  # tiles, rows and columns that are left over, vectors one by one and two by two
    graph = _graph(ew.GELU, rows, 4, n)
    x = np.linspace(-12.5, 12.5, rows * 4, dtype="f4").reshape(rows, 4)
    w = np.repeat(np.eye(4, 1, dtype="f4"), n, axis=1)  # every column is the first one of x
    executor = run(wasm.build(graph, NativeHost(), **dict(target.options)))
    got = run(executor.run({"x": memoryview(x).cast("B"), "w": memoryview(w).cast("B")}))["y"].numpy()
    assert (got == got[:, :1]).all()
    first = x[:, 0].astype("f8")
    want = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in first])
    np.testing.assert_allclose(got[:, 0], want, rtol=1e-5, atol=0)
    near = np.abs(first) < 4
    np.testing.assert_allclose(got[near, 0], want[near], rtol=0, atol=4e-7)


def _constant(numbers: np.ndarray) -> Value:
    data = memoryview(numbers.astype("f4").tobytes())
    return Value("constant", TensorType(numbers.shape), Constant(data, DType.FLOAT32))


CONVOLUTIONS = {  # image, weights, attributes
    "pixels": ((2, 5, 7, 8), (13, 1, 1, 8), {}),
    "windows": ((1, 9, 9, 5), (11, 3, 3, 5), {"stride": (2, 2), "pads": (1, 0, 1, 0)}),
    "winograd": ((1, 12, 13, 16), (24, 3, 3, 16), {"pads": (1, 1, 1, 1)}),
    "line": ((1, 1, 30, 16), (20, 1, 3, 16), {"pads": (0, 0, 1, 1)}),
    "picture": ((1, 16, 16, 3), (12, 3, 3, 3), {"stride": (2, 2), "pads": (0, 1, 0, 1)}),
    "groups": ((1, 6, 6, 8), (6, 3, 3, 4), {"groups": 2}),
    "residual": ((1, 6, 6, 8), (8, 1, 1, 8), {}),
}


@pytest.mark.parametrize("is_reshaped", [False, True])
@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_convolutions_end_in_it_too(target: Target, case: str, is_reshaped: bool) -> None:
    target.demand()
    x_shape, w_shape, given = CONVOLUTIONS[case]
    b, rng = Build(), np.random.default_rng(3)
    x, bias = b.input("x", *x_shape), _constant(rng.normal(size=w_shape[0]))
    w = _constant(0.3 * rng.normal(size=w_shape))
    inputs = [x, w, bias, *([x] if case == "residual" else [])]
    y = b.node(conv.CONV2D, inputs, conv.Conv2dAttrs(**given), "c")
    if is_reshaped:
        y = b.node(mv.RESHAPE, [y], mv.ReshapeAttrs((y.type.size,)), "r")
    got, want, kernels = _outputs(b.output(b.node(ew.GELU, [y], ew.UnaryAttrs(), "y")), target)
    assert "f32_gelu" not in kernels
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4 if case in ("winograd", "line") else 2e-5)


@pytest.mark.parametrize("batch", [3, 70])
def test_batches_of_products_are_right(batch: int) -> None:
    got, want, _ = _outputs(_graph(ew.GELU, 5, 6, 6, batch), BUILDS[0])
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_a_product_that_others_read_keeps_its_step() -> None:
    got, want, kernels = _outputs(_graph(ew.GELU, 5, 6, 7, both=True), BUILDS[0])
    assert kernels[-1] == "f32_gelu"
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
