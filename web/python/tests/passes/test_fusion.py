"""Residuals, widened skips and activations move into convolutions, in that order."""

from __future__ import annotations

import pytest
from tests.passes.building import Build, Q, lines, rewritten

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Op, Value
from webinfer.ops import conv, matmul, pool
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops.activation import Activation
from webinfer.passes.pipeline import PIPELINE, optimize
from webinfer.rewrite.rules_epilogues import fuse_activation, fuse_channel_pad_add, fuse_residual

PLAIN = conv.Conv2dAttrs()
SUM = ew.BinaryAttrs()
NONE = ew.UnaryAttrs()
ONE = ew.UnaryAttrs(1.0)  # the slope of silu


def _conv(b: Build, x: Value, channels: int, name: str, attrs: conv.Conv2dAttrs = PLAIN) -> Value:
    return b.node(conv.CONV2D, [x, b.constant(channels, 1, 1, x.type.shape[3]), b.constant(channels)], attrs, name)


@pytest.mark.parametrize("swapped", [False, True])
def test_sum_with_a_convolution_becomes_its_residual(swapped: bool) -> None:
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    y = _conv(b, x, 8, "conv")
    graph = b.output(b.node(ew.ADD, [x, y] if swapped else [y, x], ew.BinaryAttrs(Activation.RELU), "sum"))
    assert rewritten(fuse_residual, graph, 1) == lines(
        "%sum = conv2d(%x, const [8x1x1x8], const [8], %x) relu -> float32[1x4x4x8]", "return %sum"
    )


def test_depthwise_convolution_without_bias_takes_a_residual() -> None:
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    same = conv.Conv2dAttrs(pads=(1, 1, 1, 1))
    y = b.node(conv.DEPTHWISE_CONV2D, [x, b.constant(1, 3, 3, 8)], same, "conv")
    graph = b.output(b.node(ew.ADD, [y, x], SUM, "sum"))
    assert rewritten(fuse_residual, graph, 1).startswith("%sum = depthwise_conv2d(%x, const [1x3x3x8], none, %x) ")


def test_a_scale_takes_no_residual() -> None:
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    y = b.node(conv.DEPTHWISE_CONV2D, [x, b.constant(1, 1, 1, 8)], PLAIN, "scale")
    assert fuse_residual(b.output(b.node(ew.ADD, [y, x], SUM, "sum"))) == 0


def test_the_convolution_waits_for_its_residual() -> None:
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    y = _conv(b, x, 8, "conv")
    late = b.node(ew.ABS, [x], NONE, "late")
    graph = b.output(b.node(ew.ADD, [y, late], SUM, "sum"))
    assert rewritten(fuse_residual, graph, 1) == lines(
        "%late = abs(%x) -> float32[1x4x4x8]",
        "%sum = conv2d(%x, const [8x1x1x8], const [8], %late) -> float32[1x4x4x8]",
        "return %sum",
    )


def test_of_two_convolutions_the_later_one_takes_the_sum() -> None:
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    first, second = _conv(b, x, 8, "first"), _conv(b, x, 8, "second")
    graph = b.output(b.node(ew.ADD, [first, second], SUM, "sum"))
    assert rewritten(fuse_residual, graph, 1).splitlines()[1].endswith("%first) -> float32[1x4x4x8]")


def test_one_number_a_channel_becomes_the_missing_bias() -> None:
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    y = b.node(conv.CONV2D, [x, b.constant(8, 1, 1, 8)], PLAIN, "conv")
    graph = b.output(b.node(ew.ADD, [y, b.constant(8)], SUM, "sum"))
    assert rewritten(fuse_residual, graph, 1).startswith("%sum = conv2d(%x, const [8x1x1x8], const [8]) ->")


def _kept(build: str) -> Graph:
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    attrs = conv.Conv2dAttrs(activation=Activation.RELU) if build == "activated" else PLAIN
    y = _conv(b, x, 8, "conv", attrs)
    if build == "read twice":
        return b.output(b.node(ew.ADD, [y, b.node(ew.ABS, [y], NONE, "abs")], SUM, "sum"))
    if build == "output":
        return b.output(y, b.node(ew.ADD, [y, x], SUM, "sum"))
    if build == "added to itself":
        return b.output(b.node(ew.ADD, [y, y], SUM, "sum"))
    if build == "stretched":
        return b.output(b.node(ew.ADD, [y, b.input("r", 1, 1, 1, 8)], SUM, "sum"))
    if build == "stretching":
        return b.output(b.node(ew.ADD, [y, b.input("r", 2, 4, 4, 8)], SUM, "sum"))
    return b.output(b.node(ew.ADD, [y, x], SUM, "sum"))


@pytest.mark.parametrize("build", ["activated", "read twice", "output", "added to itself", "stretched", "stretching"])
def test_sums_that_are_no_residual_stay(build: str) -> None:
    rewritten(fuse_residual, _kept(build), 0)


