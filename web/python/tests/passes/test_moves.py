"""Gathers of one element are slices, and sums of a reshaped product are those of the product."""

from __future__ import annotations

import pytest
from tests.passes.building import Build, lines, rewritten

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, TensorType, Value
from webinfer.ops import elementwise as ew
from webinfer.ops import gather as ga
from webinfer.ops import matmul as mm
from webinfer.ops import movement as mv
from webinfer.ops.attention import ATTENTION, AttentionAttrs
from webinfer.rewrite.rules_attention import fuse_attention
from webinfer.rewrite.rules_moves import open_moves


def _picked(*positions: int, rank: int = 0, dtype: DType = DType.INT64) -> Graph:
    b = Build()
    data = b"".join(at.to_bytes(dtype.itemsize, "little", signed=True) for at in positions)
    shape = (len(positions),) if rank else ()
    at = Value("at", TensorType(shape, dtype), Constant(memoryview(data), dtype))
    return b.output(b.node(ga.GATHER, [b.input("x", 4, 3, 8), at], ga.GatherAttrs(1), "y"))


@pytest.mark.parametrize(("at", "start"), [(0, 0), (2, 2), (-1, 2), (-3, 0)])
@pytest.mark.parametrize("dtype", [DType.INT64, DType.INT32])
def test_one_element_of_an_axis_is_a_slice(at: int, start: int, dtype: DType) -> None:
    assert rewritten(open_moves, _picked(at, dtype=dtype), 1) == lines(
        f"%y = slice(%x) starts=0,{start},0 sizes=4,1,8 steps=1,1,1 -> float32[4x1x8]",
        "%y.2 = reshape(%y) shape=4x8 -> float32[4x8]",
        "return %y.2",
    )
    assert "reshape" not in rewritten(open_moves, _picked(at, rank=1, dtype=dtype), 1)


def test_several_elements_and_such_as_are_not_there_stay_a_gather() -> None:
    for graph in (_picked(0, 1, rank=1), _picked(3), _picked(-4)):
        assert "gather" in rewritten(open_moves, graph, 0)


def _sum(shape: tuple[int, ...], other: tuple[int, ...], read: bool = False, swapped: bool = False) -> Graph:
    b = Build()
    product = b.node(mm.MATMUL, [b.input("x", 6, 8), b.constant(8, 4)], mm.MatmulAttrs(), "p")
    turned = b.node(mv.RESHAPE, [product], mv.ReshapeAttrs(shape), "r")
    operands = [turned, b.input("o", *other)]
    y = b.node(ew.ADD, operands[::-1] if swapped else operands, ew.BinaryAttrs(), "y")
    return b.output(y, *([turned] if read else []))


@pytest.mark.parametrize("swapped", [False, True])
def test_a_sum_goes_before_the_reshape_of_a_product(swapped: bool) -> None:
    text = rewritten(open_moves, _sum((6, 1, 4), (6, 1, 4), swapped=swapped), 1)
    assert text == lines(
        "%p = matmul(%x, const [8x4]) -> float32[6x4]",
        "%y = reshape(%o) shape=6x4 -> float32[6x4]",
        "%y.2 = add(%p, %y) -> float32[6x4]",
        "%y.3 = reshape(%y.2) shape=6x1x4 -> float32[6x1x4]",
        "return %y.3",
    )


def test_sums_that_repeat_an_operand_or_whose_product_is_read_stay() -> None:
    for graph in (_sum((6, 1, 4), (6, 3, 4)), _sum((6, 1, 4), (4,)), _sum((6, 1, 4), (6, 1, 4), read=True)):
        rewritten(open_moves, graph, 0)


@pytest.mark.parametrize(
    ("perm", "count"), [((2, 0, 1, 3), 1), ((0, 2, 1, 3), 1), ((2, 1, 0, 3), 1), ((1, 0, 2, 3), 0)]
)
def test_heads_of_a_batch_alone_are_turned_back_wherever_its_axis_goes(perm: tuple[int, ...], count: int) -> None:
    b = Build()
    inputs = [b.input(name, 1, 2, 5, 4) for name in "qkv"]
    y = b.node(ATTENTION, inputs, AttentionAttrs(), "a")
    graph = b.output(b.node(mv.TRANSPOSE, [y], mv.TransposeAttrs(perm), "y"))
    text = rewritten(fuse_attention, graph, count)
    assert ("transpose" in text) == (not count)
