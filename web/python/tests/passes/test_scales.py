"""Factors and summands a channel that stand alone: what they become, and that results stay."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.passes.building import Build, body

from webinfer.backends import registry
from webinfer.backends.base import BuildOptions
from webinfer.dtypes import DType
from webinfer.errors import BackendUnavailableError
from webinfer.graph.ir import Constant, Graph, Op, TensorType, Value
from webinfer.graph.verify import verify
from webinfer.host.native import NativeHost
from webinfer.ops import conv, matmul, pool, reduce
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.passes.pipeline import optimize
from webinfer.rewrite.rules_affine import fold_affine, fold_scales, split_scales

RNG = np.random.default_rng(11)


def drawn(*shape: int) -> Value:
    """A constant of random numbers, none of them near zero."""
    data = (RNG.uniform(0.5, 2, shape) * RNG.choice([-1, 1], shape)).astype(np.float32)
    return Value("c", TensorType(shape), Constant(memoryview(data.tobytes()), DType.FLOAT32))


def scale(b: Build, x: Value, name: str, activation: Activation = Activation.NONE) -> Value:
    """A factor and a summand a channel, as converters write a normalisation: a depthwise convolution of one tap."""
    c = x.type.shape[-1]
    return b.node(
        conv.DEPTHWISE_CONV2D, [x, drawn(1, 1, 1, c), drawn(c)], conv.Conv2dAttrs(activation=activation), name
    )


def row(b: Build, op: Op, x: Value, name: str, activation: Activation = Activation.NONE) -> Value:
    return b.node(op, [x, drawn(x.type.shape[-1])], ew.BinaryAttrs(activation=activation), name)


def dense(b: Build, x: Value, name: str, co: int = 8, **attrs: object) -> Value:
    k = 3 if attrs.get("pads") else 2
    w = drawn(co, k, k, x.type.shape[-1])
    return b.node(conv.CONV2D, [x, w, drawn(co)], conv.Conv2dAttrs(**attrs), name)  # type: ignore[arg-type]


def outputs(graph: Graph, backend: str = "reference") -> list[np.ndarray]:
    try:
        executor = run(registry.open_backend(backend).build(copy.copy(graph), NativeHost(), BuildOptions()))
    except BackendUnavailableError as error:
        pytest.skip(str(error))
    data = np.random.default_rng(3).normal(size=graph.inputs[0].type.shape).astype(np.float32)
    found = run(executor.run({graph.inputs[0].name: memoryview(data.tobytes())}))
    return [tensor.numpy().copy() for tensor in found.values()]


def ops(graph: Graph) -> list[str]:
    """The operators that run at each inference."""
    fixed = graph.fixed_values()
    return [node.op.name for node in graph.nodes if not fixed.issuperset(node.outputs)]


def scales_gone(graph: Graph) -> list[str]:
    """The operators after the three passes, whose results must be those of before."""
    before = outputs(graph)
    split_scales(graph), fold_affine(graph), fold_scales(graph)
    verify(graph)
    for got, want in zip(outputs(graph), before, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * np.abs(want).max())
    return ops(graph)


def test_a_scale_behind_a_convolution_goes_into_its_weights() -> None:
    b = Build()
    y = scale(b, dense(b, b.input("x", 1, 6, 6, 4), "d", pads=(1, 1, 1, 1)), "s", Activation.RELU)
    graph = b.output(y)
    assert scales_gone(graph) == ["conv2d"]
    assert graph.nodes[-1].attrs.activation is Activation.RELU


@pytest.mark.parametrize("op", [ew.MUL, ew.DIV, ew.ADD, ew.SUB])
def test_a_factor_or_summand_before_a_convolution_goes_into_its_weights(op: Op) -> None:
    b = Build()
    assert scales_gone(b.output(dense(b, row(b, op, b.input("x", 1, 6, 6, 4), "r"), "d"))) == ["conv2d"]


def test_a_scale_between_an_activation_and_a_convolution_goes_into_the_latters_weights() -> None:
    b = Build()
    first = dense(b, b.input("x", 1, 6, 6, 4), "d", activation=Activation.RELU)
    assert scales_gone(b.output(dense(b, scale(b, first, "s"), "e"))) == ["conv2d", "conv2d"]


def test_products_of_matrices_and_depthwise_windows_take_scales_as_well() -> None:
    b = Build()
    x = scale(b, b.input("x", 1, 6, 6, 4), "s")
    y = b.node(conv.DEPTHWISE_CONV2D, [x, drawn(1, 3, 3, 4)], conv.Conv2dAttrs(), "d")
    assert scales_gone(b.output(y)) == ["depthwise_conv2d"]
    for turned in (False, True):
        b = Build()
        x = row(b, ew.SUB, row(b, ew.MUL, b.input("x", 3, 6), "m"), "a")
        w = drawn(5, 6) if turned else drawn(6, 5)
        y = b.node(matmul.MATMUL, [x, w], matmul.MatmulAttrs(transpose_b=turned), "y")
        assert scales_gone(b.output(y)) == ["matmul"]


def test_a_factor_and_a_summand_of_no_channels_stay() -> None:
    b = Build()
    graph = b.output(row(b, ew.ADD, row(b, ew.MUL, b.input("x", 1, 6, 7, 0), "m"), "a"))
    optimize(graph)
    verify(graph)
    assert [node.op for node in graph.nodes] == [ew.MUL, ew.ADD]


def test_a_scale_before_a_product_that_reads_columns_stays() -> None:
    """Its channels are the product's rows, also where there are as many of them as of columns."""
    for size in (6, 4):
        b = Build()
        x = row(b, ew.MUL, b.input("x", 6, size), "m")
        y = b.node(matmul.MATMUL, [x, drawn(6, 5)], matmul.MatmulAttrs(transpose_a=True), "y")
        assert scales_gone(b.output(y)) == ["mul", "matmul"]


