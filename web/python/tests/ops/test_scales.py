"""Scales of quantised types: what no backend can divide by is refused by name."""

from __future__ import annotations

import math

import pytest

from webinfer.backends.reference.quantized import bounds
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Quantization, TensorType
from webinfer.lowering.affine import scale_of, stored_bounds
from webinfer.ops.activation import Activation


@pytest.mark.parametrize("scale", [0.0, 1e-60, -0.5, math.inf, math.nan])
def test_a_scale_that_is_no_positive_number_in_float32_is_refused(scale: float) -> None:
    with pytest.raises(UnsupportedOpError, match="needs a positive number"):
        scale_of(TensorType((2,), DType.INT8, Quantization((scale,), (0,))))


@pytest.mark.parametrize("activation", [Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1])
@pytest.mark.parametrize("scale", [1e-45, 3e-38, 0.0235, 4.0, 1e38])
def test_kernels_and_reference_cut_stored_results_alike(scale: float, activation: Activation) -> None:
    for dtype, zero in ((DType.INT8, -128), (DType.UINT8, 7), (DType.INT16, 0)):
        type = TensorType((2,), dtype, Quantization((scale,), (zero,)))
        assert bounds(type=type, activation=activation) == stored_bounds(type, activation)
