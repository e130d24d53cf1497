"""What is done with each row of a tensor becomes one walk of all rows."""

from __future__ import annotations

import dataclasses

import pytest
from tests.passes.building import Build, lines, rewritten

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Value
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops import suppression
from webinfer.passes.batch_rows import batch_rows, join_suppressions
from webinfer.passes.eliminate_dead import eliminate_dead

BEST = suppression.NonMaxSuppressionAttrs(2, 0.5)


def _row(b: Build, x: Value, row: int, shape: tuple[int, ...]) -> Value:
    attrs = mv.SliceAttrs((row, 0), (1, x.type.shape[1]), (1, 1))
    return b.node(mv.RESHAPE, [b.node(mv.SLICE, [x], attrs, f"s{row}")], mv.ReshapeAttrs(shape), f"r{row}")


def _suppressions(*rows: int, changed: int | None = None) -> Graph:
    b = Build()
    boxes, scores, found = b.input("boxes", 6, 4), b.input("scores", 5, 6), []
    for row in rows:
        attrs = dataclasses.replace(BEST, overlap=0.25) if row == changed else BEST
        list_ = _row(b, scores, row, (6,))
        found.append(b.node(suppression.NON_MAX_SUPPRESSION, [boxes, list_], attrs, f"n{row}"))
    return b.output(*found)


def test_suppressions_by_rows_of_scores_are_one() -> None:
    graph = _suppressions(2, 1, 3)
    rewritten(join_suppressions, graph, 3)
    shown = rewritten(eliminate_dead, graph, 6)
    assert shown.count("non_max_suppression") == 1
    assert "%suppressions:0, %suppressions:1, %suppressions:2 = non_max_suppression(%boxes, %scores:rows)" in shown
    assert "slice(%scores:flat) starts=6 sizes=18 steps=1" in shown
    starts = ("2", "0", "4")  # of rows 2, 1 and 3, of two numbers each, behind row 1
    for name, start in zip(("n2", "n1", "n3"), starts, strict=True):
        assert f"starts={start} sizes=2 steps=1 -> int32[2]" in shown
        assert f"%{name}:0 = reshape(%suppressions:0:{start}) shape=2" in shown
    assert shown.endswith("return %n2:0, %n1:0, %n3:0")


@pytest.mark.parametrize("rows", [(0, 2), (0, 0), (4,)], ids=["with a gap", "one row twice", "alone"])
def test_other_suppressions_stay(rows: tuple[int, ...]) -> None:
    rewritten(join_suppressions, _suppressions(*rows), 0)


def test_suppressions_of_other_thresholds_stay() -> None:
    rewritten(join_suppressions, _suppressions(0, 1, changed=1), 0)


def _numbered(values: tuple[float, ...], *, side: int = 1, order: tuple[int, ...] = (0, 1, 2)) -> Graph:
    b = Build()
    x, rows = b.input("x", 3, 2, dtype=DType.INT32), []
    for row in order:
        wide = b.node(ew.CAST, [_row(b, x, row, (1, 2))], ew.CastAttrs(DType.INT64), f"c{row}")
        before, after = ((0, 1), (0, 0)) if side == 1 else ((0, 0), (0, 1))
        rows.append(b.node(mv.PAD, [wide], mv.PadAttrs(before, after, values[row]), f"p{row}"))
    first = b.node(mv.CONCAT, rows[:2], mv.ConcatAttrs(0), "first")
    return b.output(b.node(mv.CONCAT, [first, *rows[2:]], mv.ConcatAttrs(0), "y"))


def test_rows_with_the_same_value_are_padded_at_once() -> None:
    graph = _numbered((7.0, 7.0, 7.0))
    rewritten(batch_rows, graph, 1)
    rewritten(eliminate_dead, graph, 13)
    shown = [line.split(" = ")[1].split("(")[0] for line in rewritten(eliminate_dead, graph, 0).splitlines()[:-1]]
    assert shown == ["reshape", "reshape", "cast", "pad", "reshape"]


@pytest.mark.parametrize("side", [1, -1], ids=["before", "after"])
def test_rows_with_a_number_each_get_a_column(side: int) -> None:
    graph = _numbered((0.0, 1.0, 2.0), side=side)
    rewritten(batch_rows, graph, 1)
    rewritten(eliminate_dead, graph, 13)
    concat = graph.nodes[3]
    numbers = concat.required_input(0 if side == 1 else 1)
    assert (concat.op, concat.attrs.axis) == (mv.CONCAT, 2)
    assert (numbers.numbers(), numbers.type.shape, numbers.type.dtype) == ((0, 1, 2), (3, 1, 1), DType.INT64)
    assert rewritten(eliminate_dead, graph, 0) == lines(
        "%x:flat = reshape(%x) shape=6 -> int32[6]",
        "%x:rows = reshape(%x:flat) shape=3x1x2 -> int32[3x1x2]",
        *rewritten(eliminate_dead, graph, 0).splitlines()[2:4],
        "%y = reshape(%p0) shape=3x3 -> int64[3x3]",
        "return %y",
    )


def test_rows_in_another_order_stay() -> None:
    rewritten(batch_rows, _numbered((0.0, 1.0, 2.0), order=(1, 0, 2)), 0)
