"""Pooling over windows of images."""

from __future__ import annotations

import enum
import math

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Target, check_turns, groups_for, read, write
from webinfer.backends.webgpu.lowerings.conversion import is_quantized, one_word
from webinfer.backends.webgpu.lowerings.reduce import L2, LONG_ROW, MAX, MEAN, columns_dispatch
from webinfer.codegen.prelude import Param, f32, i32, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Value
from webinfer.lowering.affine import stored_bounds
from webinfer.ops.activation import Activation


class Pool(enum.StrEnum):
    """What _pool.wgsl reduces a window to; MEAN_INTEGER rounds the mean of stored integers."""

    MAX = "max"
    MEAN = "mean"
    MEAN_INTEGER = "mean_integer"
    L2 = "l2"


_POOLS = {"average_pool2d": Pool.MEAN, "l2_pool2d": Pool.L2, "max_pool2d": Pool.MAX}
_WHOLE = {Pool.L2: L2, Pool.MAX: MAX, Pool.MEAN: MEAN}  # windows as large as the image
_POOL_ACTIVATIONS = (Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)


@one_word
def pool2d(node: Node, target: Target) -> list[Dispatch]:
    """pool2d_vec4.wgsl where channels come in quads, else pool2d_any.wgsl.

    reduce_columns.wgsl where the window is the whole of a large image.

    Raises:  UnsupportedOpError for activations that pooling has not, and for the L2 norm of integers
    """
    x, y, a = node.required_input(0), node.output, node.attrs
    kind, dtype = _POOLS[node.op.name], x.type.dtype
    if a.activation not in _POOL_ACTIVATIONS or (kind is Pool.L2 and not dtype.is_float):
        raise UnsupportedOpError([f"{node.op.name} of {x.type} with activation {a.activation}"])
    if kind is Pool.MEAN and not dtype.is_float:
        kind = Pool.MEAN_INTEGER
    _, ih, iw, c = x.type.shape
    _, oh, ow, _ = y.type.shape
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "kh": a.window[0], "kw": a.window[1], "kind": kind, "activation": a.activation,
        "quantized": not dtype.is_float,
    }  # fmt: skip
    params = (
        *u32(count=y.type.size, c=c, ih=ih, iw=iw, oh=oh, ow=ow, stride_h=a.stride[0], stride_w=a.stride[1]),
        *u32(dilation_h=a.dilation[0], dilation_w=a.dilation[1]),
        *i32(pad_top=a.pads[0], pad_left=a.pads[2]),
        *_pool_bounds(y, a.activation),
    )
    whole = a.window == (ih, iw) and (oh, ow) == (1, 1) and a.activation is Activation.NONE
    if whole and ih * iw >= LONG_ROW // 4 and c % 4 == 0 and kind in _WHOLE:
        extra = f32(lowest=-math.inf) if kind is Pool.MAX else ()
        if dtype.is_float:
            return [columns_dispatch(x, y, (x.type.shape[0], ih * iw, c), _WHOLE[kind], extra, target)]
    groups = groups_for(-(-y.type.size // 4), target)
    shader, why = ("pool2d_any", "odd channels") if c % 4 else ("pool2d_vec4", "channels by four")
    return [Dispatch(shader, variables, (read("x", x), write("y", y)), params, groups, why)]


def _pool_bounds(y: Value, activation: Activation) -> tuple[Param, ...]:
    """A number below all others and, for integers, the bounds of a result."""
    if y.type.dtype.is_float:
        return f32(lowest=-math.inf)
    if y.type.dtype is DType.UINT32:
        return u32(lowest=0, low=0, high=2**32 - 1)
    low, high = stored_bounds(y.type, activation) if is_quantized(y) else y.type.dtype.range
    return i32(lowest=-(2**31), low=max(low, -(2**31)), high=min(high, 2**31 - 1))


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
