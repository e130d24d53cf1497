"""Convolutions, tap by tap. Integer sums are exact: they stay below 2**53."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference import quantized
from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.backends.reference.elementwise import activate
from webinfer.graph.ir import Node, Op
from webinfer.ops import conv as ops


def _taps(x: Array, window: tuple[int, int], a: ops.Conv2dAttrs, size: tuple[int, int]) -> list[tuple[int, int, Array]]:
    """(ky, kx, the pixels [N, OH, OW, C] under that tap); padding is zero."""
    top, bottom, left, right = a.pads
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    (sh, sw), (dh, dw), (oh, ow) = a.stride, a.dilation, size
    return [
        (ky, kx, x[:, ky * dh : ky * dh + (oh - 1) * sh + 1 : sh, kx * dw : kx * dw + (ow - 1) * sw + 1 : sw])
        for ky in range(window[0])
        for kx in range(window[1])
    ]


def _dense(x: Array, w: Array, node: Node) -> Array:
    n, oh, ow, co = node.output.type.shape
    groups, (_, kh, kw, ci) = node.attrs.groups, w.shape
    y = np.zeros((n, oh, ow, co))
    for ky, kx, pixels in _taps(x, (kh, kw), node.attrs, (oh, ow)):
        for g in range(groups):
            out = slice(g * co // groups, (g + 1) * co // groups)
            y[..., out] += pixels[..., g * ci : (g + 1) * ci] @ w[out, ky, kx].T
    return y


def _depthwise(x: Array, w: Array, node: Node) -> Array:
    n, oh, ow, co = node.output.type.shape
    y, multiplier = np.zeros((n, oh, ow, co)), co // x.shape[3]
    for ky, kx, pixels in _taps(x, (w.shape[1], w.shape[2]), node.attrs, (oh, ow)):
        y += np.repeat(pixels, multiplier, axis=3) * w[0, ky, kx]
    return y


def _transposed(x: Array, w: Array, node: Node) -> Array:
    a, (n, ih, iw, ci) = node.attrs, x.shape
    (per_group, kh, kw, _), (sh, sw), (dh, dw) = w.shape, a.stride, a.dilation
    _, oh, ow, co = node.output.type.shape
    full = np.zeros(
        (
            n,
            (ih - 1) * sh + (kh - 1) * dh + 1 + a.output_padding[0],
            (iw - 1) * sw + (kw - 1) * dw + 1 + a.output_padding[1],
            co,
        )
    )
    group = ci // a.groups
    for ky in range(kh):
        for kx in range(kw):
            here = full[:, ky * dh : ky * dh + (ih - 1) * sh + 1 : sh, kx * dw : kx * dw + (iw - 1) * sw + 1 : sw]
            for g in range(a.groups):
                out = slice(g * per_group, (g + 1) * per_group)
                part = slice(g * group, (g + 1) * group)
                here[..., out] += x[..., part] @ w[:, ky, kx, part].T
    top, left = a.pads[0], a.pads[2]
    return full[:, top : top + oh, left : left + ow]


_SUMS = {ops.CONV2D: _dense, ops.CONV_TRANSPOSE2D: _transposed, ops.DEPTHWISE_CONV2D: _depthwise}


def convolution(inputs: Inputs, node: Node) -> list[Array]:
    """Convolution of any kind: sum of products, bias, residual, activation; integers are rounded once, at the end.

    Shapes:  x [N, IH, IW, CI], w [CO, KH, KW, CI/groups] (depthwise [1, KH, KW, CO]) -> y [N, OH, OW, CO]
    """
    bias, residual, slope = (inputs[2:5] + [None] * 3)[:3]
    if quantized.is_quantized(node):
        x, w = quantized.operands(inputs, node)
        return [quantized.requantized(_SUMS[node.op](x, w, node), bias, node)]
    x, w = wide(required(inputs[0])), quantized.float_weights(inputs, node)
    y = _SUMS[node.op](x, w, node)
    if bias is not None:
        y = y + wide(bias).reshape(-1)
    if residual is not None:
        y[..., : residual.shape[-1]] += wide(residual)
    return [rounded(activate(y, node.attrs.activation, slope), node.output.type)]


LOWERINGS: dict[Op, Compute] = {
    **dict.fromkeys(_SUMS, convolution),
}
