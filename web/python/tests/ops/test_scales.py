"""Scales of quantised types: what no backend can divide by is refused by name."""

from __future__ import annotations

import math

import pytest

from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Quantization, TensorType
from webinfer.lowering.affine import scale_of


@pytest.mark.parametrize("scale", [0.0, 1e-60, -0.5, math.inf, math.nan])
def test_a_scale_that_is_no_positive_number_in_float32_is_refused(scale: float) -> None:
    with pytest.raises(UnsupportedOpError, match="needs a positive number"):
        scale_of(TensorType((2,), DType.INT8, Quantization((scale,), (0,))))
