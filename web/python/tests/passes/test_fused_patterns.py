"""Attention, norms, curves and batch normalisations in the ways that exporters write them become one node each."""

from __future__ import annotations

import asyncio
import functools
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.passes.building import Build, lines, rewritten

from webinfer.backends.reference import build
from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value
from webinfer.host.native import NativeHost
from webinfer.ops import conv, matmul
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops import reduce as red
from webinfer.ops import softmax as sm
from webinfer.ops.activation import Activation
from webinfer.ops.registry import NoAttrs
from webinfer.passes.pipeline import optimize
from webinfer.rewrite.rules_activations import fuse_activations
from webinfer.rewrite.rules_affine import fold_affine
from webinfer.rewrite.rules_attention import fuse_attention
from webinfer.rewrite.rules_norms import fuse_layer_norm

TWO, NONE = ew.BinaryAttrs(), ew.UnaryAttrs()
ROWS = red.ReduceAttrs((2,), keep_dims=True)


class Known(Build):
    """A graph with constants that hold numbers."""

    def row(self, *shape: int) -> Value:
        numbers = np.random.default_rng(len(self.graph.nodes)).uniform(0.5, 1.5, shape).astype(np.float32)
        return Value("row", TensorType(shape), Constant(memoryview(numbers.tobytes()), DType.FLOAT32))

    def pair(self, op: ew.ElementwiseOp, a: Value, b: Value | float, name: str = "v") -> Value:
        return self.node(op, [a, self.number(b) if isinstance(b, float) else b], TWO, name)

    def one(self, op: ew.ElementwiseOp, x: Value, name: str = "v") -> Value:
        return self.node(op, [x], NONE, name)


def results(graph: Graph) -> list[np.ndarray]:
    """What NumPy computes of seeded inputs."""
    rng = np.random.default_rng(0)
    inputs = {v.name: memoryview(rng.uniform(-2, 2, v.type.shape).astype("<f4").tobytes()) for v in graph.inputs}

    async def run() -> list[np.ndarray]:
        executor = await build(graph, NativeHost())
        outputs = await executor.run(inputs)
        return [outputs[v.name].numpy() for v in graph.outputs]

    return asyncio.run(run())


