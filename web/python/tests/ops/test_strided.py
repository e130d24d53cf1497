"""Data movement said as strided copies is the movement that the reference performs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import problem

from webinfer.dtypes import DType
from webinfer.graph.ir import Case, Op, TensorType
from webinfer.ops import OPS, movement
from webinfer.ops.strides import StridedCopy, coalesce, row_major

MOVES = ("concat", "depth_to_space", "expand", "pad", "reverse", "slice", "space_to_depth", "tile", "transpose")


def perform(copy: StridedCopy, source: np.ndarray, target: np.ndarray) -> None:
    """The copy, index by index."""
    for index in np.ndindex(copy.shape):
        s = copy.source_offset + sum(i * n for i, n in zip(index, copy.source_strides, strict=True))
        t = copy.target_offset + sum(i * n for i, n in zip(index, copy.target_strides, strict=True))
        target[t] = source[s]


@pytest.mark.parametrize(
    ("name", "case"), [pytest.param(n, c, id=f"{n}-{c.label}") for n in MOVES for c in OPS[n].cases]
)
def test_copies_move_what_the_reference_moves(name: str, case: Case) -> None:
    op: Op = OPS[name]
    p = problem(op, case)
    types = [t for t in case.inputs if t is not None]
    copies = movement.strided_copies(op, types, p.node.output.type, case.attrs)
    if copies is None:
        assert name == "pad"
        assert case.attrs.mode != "constant"
        return
    target = np.full(p.node.output.type.size, getattr(case.attrs, "value", 0.0), np.float32)
    for copy in copies:
        array = p.arrays[copy.source]
        assert array is not None
        perform(copy, array.reshape(-1), target)
    np.testing.assert_array_equal(target, p.want[0].reshape(-1))


def test_coalescing_merges_neighbours_and_drops_ones() -> None:
    dense = StridedCopy(0, (2, 1, 3, 4), 0, row_major((2, 1, 3, 4)), 5, row_major((2, 1, 3, 4)))
    assert coalesce(dense) == StridedCopy(0, (24,), 0, (1,), 5, (1,))


def test_coalescing_keeps_what_strides_keep_apart() -> None:
    transposed = StridedCopy(0, (4, 3), 0, (1, 4), 0, (3, 1))
    assert coalesce(transposed) == transposed


def test_a_scalar_is_one_copy_of_one_element() -> None:
    (copy,) = (
        movement.strided_copies(movement.EXPAND, [TensorType(())], TensorType((3,)), movement.ExpandAttrs((3,))) or []
    )
    assert copy.shape == (3,)
    assert copy.source_strides == (0,)


def test_nothing_to_copy_for_an_empty_result() -> None:
    attrs = movement.SliceAttrs((0,), (0,), (1,))
    assert (
        movement.strided_copies(movement.SLICE, [TensorType((3,), DType.INT8)], TensorType((0,), DType.INT8), attrs)
        == []
    )
