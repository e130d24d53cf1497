"""Windows over volumes [N, D, H, W, C], said with windows over images: the planes of a window lie in channels."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.limits import MAX_REACH, within
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import conv, pool
from webinfer.ops import movement as mv
from webinfer.ops.activation import Activation

Sizes = Sequence[int]
Pads = Sequence[tuple[int, int]]  # before and after each of three axes
_MOST_PLANES = 256  # that one window covers


def convolve(
    op: BaseOperation, x: Value, w: Value, bias: Value | None, stride: Sizes, pads: Pads, dilation: Sizes,
    groups: int = 1, activation: Activation = Activation.NONE,
) -> Value:  # fmt: skip
    """The convolution of volumes.

    Shapes:  x [N, D, H, W, CI], w [CO, KD, KH, KW, CI/groups], bias [CO] or absent -> [N, OD, OH, OW, CO]
    """
    n, _, high, wide, _ = x.type.shape
    co, kd, kh, kw, inner = w.type.shape
    _check(op, (kd, kh, kw), stride, dilation)
    (top, bottom), (left, right) = pads[1:]
    if (kh, kw, *stride[1:]) == (1, 1, 1, 1) and not any((top, bottom, left, right)):  # planes alone: D as rows
        attrs = conv.Conv2dAttrs((stride[0], 1), (*pads[0], 0, 0), (dilation[0], 1), groups, activation)
        y = op.emit(conv.CONV2D, [_flat(op, x), op.reshape(w, (co, kd, 1, inner)), bias], attrs)
        return op.reshape(y, (n, y.type.shape[1], high, wide, co))
    count = conv.window_size(op.name, x.type.shape[1], *pads[0], kd, dilation[0], stride[0])
    x = _padded(op, x, *pads[0])
    images = _stacked(op, x, [i * dilation[0] for i in range(kd)], count, stride[0], groups)
    turned = op.reshape(op.transpose(w, (0, 2, 3, 1, 4)), (co, kh, kw, kd * inner))
    attrs = conv.Conv2dAttrs(
        (stride[1], stride[2]), (top, bottom, left, right), (dilation[1], dilation[2]), groups, activation
    )
    y = op.emit(conv.CONV2D, [images, turned, bias], attrs)
    return op.reshape(y, (n, count, *y.type.shape[1:]))


def convolve_transposed(
    op: BaseOperation, x: Value, w: Value, bias: Value | None, stride: Sizes, pads: Pads, extra: Sizes,
    dilation: Sizes = (1, 1, 1), groups: int = 1, activation: Activation = Activation.NONE,
) -> Value:  # fmt: skip
    """The transposed convolution of volumes. `pads` are cut from the full result, `extra` is added at its ends.

    Planes of y that lie a stride apart read the same planes of x: they are channels of one image until the end.

    Shapes:  x [N, D, H, W, CI], w [CO/groups, KD, KH, KW, CI], bias [CO] or absent -> [N, OD, OH, OW, CO]
    """
    n, depth, _, _, channels = x.type.shape
    outer, kd, kh, kw, _ = w.type.shape
    _check(op, (kd, kh, kw), stride, dilation)
    step, reach = stride[0], (kd - 1) * dilation[0] + 1
    w = _spread(op, w, dilation[0])
    taps = -(-reach // step)
    w = _padded(op, w, 0, taps * step - reach)
    # w[co, j * step + r] is what plane m - j of x adds to plane m * step + r of y
    w = op.transpose(op.reshape(w, (outer, taps, step, kh, kw, groups, channels // groups)), (2, 0, 3, 4, 5, 1, 6))
    w = op.reshape(w, (step * outer, kh, kw, groups * taps * (channels // groups)))
    first, size = pads[0][0], (depth - 1) * step + reach - sum(pads[0]) + extra[0]
    if size < 1:
        op.fail(f"a result of {size} planes")
    planes = max(depth + taps - 1, -(-(first + size) // step))
    x = _padded(op, x, taps - 1, planes - depth)
    images = _stacked(op, x, [taps - 1 - j for j in range(taps)], planes, 1, groups)
    (top, bottom), (left, right) = pads[1:]
    attrs = conv.ConvTranspose2dAttrs(
        (stride[1], stride[2]), (top, bottom, left, right), (dilation[1], dilation[2]), groups, (extra[1], extra[2]),
        activation,
    )  # fmt: skip
    if bias is not None:  # results of a group are (step, channel)
        bias = op.reshape(bias, (groups, 1, outer))
        bias = op.reshape(op.expand(bias, (groups, step, outer)), (groups * step * outer,))
    y = op.emit(conv.CONV_TRANSPOSE2D, [images, w, bias], attrs)
    _, oh, ow, _ = y.type.shape
    y = op.transpose(op.reshape(y, (n, planes, oh, ow, groups, step, outer)), (0, 1, 5, 2, 3, 4, 6))
    y = op.reshape(y, (n, planes * step, oh, ow, groups * outer))
    return op.cut(y, 1, first, size)


def pooled(op: BaseOperation, kind: Op, x: Value, window: Sizes, stride: Sizes, pads: Pads, dilation: Sizes) -> Value:
    """The pooling of volumes: planes first, then what lies behind each other.

    Shapes:  x [N, D, H, W, C] -> [N, OD, OH, OW, C]
    """
    n, depth, high, wide, channels = x.type.shape
    attrs = pool.Pool2dAttrs(
        (window[1], window[2]), (stride[1], stride[2]), (*pads[1], *pads[2]), (dilation[1], dilation[2])
    )
    y = op.emit(kind, [op.reshape(x, (n * depth, high, wide, channels))], attrs)
    _, high, wide, _ = y.type.shape
    attrs = pool.Pool2dAttrs((window[0], 1), (stride[0], 1), (*pads[0], 0, 0), (dilation[0], 1))
    y = op.emit(kind, [op.reshape(y, (n, depth, high * wide, channels))], attrs)
    return op.reshape(y, (n, y.type.shape[1], high, wide, channels))


def _check(op: BaseOperation, window: Sizes, stride: Sizes, dilation: Sizes) -> None:
    if min(*window, *stride, *dilation) < 1:
        op.fail(f"window {tuple(window)}, stride {tuple(stride)}, dilation {tuple(dilation)} must be positive")
    if max((k - 1) * d for k, d in zip(window, dilation, strict=True)) > MAX_REACH:
        op.fail(f"a window of {tuple(window)} with dilation {tuple(dilation)} reaches too far")
    within("planes of a window", max(window[0], stride[0]), _MOST_PLANES)


def _flat(op: BaseOperation, x: Value) -> Value:
    n, depth, high, wide, channels = x.type.shape
    return op.reshape(x, (n, depth, high * wide, channels))


def _padded(op: BaseOperation, x: Value, before: int, after: int) -> Value:
    """Zeros before and after the second of five axes."""
    if not before and not after:
        return x
    return op.emit(mv.PAD, [x], mv.PadAttrs((0, before, 0, 0, 0), (0, after, 0, 0, 0)))


def _spread(op: BaseOperation, w: Value, step: int) -> Value:
    """Weights with zeros between their planes."""
    outer, kd, *rest = w.type.shape
    if step == 1 or kd == 1:
        return w
    zeros = op.expand(op.zeros((1, 1, 1, 1, 1, 1), DType.FLOAT32), (outer, kd, step - 1, *rest))
    wide = op.concat([op.reshape(w, (outer, kd, 1, *rest)), zeros], 2)
    return op.cut(op.reshape(wide, (outer, kd * step, *rest)), 1, 0, (kd - 1) * step + 1)


def _stacked(op: BaseOperation, x: Value, firsts: Sizes, count: int, step: int, groups: int) -> Value:
    """Images whose channels are those of several planes: image i has the planes first + i * step.

    Shapes:  x [N, D, H, W, C] -> [N*count, H, W, groups * len(firsts) * C/groups]
    """
    n, _, high, wide, channels = x.type.shape
    planes = []
    for first in firsts:
        attrs = mv.SliceAttrs((0, first, 0, 0, 0), (n, count, high, wide, channels), (1, step, 1, 1, 1))
        planes.append(op.emit(mv.SLICE, [x], attrs))
    if len(planes) == 1:
        y = planes[0]
    elif groups == 1:
        y = op.concat(planes, 4)
    else:
        y = op.stack([op.reshape(v, (n, count, high, wide, groups, channels // groups)) for v in planes], 5)
    return op.reshape(y, (n * count, high, wide, len(firsts) * channels))
