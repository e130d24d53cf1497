"""Layer norm and RMS norm."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.graph.ir import Node, Op
from webinfer.ops import normalization as ops


def layer_norm(inputs: Inputs, node: Node) -> list[Array]:
    """Each row, less its mean, over the root of its mean square."""
    a, x = node.attrs, wide(required(inputs[0]))
    axes = tuple(range(x.ndim - a.axes, x.ndim))
    if a.centred:
        x = x - x.mean(axes, keepdims=True)
    y = x / np.sqrt(np.square(x).mean(axes, keepdims=True) + a.epsilon)
    scale, bias = (*inputs[1:], None, None)[:2]
    y = y if scale is None else y * wide(scale)
    return [rounded(y if bias is None else y + wide(bias), node.output.type)]


LOWERINGS: dict[Op, Compute] = {ops.LAYER_NORM: layer_norm}
