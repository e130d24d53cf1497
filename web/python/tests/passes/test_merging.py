"""Pads into windows, chains into dilation, moves into nothing."""

from __future__ import annotations

import pytest
from tests.passes.building import Build, Q, lines, rewritten

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Op, Quantization, Value, apply
from webinfer.ops import conv, matmul, pool
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.passes.eliminate_dead import eliminate_dead
from webinfer.passes.merge_moves import merge_moves
from webinfer.rewrite.rules_windows import absorb_pads, merge_dilation

IMAGE = mv.PadAttrs((0, 1, 2, 0), (0, 3, 4, 0))


def _padded(op: Op, window: tuple[int, ...], attrs: object, pad: mv.PadAttrs, source: Op | None = None) -> Graph:
    b = Build()
    x = b.input("x", 1, 8, 8, 4)
    if source is not None:
        x = b.node(source, [x], ew.UnaryAttrs(), "s")
    padded = b.node(mv.PAD, [x], pad, "p")
    return b.output(b.node(op, [padded, *([b.constant(*window)] if window else [])], attrs, "y"))


def test_zero_pad_moves_into_a_convolution() -> None:
    graph = _padded(conv.CONV2D, (6, 3, 3, 4), conv.Conv2dAttrs(stride=(2, 2), pads=(1, 0, 1, 0)), IMAGE)
    assert rewritten(absorb_pads, graph, 1) == lines(
        "%y = conv2d(%x, const [6x3x3x4]) stride=2x2 pads=2,3,3,4 -> float32[1x6x7x6]", "return %y"
    )


def _product(pad: mv.PadAttrs, attrs: matmul.MatmulAttrs, *weights: int) -> Graph:
    b = Build()
    padded = b.node(mv.PAD, [b.input("x", 6, 400)], pad, "p")
    rows = b.node(mv.RESHAPE, [padded], mv.ReshapeAttrs((6, 1, 512)), "r")
    return b.output(b.node(matmul.MATMUL, [rows, b.constant(*weights)], attrs, "y"))


def test_zeros_at_the_ends_of_rows_leave_a_product_with_their_weights() -> None:
    graph = _product(mv.PadAttrs((0, 12), (0, 100)), matmul.MatmulAttrs(), 512, 9)
    assert rewritten(absorb_pads, graph, 1) == lines(
        "%r = reshape(%x) shape=6x1x400 -> float32[6x1x400]",
        "%y = matmul(%r, const [400x9]) -> float32[6x1x9]",
        "return %y",
    )
    weights = graph.nodes[1].required_input(1).constant
    assert weights is not None
    assert weights.data.nbytes == 4 * 400 * 9


@pytest.mark.parametrize(
    "graph",
    [
        _product(mv.PadAttrs((0, 0), (0, 112), 1.0), matmul.MatmulAttrs(), 512, 9),
        _product(mv.PadAttrs((0, 0), (0, 112), mode="edge"), matmul.MatmulAttrs(), 512, 9),
        _product(mv.PadAttrs((0, 0), (0, 112)), matmul.MatmulAttrs(transpose_b=True), 9, 512),
    ],
    ids=["ones", "edge", "columns"],
)
def test_other_paddings_of_rows_stay(graph: Graph) -> None:
    rewritten(absorb_pads, graph, 0)


def test_zero_pad_moves_into_a_depthwise_convolution() -> None:
    graph = _padded(conv.DEPTHWISE_CONV2D, (1, 3, 3, 4), conv.Conv2dAttrs(), IMAGE)
    assert "pads=1,3,2,4 -> float32[1x10x12x4]" in rewritten(absorb_pads, graph, 1)


def test_a_pad_with_two_readers_moves_into_the_one_that_can_take_it() -> None:
    b = Build()
    padded = b.node(mv.PAD, [b.input("x", 1, 8, 8, 4)], IMAGE, "p")
    first = b.node(conv.CONV2D, [padded, b.constant(4, 1, 1, 4)], conv.Conv2dAttrs(), "a")
    graph = b.output(b.node(ew.ADD, [first, padded], ew.BinaryAttrs(), "y"))
    rewritten(absorb_pads, graph, 1)
    assert rewritten(eliminate_dead, graph, 0).startswith("%p = pad(%x)")


