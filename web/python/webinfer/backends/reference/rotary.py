"""Rotary positions."""

from __future__ import annotations

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.graph.ir import Node, Op
from webinfer.ops import rotary as ops


def rotate(inputs: Inputs, node: Node) -> list[Array]:
    """Each pair turned counter-clockwise."""
    x, cos, sin = (wide(required(array)) for array in inputs)
    half, y = cos.shape[-1], x.copy()
    if node.attrs.adjacent:
        first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
    else:
        first, second = slice(0, half), slice(half, 2 * half)
    a, b = x[..., first], x[..., second]
    y[..., first], y[..., second] = a * cos - b * sin, a * sin + b * cos
    return [rounded(y, node.output.type)]


LOWERINGS: dict[Op, Compute] = {ops.ROTATE: rotate}