def test_padding_keeps_a_summand_and_lets_a_factor_through() -> None:
    b = Build()
    y = dense(b, row(b, ew.MUL, b.input("x", 1, 6, 6, 4), "m"), "d", pads=(1, 1, 1, 1))
    assert scales_gone(b.output(y)) == ["conv2d"]
    b = Build()
    y = dense(b, row(b, ew.ADD, b.input("x", 1, 6, 6, 4), "a"), "d", pads=(1, 1, 1, 1))
    assert scales_gone(b.output(y)) == ["add", "conv2d"]


def test_a_factor_and_a_summand_that_stay_are_one_step() -> None:
    b = Build()
    x = dense(b, b.input("x", 1, 6, 6, 4), "d", activation=Activation.RELU)
    y = row(b, ew.SUB, row(b, ew.MUL, x, "m"), "a", Activation.RELU)
    pooled = b.node(pool.MAX_POOL2D, [y], pool.Pool2dAttrs((2, 2), (2, 2)), "p")
    graph = b.output(pooled, y)
    assert scales_gone(graph) == ["conv2d", "depthwise_conv2d", "max_pool2d"]


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_an_instance_normalisation_ends_in_one_step(backend: str) -> None:
    b = Build()
    x = b.input("x", 1, 9, 8, 12)
    mean = b.node(reduce.REDUCE_MEAN, [x], reduce.ReduceAttrs((1, 2), keep_dims=True), "mean")
    off = b.node(ew.SQUARED_DIFFERENCE, [x, mean], ew.BinaryAttrs(), "off")
    variance = b.node(reduce.REDUCE_MEAN, [off], reduce.ReduceAttrs((1, 2), keep_dims=True), "variance")
    factor = b.node(ew.MUL, [b.node(ew.RSQRT, [variance], ew.UnaryAttrs(), "r"), drawn(12)], ew.BinaryAttrs(), "f")
    summand = b.node(ew.SUB, [drawn(12), b.node(ew.MUL, [mean, factor], ew.BinaryAttrs(), "m")], ew.BinaryAttrs(), "s")
    scaled = b.node(ew.MUL, [x, factor], ew.BinaryAttrs(), "scaled")
    y = b.node(ew.ADD, [scaled, summand], ew.BinaryAttrs(activation=Activation.RELU), "y")
    graph = b.output(b.node(ew.ADD, [y, x], ew.BinaryAttrs(), "z"))
    before = outputs(graph)
    optimize(graph)
    assert ops(graph).count("depthwise_conv2d") == 1
    assert ops(graph)[-2:] == ["depthwise_conv2d", "add"], body(graph)
    np.testing.assert_allclose(outputs(graph)[0], before[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs(graph, backend)[0], before[0], rtol=1e-4, atol=1e-4)


def test_a_scale_that_others_read_stays() -> None:
    b = Build()
    x = scale(b, b.input("x", 1, 6, 6, 4), "s", Activation.NONE)
    assert scales_gone(b.output(dense(b, x, "d"), x)) == ["depthwise_conv2d", "conv2d"]
    b = Build()
    x = scale(b, b.input("x", 1, 6, 6, 4), "s", Activation.RELU)
    assert scales_gone(b.output(dense(b, x, "d"))) == ["depthwise_conv2d", "conv2d"]


def test_the_whole_pipeline_keeps_the_results_of_a_network_of_scales() -> None:
    b = Build()
    x = scale(b, dense(b, b.input("x", 1, 9, 9, 4), "d", activation=Activation.RELU), "s")
    x = b.node(ew.PRELU, [x, drawn(8)], ew.BinaryAttrs(), "prelu")
    x = dense(b, scale(b, x, "t"), "e")
    graph = b.output(x)
    before = outputs(graph)
    optimize(graph)
    np.testing.assert_allclose(outputs(graph)[0], before[0], rtol=2e-5, atol=2e-5 * np.abs(before[0]).max())
    assert ops(graph) == ["conv2d", "depthwise_conv2d", "conv2d"], body(graph)
