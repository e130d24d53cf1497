"""Attention of queries without keys."""

from __future__ import annotations

import numpy as np
from tests.ops.case_graphs import case_node

from webinfer.backends.reference.executor import compute
from webinfer.graph.ir import Case, TensorType
from webinfer.ops.attention import ATTENTION, AttentionAttrs


def test_a_query_without_keys_gets_zeros_whatever_the_values_are() -> None:
    ones = np.ones((1, 1, 2, 1), np.float32)
    v, mask = np.float32([[[[np.inf], [2.0]]]]), np.float32([[[[0.0, 0.0], [-np.inf, -np.inf]]]])
    arrays = (ones, ones, v, mask)
    case = Case("no keys", tuple(TensorType(a.shape) for a in arrays), AttentionAttrs(clear_nan=True))
    assert compute(case_node(ATTENTION, case, arrays), arrays)[0].ravel().tolist() == [np.inf, 0.0]
