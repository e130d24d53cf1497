"""Pooling over windows of images."""

from __future__ import annotations

import math

import numpy as np

from webinfer.backends.reference import quantized
from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, saturated, wide
from webinfer.backends.reference.elementwise import activate
from webinfer.dtypes import DType
from webinfer.graph.ir import Node, Op, TensorType, Value
from webinfer.ops import pool as ops


def _windows(x: Array, node: Node, fill: float) -> Array:
    """The taps of every window.

    Shapes:  x [N, IH, IW, C] -> [N, OH, OW, C, KH*KW], taps in row-major order
    """
    a, (n, oh, ow, c) = node.attrs, node.outputs[0].type.shape
    top, bottom, left, right = a.pads
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    taps = [
        x[:, ky * a.dilation[0] :: a.stride[0], kx * a.dilation[1] :: a.stride[1]][:, :oh, :ow]
        for ky in range(a.window[0])
        for kx in range(a.window[1])
    ]
    return np.stack(taps, axis=-1).reshape(n, oh, ow, c, len(taps))


def max_pool(inputs: Inputs, node: Node) -> list[Array]:
    """The largest element of each window and channel; padding never wins."""
    x = required(inputs[0])
    lowest = -math.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    y = _windows(x, node, lowest).max(axis=-1)
    if quantized.is_quantized(node):
        return [rounded(quantized.clamped(y, node.attrs.activation, node.output.type), node.output.type)]
    return [rounded(activate(y, node.attrs.activation), node.output.type)]


def average_pool(inputs: Inputs, node: Node) -> list[Array]:
    """The mean of each window and channel; padding neither adds to the sum nor to the count."""
    x = required(inputs[0])
    count = _windows(np.ones((1, *x.shape[1:])), _one_image(node), 0.0).sum(axis=-1)
    if quantized.is_quantized(node):
        return [quantized.average(_windows(x.astype(np.int64), node, 0).sum(axis=-1), count.astype(np.int64), node)]
    y = _windows(wide(x), node, 0.0).sum(axis=-1) / count
    return [rounded(activate(y, node.attrs.activation), node.output.type)]


def _one_image(node: Node) -> Node:
    """The node with a batch of one."""
    shape = (1, *node.output.type.shape[1:])
    return Node(node.op, [], [Value("one", TensorType(shape))], node.attrs)


def l2_pool(inputs: Inputs, node: Node) -> list[Array]:
    """The root of the sum of squares of each window and channel."""
    x = wide(required(inputs[0]))
    y = np.sqrt(_windows(x * x, node, 0.0).sum(axis=-1))
    return [rounded(activate(y, node.attrs.activation), node.output.type)]


def max_pool_with_argmax(inputs: Inputs, node: Node) -> list[Array]:
    """The largest element of each window and channel, and its tap: ky * KW + kx, plus 0.1, as a float."""
    windows = _windows(required(inputs[0]), node, -math.inf)
    order = np.arange(windows.shape[-1])
    if node.attrs.by_columns:  # which of equals is the first
        order = order.reshape(node.attrs.window).T.ravel()
    taps = order[windows[..., order].argmax(axis=-1)].astype(np.float32) + np.float32(0.1)
    y = activate(windows.max(axis=-1), node.attrs.activation)
    return [rounded(y, node.outputs[0].type), rounded(taps, node.outputs[1].type)]


def max_unpool(inputs: Inputs, node: Node) -> list[Array]:
    """A zero image with each x at the tap that it was the largest of; the last in row-major order stays."""
    x, taps, a = required(inputs[0]), saturated(required(inputs[1]), DType.INT64), node.attrs
    _, oh, ow, _ = node.output.type.shape
    b, iy, ix, ch = (np.asarray(index) for index in np.indices(x.shape))
    oy = iy * a.stride[0] - a.pads[0] + taps // a.window[1]
    ox = ix * a.stride[1] - a.pads[1] + taps % a.window[1]
    y = np.zeros(node.output.type.shape, x.dtype)
    inside = (oy >= 0) & (oy < oh) & (ox >= 0) & (ox < ow) & (taps >= 0) & (taps < a.window[0] * a.window[1])
    y[b[inside], oy[inside], ox[inside], ch[inside]] = x[inside]  # in row-major order: the last one stays
    return [y]


LOWERINGS: dict[Op, Compute] = {
    ops.AVERAGE_POOL2D: average_pool,
    ops.L2_POOL2D: l2_pool,
    ops.MAX_POOL2D: max_pool,
    ops.MAX_POOL_WITH_ARGMAX2D: max_pool_with_argmax,
    ops.MAX_UNPOOL2D: max_unpool,
}