def test_quantised_sums_keep_their_own_rounding() -> None:
    b = Build()
    x = b.input("x", 1, 4, 4, 8, dtype=DType.INT8, quant=Q)
    weights = b.constant(8, 1, 1, 8, dtype=DType.INT8, quant=Q)
    y = b.node(conv.CONV2D, [x, weights], conv.Conv2dAttrs(out_type=(DType.INT8, Q)), "conv")
    z = b.node(ew.ADD, [y, x], ew.BinaryAttrs(out_type=(DType.INT8, Q)), "sum")
    graph = b.output(b.node(ew.RELU, [z], ew.UnaryAttrs(out_type=(DType.INT8, Q)), "relu"))
    rewritten(fuse_residual, graph, 0)
    rewritten(fuse_activation, graph, 0)


def _widened(pad: mv.PadAttrs) -> Graph:
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    skip = b.node(mv.PAD, [x], pad, "skip")
    y = _conv(b, x, 12, "conv")
    return b.output(b.node(ew.ADD, [skip, y], SUM, "sum"))


def test_widened_skip_is_taken_narrow() -> None:
    graph = _widened(mv.PadAttrs((0, 0, 0, 0), (0, 0, 0, 4)))
    rewritten(fuse_residual, graph, 1)
    assert rewritten(fuse_channel_pad_add, graph, 1) == lines(
        "%sum = conv2d(%x, const [12x1x1x8], const [12], %x) -> float32[1x4x4x12]",
        "return %sum",
    )


def test_skip_with_more_rows_stays() -> None:
    b = Build()
    taller = b.node(mv.PAD, [b.input("s", 1, 3, 4, 8)], mv.PadAttrs((0, 0, 0, 0), (0, 1, 0, 4)), "skip")
    y = _conv(b, b.input("x", 1, 4, 4, 8), 12, "conv")
    graph = b.output(b.node(ew.ADD, [taller, y], SUM, "sum"))
    rewritten(fuse_residual, graph, 1)
    rewritten(fuse_channel_pad_add, graph, 0)


@pytest.mark.parametrize("pad", [mv.PadAttrs((0, 0, 0, 4), (0, 0, 0, 0)), mv.PadAttrs((0, 0, 0, 0), (0, 0, 0, 4), 1.0)])
def test_skip_widened_in_front_or_with_ones_stays(pad: mv.PadAttrs) -> None:
    graph = _widened(pad)
    rewritten(fuse_residual, graph, 1)
    rewritten(fuse_channel_pad_add, graph, 0)


CURVES = [ew.RELU, ew.RELU6, ew.RELU_N1_TO_1, ew.HARD_SWISH, ew.SIGMOID, ew.TANH, ew.SILU]


@pytest.mark.parametrize("op", CURVES, ids=lambda op: op.name)
def test_activation_moves_into_a_convolution(op: Op) -> None:
    b = Build()
    graph = b.output(b.node(op, [_conv(b, b.input("x", 1, 4, 4, 8), 8, "conv")], ONE, "y"))
    assert rewritten(fuse_activation, graph, 1) == lines(
        f"%y = conv2d(%x, const [8x1x1x8], const [8]) {op.name} -> float32[1x4x4x8]", "return %y"
    )


@pytest.mark.parametrize("op", [*CURVES, ew.ELU], ids=lambda op: op.name)
def test_sum_and_pool_take_clamps_only(op: Op) -> None:
    count = 1 if op in (ew.RELU, ew.RELU6, ew.RELU_N1_TO_1) else 0
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    rewritten(fuse_activation, b.output(b.node(op, [b.node(ew.ADD, [x, x], SUM, "sum")], NONE, "y")), count)
    b = Build()
    pooled = b.node(pool.MAX_POOL2D, [b.input("x", 1, 4, 4, 8)], pool.Pool2dAttrs((2, 2)), "pool")
    rewritten(fuse_activation, b.output(b.node(op, [pooled], NONE, "y")), count)


def test_a_silu_of_another_slope_stays() -> None:
    b = Build()
    y = _conv(b, b.input("x", 1, 4, 4, 8), 8, "conv")
    rewritten(fuse_activation, b.output(b.node(ew.SILU, [y], ew.UnaryAttrs(1.702), "y")), 0)


def test_clamp_to_six_is_relu6() -> None:
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    graph = b.output(b.node(ew.CLAMP, [_conv(b, x, 8, "conv")], ew.UnaryAttrs(0.0, 6.0), "y"))
    assert "relu6" in rewritten(fuse_activation, graph, 1)
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    rewritten(fuse_activation, b.output(b.node(ew.CLAMP, [_conv(b, x, 8, "conv")], ew.UnaryAttrs(0.0, 5.0), "y")), 0)


