"""Resampling of images: bilinear and nearest."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference import quantized
from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.graph.ir import Node, Op
from webinfer.ops import resize as ops


def positions(size: int, count: int, a: ops.ResizeAttrs) -> Array:
    """Where each of `count` output samples lies on an input axis of `size` pixels, not yet clamped."""
    at = np.arange(count, dtype=np.float64)
    if a.align_corners:
        return at * ((size - 1) / (count - 1)) if count > 1 else at
    return (at + 0.5) * (size / count) - 0.5 if a.half_pixel_centers else at * (size / count)


def resize_bilinear(inputs: Inputs, node: Node) -> list[Array]:
    """The image at another size, each sample between its four neighbours.

    Shapes:  x [N, IH, IW, C] -> [N, OH, OW, C]
    """
    x, a = required(inputs[0]), node.attrs
    if x.dtype.kind != "f":
        return [quantized.resize_bilinear(x, node)]
    y = wide(x)
    for axis, count in ((1, a.size[0]), (2, a.size[1])):
        size = y.shape[axis]
        at = np.clip(positions(size, count, a), 0, size - 1)
        low = np.floor(at).astype(np.int64)
        weight = (at - low).reshape([-1 if i == axis else 1 for i in range(4)])
        y = np.take(y, low, axis) * (1 - weight) + np.take(y, np.minimum(low + 1, size - 1), axis) * weight
    return [rounded(y, node.output.type)]


def resize_nearest(inputs: Inputs, node: Node) -> list[Array]:
    """The image at another size, each sample its nearest pixel.

    Aligned corners round ties up; half pixel centers round the position, others take the floor.

    Shapes:  x [N, IH, IW, C] -> [N, OH, OW, C]
    Source:  tensorflow/lite/kernels/internal/reference/resize_nearest_neighbor.h
    """
    y, a = required(inputs[0]), node.attrs
    for axis, count in ((1, a.size[0]), (2, a.size[1])):
        size = y.shape[axis]
        at = positions(size, count, a)
        if a.align_corners or a.half_pixel_centers:
            at = np.floor(at + 0.5)
        y = np.take(y, np.clip(np.floor(at), 0, size - 1).astype(np.int64), axis)
    return [y]


LOWERINGS: dict[Op, Compute] = {ops.RESIZE_BILINEAR: resize_bilinear, ops.RESIZE_NEAREST: resize_nearest}