def test_quantised_pad_moves_only_if_it_is_the_zero_point() -> None:
    for value, count in ((3.0, 1), (0.0, 0)):
        b = Build()
        x = b.input("x", 1, 8, 8, 4, dtype=DType.INT8, quant=Q)
        padded = b.node(mv.PAD, [x], mv.PadAttrs(IMAGE.before, IMAGE.after, value), "p")
        weights = b.constant(6, 3, 3, 4, dtype=DType.INT8, quant=Q)
        attrs = conv.Conv2dAttrs(out_type=(DType.INT8, Q))
        rewritten(absorb_pads, b.output(b.node(conv.CONV2D, [padded, weights], attrs, "y")), count)


@pytest.mark.parametrize(
    "pad",
    [
        mv.PadAttrs((0, 1, 1, 0), (0, 1, 1, 0), 1.0),
        mv.PadAttrs((0, 1, 1, 0), (0, 1, 1, 0), mode="reflect"),
        mv.PadAttrs((0, 0, 0, 0), (1, 0, 0, 0)),
    ],
    ids=["ones", "reflected", "batch"],
)
def test_other_pads_stay(pad: mv.PadAttrs) -> None:
    rewritten(absorb_pads, _padded(conv.CONV2D, (6, 3, 3, 4), conv.Conv2dAttrs(), pad), 0)


def test_average_pooling_keeps_its_pad_as_it_counts_the_pixels() -> None:
    rewritten(
        absorb_pads,
        _padded(pool.AVERAGE_POOL2D, (), pool.Pool2dAttrs((3, 3)), mv.PadAttrs((0, 1, 1, 0), (0, 1, 1, 0))),
        0,
    )


ONE = mv.PadAttrs((0, 1, 1, 0), (0, 1, 1, 0))


def test_maximum_takes_a_pad_that_can_never_win() -> None:
    wide = pool.Pool2dAttrs((3, 3), (2, 2))
    assert "pads=1,1,1,1" in rewritten(absorb_pads, _padded(pool.MAX_POOL2D, (), wide, ONE, ew.RELU), 1)
    lowest = mv.PadAttrs(ONE.before, ONE.after, -float("inf"))
    assert "pads=1,1,1,1" in rewritten(absorb_pads, _padded(pool.MAX_POOL2D, (), wide, lowest), 1)


def test_maximum_keeps_a_pad_that_could_win() -> None:
    wide = pool.Pool2dAttrs((3, 3), (2, 2))
    rewritten(absorb_pads, _padded(pool.MAX_POOL2D, (), wide, ONE), 0)
    rewritten(absorb_pads, _padded(pool.MAX_POOL2D, (), wide, ONE, ew.TANH), 0)
    narrow = pool.Pool2dAttrs((1, 1))
    rewritten(absorb_pads, _padded(pool.MAX_POOL2D, (), narrow, ONE, ew.RELU), 0)


NONE_OF_CHANNELS = ((0, 2, 2, 0), (0, 2, 2, 0))


def _blocked(
    crop: bool,
    edges: tuple[tuple[int, ...], tuple[int, ...]] = NONE_OF_CHANNELS,
    dtype: DType = DType.FLOAT32,
    quant: Quantization | None = None,
    fill: float = 0.0,
) -> Graph:
    b = Build()
    x = b.input("x", 1, 10, 10, 4, dtype=dtype, quant=quant)
    x = b.node(mv.PAD, [x], mv.PadAttrs(*edges, fill), "pad")
    c = x.type.shape[3]
    x = b.node(mv.RESHAPE, [x], mv.ReshapeAttrs((1, 7, 2, 7, 2, c)), "split")
    x = b.node(mv.TRANSPOSE, [x], mv.TransposeAttrs((2, 4, 0, 1, 3, 5)), "turn")
    x = b.node(mv.RESHAPE, [x], mv.ReshapeAttrs((4, 7, 7, c)), "batch")
    weights = b.constant(1, 3, 3, c, dtype=dtype, quant=quant)
    attrs = conv.Conv2dAttrs(out_type=(dtype, quant) if quant else None)
    x = b.node(conv.DEPTHWISE_CONV2D, [x, weights], attrs, "conv")
    x = b.node(mv.RESHAPE, [x], mv.ReshapeAttrs((2, 2, 1, 5, 5, c)), "unsplit")
    x = b.node(mv.TRANSPOSE, [x], mv.TransposeAttrs((2, 3, 0, 4, 1, 5)), "unturn")
    x = b.node(mv.RESHAPE, [x], mv.ReshapeAttrs((1, 10, 10, c)), "y")
    if crop:
        x = b.node(mv.SLICE, [x], mv.SliceAttrs((0, 0, 0, 0), (1, 9, 8, 4), (1, 1, 1, 1)), "z")
    return b.output(x)


