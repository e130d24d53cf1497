"""Softmax, sums of powers, places of extremes and pools of numbers with infinities and NaN, against the reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.ops.targets import BUILDS, Target
from tests.wasm.test_windows import check

from webinfer.graph.ir import Case, Op, TensorType
from webinfer.ops import pool, reduce, softmax

INF, NAN = float("inf"), float("nan")
ROWS = {
    "nan first": (NAN, 1.0), "nan last": (1.0, NAN), "one infinite": (INF, 1.0), "all lowest": (-INF, -INF),
    "masked": (-INF, 2.0), "far apart": (-80.0, 5.0), "further": (-3.4028234663852886e38, 3.0), "equal": (7.5, 7.5),
    "rounds to nothing": (0.0, -104.0), "subnormal": (-88.5, 0.0), "zeros": (0.0, -0.0),
}  # fmt: skip


def _cases(length: int, attrs: object) -> list[Case]:
    """Each pair of numbers twice over, at the ends of a row of zeros and ones."""
    return [
        Case(f"{label}, {length}", (TensorType((6, length)),), attrs, values={0: row * 6})
        for label, (a, b) in ROWS.items()
        for row in [(a, *itertools.islice(itertools.cycle((0.0, 1.0)), length - 2), b)]
    ]


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("op", [softmax.SOFTMAX, softmax.LOG_SOFTMAX], ids=lambda op: op.name)
def test_hostile_rows(op: Op, target: Target) -> None:
    check(op, [c for length in (2, 5, 8, 23) for c in _cases(length, softmax.SoftmaxAttrs(1))], target)
    check(op, _cases(5, softmax.SoftmaxAttrs(0)), target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_hostile_sums(target: Target) -> None:
    check(reduce.REDUCE_LOG_SUM_EXP, [c for n in (2, 23) for c in _cases(n, reduce.ReduceAttrs((1,)))], target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("op", [reduce.ARG_MAX, reduce.ARG_MIN], ids=lambda op: op.name)
def test_the_first_extreme_is_found_wherever_it_stands(op: Op, target: Target) -> None:
    rng, cases = np.random.default_rng(11), []
    for inner, length in ((1, 3), (1, 8), (1, 21), (1, 64), (4, 9), (7, 12)):
        for strange in ((), (NAN,), (NAN, NAN, INF), (INF, -INF), (0.0, -0.0)):
            data = rng.integers(-3, 4, (13, length, inner)).astype(np.float32)
            for number in strange:
                places = rng.integers(0, [13, length, inner], (9, 3))
                data[tuple(places.T)] = number
            attrs, label = reduce.ArgAttrs(1), f"{strange} in lines of {length}, {inner} apart"
            cases.append(Case(label, (TensorType(data.shape),), attrs, values={0: data.ravel().tolist()}))
    check(op, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_a_nan_is_the_largest_of_its_windows(target: Target) -> None:
    rng, cases = np.random.default_rng(12), []
    for size, channels in ((2, 5), (2, 64), (3, 3), (3, 37)):
        data = rng.normal(size=(1, 7, 6, channels)).astype(np.float32)
        data[0, rng.integers(0, 7, 5), rng.integers(0, 6, 5), rng.integers(0, channels, 5)] = (
            NAN,
            INF,
            -INF,
            NAN,
            -0.0,
        )
        attrs = pool.Pool2dAttrs((size, size), (1, 2), (1, 1, 0, 1))
        cases.append(Case(f"{size}, {channels}", (TensorType(data.shape),), attrs, values={0: data.ravel().tolist()}))
    check(pool.MAX_POOL2D, cases, target)
