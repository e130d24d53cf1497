"""Matrix products. Integer sums are exact: they stay below 2**53."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference import quantized
from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.backends.reference.elementwise import activate
from webinfer.graph.ir import Node, Op
from webinfer.ops import matmul as ops


def matmul(inputs: Inputs, node: Node) -> list[Array]:
    """The product of the matrices in the last two dimensions, bias and activation; leading dimensions broadcast.

    Integers are rounded once, at the end.
    """
    a, bias = node.attrs, inputs[2] if len(inputs) > 2 else None
    exact = quantized.is_quantized(node)
    x, y = (
        quantized.operands(inputs, node)
        if exact
        else (wide(required(inputs[0])), quantized.float_weights(inputs, node))
    )
    if a.transpose_a:
        x = np.swapaxes(x, -1, -2)
    if a.transpose_b:
        y = np.swapaxes(y, -1, -2)
    product = np.matmul(x, y)
    if exact:
        return [quantized.requantized(product, bias, node)]
    if bias is not None:
        product = product + wide(bias)
    return [rounded(activate(product, a.activation), node.output.type)]


LOWERINGS: dict[Op, Compute] = {ops.MATMUL: matmul}
