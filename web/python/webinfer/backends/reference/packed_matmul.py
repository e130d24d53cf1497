"""Products with packed weights."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.graph.ir import Node, Op
from webinfer.ops import packed_matmul as ops


def packed_matmul(inputs: Inputs, node: Node) -> list[Array]:
    """x times the weights that the bytes stand for."""
    x, w, scales = (required(array) for array in inputs[:3])
    zeros, bias = [*inputs, None, None][3:5]
    bits, rows = node.attrs.bits, w.shape[0]
    stored = w if bits == 8 else np.stack([w & 15, w >> 4], axis=-1).reshape(rows, -1)
    offset = np.full(scales.shape, 2.0 ** (bits - 1)) if zeros is None else wide(zeros)
    blocks = stored.reshape(rows, -1, node.attrs.block) - offset[:, :, None]
    weights = (blocks * wide(scales)[:, :, None]).reshape(rows, -1)[:, : x.shape[-1]]
    y = wide(x) @ weights.T
    return [rounded(y if bias is None else y + wide(bias), node.output.type)]


LOWERINGS: dict[Op, Compute] = {ops.PACKED_MATMUL: packed_matmul}
