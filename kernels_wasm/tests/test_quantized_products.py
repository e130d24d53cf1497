"""Quantised products in every form that a build knows: sums of bytes or of int16, what weights lack added or not."""

from __future__ import annotations

import pytest
from tests.ops.case_graphs import difference
from tests.ops.targets import BUILDS, Target

from kernels_wasm.tests.kernel_cases import Variant
from kernels_wasm.tests.test_kernels import outcome, problem_of
from webinfer.dtypes import DType
from webinfer.ops.conv import CONV2D, quantized_conv_case

CASES = (
    quantized_conv_case("uint8, sums in parts", (1, 2, 3, 4201), (9, 1, 1, 4201), DType.UINT8, None, 9),
    quantized_conv_case(
        "int8, sums in parts, 3x3", (1, 3, 3, 500), (9, 3, 3, 500), DType.INT8, 0, 9, pads=(1, 1, 1, 1)
    ),
    quantized_conv_case("uint8, one pixel", (1, 1, 1, 37), (9, 1, 1, 37), DType.UINT8, None, 9),
    quantized_conv_case("uint8, one pixel after tiles", (1, 1, 5, 18), (16, 1, 1, 18), DType.UINT8, None, 16),
    quantized_conv_case("int8, many pixels", (1, 23, 21, 6), (19, 3, 3, 6), DType.INT8, None, 19, pads=(1, 1, 1, 1)),
    quantized_conv_case("uint8, many pixels", (1, 23, 21, 6), (19, 3, 3, 6), DType.UINT8, None, 19, stride=(2, 2)),
)


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("variant", [Variant(CONV2D, case) for case in CASES], ids=lambda v: v.case.label)
def test_a_quantised_product_is_right_in_this_build(variant: Variant, target: Target) -> None:
    target.demand()
    p, got = problem_of(variant), outcome(variant, str(dict(target.options)["isa"]))
    assert "q8_conv2d_nhwc" in got.kernels
    for output, want in zip(got.outputs, p.want, strict=True):
        wrong = difference(output, want, p)
        assert not wrong, f"{p.node.label}: {wrong}"
