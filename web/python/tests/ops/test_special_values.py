"""Values at which backends differ if nobody says what they mean: one rule for each, on every backend."""

from __future__ import annotations

import dataclasses
import importlib
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import Array, difference, outcomes, problem, run
from tests.ops.targets import TARGETS, Target

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Quantization, TensorType
from webinfer.host.native import NativeHost
from webinfer.ops import OPS
from webinfer.ops.activation import Activation
from webinfer.ops.conv import ConvTranspose2dAttrs
from webinfer.ops.elementwise import BinaryAttrs, CastAttrs, UnaryAttrs
from webinfer.ops.gather import GatherAttrs
from webinfer.ops.matmul import MatmulAttrs
from webinfer.ops.movement import PadAttrs
from webinfer.ops.pool import MaxUnpool2dAttrs, Pool2dAttrs
from webinfer.ops.reduce import ReduceAttrs
from webinfer.ops.scan import CumulativeSumAttrs, TopKAttrs
from webinfer.ops.softmax import SoftmaxAttrs
from webinfer.ops.suppression import NonMaxSuppressionAttrs

NAN, INFINITY = math.nan, math.inf
WASM = [target for target in TARGETS if target.backend == "wasm"]
LEAST, MOST = -(2**31), 2**31 - 1


@cache
def _host() -> NativeHost:
    return NativeHost()


def results(target: Target, name: str, case: Case) -> tuple[list[Array], list[Array]]:
    """What the backend and what the reference make of a case."""
    target.demand()
    p = problem(OPS[name], case)
    backend = importlib.import_module(f"webinfer.backends.{target.backend}")
    (found,) = run(outcomes(backend, _host(), [p], dict(target.options)))
    assert isinstance(found, list), found
    for got, want in zip(found, p.want, strict=True):
        wrong = difference(got, want, p)
        assert not wrong, wrong
    return found, p.want


def made(attrs: Any, *values: Any, dtype: DType = DType.FLOAT32, shape: tuple[int, ...] = ()) -> Case:
    """A case of the given numbers, each operand of one shape."""
    types = tuple(TensorType(shape or (len(v),), dtype) for v in values)
    return Case("made", types, attrs, values=dict(enumerate(values)))


@pytest.mark.parametrize("name", ["conv2d", "depthwise_conv2d", "conv_transpose2d", "matmul"])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_sums_of_bytes_wrap_around(target: Target, name: str) -> None:
    case = next(c for c in OPS[name].cases if "uint8" in c.label and len(c.inputs) > 2 and c.inputs[2] is not None)
    bias = case.inputs[2]
    assert bias is not None
    numbers = [(MOST, LEAST, MOST - 900, LEAST + 700)[i % 4] for i in range(bias.size)]
    found, want = results(target, name, dataclasses.replace(case, values={**case.values, 2: numbers}))
    assert len(np.unique(want[0])) > 1
    assert np.array_equal(found[0], want[0])


@pytest.mark.parametrize("name", ["max_pool2d", "max_pool_with_argmax2d"])
@pytest.mark.parametrize("window", [(2, 2), (3, 3)])
@pytest.mark.parametrize("target", WASM, ids=str)
def test_a_nan_is_the_largest_of_a_window(target: Target, window: tuple[int, int], name: str) -> None:
    numbers = [float(i % 7) for i in range(6 * 6 * 5)]
    for i in (0, 17, 90, 179):
        numbers[i] = NAN
    case = made(Pool2dAttrs(window), numbers, shape=(1, 6, 6, 5))
    (y, *taps), _ = results(target, name, case)
    assert np.isnan(y).sum() > 4
    assert not np.isnan(y).all()
    assert all(np.isfinite(tap).all() for tap in taps)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_of_values_for_one_place_the_last_stays_and_taps_outside_the_window_are_dropped(target: Target) -> None:
    taps = [3.1, 2.1, 1.1, 0.1, 4.1, -1.0, 99.0, 2.9, 0.0]
    types = (TensorType((1, 3, 3, 1)), TensorType((1, 3, 3, 1)))
    attrs = MaxUnpool2dAttrs((2, 2), (1, 1), (0, 0), (4, 4))
    case = Case("made", types, attrs, values={0: range(1, 10), 1: taps})
    (y,), _ = results(target, "max_unpool2d", case)
    assert y[0, :, :, 0].tolist() == [[0, 0, 0, 3], [4, 2, 0, 0], [0, 0, 9, 0], [0, 8, 0, 0]]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_integer_quotients_at_the_edge(target: Target) -> None:
    x, y = (LEAST, LEAST, LEAST, MOST, 7, 0, -7), (-1, 0, 3, LEAST, 0, 0, 2)
    (got,), _ = results(target, "div", made(BinaryAttrs(), x, y, dtype=DType.INT32))
    assert got.tolist() == [LEAST, 0, -715827882, 0, 0, 0, -3]


