"""Softmax of 16-bit rows at scales that no factor of 31 bits and a shift holds."""

from __future__ import annotations

import numpy as np
import pytest

from webinfer.backends.reference.short_softmax import softmax
from webinfer.dtypes import DType
from webinfer.graph.ir import Quantization, TensorType
from webinfer.lowering.short_softmax import distance_factor


@pytest.mark.parametrize(("beta", "wanted"), [(1e30, [0, 32767, 0]), (1e-30, [10923] * 3)])
def test_the_ends_of_all_scales(beta: float, wanted: list[int]) -> None:
    x = np.int16([[-32768, 32767, 32766]])
    type = TensorType(x.shape, DType.INT16, Quantization((0.001,), (0,)))
    factor, shift = distance_factor(type, beta)
    assert 65535 * factor << max(shift, 0) < 1 << 63
    assert -32 < shift
    assert abs(softmax(x, type, beta)[0].astype(int) - wanted).max() <= 4  # what lines are off by
