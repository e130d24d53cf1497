"""Loops of described kernels on adapters that end them."""

from __future__ import annotations

import pytest
from tests.webgpu.devices import HARDWARE, SOFTWARE

from webinfer.backends.webgpu.lowerings.described import lower
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, TensorType, Value, apply
from webinfer.ops import OPS


def scatter(updates: int, width: int) -> Node:
    """Rows of this width that are added to a tensor, each at a position of two numbers."""
    x, at = TensorType((1, 3549, width)), TensorType((updates, 2), DType.INT32)
    types = (x, at, TensorType((updates, width)))
    values = [Value(name, type) for name, type in zip(("x", "at", "updates"), types, strict=True)]
    return apply(OPS["scatter_nd"], values, OPS["scatter_nd"].attrs(True))


def test_loops_that_lavapipe_would_end_are_refused_there() -> None:
    """A YOLOX of 7,098 updates lost two of four elements without a word."""
    assert len(lower(scatter(7098, 3), HARDWARE)) == 1
    with pytest.raises(UnsupportedOpError, match="loops of 85176 turns; at most 60000 on the processor"):
        lower(scatter(7098, 3), SOFTWARE)


@pytest.mark.parametrize(("updates", "width"), [(5000, 3), (7098, 4)])
def test_shorter_loops_run(updates: int, width: int) -> None:
    """Four elements that lie together share one loop."""
    assert len(lower(scatter(updates, width), SOFTWARE)) == 1
