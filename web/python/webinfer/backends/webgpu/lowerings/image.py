"""Pooling and resampling of images."""

from __future__ import annotations

import enum

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Target, groups_for, operand, read, write
from webinfer.codegen.elements import bits_of
from webinfer.codegen.prelude import f32, i32, u32
from webinfer.codegen.templates import Variable
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node
from webinfer.ops.activation import Activation


class Pool(enum.StrEnum):
    """What a window is reduced to."""

    MAX = "max"
    MEAN = "mean"
    L2 = "l2"


_POOLS = {"average_pool2d": Pool.MEAN, "l2_pool2d": Pool.L2, "max_pool2d": Pool.MAX}
_POOL_ACTIVATIONS = (Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)


def pool2d(node: Node, target: Target) -> list[Dispatch]:
    x, y, a = operand(node, 0), node.output, node.attrs
    if not x.type.dtype.is_float or a.activation not in _POOL_ACTIVATIONS:
        raise UnsupportedOpError([f"{node.op.name} of {x.type} with activation {a.activation}"])
    n, ih, iw, c = x.type.shape
    _, oh, ow, _ = y.type.shape
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "kh": a.window[0], "kw": a.window[1], "kind": _POOLS[node.op.name],
        "activation": a.activation,
    }  # fmt: skip
    bindings = (read("x", x), write("y", y))
    image = (
        *u32(ih=ih, iw=iw, oh=oh, ow=ow, stride_h=a.stride[0], stride_w=a.stride[1]),
        *u32(dilation_h=a.dilation[0], dilation_w=a.dilation[1]),
        *i32(pad_top=a.pads[0], pad_left=a.pads[2]),
    )
    groups = groups_for(-(-y.type.size // 4), target)
    if c % 4:
        return [Dispatch("pool2d_any", variables, bindings, (*u32(count=y.type.size, c=c), *image), groups, "odd channels")]
    params = (*u32(pixels=n * oh * ow, c4=c // 4), *image)
    return [Dispatch("pool2d_vec4", variables, bindings, params, groups, "channels by four")]


def _scale(inputs: int, outputs: int, align_corners: bool) -> float:
    return (inputs - 1) / (outputs - 1) if align_corners and outputs > 1 else inputs / outputs


def resize_bilinear(node: Node, target: Target) -> list[Dispatch]:
    x, y, a = operand(node, 0), node.output, node.attrs
    if not x.type.dtype.is_float:
        raise UnsupportedOpError([f"resize_bilinear of {x.type}"])
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
