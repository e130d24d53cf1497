"""Pooling and resampling of images."""

from __future__ import annotations

import enum

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Target, groups_for, operand, read, write
from webinfer.backends.webgpu.lowerings.conversion import float32, ints, is_quantized
from webinfer.backends.webgpu.lowerings.quantized import stored_bounds
from webinfer.backends.webgpu.lowerings.reduction import FLOAT_MAX, LONG_ROW, Reduction, columns_dispatch
from webinfer.codegen.elements import bits_of
from webinfer.codegen.prelude import Param, f32, i32, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Value
from webinfer.ops.activation import Activation
from webinfer.ops.resize import ResizeAttrs


class Pool(enum.StrEnum):
    """What a window is reduced to."""

    MAX = "max"
    MEAN = "mean"
    MEAN_INTEGER = "mean_integer"
    L2 = "l2"


_POOLS = {"average_pool2d": Pool.MEAN, "l2_pool2d": Pool.L2, "max_pool2d": Pool.MAX}
_WHOLE = {Pool.L2: Reduction.L2, Pool.MAX: Reduction.MAX, Pool.MEAN: Reduction.MEAN}  # windows as large as the image
_POOL_ACTIVATIONS = (Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)


def pool2d(node: Node, target: Target) -> list[Dispatch]:
    x, y, a = operand(node, 0), node.output, node.attrs
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
        extra = f32(lowest=-FLOAT_MAX) if kind is Pool.MAX else ()
        if dtype.is_float:
            return [columns_dispatch(x, y, (x.type.shape[0], ih * iw, c), _WHOLE[kind], extra, target)]
    groups = groups_for(-(-y.type.size // 4), target)
    shader, why = ("pool2d_any", "odd channels") if c % 4 else ("pool2d_vec4", "channels by four")
    return [Dispatch(shader, variables, (read("x", x), write("y", y)), params, groups, why)]


def _pool_bounds(y: Value, activation: Activation) -> tuple[Param, ...]:
    """A number below all others and, for integers, the bounds of a result."""
    if y.type.dtype.is_float:
        return f32(lowest=-3.4028234663852886e38)
    if y.type.dtype in (DType.UINT32, DType.UINT64):
        return u32(lowest=0, low=0, high=2**32 - 1)
    low, high = stored_bounds(activation, y) if is_quantized(y) else y.type.dtype.range
    return i32(lowest=-(2**31), low=max(low, -(2**31)), high=min(high, 2**31 - 1))


def _scale(inputs: int, outputs: int, align_corners: bool) -> float:
    return (inputs - 1) / (outputs - 1) if align_corners and outputs > 1 else inputs / outputs


def resize_bilinear(node: Node, target: Target) -> list[Dispatch]:
    x, y, a = operand(node, 0), node.output, node.attrs
    if not x.type.dtype.is_float:
        return [_resize_quantized(node, target)]
    _, ih, iw, c = x.type.shape
    _, oh, ow, _ = y.type.shape
    params = (
        *u32(count=y.type.size, ih=ih, iw=iw, oh=oh, ow=ow, c=c),
        *f32(scale_h=_scale(ih, oh, a.align_corners), scale_w=_scale(iw, ow, a.align_corners)),
        *f32(offset=0.5 if a.half_pixel_centers else 0.0),
    )
    shader = "resize_bilinear" if c % 4 else "resize_bilinear_vec4"
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch(shader, {"workgroup": WORKGROUP}, (read("x", x), write("y", y)), params, groups)]


def _taps(size: int, count: int, a: ResizeAttrs) -> list[int]:
    """First neighbour and weight of the second in 2048ths, for each output sample of an axis, in float32 steps."""
    out: list[int] = []
    aligned = a.align_corners and count > 1
    scale = float32((size - 1) / (count - 1)) if aligned else float32(size / count)
    half = 0.5 if a.half_pixel_centers and not aligned else 0.0
    for o in range(count):
        at = min(max(float32(float32((o + half) * scale) - half), 0.0), float(size - 1))
        out += [int(at), round(float32(at - int(at)) * 2048.0)]
    return out


def _resize_quantized(node: Node, target: Target) -> Dispatch:
    x, y, a = operand(node, 0), node.output, node.attrs
    if x.type.dtype not in (DType.INT8, DType.UINT8):
        raise UnsupportedOpError([f"resize_bilinear of {x.type}"])
    _, ih, iw, c = x.type.shape
    _, oh, ow, _ = y.type.shape
    rows, columns = ints(_taps(ih, oh, a)), ints(_taps(iw, ow, a))
    bindings = (read("x", x), read("rows", rows), read("columns", columns), write("y", y))
    params = u32(count=y.type.size, ih=ih, iw=iw, oh=oh, ow=ow, c=c)
    groups = groups_for(-(-y.type.size // 4), target)
    return Dispatch("resize_bilinear_quantized", {"workgroup": WORKGROUP}, bindings, params, groups, "11-bit weights")


def resize_nearest(node: Node, target: Target) -> list[Dispatch]:
    x, y, a = operand(node, 0), node.output, node.attrs
    _, ih, iw, c = x.type.shape
    _, oh, ow, _ = y.type.shape
    params = (
        *u32(count=y.type.size, ih=ih, iw=iw, oh=oh, ow=ow, c=c),
        *f32(scale_h=_scale(ih, oh, a.align_corners), scale_w=_scale(iw, ow, a.align_corners)),
        *f32(before=0.5 if a.half_pixel_centers else 0.0, after=0.5 if a.align_corners else 0.0),
    )
    bits = bits_of(x.type.dtype)
    groups = groups_for(-(-y.type.size // 4), target)
    bindings = (read("x", x, bits), write("y", y, bits))
    return [Dispatch("resize_nearest", {"workgroup": WORKGROUP}, bindings, params, groups)]


def max_pool_with_argmax2d(node: Node, target: Target) -> list[Dispatch]:
    x, a = operand(node, 0), node.attrs
    y, taps = node.outputs
    if not x.type.dtype.is_float:
        raise UnsupportedOpError([f"{node.op.name} of {x.type}"])
    _, ih, iw, c = x.type.shape
    _, oh, ow, _ = y.type.shape
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "kh": a.window[0], "kw": a.window[1], "activation": a.activation,
    }  # fmt: skip
    params = (
        *u32(count=y.type.size, c=c, ih=ih, iw=iw, oh=oh, ow=ow, stride_h=a.stride[0], stride_w=a.stride[1]),
        *i32(pad_top=a.pads[0], pad_left=a.pads[2]),
    )
    bindings = (read("x", x), write("y", y), write("taps", taps))
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch("max_pool_with_argmax2d", variables, bindings, params, groups)]


def max_unpool2d(node: Node, target: Target) -> list[Dispatch]:
    x, taps, y, a = operand(node, 0), operand(node, 1), node.output, node.attrs
    _, ih, iw, c = x.type.shape
    _, oh, ow, _ = y.type.shape
    bits = bits_of(x.type.dtype)
    params = (
        *u32(count=y.type.size, c=c, oh=oh, ow=ow),
        *i32(ih=ih, iw=iw, stride_h=a.stride[0], stride_w=a.stride[1], pad_top=a.pads[0], pad_left=a.pads[1]),
    )
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "kh": a.window[0], "kw": a.window[1]}
    bindings = (read("x", x, bits), read("taps", taps), write("y", y, bits))
    return [Dispatch("max_unpool2d", variables, bindings, params, groups_for(-(-y.type.size // 4), target))]
