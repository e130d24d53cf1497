"""Pools of several sizes over one image are the same as a chain of small ones."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.passes.building import Build, lines, rewritten

from webinfer.backends import reference
from webinfer.graph.ir import Graph, Value
from webinfer.host.native import NativeHost
from webinfer.ops import pool
from webinfer.ops.activation import Activation
from webinfer.passes.chain_pools import chain_pools


def _pool(b: Build, x: Value, size: int, name: str, **extra: object) -> Value:
    pads = (size // 2,) * 4
    attrs = {"window": (size, size), "pads": pads} | extra
    return b.node(pool.MAX_POOL2D, [x], pool.Pool2dAttrs(**attrs), name)  # type: ignore[arg-type]


def _pyramid(*sizes: int) -> Graph:
    b = Build()
    x = b.input("x", 1, 6, 17, 3)
    return b.output(*(_pool(b, x, size, f"y{size}") for size in sizes))


def test_larger_windows_are_taken_of_smaller_ones() -> None:
    assert rewritten(chain_pools, _pyramid(5, 9, 13), 2) == lines(
        "%y5 = max_pool2d(%x) window=5x5 pads=2,2,2,2 -> float32[1x6x17x3]",
        "%y9 = max_pool2d(%y5) window=5x5 pads=2,2,2,2 -> float32[1x6x17x3]",
        "%y13 = max_pool2d(%y9) window=5x5 pads=2,2,2,2 -> float32[1x6x17x3]",
        "return %y5, %y9, %y13",
    )


@pytest.mark.parametrize(
    "extra",
    [{"stride": (2, 2)}, {"dilation": (2, 2)}, {"pads": (2, 1, 2, 2)}, {"activation": Activation.RELU}],
    ids=lambda extra: next(iter(extra)),
)
def test_others_are_no_part_of_a_chain(extra: dict[str, object]) -> None:
    b = Build()
    x = b.input("x", 1, 9, 9, 4)
    small = _pool(b, x, 5, "small", **extra)
    rewritten(chain_pools, b.output(small, _pool(b, x, 9, "large")), 0)


def _results(graph: Graph, x: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> list[np.ndarray]:  # type: ignore[type-arg]
    executor = run(reference.build(graph, NativeHost()))
    return [tensor.numpy() for tensor in run(executor.run({"x": memoryview(x.tobytes())})).values()]


@pytest.mark.parametrize("sizes", [(3, 5), (5, 13, 9), (5, 5), (13, 5)])
def test_results_stay(sizes: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).normal(-4.0, 1.0, (1, 6, 17, 3)).astype(np.float32)
    x[0, 2, 3, 1] = -np.inf
    want, graph = _results(_pyramid(*sizes), x), _pyramid(*sizes)
    chain_pools(graph)
    for a, b in zip(_results(graph, x), want, strict=True):
        np.testing.assert_array_equal(a, b)
