"""The cases reach what they are there for: a clamp that never clamps would prove nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.ops.case_graphs import problem

from webinfer.backends.reference.quantized import bounds, is_quantized
from webinfer.graph.ir import Case
from webinfer.ops import OPS
from webinfer.ops.activation import Activation

CLAMPS = (Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)
NEVER_NEGATIVE = ("l2_pool2d",)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(op.name, case, id=f"{op.name}-{case.label}")
        for op in OPS.values()
        for case in op.cases
        if getattr(case.attrs, "activation", None) in CLAMPS
    ],
)
def test_every_clamp_is_reached_on_both_sides_and_left_between(name: str, case: Case) -> None:
    p = problem(OPS[name], case)
    y, activation = p.want[0], case.attrs.activation
    low, high = bounds(activation, p.node.output.type) if is_quantized(p.node) else activation.bounds
    assert ((y > low) & (y < high)).any()
    assert name in NEVER_NEGATIVE or (y == low).any()
    assert activation is Activation.RELU or math.isinf(high) or (y == high).any()


@pytest.mark.parametrize("name", sorted(OPS))
def test_no_operator_is_tested_on_constant_results_alone(name: str) -> None:
    results = [y for case in OPS[name].cases for y in problem(OPS[name], case).want if y.size > 1]
    assert any(len(np.unique(y)) > 1 for y in results)