@pytest.mark.parametrize("target", WASM, ids=str)
def test_an_exclusive_running_sum_leaves_its_own_element_out(target: Target) -> None:
    case = made(CumulativeSumAttrs(0, exclusive=True), (1.0, INFINITY, 2.0, 3e38))
    (y,), _ = results(target, "cumulative_sum", case)
    assert y.tolist() == [0.0, 1.0, INFINITY, INFINITY]


@pytest.mark.parametrize("target", WASM, ids=str)
def test_the_least_integer_is_the_last_of_the_largest(target: Target) -> None:
    case = made(TopKAttrs(3), (-(2**63), 5, 2**63 - 1), dtype=DType.INT64)
    (values, positions), _ = results(target, "top_k", case)
    assert values.tolist() == [2**63 - 1, 5, -(2**63)]
    assert positions.tolist() == [2, 1, 0]


@pytest.mark.parametrize("target", WASM, ids=str)
def test_gelu_of_minus_infinity_is_its_limit(target: Target) -> None:
    (y,), _ = results(target, "gelu", made(UnaryAttrs(), (-INFINITY, INFINITY, NAN, 0.0)))
    assert y[0] == 0
    assert y[1] == INFINITY
    assert np.isnan(y[2])


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize(
    "bounds", [(-INFINITY, 1.0), (-1.0, INFINITY), (-INFINITY, INFINITY), (2.0, 1.0), (-1.0, -9e9)]
)
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT32, DType.INT64, DType.UINT8])
def test_infinite_and_crossed_bounds_of_a_clamp(target: Target, bounds: tuple[float, float], dtype: DType) -> None:
    numbers = (0, 1, 2, 200, 77) if dtype is DType.UINT8 else (-300, -1, 0, 2, 300)
    results(target, "clamp", made(UnaryAttrs(*bounds), numbers, dtype=dtype))


LONG = (-(2**63), 2**63 - 1, -1, 0, 1, 2**32, -(2**32), 2**31, 5_000_000_000, -7_000_000_001, 3, -2)
UNARY_LONG = ("abs", "neg", "relu", "relu6", "sign", "square", "identity", "logical_not")
BINARY_LONG = (
    "add", "sub", "mul", "div", "floor_div", "floor_mod", "maximum", "minimum", "squared_difference", "prelu", "equal",
    "less", "greater_equal",
)  # fmt: skip


@pytest.mark.parametrize("name", [*UNARY_LONG, *BINARY_LONG, "pow"])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_integers_of_more_than_32_bits(target: Target, name: str) -> None:
    if name in UNARY_LONG:
        results(target, name, made(UnaryAttrs(), LONG, dtype=DType.INT64))
    elif name in BINARY_LONG:
        left, right = zip(*((a, b) for a in LONG for b in LONG), strict=True)
        results(target, name, made(BinaryAttrs(), left, right, dtype=DType.INT64))
    else:
        bases, exponents = (3, -3, 2, 2, 1, -1, 7, 0), (39, 39, 63, 64, -5, -5, -1, 0)
        results(target, name, made(BinaryAttrs(), bases, exponents, dtype=DType.INT64))


CASTS = (
    ("int64", "float32"), ("uint64", "float32"), ("float32", "int64"), ("float32", "uint64"), ("uint32", "int64"),
    ("int32", "uint64"), ("int64", "bool"), ("int64", "uint64"), ("int64", "int32"),
)  # fmt: skip


