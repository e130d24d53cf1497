"""Pooling with positions, and its undoing."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run

import webinfer
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


@pytest.mark.parametrize("backend", ["wasm", "reference"])
def test_taps_that_are_no_places_agree_and_nan_is_the_first(backend: str) -> None:
    g = webinfer.GraphBuilder("unpool")
    x, taps = g.input("x", (1, 2, 3, 1)), g.input("taps", (1, 2, 3, 1))
    g.output(g.node("max_unpool2d", x, taps, window=(2, 2), stride=(2, 2), pads=(0, 0), size=(4, 6)), "y")
    with run(webinfer.load(g, backend=backend, strict=True)) as session:
        places = np.float32([np.nan, np.inf, -np.inf, 3e38, 2**31, 3]).reshape(1, 2, 3, 1)
        got = run(session.run({"x": np.arange(1, 7, dtype=np.float32).reshape(1, 2, 3, 1), "taps": places}))[
            "y"
        ].numpy()
    want = np.zeros((4, 6), np.float32)
    want[0, 0], want[3, 5] = 1, 6
    np.testing.assert_array_equal(got[0, ..., 0], want)
