"""Transposes around what does not mind the order of axes."""

from __future__ import annotations

from tests.passes.building import Build, Q, lines, rewritten

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Value
from webinfer.ops import conv
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.passes.eliminate_transposes import eliminate_transposes
from webinfer.passes.pipeline import optimize

TO_FIRST, TO_LAST = mv.TransposeAttrs((0, 3, 1, 2)), mv.TransposeAttrs((0, 2, 3, 1))


def _first(b: Build, value: Value, name: str) -> Value:
    """The value with its channels first."""
    return b.node(mv.TRANSPOSE, [value], TO_FIRST, name)


def _convolved(b: Build, value: Value, name: str) -> Value:
    """A 3x3 convolution as files of channels-first models have it: a padding, a transpose, the window."""
    padded = b.node(mv.PAD, [value], mv.PadAttrs((0, 0, 1, 1), (0, 0, 1, 1)), f"{name}_padded")
    last = b.node(mv.TRANSPOSE, [padded], TO_LAST, f"{name}_last")
    return b.node(conv.CONV2D, [last, b.constant(4, 3, 3, 4)], conv.Conv2dAttrs(), name)


def _ops(graph: Graph) -> list[str]:
    optimize(graph)
    return [node.op.name for node in graph.nodes]


def test_an_activation_and_a_padding_are_turned_to_the_convolution_behind_them() -> None:
    b = Build()
    active = b.node(ew.RELU, [_first(b, b.input("x", 1, 5, 6, 4), "t")], ew.UnaryAttrs(), "r")
    graph = b.output(_convolved(b, active, "y"))
    assert rewritten(eliminate_transposes, graph, 2) == lines(
        "%r = relu(%x) -> float32[1x5x6x4]",
        "%y_padded = pad(%r) before=0,1,1,0 after=0,1,1,0 -> float32[1x7x8x4]",
        "%y = conv2d(%y_padded, const [4x3x3x4]) -> float32[1x5x6x4]",
        "return %y",
    )


def test_sums_and_concatenations_of_branches_lose_their_transposes() -> None:
    b = Build()
    x = _first(b, b.input("x", 1, 5, 6, 4), "t")
    branch = _first(b, _convolved(b, x, "a"), "ta")
    both = b.node(mv.CONCAT, [b.node(ew.ADD, [branch, x], ew.BinaryAttrs(), "s"), x], mv.ConcatAttrs(1), "c")
    scaled = b.node(ew.MUL, [both, b.constant(1, 8, 1, 1)], ew.BinaryAttrs(), "m")
    graph = b.output(b.node(mv.TRANSPOSE, [scaled], TO_LAST, "y"))
    assert _ops(graph) == ["conv2d", "concat", "mul"]
    assert graph.nodes[1].attrs == mv.ConcatAttrs(3)
    assert graph.outputs[0].type.shape == (1, 5, 6, 8)


def test_quantised_values_keep_their_scale() -> None:
    b = Build()
    x = b.input("x", 1, 5, 6, 4, dtype=DType.INT8, quant=Q)
    active = b.node(ew.LEAKY_RELU, [_first(b, x, "t")], ew.UnaryAttrs(0.1, 0.0, (DType.INT8, Q)), "r")
    graph = b.output(b.node(mv.TRANSPOSE, [active], TO_LAST, "y"))
    assert _ops(graph) == ["leaky_relu"]
    assert graph.nodes[0].output.type == x.type


def test_nothing_is_turned_where_that_saves_nothing() -> None:
    b = Build()
    x = b.input("x", 1, 4, 5, 6)
    active = b.node(ew.RELU, [x], ew.UnaryAttrs(), "r")
    last = b.node(mv.TRANSPOSE, [active], TO_LAST, "l")
    again = b.node(ew.RELU, [_first(b, last, "f")], ew.UnaryAttrs(), "r2")
    graph = b.output(active, last, again)
    rewritten(eliminate_transposes, graph, 0)


def test_rows_of_many_scales_and_other_ranks_stay() -> None:
    b = Build()
    t = _first(b, b.input("x", 1, 5, 6, 4), "t")
    summed = b.node(ew.ADD, [t, b.constant(5, 6)], ew.BinaryAttrs(), "s")
    graph = b.output(b.node(mv.TRANSPOSE, [summed], TO_LAST, "y"))
    rewritten(eliminate_transposes, graph, 0)
