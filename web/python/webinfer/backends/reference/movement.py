"""Operators that move elements: reshape, transpose, slice, pad and their kin."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required
from webinfer.graph.ir import Node, Op
from webinfer.ops import movement as ops


def reshape(inputs: Inputs, node: Node) -> list[Array]:
    """The same elements under another shape."""
    return [required(inputs[0]).reshape(node.attrs.shape)]


def transpose(inputs: Inputs, node: Node) -> list[Array]:
    """Dimensions in another order."""
    return [required(inputs[0]).transpose(node.attrs.perm)]


def slice_(inputs: Inputs, node: Node) -> list[Array]:
    """Every `step`-th element from `start` on, along each dimension; steps may be negative."""
    x, a = required(inputs[0]), node.attrs
    positions = [p + np.arange(n) * s for p, n, s in zip(a.starts, a.sizes, a.steps, strict=True)]
    return [x[np.ix_(*positions)] if positions else x]


def expand(inputs: Inputs, node: Node) -> list[Array]:
    """The input, repeated along dimensions of size 1."""
    return [np.broadcast_to(required(inputs[0]), node.attrs.shape)]


def tile(inputs: Inputs, node: Node) -> list[Array]:
    """The input, repeated as a whole along each dimension."""
    return [np.tile(required(inputs[0]), node.attrs.repeats)]


def concat(inputs: Inputs, node: Node) -> list[Array]:
    """The inputs one after the other along an axis."""
    return [np.concatenate([required(x) for x in inputs], axis=node.attrs.axis)]


def pad(inputs: Inputs, node: Node) -> list[Array]:
    """The input with elements before and after it along each dimension: a constant, its edge, or itself mirrored."""
    x, a = required(inputs[0]), node.attrs
    widths = tuple(zip(a.before, a.after, strict=True))
    if a.mode == "constant":
        return [np.pad(x, widths, constant_values=x.dtype.type(a.value))] if widths else [x]
    return [np.pad(x, widths, mode=a.mode)]


def reverse(inputs: Inputs, node: Node) -> list[Array]:
    """The elements in reverse order along some axes."""
    return [np.flip(required(inputs[0]), node.attrs.axes)]


def depth_to_space(inputs: Inputs, node: Node) -> list[Array]:
    """Blocks of channels laid out as pixels.

    Shapes:  x [N, H, W, C] -> [N, H*b, W*b, C/(b*b)]
    """
    x, b = required(inputs[0]), node.attrs.block
    n, h, w, c = x.shape
    split = x.reshape(n, h, w, b, b, c // (b * b))
    return [split.transpose(0, 1, 3, 2, 4, 5).reshape(n, h * b, w * b, c // (b * b))]


def space_to_depth(inputs: Inputs, node: Node) -> list[Array]:
    """Blocks of pixels laid out as channels.

    Shapes:  x [N, H, W, C] -> [N, H/b, W/b, C*b*b]
    """
    x, b = required(inputs[0]), node.attrs.block
    n, h, w, c = x.shape
    split = x.reshape(n, h // b, b, w // b, b, c)
    return [split.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // b, w // b, c * b * b)]


LOWERINGS: dict[Op, Compute] = {
    ops.CONCAT: concat,
    ops.DEPTH_TO_SPACE: depth_to_space,
    ops.EXPAND: expand,
    ops.PAD: pad,
    ops.RESHAPE: reshape,
    ops.REVERSE: reverse,
    ops.SLICE: slice_,
    ops.SPACE_TO_DEPTH: space_to_depth,
    ops.TILE: tile,
    ops.TRANSPOSE: transpose,
}
