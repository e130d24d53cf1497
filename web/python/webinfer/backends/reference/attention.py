"""Attention."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.graph.ir import Node, Op
from webinfer.ops import attention as ops


def whole_mask(mask: Array, columns: Array | None = None) -> Array:
    """What is added to the logit of each key: the mask, or each sum of an element of it and one of `columns`."""
    if columns is None:
        return mask
    sums = mask[..., :, None] + columns[..., None, :]
    return sums.reshape(*sums.shape[:-2], -1)


def attention(inputs: Inputs, node: Node) -> list[Array]:
    """softmax(q kT * scale + mask) v; with `clear_nan` zeros for a query whose weights are not numbers."""
    a = node.attrs
    q, k, v = (
        np.swapaxes(wide(required(x)), 1, 2) if inner else wide(required(x))
        for x, inner in zip(inputs[:3], a.inner, strict=False)
    )
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    logits = a.scale * (q @ np.swapaxes(k, -1, -2))
    if a.softcap:
        logits = a.softcap * np.tanh(logits / a.softcap)
    if len(inputs) > 3 and inputs[3] is not None:
        logits = logits + whole_mask(wide(inputs[3]), *map(wide, map(required, inputs[4:])))
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    y = weights @ v
    if a.clear_nan:
        y = np.where(np.isnan(weights).any(-1, keepdims=True), 0.0, y)
    return [rounded(np.swapaxes(y, 1, 2) if a.inner[3] else y, node.output.type)]


LOWERINGS: dict[Op, Compute] = {ops.ATTENTION: attention}
