"""Pooling with positions, and its undoing."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.executor import compute
from webinfer.graph.ir import TensorType, Value, apply
from webinfer.ops.pool import AVERAGE_POOL2D, MAX_POOL_WITH_ARGMAX2D, MAX_UNPOOL2D, MaxUnpool2dAttrs, Pool2dAttrs


def test_unpooling_puts_every_maximum_back_where_it_was() -> None:
    x = np.random.default_rng(0).permutation(4 * 6 * 2).reshape(1, 4, 6, 2).astype(np.float32) + 1
    pooling = apply(MAX_POOL_WITH_ARGMAX2D, [Value("x", TensorType(x.shape))], Pool2dAttrs((2, 2), (2, 2)))
    y, taps = compute(pooling, [x])
    unpooling = apply(MAX_UNPOOL2D, pooling.outputs, MaxUnpool2dAttrs((2, 2), (2, 2), (0, 0), (4, 6)))
    (z,) = compute(unpooling, [y, taps])
    kept = z != 0
    np.testing.assert_array_equal(z[kept], x[kept])
    assert kept.sum() == y.size
    np.testing.assert_array_equal(np.sort(z[kept]), np.sort(y.reshape(-1)))


def test_a_tap_outside_the_image_is_dropped() -> None:
    x = np.ones((1, 1, 1, 1), np.float32)
    attrs = MaxUnpool2dAttrs((2, 2), (2, 2), (0, 0), (1, 1))
    node = apply(MAX_UNPOOL2D, [Value("x", TensorType(x.shape)), Value("t", TensorType(x.shape))], attrs)
    assert compute(node, [x, np.full_like(x, 3.1)])[0].tolist() == [[[[0.0]]]]


def test_padding_is_not_counted_in_an_average() -> None:
    x = np.full((1, 2, 2, 1), 6.0, np.float32)
    node = apply(AVERAGE_POOL2D, [Value("x", TensorType(x.shape))], Pool2dAttrs((2, 2), (1, 1), (1, 1, 1, 1)))
    np.testing.assert_array_equal(compute(node, [x])[0], np.full((1, 3, 3, 1), 6.0))