@pytest.mark.parametrize("pair", CASTS, ids="-to-".join)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_casts_of_more_than_32_bits(target: Target, pair: tuple[str, str]) -> None:
    source, wanted = map(DType, pair)
    near_tie = [2**k + m * 2 ** max(k - 24, 0) + j for k in (24, 31, 40, 62) for m in (1, 3) for j in (-1, 0, 1)]
    numbers = [*LONG, *near_tie, 4_294_967_295, 2**32 + 1, -(2**40) - 3]
    if not source.is_float:
        low, high = source.range
        numbers = [min(max(n, low), high) for n in numbers]
    (got,), (want,) = results(target, "cast", made(CastAttrs(wanted), numbers, dtype=source))
    assert np.array_equal(got, want)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_positions_far_outside_go_to_the_nearest_element(target: Target) -> None:
    places = (2**32, -(2**32) - 1, 2**63 - 1, -(2**63), 1, -1)
    types = (TensorType((4,)), TensorType((6,), DType.INT64))
    (y,), _ = results(target, "gather", Case("far", types, GatherAttrs(0), values={0: (0, 1, 2, 3), 1: places}))
    assert y.tolist() == [3, 0, 3, 0, 1, 3]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_negative_exponent_leaves_one_minus_one_or_nothing(target: Target) -> None:
    (y,), _ = results(target, "pow", made(BinaryAttrs(), (2, 1, -1, -1, 0), (-1, -3, -3, -2, -1), dtype=DType.INT32))
    assert y.tolist() == [0, 1, -1, 1, 0]


@pytest.mark.parametrize("axes", [(0, 2), (1,), (0, 1, 2)])
@pytest.mark.parametrize("name", ["reduce_sum", "reduce_product", "reduce_log_sum_exp", "reduce_l2"])
@pytest.mark.parametrize("target", WASM, ids=str)
def test_a_reduction_of_nothing_is_its_neutral_element(target: Target, name: str, axes: tuple[int, ...]) -> None:
    for shape in ((0, 4, 5), (3, 0, 5), (3, 4, 0)):
        results(target, name, Case("empty", (TensorType(shape),), ReduceAttrs(axes)))


def test_a_box_that_is_no_number_does_not_keep_the_search_going() -> None:
    boxes = (0.0, 0.0, 1e30, 1e30, 0.0, 0.0, INFINITY, INFINITY, 0.0, NAN, 1.0, 1.0)
    attrs = NonMaxSuppressionAttrs(3, 0.9, sigma=0.5)
    types = (TensorType((3, 4)), TensorType((3,)))
    p = problem(OPS["non_max_suppression"], Case("made", types, attrs, values={0: boxes, 1: (0.9, 0.8, 0.7)}))
    assert p.want[0].shape == (3,)


STORED = TensorType((2, 3), DType.INT8, Quantization((1e-30,), (0,)))
FAR = Quantization((1e30,), (0,))
REFUSED = {
    "a bound that is not a number": ("clamp", (TensorType((3,)),), UnaryAttrs(NAN, 1.0), "must be numbers"),
    "an infinite beta": ("softmax", (TensorType((3,)),), SoftmaxAttrs(0, INFINITY), "beta is inf"),
    "nothing to multiply": ("matmul", (TensorType((2, 0)), TensorType((0, 3))), MatmulAttrs(), "nothing to multiply"),
    "an edge of nothing": ("pad", (TensorType((2, 0)),), PadAttrs((0, 1), (0, 0), mode="edge"), "no edge"),
    "pads that are negative": (
        "conv_transpose2d", (TensorType((1, 3, 3, 4)), TensorType((5, 2, 2, 4))),
        ConvTranspose2dAttrs((1, 1), (0, -1, 0, 0)), "do not fit",
    ),
    "scales too far apart": (
        "reduce_sum", (dataclasses.replace(STORED, quant=FAR),), ReduceAttrs((1,), False, (DType.INT8, STORED.quant)),
        "too far from the result's",
    ),
}  # fmt: skip


@pytest.mark.parametrize("label", REFUSED)
def test_what_means_nothing_is_refused_in_words(label: str) -> None:
    name, types, attrs, words = REFUSED[label]
    with pytest.raises(ShapeError, match=words):
        OPS[name].result_types(types, attrs)


def test_an_activation_leaves_long_integers_their_digits() -> None:
    type = TensorType((1,), DType.UINT64)
    attrs = BinaryAttrs(Activation.RELU)
    p = problem(OPS["add"], Case("made", (type, type), attrs, values={0: (2**63,), 1: (1,)}))
    assert p.want[0].tolist() == [2**63 + 1]
