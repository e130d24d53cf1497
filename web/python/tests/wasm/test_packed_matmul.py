"""Products with packed weights whose scales and zeros a model stores as float16."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ops.case_graphs import difference, outcomes, problem, run
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
