"""One-hot rows and triangles of matrices."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required
from webinfer.graph.ir import Node, Op
from webinfer.ops import pattern as ops


def one_hot(inputs: Inputs, node: Node) -> list[Array]:
    """`on` where the position along the new axis is the input's number, else `off`."""
    x, a = required(inputs[0]), node.attrs
    column = np.arange(a.depth).reshape([-1 if i == a.axis else 1 for i in range(x.ndim + 1)])
    hit = np.expand_dims(x.astype(np.int64), a.axis) == column
    return [np.where(hit, a.on, a.off).astype(a.dtype.value)]


def triangular(inputs: Inputs, node: Node) -> list[Array]:
    """The upper or lower triangle of each matrix, zeros elsewhere."""
    x, a = required(inputs[0]), node.attrs
    offset = np.arange(x.shape[-1])[None, :] - np.arange(x.shape[-2])[:, None]
    kept = offset >= a.diagonal if a.upper else offset <= a.diagonal
    return [np.where(kept, x, x.dtype.type(0))]


LOWERINGS: dict[Op, Compute] = {ops.ONE_HOT: one_hot, ops.TRIANGULAR: triangular}
