"""Running sums and the largest elements along one axis."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.graph.ir import Node, Op
from webinfer.ops import scan as ops


def cumulative_sum(inputs: Inputs, node: Node) -> list[Array]:
    """Running sums along an axis, from either end, with or without the element itself."""
    x, a = wide(required(inputs[0])), node.attrs
    if a.reversed:
        x = np.flip(x, a.axis)
    y = np.cumsum(x, axis=a.axis, dtype=x.dtype)
    if a.exclusive:
        y = np.roll(y, 1, a.axis)
        y[(slice(None),) * a.axis + (slice(0, 1),)] = 0
    return [rounded(np.flip(y, a.axis) if a.reversed else y, node.output.type)]


def top_k(inputs: Inputs, node: Node) -> list[Array]:
    """The k largest elements of each row, the largest first, and their positions; of equals the first, a NaN last."""
    x = required(inputs[0])
    falling = -x.astype(np.float64) if x.dtype.kind == "f" else ~x  # the negative less one: no integer overflows
    order = np.argsort(falling, axis=-1, kind="stable")[..., : node.attrs.k]
    return [np.take_along_axis(x, order, axis=-1), rounded(order, node.outputs[1].type)]


LOWERINGS: dict[Op, Compute] = {ops.CUMULATIVE_SUM: cumulative_sum, ops.TOP_K: top_k}
