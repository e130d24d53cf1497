"""Softmax, its logarithm and log(sum e^x) of rows with infinities, NaN and values far apart, against the reference."""

from __future__ import annotations

import itertools

import pytest
from tests.ops.targets import BUILDS, Target
from tests.wasm.test_windows import check

from webinfer.graph.ir import Case, Op, TensorType
from webinfer.ops import reduce, softmax

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
