"""Convolutions: dense, grouped, depthwise."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Derived,
    Dispatch,
    Source,
    Target,
    groups_for,
    operand,
    present,
    read,
    write,
)
from webinfer.backends.webgpu.lowerings.movement import copy_dispatch
from webinfer.codegen.prelude import Param, i32, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node, Value
from webinfer.ops.activation import Activation
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.strided import StridedCopy

BUSY = {False: 16384, True: 64}  # invocations that fill a device: hardware, software


class Residual(enum.StrEnum):
    """How the epilogue reads its residual."""

    NONE = "none"
    QUADS = "quads"
    ELEMENTS = "elements"


def epilogue(node: Node, activation: Activation) -> tuple[dict[str, Variable], list[Binding], tuple[Param, ...]]:
    """Variables, bindings and parameters of bias, residual, slope and activation (inputs 2, 3, 4)."""
    bias, residual, slope = (present(node, i) for i in (2, 3, 4))
    names: tuple[tuple[str, Value | None], ...] = (("bias", bias), ("residual", residual), ("slope", slope))
    bindings = [read(name, value) for name, value in names if value is not None]
    kind = Residual.NONE
    params: tuple[Param, ...] = ()
    if residual is not None:
        channels = residual.type.shape[-1]
        kind = Residual.ELEMENTS if channels % 4 else Residual.QUADS
        params = u32(residual_c=channels)
    return {"has_bias": bias is not None, "residual": kind, "activation": activation}, bindings, params


def image_params(x: Value, y: Value, a: Conv2dAttrs) -> tuple[Param, ...]:
    """Sizes, strides, dilations and leading pads of a window over an image."""
    _, ih, iw, _ = x.type.shape
    _, oh, ow, _ = y.type.shape
    return (
        *u32(ih=ih, iw=iw, oh=oh, ow=ow, stride_h=a.stride[0], stride_w=a.stride[1]),
        *u32(dilation_h=a.dilation[0], dilation_w=a.dilation[1]),
        *i32(pad_top=a.pads[0], pad_left=a.pads[2]),
    )


def packed_columns(w: Source, shape: tuple[int, int, int, int], groups: int, target: Target) -> Derived:
    """Weights [CO, KH, KW, CG] as [groups, KH, KW, CG, 4*ceil(OG/4)], zeros behind each group's OG columns."""
    co, kh, kw, cg = shape
    og, taps = co // groups, kh * kw * cg
    width = -(-og // 4) * 4
    copy = StridedCopy(0, (groups, taps, og), 0, (og * taps, 1, taps), 0, (taps * width, width, 1))

    def make(derived: Derived) -> Sequence[Dispatch]:
        return [copy_dispatch(w, derived, copy, target, fill=0)]

    return Derived(("columns", w, groups), (groups, kh, kw, cg, width), make)


def tile_for(pixels: int, quads: int, target: Target, largest: int = 4) -> int:
    """Pixels an invocation computes: as many as leave the device busy."""
    tile = largest
    while tile > 1 and -(-pixels // tile) * quads < BUSY[target.software]:
        tile //= 2
    return tile


def conv2d(node: Node, target: Target) -> list[Dispatch]:
    x, w, y, a = operand(node, 0), operand(node, 1), node.output, node.attrs
    co, kh, kw, cg = w.type.shape
    n, oh, ow, _ = y.type.shape
    if a.groups != 1 or cg % 4:
        return [_conv2d_any(node, target)]
    variables, extras, params = epilogue(node, a.activation)
    pixels, co4 = n * oh * ow, -(-co // 4)
    tile = tile_for(pixels, co4, target)
    weights = packed_columns(w, (co, kh, kw, cg), 1, target)
    bindings = (read("x", x), read("w", weights), *extras, write("y", y, single=bool(co % 4)))
    variables |= {"workgroup": WORKGROUP, "tile": tile, "co_quads": co % 4 == 0}
    sizes = u32(pixels=pixels, ci4=cg // 4, co4=co4, co=co)
    groups = groups_for(-(-pixels // tile) * co4, target)
    if (kh, kw) == (1, 1) and a.stride == (1, 1) and not any(a.pads):
        return [Dispatch("conv2d_1x1_vec4", variables, bindings, (*sizes, *params), groups, f"1x1, {tile} rows")]
    variables |= {"kh": kh, "kw": kw}
    return [
        Dispatch("conv2d_vec4", variables, bindings, (*sizes, *image_params(x, y, a), *params), groups, f"{tile} pixels")
    ]


def _conv2d_any(node: Node, target: Target) -> Dispatch:
    x, w, y, a = operand(node, 0), operand(node, 1), node.output, node.attrs
    co, kh, kw, cg = w.type.shape
    og = co // a.groups
    og4 = -(-og // 4)
    n, oh, ow, _ = y.type.shape
    variables, extras, params = epilogue(node, a.activation)
    variables |= {"workgroup": WORKGROUP, "kh": kh, "kw": kw, "og_quads": og % 4 == 0}
    weights = packed_columns(w, (co, kh, kw, cg), a.groups, target)
    sizes = u32(pixels=n * oh * ow, groups=a.groups, ci=cg * a.groups, cg=cg, og=og, og4=og4)
    return Dispatch(
        "conv2d_any", variables,
        (read("x", x), read("w", weights), *extras, write("y", y, single=bool(og % 4))),
        (*sizes, *image_params(x, y, a), *params),
        groups_for(n * oh * ow * a.groups * og4, target),
        f"{cg} input channels a group",
    )  # fmt: skip


def depthwise_conv2d(node: Node, target: Target) -> list[Dispatch]:
    x, w, y, a = operand(node, 0), operand(node, 1), node.output, node.attrs
    _, kh, kw, co = w.type.shape
    n, oh, ow, _ = y.type.shape
    ci = x.type.shape[3]
    variables, extras, params = epilogue(node, a.activation)
    variables |= {"workgroup": WORKGROUP, "kh": kh, "kw": kw}
    bindings = (read("x", x), read("w", w), *extras, write("y", y))
    if co % 4 or co != ci:
        sizes = u32(count=y.type.size, ci=ci, co=co, multiplier=co // ci)
        params = (*sizes, *image_params(x, y, a), *params)
        return [
            Dispatch("depthwise_any", variables, bindings, params, groups_for(-(-y.type.size // 4), target), "channels")
        ]
    tile = min(tile_for(ow, n * oh * (co // 4), target), 4)
    params = (*u32(rows=n * oh, co4=co // 4), *image_params(x, y, a), *params)
    groups = groups_for(n * oh * -(-ow // tile) * (co // 4), target)
    return [Dispatch("depthwise_vec4", variables | {"tile": tile}, bindings, params, groups, f"{tile} pixels")]