def fused(make: Callable[[Known], Graph], *ops: str) -> None:
    """The pipeline leaves these operators behind the inputs, and what the graph computes."""
    plain, graph = results(make(Known())), make(Known())
    optimize(graph)
    fixed = graph.fixed_values()
    assert [node.op.name for node in graph.nodes if node.output not in fixed] == list(ops)
    for got, want in zip(results(graph), plain, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


SQUARES: dict[str, Callable[[Known, Value], Value]] = {
    "square": lambda b, d: b.one(ew.SQUARE, d),
    "product": lambda b, d: b.pair(ew.MUL, d, d),
    "power": lambda b, d: b.pair(ew.POW, d, 2.0),
}
QUOTIENTS: dict[str, Callable[[Known, Value, Value], Value]] = {
    "over a root": lambda b, d, v: b.pair(ew.DIV, d, b.one(ew.SQRT, v)),
    "over a power": lambda b, d, v: b.pair(ew.DIV, d, b.pair(ew.POW, v, 0.5)),
    "by rsqrt": lambda b, d, v: b.pair(ew.MUL, d, b.one(ew.RSQRT, v)),
    "by a reciprocal": lambda b, d, v: b.pair(ew.MUL, b.one(ew.RECIPROCAL, b.one(ew.SQRT, v)), d),
    "by one over": lambda b, d, v: b.pair(ew.MUL, d, b.pair(ew.DIV, b.number(1.0), b.one(ew.SQRT, v))),
}


def _norm(b: Known, x: Value, square: str, quotient: str, centred: bool = True) -> Value:
    d = b.pair(ew.SUB, x, b.node(red.REDUCE_MEAN, [x], ROWS, "mean")) if centred else x
    variance = b.node(red.REDUCE_MEAN, [SQUARES[square](b, d)], ROWS, "variance")
    return QUOTIENTS[quotient](b, d, b.pair(ew.ADD, variance, 1e-5))


@pytest.mark.parametrize("quotient", QUOTIENTS)
@pytest.mark.parametrize("square", SQUARES)
@pytest.mark.parametrize("centred", [True, False])
def test_norms_are_known_in_all_their_forms(square: str, quotient: str, centred: bool) -> None:
    def make(b: Known) -> Graph:
        x = b.input("x", 2, 3, 8)
        y = b.pair(ew.MUL, b.row(8), _norm(b, x, square, quotient, centred))
        return b.output(b.pair(ew.ADD, y, b.row(1, 1, 8), "y"))

    fused(make, "layer_norm")


@pytest.mark.parametrize("scaled", [True, False])
def test_a_norm_from_moments_is_known(scaled: bool) -> None:
    def make(b: Known) -> Graph:
        x = b.input("x", 2, 3, 8)
        mean = b.node(red.REDUCE_MEAN, [x], ROWS, "mean")
        variance = b.node(red.REDUCE_MEAN, [b.pair(ew.SQUARED_DIFFERENCE, x, mean)], ROWS, "variance")
        factor = b.one(ew.RSQRT, b.pair(ew.ADD, variance, 1e-3))
        factor = b.pair(ew.MUL, factor, b.row(8)) if scaled else factor
        shift = b.pair(ew.SUB, b.row(1, 1, 8), b.pair(ew.MUL, mean, factor))
        return b.output(b.pair(ew.ADD, b.pair(ew.MUL, x, factor), shift, "y"))

    fused(make, "layer_norm")


def test_a_norm_over_other_axes_or_with_a_clamp_stays() -> None:
    b = Known()
    x = b.input("x", 2, 8, 8)
    mean = b.node(red.REDUCE_MEAN, [x], red.ReduceAttrs((1,), True), "mean")
    d = b.pair(ew.SUB, x, mean)
    variance = b.node(red.REDUCE_MEAN, [b.one(ew.SQUARE, d)], red.ReduceAttrs((1,), True), "variance")
    y = b.pair(ew.DIV, d, b.one(ew.SQRT, b.pair(ew.ADD, variance, 1e-5)))
    assert fuse_layer_norm(b.output(y)) == 0


def test_a_norm_takes_no_second_scale_and_none_of_another_shape() -> None:
    b = Known()
    y = _norm(b, b.input("x", 2, 3, 8), "square", "over a root")
    y = b.pair(ew.MUL, b.pair(ew.MUL, y, b.row(8)), b.row(3, 1))
    graph = b.output(b.pair(ew.MUL, y, b.row(8), "y"))
    assert fuse_layer_norm(graph) == 2
    assert [node.op.name for node in graph.nodes][-3:] == ["layer_norm", "mul", "mul"]


ROOT = math.sqrt(2 / math.pi)
CURVES: dict[str, tuple[str, Callable[[Known, Value], Value]]] = {
    "gelu": ("gelu", lambda b, x: b.pair(ew.MUL, b.pair(ew.MUL, x, 0.5), _erf(b, b.pair(ew.DIV, x, math.sqrt(2))))),
    "gelu, half last": ("gelu", lambda b, x: b.pair(
        ew.MUL, b.pair(ew.MUL, _erf(b, b.pair(ew.MUL, x, math.sqrt(0.5))), x), 0.5)),
    "gelu, half inside": ("gelu", lambda b, x: b.pair(
        ew.MUL, x, b.pair(ew.MUL, _erf(b, b.pair(ew.DIV, x, math.sqrt(2))), 0.5))),
    "gelu by tanh": ("gelu_tanh", lambda b, x: _tanh_gelu(b, x, b.pair(ew.ADD, x, b.pair(
        ew.MUL, b.pair(ew.POW, x, 3.0), 0.044715)))),
    "gelu by tanh, products": ("gelu_tanh", lambda b, x: _tanh_gelu(b, x, b.pair(ew.ADD, x, b.pair(
        ew.MUL, b.pair(ew.MUL, b.pair(ew.MUL, x, 0.044715), x), x)))),
    "gelu by tanh, factored": ("gelu_tanh", lambda b, x: _tanh_gelu(b, x, b.pair(ew.MUL, x, b.pair(
        ew.ADD, b.pair(ew.MUL, b.one(ew.SQUARE, x), 0.044715), 1.0)))),
    "silu": ("silu", lambda b, x: b.pair(ew.MUL, x, b.one(ew.SIGMOID, x))),
    "quick gelu": ("silu", lambda b, x: b.pair(ew.MUL, b.one(ew.SIGMOID, b.pair(ew.MUL, x, 1.702)), x)),
    "hard swish": ("hard_swish", lambda b, x: b.pair(
        ew.MUL, x, b.node(ew.HARD_SIGMOID, [x], ew.UnaryAttrs(1 / 6, 0.5), "gate"))),
    "hard swish, clamped": ("hard_swish", lambda b, x: b.pair(
        ew.DIV, b.pair(ew.MUL, x, b.one(ew.RELU6, b.pair(ew.ADD, x, 3.0))), 6.0)),
    "hard swish, clamp first": ("hard_swish", lambda b, x: b.pair(
        ew.MUL, x, b.pair(ew.MUL, b.node(ew.CLAMP, [b.pair(ew.ADD, x, 3.0)], ew.UnaryAttrs(0.0, 6.0), "c"), 1 / 6))),
}  # fmt: skip


def _erf(b: Known, x: Value) -> Value:
    return b.pair(ew.ADD, b.one(ew.ERF, x), 1.0)


def _tanh_gelu(b: Known, x: Value, inner: Value) -> Value:
    return b.pair(ew.MUL, b.pair(ew.MUL, x, 0.5), b.pair(ew.ADD, b.one(ew.TANH, b.pair(ew.MUL, inner, ROOT)), 1.0))


@pytest.mark.parametrize("name", CURVES)
def test_curves_are_known_in_all_their_forms(name: str) -> None:
    op, curve = CURVES[name]
    fused(lambda b: b.output(b.one(ew.ABS, curve(b, b.input("x", 3, 7)), "y")), op, "abs")


def test_a_sixth_of_sixteen_bits_leaves_its_factor_behind_the_curve() -> None:
    def graph(b: Known, sixth: float) -> Graph:
        x = b.input("x", 3, 7)
        y = b.pair(ew.MUL, b.pair(ew.MUL, x, sixth), b.one(ew.RELU6, b.pair(ew.ADD, x, 3.0)))
        return b.output(b.one(ew.ABS, y, "y"))

    fused(lambda b: graph(b, float(np.float16(1 / 6))), "hard_swish", "mul", "abs")
    assert fuse_activations(graph(Known(), 0.1668)) == 0


@pytest.mark.parametrize("scale", [0.4, 1.0])
def test_other_factors_make_no_curve(scale: float) -> None:
    b = Known()
    x, z = b.input("x", 4), b.input("z", 4)
    first = b.pair(ew.MUL, b.pair(ew.MUL, x, scale), _erf(b, b.pair(ew.DIV, x, math.sqrt(2))))
    assert fuse_activations(b.output(first, b.pair(ew.MUL, z, b.one(ew.SIGMOID, x), "y"))) == 0


def _attention(
    b: Known, heads: int, masked: bool, turned: bool, inside: bool, clear: bool = False, scales: int = 1, cap: float = 0
) -> Graph:
    n, keys, size = 5, 7, 4
    q, k, v = (
        b.node(mv.RESHAPE, [b.input(name, 2, rows, heads * size)], mv.ReshapeAttrs((2, rows, heads, size)), name)
        for name, rows in (("q", n), ("k", keys), ("v", keys))
    )
    over = mv.TransposeAttrs((0, 2, 1, 3))
    q, v = (b.node(mv.TRANSPOSE, [x], over, "t") for x in (q, v))
    k = b.node(mv.TRANSPOSE, [k], mv.TransposeAttrs((0, 2, 3, 1)) if turned else over, "t")
    if scales == 2:
        q, k = b.pair(ew.MUL, q, 0.6), b.pair(ew.MUL, k, 0.6)
    y = b.node(matmul.MATMUL, [q, k], matmul.MatmulAttrs(transpose_b=not turned), "scores")
    if scales == 1:
        y = b.pair(ew.DIV, y, 2.0)
    if cap:
        y = b.pair(ew.MUL, b.one(ew.TANH, b.pair(ew.DIV, y, cap)), cap)
    if masked:
        y = b.pair(ew.ADD, y, b.input("mask", 2, 1, n, keys))
    y = b.node(sm.SOFTMAX, [y], sm.SoftmaxAttrs(3), "weights")
    if clear:
        y = b.node(ew.WHERE, [b.one(ew.IS_NAN, y), b.number(0.0), y], NoAttrs(), "clear")
    y = b.node(matmul.MATMUL, [y, v], matmul.MatmulAttrs(), "y")
    if inside:
        y = b.node(mv.TRANSPOSE, [y], over, "y")
    return b.output(b.one(ew.ABS, b.node(mv.RESHAPE, [y], mv.ReshapeAttrs((2, n * heads * size)), "y"), "y"))


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(("inside", "scales"), [(True, 1), (False, 2), (True, 0)])
def test_attention_takes_scales_masks_and_transposes(masked: bool, turned: bool, inside: bool, scales: int) -> None:
    wanted = ("reshape", "reshape", "reshape", "attention", "reshape", "abs")
    fused(lambda b: _attention(b, 3, masked, turned, inside, scales=scales), *wanted)


@pytest.mark.parametrize("masked", [True, False])
def test_attention_caps_its_scores(masked: bool) -> None:
    make = functools.partial(_attention, heads=3, masked=masked, turned=True, inside=True, cap=5.0)
    fused(lambda b: make(b), "reshape", "reshape", "reshape", "attention", "reshape", "abs")
    b = Known()
    fuse_attention(make(b))
    (node,) = [node for node in b.graph.nodes if node.op.name == "attention"]
    assert (node.attrs.softcap, node.attrs.scale) == (5.0, pytest.approx(0.5))
    assert fuse_attention(_attention(Known(), 3, masked, True, True, cap=-5.0)) == 0


@pytest.mark.parametrize("wide", ["softmax", "its result"])
def test_attention_of_float16_may_have_its_softmax_in_float32(wide: str) -> None:
    def make(b: Known, back: DType = DType.FLOAT16) -> Graph:
        def cast(x: Value, dtype: DType) -> Value:
            return b.node(ew.CAST, [x], ew.CastAttrs(dtype), "cast")

        q, k, v = (cast(b.input(name, 1, 3, n, 8), DType.FLOAT16) for name, n in (("q", 4), ("k", 6), ("v", 6)))
        y = b.node(matmul.MATMUL, [q, k], matmul.MatmulAttrs(transpose_b=True), "scores")
        y = cast(y, DType.FLOAT32) if wide == "softmax" else y
        y = b.node(sm.SOFTMAX, [y], sm.SoftmaxAttrs(3), "weights")
        y = y if wide == "softmax" else cast(y, DType.FLOAT32)
        y, v = cast(y, back), cast(v, back)
        return b.output(cast(b.node(matmul.MATMUL, [y, v], matmul.MatmulAttrs(), "y"), DType.FLOAT32))

    plain, graph = results(make(Known())), make(Known())
    optimize(graph)
    assert [node.op.name for node in graph.nodes] == ["cast", "cast", "cast", "attention", "cast"]
    np.testing.assert_allclose(results(graph)[0], plain[0], atol=4e-3)  # of numbers to 4, float16
    if wide == "softmax":
        assert fuse_attention(make(Known(), DType.FLOAT32)) == 0, "values of another type"


def test_attention_without_keys_gives_zeros_where_the_model_says_so() -> None:
    b = Known()
    assert fuse_attention(_attention(b, 2, True, True, True, clear=True)) == 2  # and the transpose behind it
    (node,) = [node for node in b.graph.nodes if node.op.name == "attention"]
    assert node.attrs.clear_nan
    assert node.attrs.inner == (True, True, True, True)


def _attention_of_places(b: Known, by_places: bool, rows: int, columns: int, turned: bool) -> Graph:
    """Keys are the places of a picture, with a bias for their row and one for their column, as image encoders have."""
    heads, n, size, keys = 3, 6, 4, rows * columns
    q, k, v = b.input("q", heads, n, size), b.input("k", heads, keys, size), b.input("v", heads, keys, size)
    y = b.node(matmul.MATMUL, [q, k], matmul.MatmulAttrs(transpose_b=True), "scores")
    parts = [b.input("rows", heads, 2, n // 2, rows, 1), b.input("columns", heads, 2, n // 2, 1, columns)]
    first, second = parts[::-1] if turned else parts
    places, flat = mv.ReshapeAttrs((heads, 2, n // 2, rows, columns)), mv.ReshapeAttrs((heads, n, keys))
    if by_places:
        y = b.node(mv.RESHAPE, [y], places, "places")
        y = b.node(mv.RESHAPE, [b.pair(ew.ADD, b.pair(ew.ADD, y, first), second)], flat, "flat")
    else:
        y = b.pair(ew.ADD, y, b.node(mv.RESHAPE, [b.pair(ew.ADD, first, second)], flat, "flat"))
    y = b.node(sm.SOFTMAX, [y], sm.SoftmaxAttrs(2), "weights")
    return b.output(b.node(matmul.MATMUL, [y, v], matmul.MatmulAttrs(), "y"))


@pytest.mark.parametrize("by_places", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_a_bias_of_rows_and_columns_is_added_up_inside_attention(by_places: bool, turned: bool) -> None:
    wanted = (*["reshape"] * 5, "attention", "reshape")
    fused(lambda b: _attention_of_places(b, by_places, 5, 8, turned), *wanted)


@pytest.mark.parametrize("by_places", [True, False])
def test_columns_that_are_no_quads_are_added_up_before_attention(by_places: bool) -> None:
    wanted = ("add", "reshape", "attention", "reshape")
    graph = _attention_of_places(Known(), by_places, 5, 7, False)
    optimize(graph)
    assert {node.op.name for node in graph.nodes} == {*wanted}
    fused(lambda b: _attention_of_places(b, by_places, 5, 7, False), *[node.op.name for node in graph.nodes])


def _rotations(b: Known, equal: bool, inside: bool) -> Graph:
    """Queries and keys turned by the same angles, as in PyTorch; with `inside`, heads lie inside rows."""
    length, width = 5, 8
    half = b.input("angles", 1, length, width // 2)
    other = half if equal else b.input("others", 1, length, width // 2)
    both = b.node(mv.CONCAT, [half, other], mv.ConcatAttrs(2), "both")
    shape = (1, length, 1, width) if inside else (1, 1, length, width)
    cos, sin = (b.node(mv.RESHAPE, [b.one(op, both)], mv.ReshapeAttrs(shape), "wave") for op in (ew.COS, ew.SIN))
    results = []
    for heads in (4, 2):
        x = b.input(f"x{heads}", *((1, length, heads, width) if inside else (1, heads, length, width)))
        part = (*x.type.shape[:3], width // 2)
        low, high = (
            b.node(mv.SLICE, [x], mv.SliceAttrs((0, 0, 0, at), part, (1,) * 4), "part") for at in (0, width // 2)
        )
        swapped = b.node(mv.CONCAT, [b.one(ew.NEG, high), low], mv.ConcatAttrs(3), "swapped")
        results.append(b.pair(ew.ADD, b.pair(ew.MUL, x, cos), b.pair(ew.MUL, swapped, sin), "turned"))
    return b.output(*results)


@pytest.mark.parametrize("inside", [True, False])
def test_rotary_positions_become_one_node_and_share_their_angles(inside: bool) -> None:
    wanted = ("concat", "cos", "reshape", "sin", "reshape", "slice", "slice", "rotate", "rotate")
    make = functools.partial(_rotations, equal=True, inside=inside)
    graph = make(Known())
    optimize(graph)
    assert sorted(node.op.name for node in graph.nodes) == sorted(wanted)
    fused(make, *[node.op.name for node in graph.nodes])


def test_halves_that_turn_by_other_angles_are_no_rotation() -> None:
    graph = _rotations(Known(), equal=False, inside=False)
    optimize(graph)
    assert "rotate" not in {node.op.name for node in graph.nodes}


def test_products_that_are_no_attention_stay() -> None:
    b = Known()
    q, k, v = (b.input(name, 2, 4, 8) for name in "qkv")
    scores = b.node(matmul.MATMUL, [q, k], matmul.MatmulAttrs(transpose_b=True), "scores")
    other = b.node(sm.SOFTMAX, [scores], sm.SoftmaxAttrs(1), "other axis")
    graph = b.output(b.node(matmul.MATMUL, [other, v], matmul.MatmulAttrs(), "y"))
    assert fuse_attention(graph) == 0


def test_a_key_that_holds_columns_is_turned_by_a_step() -> None:
    def make(b: Known) -> Graph:
        q, k, v = b.input("q", 3, 4, 8), b.input("k", 3, 8, 6), b.input("v", 3, 6, 5)
        y = b.node(sm.SOFTMAX, [b.node(matmul.MATMUL, [q, k], matmul.MatmulAttrs(), "s")], sm.SoftmaxAttrs(2), "w")
        return b.output(b.node(matmul.MATMUL, [y, v], matmul.MatmulAttrs(), "y"))

    fused(make, "reshape", "transpose", "reshape", "reshape", "attention", "reshape")


def test_a_batch_normalisation_goes_into_the_convolution() -> None:
    def make(b: Known) -> Graph:
        x = b.input("x", 1, 5, 5, 4)
        y = b.node(conv.CONV2D, [x, b.row(6, 3, 3, 4), b.row(6)], conv.Conv2dAttrs(), "conv")
        y = b.pair(ew.ADD, b.pair(ew.DIV, b.pair(ew.MUL, y, b.row(1, 1, 1, 6)), b.row(6)), b.row(1, 1, 6))
        y = b.node(conv.DEPTHWISE_CONV2D, [y, b.row(1, 2, 2, 6)], conv.Conv2dAttrs(), "depthwise")
        y = b.pair(ew.SUB, b.pair(ew.MUL, b.row(6), y), b.row(1, 6))
        return b.output(b.one(ew.RELU, y, "y"))

    fused(make, "conv2d", "depthwise_conv2d")


@pytest.mark.parametrize("turned", [True, False])
def test_a_matrix_product_takes_a_scale_and_a_bias(turned: bool) -> None:
    def make(b: Known) -> Graph:
        w = b.row(3, 4) if turned else b.row(4, 3)
        y = b.node(matmul.MATMUL, [b.input("x", 2, 5, 4), w], matmul.MatmulAttrs(transpose_b=turned), "product")
        y = b.pair(ew.MUL, b.pair(ew.ADD, b.pair(ew.MUL, y, b.row(3)), b.row(1, 1, 3)), 0.25)
        return b.output(b.node(ew.ADD, [y, b.number(2.0)], ew.BinaryAttrs(Activation.RELU), "y"))

    fused(make, "matmul")


def test_a_transposed_convolution_takes_a_bias_of_its_own() -> None:
    b = Build()
    x = b.input("x", 1, 3, 3, 4)
    y = b.node(conv.CONV_TRANSPOSE2D, [x, b.constant(2, 2, 2, 4)], conv.ConvTranspose2dAttrs(), "conv")
    graph = b.output(b.node(ew.ADD, [y, b.constant(1, 1, 1, 2)], TWO, "y"))
    assert rewritten(fold_affine, graph, 1) == lines(
        "%conv/reshape = reshape(const [1x1x1x2]{0, 0}) shape=2 -> float32[2]",
        "%y = conv_transpose2d(%x, const [2x2x2x4], %conv/reshape) -> float32[1x4x4x2]",
        "return %y",
    )


def test_what_is_known_only_at_run_time_or_shared_is_not_folded() -> None:
    b = Known()
    x = b.input("x", 1, 3, 3, 4)
    y = b.node(conv.CONV2D, [x, b.row(6, 1, 1, 4)], conv.Conv2dAttrs(), "conv")
    z = b.node(conv.CONV2D, [x, b.row(6, 1, 1, 4)], conv.Conv2dAttrs(), "conv")
    scaled = b.pair(ew.MUL, y, b.input("scale", 6))
    twice = b.pair(ew.ADD, b.pair(ew.MUL, z, b.row(6)), z)
    assert fold_affine(b.output(scaled, twice)) == 0


def test_a_number_is_stored_as_any_float() -> None:
    half = Value("h", TensorType((1,)), Constant(memoryview(struct.pack("<e", 0.5)), DType.FLOAT16))
    b = Known()
    x = b.input("x", 4)
    y = b.node(ew.MUL, [b.pair(ew.MUL, x, _erf(b, b.pair(ew.DIV, x, math.sqrt(2)))), half], TWO, "y")
    assert fuse_activations(b.output(y)) == 1


def _scaled_attentions(b: Known, scaled: Value) -> Value:
    x = b.graph.inputs[0]
    scores = b.node(matmul.MATMUL, [scaled, x], matmul.MatmulAttrs(transpose_b=True), "s")
    weights = b.node(sm.SOFTMAX, [scores], sm.SoftmaxAttrs(2), "w")
    return b.node(matmul.MATMUL, [weights, x], matmul.MatmulAttrs(), "y")


class _Counting(dict[Value, Node]):
    """The writers of values, and how often they are asked for."""

    asked = 0

    def get(self, *key: Any) -> Any:
        type(self).asked += 1
        return super().get(*key)


@pytest.mark.parametrize("rewrite", [fuse_activations, fuse_attention])
def test_a_long_chain_of_factors_is_not_walked_from_each_of_its_readers(
    rewrite: Callable[[Graph], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    b = Known()
    y = b.input("x", 1, 4, 4)
    for _ in range(200):
        y = b.pair(ew.MUL, y, 1.01)
    gated = b.pair(ew.MUL, b.one(ew.SIGMOID, y), y)
    graph = b.output(gated, *(_scaled_attentions(b, y) for _ in range(50)))
    producers, asked = graph.producers(), _Counting.asked
    monkeypatch.setattr(Graph, "producers", lambda _: _Counting(producers))
    rewrite(graph)
    assert 0 < _Counting.asked - asked < 20 * len(b.graph.nodes)


def test_few_numbers_keep_the_order_of_their_sums() -> None:
    b = Build()
    y = b.node(matmul.MATMUL, [b.input("x", 2, 4), b.constant(4, 8)], matmul.MatmulAttrs(), "product")
    graph = b.output(b.node(ew.ADD, [y, b.constant(8)], TWO, "y"))
    assert fold_affine(graph) == 0
