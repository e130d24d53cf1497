"""Softmax and its logarithm along one axis."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference import quantized
from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.graph.ir import Node, Op
from webinfer.ops import softmax as ops


def softmax(inputs: Inputs, node: Node) -> list[Array]:
    """e^(beta*x) over its sum along an axis, or the logarithm of that."""
    x, a = required(inputs[0]), node.attrs
    if quantized.is_quantized(node):
        return [quantized.softmax(x, node)]
    shifted = a.beta * (wide(x) - np.max(wide(x), axis=a.axis, keepdims=True))
    total = np.sum(np.exp(shifted), axis=a.axis, keepdims=True)
    y = shifted - np.log(total) if node.op is ops.LOG_SOFTMAX else np.exp(shifted) / total
    return [rounded(y, node.output.type)]


LOWERINGS: dict[Op, Compute] = {ops.LOG_SOFTMAX: softmax, ops.SOFTMAX: softmax}
