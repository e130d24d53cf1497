"""Kernels that operators describe: one text for all sizes, and only what a text may do."""

from __future__ import annotations

from collections import defaultdict

import pytest

from webinfer.codegen.kernels import ShaderForm, described, index_text
from webinfer.codegen.reductions import Reduced
from webinfer.expr.formula import Formula, X, bit_and, clamp, select
from webinfer.expr.kernel import (
    Kernel,
    Kind,
    Tensor,
    along,
    axes,
    element,
    fixed_sizes,
    largest,
    lengths,
    shift_right,
    sizes,
    total,
    within,
)
from webinfer.expr.reduction import COUNT, Join, ReductionRow
from webinfer.graph.ir import Case
from webinfer.ops import OPS
from webinfer.ops.reduce import REDUCTIONS

DESCRIBED = [op for op in OPS.values() if op.kernel is not None]
BY_RANK = ("pad", "where")  # whose texts follow which axes are padded or repeated


def kernel_of(name: str, case: Case) -> Kernel:
    op, inputs = OPS[name], [t for t in case.inputs if t is not None]
    assert op.kernel is not None
    kernel: Kernel = op.kernel(inputs, op.infer(inputs, case.attrs), case.attrs)
    return kernel


@pytest.mark.parametrize("op", [op for op in DESCRIBED if op.name not in BY_RANK], ids=lambda op: op.name)
def test_sizes_are_parameters(op: object) -> None:
    texts: dict[str, set[str]] = defaultdict(set)
    for case in op.cases:  # type: ignore[attr-defined]
        kernel = kernel_of(op.name, case)  # type: ignore[attr-defined]
        texts[kernel.name].add(described(kernel, ShaderForm()).text)
    assert texts
    assert all(len(found) == 1 for found in texts.values())


def test_rows_go_by_quads_where_only_places_depend_on_the_last_axis() -> None:
    cases = {op.name: op.cases[0] for op in DESCRIBED}
    moving = {name for name, case in cases.items() if kernel_of(name, case).moves_rows()}
    assert moving >= {"gather", "gather_nd", "pad", "resize_nearest", "resize_bilinear"}
    assert not moving & {"gather_elements", "one_hot", "triangular", "where", "max_unpool2d", "transform_landmarks"}


def test_a_row_that_is_a_condition_or_a_position_is_no_quad() -> None:
    rows, n = sizes(rows=3, n=8)
    x, p = Tensor("x", (rows, n)), Tensor("p", (rows, n), Kind.INDEX)
    r, i = axes(r=rows, i=n)
    assert Kernel("moved", (x,), (r, i), x[r, i]).moves_rows()
    assert not Kernel("asked", (x, p), (r, i), select(p[r, i] > 0, x[r, i], element("none", 0))).moves_rows()
    assert not Kernel("found", (x, p), (r, i), x[r, within(p[r, i], n)]).moves_rows()
    k = along("k", n)
    assert not Kernel("as_long", (x,), (r, i), total(k, x[r, i]), Kind.NUMBER).moves_rows()


def test_an_axis_that_is_not_the_outermost_is_no_row_number() -> None:
    batch, rows, n = sizes(batch=2, rows=3, n=8)
    shared = Tensor("x", (rows, n))
    b, r, i = axes(b=batch, r=rows, i=n)
    text = described(Kernel("shared", (shared,), (b, r, i), shared[r, i]), ShaderForm()).text
    assert "load_x(u32(r * params.n + i))" in text
    whole = Tensor("x", (batch, rows, n))
    assert "load_x(u32(to_i))" in described(Kernel("whole", (whole,), (b, r, i), whole[b, r, i]), ShaderForm()).text


def test_what_stands_twice_is_computed_once_and_a_block_keeps_its_names() -> None:
    outer, depth = lengths((3, 5), outer=1, depth=2)
    x = Tensor("x", (outer, depth), Kind.NUMBER)
    (o, d), k = axes(o=outer, d=depth), along("k", depth)
    square = x[o, k] * x[o, k]
    text = described(Kernel("twice", (x,), (o, d), total(k, square + square) + x[o, d], Kind.NUMBER), ShaderForm()).text
    assert text.count("load_x(u32(o * params.depth + k)) * ") == 1
    where = largest(k, k, -1, where=x[o, k] > 0)
    text = described(Kernel("last", (x,), (o, d), where + d, Kind.INDEX), ShaderForm()).text
    assert "if (load_x(u32(o * params.depth + k)) > 0) {\n            v0 = max(v0, k);" in text