@pytest.mark.parametrize(("shape", "count"), [((8,), 1), ((1, 1, 8), 1), ((1,), 0), ((8, 4, 8), 0), ((8, 1, 1), 0)])
def test_prelu_needs_one_constant_slope_a_channel(shape: tuple[int, ...], count: int) -> None:
    b = Build()
    y = b.node(conv.CONV2D, [b.input("x", 1, 8, 4, 8), b.constant(8, 1, 1, 8)], PLAIN, "conv")
    slope = b.constant(*shape)
    graph = b.output(b.node(ew.PRELU, [y, slope], SUM, "y"))
    text = rewritten(fuse_activation, graph, count)
    if count:
        dims = "x".join(map(str, shape))
        assert text.startswith(f"%y = conv2d(%x, const [8x1x1x8], none, none, const [{dims}]) prelu ->")


def test_a_leak_is_one_slope_a_channel() -> None:
    b = Build()
    y = _conv(b, b.input("x", 1, 4, 4, 8), 3, "conv")
    graph = b.output(b.node(ew.LEAKY_RELU, [y], ew.UnaryAttrs(0.25), "y"))
    assert rewritten(fuse_activation, graph, 1) == lines(
        "%y = conv2d(%x, const [3x1x1x8], const [3]{0, 0, 0}, none, const [3]{0.25, 0.25, 0.25}) prelu "
        "-> float32[1x4x4x3]",
        "return %y",
    )


def test_prelu_with_a_computed_slope_stays() -> None:
    b = Build()
    y = _conv(b, b.input("x", 1, 4, 4, 8), 8, "conv")
    rewritten(fuse_activation, b.output(b.node(ew.PRELU, [y, b.input("s", 8)], SUM, "y")), 0)


def test_matrix_product_takes_curves_but_no_prelu() -> None:
    b = Build()
    y = b.node(matmul.MATMUL, [b.input("x", 2, 4), b.constant(4, 8)], matmul.MatmulAttrs(), "product")
    assert "sigmoid" in rewritten(fuse_activation, b.output(b.node(ew.SIGMOID, [y], NONE, "y")), 1)
    b = Build()
    y = b.node(matmul.MATMUL, [b.input("x", 2, 4), b.constant(4, 8)], matmul.MatmulAttrs(), "product")
    rewritten(fuse_activation, b.output(b.node(ew.PRELU, [y, b.constant(8)], SUM, "y")), 0)


def test_second_activation_and_shared_results_stay() -> None:
    b = Build()
    y = b.node(ew.RELU6, [_conv(b, b.input("x", 1, 4, 4, 8), 8, "conv")], NONE, "first")
    rewritten(fuse_activation, b.output(b.node(ew.TANH, [y], NONE, "y")), 1)
    b = Build()
    y = _conv(b, b.input("x", 1, 4, 4, 8), 8, "conv")
    rewritten(fuse_activation, b.output(b.node(ew.RELU, [y], NONE, "y"), y), 0)


def test_the_whole_pipeline_makes_a_blazeface_block_two_nodes() -> None:
    b = Build()
    x = b.input("x", 1, 8, 8, 24)
    taps = b.node(ew.DEQUANTIZE, [b.constant(1, 3, 3, 24, dtype=DType.FLOAT16)], ew.CastAttrs(DType.FLOAT32), "taps")
    deep = b.node(conv.DEPTHWISE_CONV2D, [x, taps], conv.Conv2dAttrs(pads=(1, 1, 1, 1)), "deep")
    wide = b.node(conv.CONV2D, [deep, b.constant(28, 1, 1, 24), b.constant(28)], PLAIN, "wide")
    skip = b.node(mv.PAD, [x], mv.PadAttrs((0, 0, 0, 0), (0, 0, 0, 4)), "skip")
    total = b.node(ew.ADD, [skip, wide], SUM, "total")
    graph = b.output(b.node(ew.PRELU, [total, b.constant(1, 1, 28)], SUM, "y"))
    counts = dict(optimize(graph))
    assert set(counts) == {rewrite.__name__ for rewrite in PIPELINE}
    assert {name: count for name, count in counts.items() if count} == {
        "dequantize_constants": 1,
        "fuse_residual": 1,
        "fuse_channel_pad_add": 1,
        "fuse_activation": 1,
    }
    assert rewritten(lambda g: sum(count for _, count in optimize(g)), graph, 0) == lines(
        "%deep = depthwise_conv2d(%x, const float16 [1x3x3x24]) pads=1,1,1,1 -> float32[1x8x8x24]",
        "%y = conv2d(%deep, const [28x1x1x24], const [28], %x, const [1x1x28]) prelu -> float32[1x8x8x28]",
        "return %y",
    )


def test_one_number_a_channel_and_a_residual_go_into_one_convolution() -> None:
    b = Build()
    x = b.input("x", 1, 4, 4, 8)
    y = b.node(conv.CONV2D, [x, b.constant(8, 1, 1, 8)], PLAIN, "conv")
    graph = b.output(b.node(ew.ADD, [b.node(ew.ADD, [y, b.constant(8)], SUM, "shifted"), x], SUM, "sum"))
    assert rewritten(fuse_residual, graph, 2).startswith("%sum = conv2d(%x, const [8x1x1x8], const [8], %x) ->")