def test_blocks_around_a_convolution_are_its_dilation() -> None:
    assert rewritten(merge_dilation, _blocked(crop=False), 2) == lines(
        "%y = depthwise_conv2d(%x, const [1x3x3x4]) pads=2,2,2,2 dilation=2x2 -> float32[1x10x10x4]", "return %y"
    )


def test_cropped_rows_were_never_padded() -> None:
    assert "pads=2,1,2,0 dilation=2x2 -> float32[1x9x8x4]" in rewritten(merge_dilation, _blocked(crop=True), 3)


def _moved(*steps: tuple[Op, object], shape: tuple[int, ...] = (2, 3, 4)) -> Graph:
    b = Build()
    x: Value = b.node(ew.ABS, [b.input("x", *shape)], ew.UnaryAttrs(), "s")
    for i, (op, attrs) in enumerate(steps):
        x = b.node(op, [x], attrs, f"m{i}")
    return b.output(b.node(ew.NEG, [x], ew.UnaryAttrs(), "y"))


def test_reshapes_in_a_row_become_one() -> None:
    graph = _moved((mv.RESHAPE, mv.ReshapeAttrs((6, 4))), (mv.RESHAPE, mv.ReshapeAttrs((24,))))
    rewritten(merge_moves, graph, 1)
    assert "%m1 = reshape(%s) shape=24" in rewritten(eliminate_dead, graph, 1)


def test_reshapes_there_and_back_disappear() -> None:
    graph = _moved((mv.RESHAPE, mv.ReshapeAttrs((6, 4))), (mv.RESHAPE, mv.ReshapeAttrs((2, 3, 4))))
    rewritten(merge_moves, graph, 2)
    assert rewritten(eliminate_dead, graph, 1) == lines(
        "%s = abs(%x) -> float32[2x3x4]", "%y = neg(%s) -> float32[2x3x4]", "return %y"
    )


def test_transposes_in_a_row_become_one() -> None:
    graph = _moved((mv.TRANSPOSE, mv.TransposeAttrs((1, 2, 0))), (mv.TRANSPOSE, mv.TransposeAttrs((1, 0, 2))))
    rewritten(merge_moves, graph, 1)
    assert "%m1 = transpose(%s) perm=2,1,0" in rewritten(eliminate_dead, graph, 1)


def test_transpose_of_axes_of_one_is_a_reshape() -> None:
    graph = _moved((mv.TRANSPOSE, mv.TransposeAttrs((1, 0, 2))), shape=(1, 3, 4))
    assert "%m0 = reshape(%s) shape=3x1x4" in rewritten(merge_moves, graph, 1)


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        (ew.IDENTITY, ew.UnaryAttrs()),
        (mv.RESHAPE, mv.ReshapeAttrs((2, 3, 4))),
        (mv.TRANSPOSE, mv.TransposeAttrs((0, 1, 2))),
        (mv.SLICE, mv.SliceAttrs((0, 0, 0), (2, 3, 4), (1, 1, 1))),
        (mv.EXPAND, mv.ExpandAttrs((2, 3, 4))),
        (mv.TILE, mv.TileAttrs((1, 1, 1))),
        (mv.PAD, mv.PadAttrs((0, 0, 0), (0, 0, 0))),
        (mv.CONCAT, mv.ConcatAttrs(1)),
        (ew.CAST, ew.CastAttrs(DType.FLOAT32)),
    ],
    ids=lambda value: value.name if isinstance(value, Op) else "",
)
def test_moves_that_change_nothing_disappear(op: Op, attrs: object) -> None:
    assert rewritten(merge_moves, _moved((op, attrs)), 1) == lines(
        "%s = abs(%x) -> float32[2x3x4]", "%y = neg(%s) -> float32[2x3x4]", "return %y"
    )


@pytest.mark.parametrize("op", [mv.DEPTH_TO_SPACE, mv.SPACE_TO_DEPTH], ids=lambda op: op.name)
def test_blocks_of_one_pixel_disappear(op: Op) -> None:
    assert rewritten(merge_moves, _moved((op, mv.BlockAttrs(1)), shape=(1, 2, 3, 4)), 1) == lines(
        "%s = abs(%x) -> float32[1x2x3x4]", "%y = neg(%s) -> float32[1x2x3x4]", "return %y"
    )


def test_every_reader_of_a_chain_reads_its_beginning() -> None:
    b = Build()
    first = b.node(ew.ABS, [b.input("x", 2)], ew.UnaryAttrs(), "s")
    middle = b.node(ew.IDENTITY, [first], ew.UnaryAttrs(), "m")
    last = b.node(ew.IDENTITY, [middle], ew.UnaryAttrs(), "l")
    readers = [b.node(ew.NEG, [v], ew.UnaryAttrs(), f"y{i}") for i, v in enumerate((last, middle, last))]
    graph = b.output(*readers)
    rewritten(merge_moves, graph, 2)
    assert [node.inputs for node in graph.nodes[1:]] == [[first]] * 3