def test_names_are_checked() -> None:
    rows, n = sizes(rows=3, n=4)
    x = Tensor("x", (rows, n))
    r, i = axes(r=rows, i=n)
    with pytest.raises(ValueError, match="stands twice or is reserved"):
        Kernel("twice", (x, Tensor("x", (n,))), (r, i), x[r, i])
    (line,) = sizes(line=2)
    with pytest.raises(ValueError, match="stands twice or is reserved"):
        Kernel("reserved", (x,), (r, i), x[r, i] + line)
    with pytest.raises(ValueError, match="one axis"):
        Kernel("flat", (x,), (r,), x[r, 0])
    with pytest.raises(ValueError, match="2 axes and is read at 1"):
        x[r]


@pytest.mark.parametrize("row", [row for row in REDUCTIONS.values() if row], ids=str)
def test_a_reduction_in_two_passes_takes_and_ends_once(row: ReductionRow) -> None:
    first, last = row.passes()
    assert (first.take, first.join, first.end) == (row.take, row.join, X)
    assert (last.take, last.join, last.end) == (X, row.join, row.end)
    assert last.passes()[1] == last


def test_rows_of_reductions_know_what_they_need() -> None:
    assert Reduced(ReductionRow(join=Join.SMALLEST)).is_extreme
    assert not Reduced(ReductionRow(X * X)).is_extreme
    assert ReductionRow(abs(X) - 1).is_whole
    assert not ReductionRow(end=X / COUNT).is_whole
    assert "return x / y_v(y_t(params.reduced));" in Reduced(ReductionRow(end=X / COUNT)).text()


def test_operands_of_operators_without_a_rank_stand_in_parentheses() -> None:
    """WGSL has no sum beside a shift without them: Chromium refuses the shader, wgpu takes it."""
    count, bits = sizes(count=3, bits=1)
    assert index_text(shift_right(count + bits, bits)) == "((params.count + params.bits) >> u32(params.bits))"
    assert index_text((count + bits) // bits) == "((params.count + params.bits) / params.bits)"
    assert index_text(count // (bits * count)) == "(params.count / (params.bits * params.count))"


def test_an_inner_reduction_goes_on_with_the_outer_ones_number_and_fixed_sizes_stand_in_the_text() -> None:
    (rows, n), (kh, kw) = sizes(rows=3, n=8), fixed_sizes(kh=3, kw=2)
    x, (r, i), ky, kx = Tensor("x", (rows, n), Kind.NUMBER), axes(r=rows, i=n), along("ky", kh), along("kx", kw)

    def text(start: float) -> str:
        value = total(ky, total(kx, x[r, i], start, where=kx < i))
        return described(Kernel("window", (x,), (r, i), value, Kind.NUMBER), ShaderForm()).text

    assert "for (var ky = 0; ky < 3; ky++) {\n        for (var kx = 0; kx < 2; kx++) {" in text(0.0)
    assert "v0 += load_x(" in text(0.0)
    assert "v0 += v1;" in text(1.0), "each inner sum begins with a number of its own"


def test_functions_are_taken_to_four_elements_at_once() -> None:
    (rows, n), (low,) = sizes(rows=3, n=8), sizes(low=-5)
    x, table = Tensor("x", (rows, n), Kind.NUMBER), Tensor("table", sizes(bytes=256), Kind.NUMBER)
    r, i = axes(r=rows, i=n)

    def text(value: Formula) -> str:
        kernel = Kernel("quads", (x, table), (r, i), value, Kind.NUMBER)
        assert kernel.moves_rows()
        return described(kernel, ShaderForm(quads=True)).text

    assert "clamp(load4_x(u32(to_i)), vec4(params.low), vec4(7))" in text(clamp(x[r, i], low, 7))
    assert "clamp(r, params.low, 7)" in text(x[r, i] * clamp(r, low, 7)), "of indices as before"
    looked_up = text(table[bit_and(x[r, i], 255)])
    assert "fn each_table(at: vec4<i32>) -> table_v" in looked_up
    assert "each_table((vec4(load4_x(u32(to_i))) & vec4(255)))" in looked_up


def test_a_row_that_is_read_from_its_middle_is_no_single_row() -> None:
    assert not kernel_of("gather", OPS["gather"].cases[0]).walks_as_it_lies()
    assert kernel_of("swiglu", OPS["swiglu"].cases[0]).walks_as_it_lies()
