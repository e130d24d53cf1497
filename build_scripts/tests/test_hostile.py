"""The sweep of hostile operands: a sample of it, what it covers, and that it sees what it is there for."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.importers import paper_host

from build_scripts.judge.hostile import WASM, sweep
from build_scripts.judge.hostile_cases import drawn, noded, operators, shaped
from build_scripts.judge.hostile_judge import DECIDING, difference
from build_scripts.judge.special_values import NUMBERS, SPECIAL, table
from webinfer.backends import reference
from webinfer.backends.reference.executor import compute
from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Node, Op, TensorType
from webinfer.host.native import NativeHost
from webinfer.ops import OPS
from webinfer.ops.attention import ATTENTION, AttentionAttrs
from webinfer.ops.elementwise import ABS, BinaryAttrs
from webinfer.ops.matmul import MATMUL, MatmulAttrs
from webinfer.ops.normalization import LAYER_NORM, LayerNormAttrs
from webinfer.ops.packed_matmul import PACKED_MATMUL, PackedMatmulAttrs
from webinfer.ops.softmax import SOFTMAX, SoftmaxAttrs

needs_kernels = pytest.mark.skipif(not paper_host.can_plan(), reason="no kernel table")


def _node(op: Op, attrs: Any, *arrays: Any) -> Node:
    types = tuple(TensorType(a.shape, DType(a.dtype.name)) for a in arrays)
    return noded(op, Case("made", types, attrs), "made", arrays)


@needs_kernels
def test_a_sample_of_every_operator() -> None:
    tally = sweep(NativeHost(), 1_200, seed=2)
    assert not tally.others, tally.others[:3]
    assert tally.results > 1_000
    assert tally.untouched
    assert set(tally.errors) <= {"shape", "unsupported-op"}


def test_every_operator_is_swept_without_being_named() -> None:
    assert {op.name for op in operators()} == {op.name for op in OPS.values() if op.cases}
    for op in operators():
        for number in range(8):
            rng = random.Random(number)
            try:
                case, _ = shaped(op, rng, op.name)
            except ShapeError:
                continue
            arrays = drawn(op, case, rng)
            assert [None if a is None else a.shape for a in arrays] == [t and t.shape for t in case.inputs]


def test_draws_depend_on_the_seed_alone() -> None:
    op, case = MATMUL, MATMUL.cases[0]
    one, same, other = (drawn(op, case, random.Random(seed)) for seed in (3, 3, 4))
    assert all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(one, same, strict=True) if a is not None and b is not None
    )
    assert any(not np.array_equal(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None)


@needs_kernels
def test_wrong_results_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(reference.LOWERINGS, ABS, lambda inputs, node: [inputs[0] - 1])
    tally = sweep(NativeHost(), 40, 1, WASM, ["abs"])
    assert tally.differences == len(tally.others) > 0
    assert "must be" in tally.others[0]


def test_a_sum_may_be_off_by_its_magnitude_and_no_more() -> None:
    x, y = np.float32([[1e8, 1.0, -1e8]]), np.ones((3, 1), np.float32)
    node, want = _node(MATMUL, MatmulAttrs(), x, y), np.float32([[1.0]])
    assert not difference(np.float32([[0.0]]), want, node, [x, y], 0, "wasm")
    assert "must be" in difference(np.float32([[1e5]]), want, node, [x, y], 0, "wasm")
    assert difference(np.float32([[np.nan]]), want, node, [x, y], 0, "wasm")


def test_an_infinity_is_demanded_where_no_sum_overflows() -> None:
    x, y = np.float32([[np.inf, 1.0, 2.0]]), np.ones((3, 1), np.float32)
    node, want = _node(MATMUL, MatmulAttrs(), x, y), np.float32([[np.inf]])
    assert not difference(want, want, node, [x, y], 0, "wasm")
    assert difference(np.float32([[np.nan]]), want, node, [x, y], 0, "wasm")
    large = np.float32([[3e38, 3e38, -3e38]])
    assert not difference(np.float32([[np.inf]]), np.float32([[3e38]]), node, [large, y], 0, "wasm")


def _judged(op: Op, attrs: Any, got: float, *arrays: Any) -> str:
    """What is wrong with results of which the first is `got`, the others the reference's."""
    node = _node(op, attrs, *arrays)
    want = compute(node, arrays)[0]
    found = want.copy()
    found.reshape(-1)[0] = got
    return difference(found, want, node, arrays, 0, "wasm")


