"""Products of 8-bit integers that give real numbers."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.backends.reference.elementwise import activate
from webinfer.backends.reference.quantized import real
from webinfer.graph.ir import Node, Op
from webinfer.ops import stored_matmul as ops


def stored_matmul(inputs: Inputs, node: Node) -> list[Array]:
    """The product of the real numbers that the bytes stand for."""
    a, bias = node.attrs, inputs[2] if len(inputs) > 2 else None
    x, w = (real(required(inputs[i]), node.required_input(i).type) for i in (0, 1))
    y = np.matmul(x, w.T if a.transpose_b else w)
    return [rounded(activate(y if bias is None else y + wide(bias), a.activation), node.output.type)]


LOWERINGS: dict[Op, Compute] = {ops.STORED_MATMUL: stored_matmul}
