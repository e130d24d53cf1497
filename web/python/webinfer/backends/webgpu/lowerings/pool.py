"""Pooling over windows of images."""

from __future__ import annotations

import math

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Target, check_turns, groups_for, read, write
from webinfer.backends.webgpu.lowerings import described
from webinfer.backends.webgpu.lowerings.conversion import one_word
from webinfer.backends.webgpu.lowerings.reduce import L2, LONG_ROW, MAX, MEAN, columns_dispatch
from webinfer.codegen.prelude import f32, i32, u32
from webinfer.codegen.templates import Variable
from webinfer.errors import UnsupportedOpError
from webinfer.expr import formula as f
from webinfer.expr.formula import Formula
from webinfer.expr.kernel import (
    Kernel,
    Kind,
    Size,
    Tensor,
    along,
    axes,
    fixed_sizes,
    largest,
    lengths,
    real,
    reals,
    sizes,
    total,
)
from webinfer.graph.ir import Node, TensorType
from webinfer.lowering.affine import stored_bounds
from webinfer.ops.activation import Activation

_WHOLE = {"l2_pool2d": L2, "max_pool2d": MAX, "average_pool2d": MEAN}  # windows as large as the image
_POOL_ACTIVATIONS = (Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)


@one_word
def pool2d(node: Node, target: Target) -> list[Dispatch]:
    """The described kernel; reduce_columns.wgsl where the window is the whole of a large image.

    Raises:  UnsupportedOpError for activations that pooling has not, and for the L2 norm of integers
    """
    x, y, a, name = node.required_input(0), node.output, node.attrs, node.op.name
    if a.activation not in _POOL_ACTIVATIONS or (name == "l2_pool2d" and not x.type.dtype.is_float):
        raise UnsupportedOpError([f"{name} of {x.type} with activation {a.activation}"])
    _, ih, iw, c = x.type.shape
    whole = a.window == (ih, iw) and y.type.shape[1:3] == (1, 1) and a.activation is Activation.NONE
    if whole and ih * iw >= LONG_ROW // 4 and c % 4 == 0 and x.type.dtype.is_float:
        extra = f32(lowest=-math.inf) if name == "max_pool2d" else ()
        return [columns_dispatch(x, y, (x.type.shape[0], ih * iw, c), _WHOLE[name], extra, target)]
    return [described.dispatch(_pool(node), [x], y, target)]


def _pool(node: Node) -> Kernel:
    """Padded taps do not win, nor count in the mean's divisor. Means of stored integers round ties away from zero."""
    x, y, a, name = node.required_input(0).type, node.output.type, node.attrs, node.op.name
    batch, ih, iw, c = lengths(x.shape, batch=1, ih=2, iw=3, c=4)
    oh, ow, top, left = sizes(oh=y.shape[1], ow=y.shape[2], top=a.pads[0], left=a.pads[2])
    stride_h, stride_w = sizes(stride_h=a.stride[0], stride_w=a.stride[1])
    kh, kw, dilation_h, dilation_w = fixed_sizes(kh=a.window[0], kw=a.window[1], dh=a.dilation[0], dw=a.dilation[1])
    (n, oy, ox, i), ky, kx = axes(n=batch, oy=oh, ox=ow, i=c), along("ky", kh), along("kx", kw)
    first_y, first_x = oy * stride_h - top, ox * stride_w - left
    iy, ix = first_y + ky * dilation_h, first_x + kx * dilation_w
    data = Tensor("x", (batch, ih, iw, c), Kind.NUMBER)
    tap, high, wide = data[n, iy, ix, i], (iy >= 0) & (iy < ih), (ix >= 0) & (ix < iw)
    if name == "max_pool2d":
        lowest: Formula
        (lowest,) = reals(lowest=-math.inf) if x.dtype.is_float else sizes(lowest=max(x.dtype.range[0], -(2**31)))
        inner = largest(kx, tap, lowest, where=wide, kind=Kind.NUMBER)
        value: Formula = largest(ky, inner, lowest, where=high, kind=Kind.NUMBER)
    else:
        taken = tap * tap if name == "l2_pool2d" else tap
        value = total(ky, total(kx, taken, where=wide), where=high)
    if name == "l2_pool2d":
        value = f.sqrt(value)
    elif name == "average_pool2d":
        count = _taps(first_y, kh, dilation_h, ih) * _taps(first_x, kw, dilation_w, iw)
        value = value / real(count) if x.dtype.is_float else (value + f.sign(value) * (count // 2)) // count
    return Kernel(name, (data,), (n, oy, ox, i), _bounded(value, y, a.activation), Kind.NUMBER)


def _taps(first: Formula, window: Size, dilation: Size, size: Size) -> Formula:
    """How many taps of a window that begins there are in the image; one is."""
    if dilation.value == 1:
        return f.min(size - first, window) - f.max(-first, 0)
    end = f.min((size - 1 - first) // dilation + 1, window)
    return end - f.max((dilation - 1 - first) // dilation, 0)


def _bounded(value: Formula, y: TensorType, activation: Activation) -> Formula:
    """The value with an activation, as y holds it; bounds that cut nothing are left out."""
    if not y.dtype.is_float:
        if y.quant is None:
            return value
        low, high = stored_bounds(y, activation)
        return f.clamp(value, *sizes(low=low, high=high))
    low_bound, high_bound = activation.bounds or (-math.inf, math.inf)
    if high_bound < math.inf:
        return f.clamp(value, low_bound, high_bound)
    return f.max(value, low_bound) if low_bound > -math.inf else value


@one_word
def max_pool_with_argmax2d(node: Node, target: Target) -> list[Dispatch]:
    """max_pool_with_argmax2d.wgsl: the largest elements and the taps that they lie at.

    Raises:  UnsupportedOpError for integers
    """
    x, a = node.required_input(0), node.attrs
    y, taps = node.outputs
    if not x.type.dtype.is_float:
        raise UnsupportedOpError([f"{node.op.name} of {x.type}"])
    _, ih, iw, c = x.type.shape
    _, oh, ow, _ = y.type.shape
    check_turns(4 * (1 + a.window[0] * a.window[1]), target, "the largest of a window")
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "kh": a.window[0], "kw": a.window[1], "activation": a.activation,
        "by_columns": a.by_columns,
    }  # fmt: skip
    params = (
        *u32(count=y.type.size, c=c, ih=ih, iw=iw, oh=oh, ow=ow, stride_h=a.stride[0], stride_w=a.stride[1]),
        *i32(pad_top=a.pads[0], pad_left=a.pads[2]),
    )
    bindings = (read("x", x), write("y", y), write("taps", taps))
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch("max_pool_with_argmax2d", variables, bindings, params, groups)]
