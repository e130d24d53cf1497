"""Products of data and weights."""

from __future__ import annotations

from webinfer.graph.ir import Node, Op, TensorType
from webinfer.ops import conv, matmul

# The axis of the weights along which outputs lie, if it is not turned.
AXES: dict[Op, int] = {conv.CONV2D: 0, conv.DEPTHWISE_CONV2D: -1, conv.CONV_TRANSPOSE2D: 0, matmul.MATMUL: -1}


def output_axis(product: Node, weights: TensorType) -> int:
    """The axis of the weights along which the product's channels or columns lie."""
    if product.op is matmul.MATMUL and product.attrs.transpose_b:
        return weights.rank - 2
    return AXES[product.op] % weights.rank