def test_reversal_and_square_transposes_are_no_identities() -> None:
    b = Build()
    x = b.input("x", 3, 3)
    turned = b.node(mv.TRANSPOSE, [x], mv.TransposeAttrs((1, 0)), "t")
    back = b.node(mv.SLICE, [turned], mv.SliceAttrs((2, 0), (3, 3), (-1, 1)), "y")
    rewritten(merge_moves, b.output(back), 0)


def test_an_output_keeps_its_name_when_its_identity_goes() -> None:
    b = Build()
    first = b.node(ew.ABS, [b.input("x", 2)], ew.UnaryAttrs(), "inner")
    graph = b.output(b.node(ew.IDENTITY, [first], ew.UnaryAttrs(), "result"))
    assert rewritten(merge_moves, graph, 1) == lines("%result = abs(%x) -> float32[2]", "return %result")


def test_outputs_that_are_inputs_or_twice_the_same_stay_apart() -> None:
    b = Build()
    x = b.input("x", 2)
    first = b.node(ew.ABS, [x], ew.UnaryAttrs(), "a")
    copies = [
        b.node(ew.IDENTITY, [source], ew.UnaryAttrs(), name) for source, name in ((x, "p"), (first, "q"), (first, "r"))
    ]
    graph = b.output(*copies)
    rewritten(merge_moves, graph, 1)
    assert [v.name for v in graph.outputs] == ["p", "q", "r"]
    assert len(set(graph.outputs)) == 3
    assert not set(graph.outputs) & set(graph.inputs)


def test_outputs_that_are_one_value_behind_a_transpose_stay_written() -> None:
    b = Build()
    last = b.node(
        mv.TRANSPOSE,
        [b.node(ew.RELU, [b.input("x", 2, 3, 4)], ew.UnaryAttrs(), "first")],
        mv.TransposeAttrs((2, 0, 1)),
        "last",
    )
    graph = b.output(*(b.node(mv.TRANSPOSE, [last], mv.TransposeAttrs((1, 2, 0)), name) for name in ("p", "q")))
    assert rewritten(merge_moves, graph, 3) == lines(
        "%p = relu(%x) -> float32[2x3x4]",
        "%last = transpose(%p) perm=2,0,1 -> float32[4x2x3]",
        "%q = transpose(%p) perm=0,1,2 -> float32[2x3x4]",
        "return %p, %q",
    )


def test_dead_nodes_go_and_inputs_stay() -> None:
    b = Build()
    x = b.input("x", 2)
    b.input("unused", 2)
    alive = b.node(ew.ABS, [x], ew.UnaryAttrs(), "y")
    dead = b.node(ew.NEG, [x], ew.UnaryAttrs(), "d")
    b.node(ew.NEG, [dead], ew.UnaryAttrs(), "e")
    graph = b.output(alive)
    assert rewritten(eliminate_dead, graph, 2) == lines("%y = abs(%x) -> float32[2]", "return %y")
    assert len(graph.inputs) == 2


def test_quantised_pads_are_those_of_a_dilation_if_they_hold_the_zero_point() -> None:
    for fill, pads, count in ((3.0, "pads=2,2,2,2", 2), (0.0, "conv2d(%pad, ", 1)):
        assert pads in rewritten(merge_dilation, _blocked(crop=False, dtype=DType.INT8, quant=Q, fill=fill), count)


@pytest.mark.parametrize("edges", [((0, 2, 2, 4), (0, 2, 2, 0)), ((0, 2, 2, 0), (0, 2, 2, 4))], ids=["before", "after"])
def test_padded_channels_are_no_pads_of_a_dilation(edges: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert "conv2d(%pad, " in rewritten(merge_dilation, _blocked(crop=False, edges=edges), 1)


def test_other_convolutions_do_not_hide_a_dilation() -> None:
    graph = _blocked(crop=False)
    for number, attrs in enumerate((conv.Conv2dAttrs(), conv.Conv2dAttrs(stride=(2, 2)))):
        other = apply(conv.CONV2D, [graph.inputs[0], Build().constant(4, 3, 3, 4)], attrs, name=f"other{number}")
        graph.nodes.insert(0, other)
        graph.outputs.append(other.output)
    assert "dilation=2x2" in rewritten(merge_dilation, graph, 2)
