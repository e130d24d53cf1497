"""Reductions over axes, and the positions of the largest or smallest elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from webinfer.backends.reference import quantized
from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.graph.ir import Node, Op
from webinfer.ops import reduce as ops

Axes = tuple[int, ...]


def _log_sum_exp(x: Array, axes: Axes, keep: bool) -> Array:
    if not axes:
        return x
    x = x if x.dtype.kind == "f" else x.astype(np.float64)  # no integer is less than all others
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    y = top + np.log(np.sum(np.exp(x - top), axis=axes, keepdims=True))
    return np.asarray(y if keep else np.squeeze(y, axis=axes))


def _mean(x: Array, axes: Axes, keep: bool) -> Array:
    count = int(np.prod([x.shape[i] for i in axes]))
    total = np.sum(x, axis=axes, keepdims=keep)
    if x.dtype.kind == "f":
        return np.asarray(total / count)
    down = total // count
    return np.asarray(down + ((total < 0) & (down * count != total)), x.dtype)  # cut towards zero


REDUCE: dict[Op, Callable[[Array, Axes, bool], Array]] = {
    ops.REDUCE_ALL: lambda x, axes, keep: np.all(x, axis=axes, keepdims=keep),
    ops.REDUCE_ANY: lambda x, axes, keep: np.any(x, axis=axes, keepdims=keep),
    ops.REDUCE_L1: lambda x, axes, keep: np.sum(np.abs(x), axis=axes, keepdims=keep),
    ops.REDUCE_L2: lambda x, axes, keep: np.sqrt(np.sum(x * x, axis=axes, keepdims=keep)),
    ops.REDUCE_LOG_SUM: lambda x, axes, keep: np.log(np.sum(x, axis=axes, keepdims=keep)),
    ops.REDUCE_LOG_SUM_EXP: _log_sum_exp,
    ops.REDUCE_MAX: lambda x, axes, keep: np.max(x, axis=axes, keepdims=keep),
    ops.REDUCE_MEAN: _mean,
    ops.REDUCE_MIN: lambda x, axes, keep: np.min(x, axis=axes, keepdims=keep),
    ops.REDUCE_PRODUCT: lambda x, axes, keep: np.prod(x, axis=axes, keepdims=keep),
    ops.REDUCE_SUM: lambda x, axes, keep: np.sum(x, axis=axes, keepdims=keep),
    ops.REDUCE_SUM_SQUARE: lambda x, axes, keep: np.sum(x * x, axis=axes, keepdims=keep),
}


def reduce(inputs: Inputs, node: Node) -> list[Array]:
    """The reduction of the node's operator over its axes."""
    x, a = required(inputs[0]), node.attrs
    if quantized.is_quantized(node) and node.op not in (ops.REDUCE_MAX, ops.REDUCE_MIN):
        return [quantized.reduce(REDUCE[node.op], x, node)]
    return [rounded(np.asarray(REDUCE[node.op](wide(x), a.axes, a.keep_dims)), node.output.type)]


def arg(inputs: Inputs, node: Node) -> list[Array]:
    """The position of the first largest or smallest element along an axis; a NaN counts as extreme."""
    find = np.argmax if node.op is ops.ARG_MAX else np.argmin
    return [rounded(np.asarray(find(required(inputs[0]), axis=node.attrs.axis)), node.output.type)]


LOWERINGS: dict[Op, Compute] = {
    **dict.fromkeys(REDUCE, reduce),
    ops.ARG_MAX: arg,
    ops.ARG_MIN: arg,
}