def test_a_normalised_row_is_open_where_its_squares_overflow_or_its_mean_takes_all_digits() -> None:
    for x in ([1e20, 1.0], [1e-30, 3e-30]):
        assert not _judged(LAYER_NORM, LayerNormAttrs(epsilon=0.0), 0.0, np.float32([x]))
    assert not _judged(LAYER_NORM, LayerNormAttrs(), 2.0, np.float32([[1e6, 1e6, 1e6]]))
    for x, scale in (([1.0, 2.0, 4.0], 1.0), ([1e15, 2e15, 4e15], 1.0), ([1.0, 2.0, 4.0], np.inf)):
        assert _judged(LAYER_NORM, LayerNormAttrs(), 0.0, np.float32([x]), np.float32([scale] * 3))


def test_a_softmax_is_open_where_two_elements_are_further_apart_than_a_float_can_say() -> None:
    for far, judged in ((3e38, False), (1e38, True)):
        x = np.array([[-far, far, 0.0]], np.float32)
        node = _node(SOFTMAX, SoftmaxAttrs(1, 1e-45), x)
        want = compute(node, [x])[0]
        assert bool(difference(want * 1.2, want, node, [x], 0, "wasm")) is judged


def test_an_error_of_a_logit_counts_and_keys_far_below_the_top_do_not() -> None:
    ones, v = np.ones((1, 1, 1, 2), np.float32), np.float32([[[[1.0], [9.0]]]])

    def wrong(k: Any, got: float, mask: Any = (0.0, 0.0)) -> str:
        operands = (ones, np.float32([[k]]), v, np.float32([[[mask]]]))
        return _judged(ATTENTION, AttentionAttrs(), got, *operands)

    assert wrong([[1, 1], [1, 1]], 5.01)
    assert not wrong([[1e30, -1e30], [1, 1]], 9.0)  # the digits of a logit are lost
    assert not wrong([[3e38, 3e38], [-3e38, 0]], np.nan)
    assert wrong([[1, 1], [1e30, 1]], 5.0, (0.0, -np.inf))
    assert wrong([[1, 1], [1, 1]], 1.01, (0.0, -3.4e38))
    assert not wrong([[1, 1], [1, 1]], 5.0, (-3.4e38, -3.4e38))


def test_a_product_with_packed_weights_may_be_off_by_its_terms_and_no_more() -> None:
    attrs, w, scales = PackedMatmulAttrs(8, 2), np.uint8([[200, 200]]), np.float32([[1.0]])

    def wrong(x: Any, got: float, zero: float, scale: float = 1.0) -> str:
        return _judged(PACKED_MATMUL, attrs, got, np.float32([x]), w, scale * scales, np.float32([[zero]]))

    assert not wrong([1e28, -1e28], 1e25, 100.0)
    assert wrong([1e28, -1e28], 1e27, 100.0)
    assert wrong([1.0, 1.0], 199.0, 100.0)
    assert wrong([np.inf, 1.0], np.nan, 100.0)
    assert not wrong([1.0, 0.0], np.nan, -200.0, np.float32(3e38))
    assert not wrong([np.inf, 0.0], np.nan, 199.75, np.float32(1e-45))


def test_what_wgsl_leaves_open_is_not_judged_on_webgpu_and_integers_are() -> None:
    x, y = np.float32([np.nan]), np.float32([1.0])
    node = _node(OPS["add"], BinaryAttrs(), x, y)
    assert not difference(y, x, node, [x, y], 0, "webgpu")
    assert difference(y, x, node, [x, y], 0, "wasm")
    whole = np.int32([5])
    node = _node(OPS["add"], BinaryAttrs(), whole, whole)
    assert difference(whole, whole + 5, node, [whole, whole], 0, "webgpu")


def test_the_table_names_operators_that_exist_and_every_exception_of_the_judge() -> None:
    assert set(SPECIAL) <= set(OPS)
    assert all(SPECIAL[name] == NUMBERS for name in DECIDING)
    shown = table(OPS.values())
    assert all(f"`{name}`" in shown for name in OPS)
