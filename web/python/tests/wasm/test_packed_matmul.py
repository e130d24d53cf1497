"""Products with packed weights whose scales and zeros a model stores as float16."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.ops.case_graphs import compute, difference, outcomes, problem, run
from tests.ops.targets import BUILDS, Target

from webinfer.backends import wasm
from webinfer.dtypes import DType
from webinfer.host.native import NativeHost
from webinfer.ops.packed_matmul import PACKED_MATMUL


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_float16_scales_and_zeros(target: Target) -> None:
    target.demand()
    cases = []
    for case in PACKED_MATMUL.cases:
        types = (t and replace(t, dtype=DType.FLOAT16) if t is None or t.dtype.is_float else t for t in case.inputs)
        cases.append(replace(case, inputs=tuple(types)))
    problems = [problem(PACKED_MATMUL, case) for case in cases]
    for p, found in zip(problems, run(outcomes(wasm, NativeHost(), problems, dict(target.options))), strict=True):
        assert isinstance(found, list), found
        assert not difference(found[0], p.want[0], p), p.case.label


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_an_infinity_in_one_row_stays_one(target: Target) -> None:
    """The kernel of one row takes zeros from sums of the row, of which a NaN would be left."""
    target.demand()
    case = next(case for case in PACKED_MATMUL.cases if case.label == "4 bits, one row, a long sum")
    p = problem(PACKED_MATMUL, case)
    x, *weights = p.arrays
    assert x is not None
    x[0, 7] = np.inf
    ((got,),) = run(outcomes(wasm, NativeHost(), [p], dict(target.options)))
    np.testing.assert_array_equal(got, compute(p.node, [x, *weights])[0])
    assert np.isinf(got).any()
