"""Convolutions: dense, grouped, depthwise. Which kernel computes one is decided in variants."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Derived,
    Dispatch,
    Source,
    Target,
    check_turns,
    groups_for,
    read,
)
from webinfer.backends.webgpu.lowerings.conversion import real_weights
from webinfer.backends.webgpu.lowerings.epilogue import (
    destination,
    packed_columns,
    product,
)
from webinfer.backends.webgpu.lowerings.gemv import gemv_product
from webinfer.backends.webgpu.lowerings.packed_product import packed_product
from webinfer.backends.webgpu.lowerings.short import with_short_data
from webinfer.backends.webgpu.lowerings.tiled import TiledShape, tiled_product
from webinfer.backends.webgpu.lowerings.variants import GEMVS, READ_FLOAT16, TILES, choose, is_pointwise, reads_float16
from webinfer.codegen.prelude import Param, i32, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node, Value
from webinfer.ops.conv import Conv2dAttrs, ConvTranspose2dAttrs
from webinfer.ops.strides import StridedCopy

# Invocations that fill a large device; half took 0.6 to 0.93 of the time in two graphs, 1.02 in a model, double 0.87
# and 0.95 in two others (H100, 2026-11-28): it stays.
ROWS_FILLED = 1 << 15


def image_params(x: Value, y: Value, a: Conv2dAttrs | ConvTranspose2dAttrs) -> tuple[Param, ...]:
    """Parameters of a window over an image: sizes of x and y, strides, dilations, leading pads."""
    _, ih, iw, _ = x.type.shape
    _, oh, ow, _ = y.type.shape
    return (
        *u32(ih=ih, iw=iw, oh=oh, ow=ow, stride_h=a.stride[0], stride_w=a.stride[1]),
        *u32(dilation_h=a.dilation[0], dilation_w=a.dilation[1]),
        *i32(pad_top=a.pads[0], pad_left=a.pads[2]),
    )


def conv_columns(w: Source, shape: tuple[int, ...], groups: int, target: Target) -> Derived:
    """Weights with the output channels of a group innermost, filled up to whole quads with zeros.

    Shapes:  w [CO, KH, KW, CG] -> [groups, KH, KW, CG, 4*ceil(OG/4)], OG = CO / groups
    """
    co, kh, kw, cg = shape
    og, taps = co // groups, kh * kw * cg
    width = -(-og // 4) * 4
    copy = StridedCopy(0, (groups, taps, og), 0, (og * taps, 1, taps), 0, (taps * width, width, 1))
    return packed_columns(w, copy, (groups, kh, kw, cg, width), ("conv", groups), target)


def _conv2d(node: Node, target: Target) -> list[Dispatch]:
    """conv2d_1x1_packed_* for 8-bit 1x1 products where the device has packed dot products, else what `choose` says.

    Tiles become conv2d_tiled, GEMVs conv2d_gemv; grouped and odd shapes conv2d_any.
    """
    co, _, _, ci = node.required_input(1).type.shape
    if node.attrs.groups == 1 and is_pointwise(node):
        packed = packed_product(node, (node.output.type.size // co, ci, co), target)
        if packed is not None:
            return [packed]
    variant = choose(node, target)
    if variant in TILES or variant in GEMVS:
        return _conv2d_shared(node, variant, target)
    if variant in ("", "any", "image", "dot") or variant.startswith("vec4"):
        quads = _row_quads(node, target)
        if quads:
            return _conv2d_rows(node, quads, target)
    special = {"": _conv2d_any, "any": _conv2d_any, "image": _conv2d_image, "dot": _conv2d_dot}
    return special[variant](node, target) if variant in special else _conv2d_quads(node, variant, target)


def _conv2d_quads(node: Node, variant: str, target: Target) -> list[Dispatch]:
    """conv2d_split_k, conv2d_1x1_4x8, conv2d_1x1_vec4 or conv2d_vec4: input channels come in whole quads."""
    x, y, a = node.required_input(0), node.output, node.attrs
    co, kh, kw, cg = node.required_input(1).type.shape
    n, oh, ow, _ = y.type.shape
    p = product(node, target, float16_weights=reads_float16(variant, node))
    pixels, co4 = n * oh * ow, -(-co // 4)
    place, after = destination(y, target, single=bool(co % 4))
    bindings = (read("x", x), read("w", conv_columns(p.w, (co, kh, kw, cg), 1, target)), *p.bindings, place)
    variables: dict[str, Variable] = p.variables | {"co_quads": co % 4 == 0}
    sizes = u32(pixels=pixels, ci4=cg // 4, co4=co4, co=co)
    windows = (*sizes, *image_params(x, y, a), *p.params)
    if variant == "split_k":
        groups = groups_for(-(-pixels // 4) * -(-co4 // 8), target, 1)
        variables |= {"kw": kw, "taps": kh * kw}
        main = Dispatch("conv2d_split_k", variables, bindings, windows, groups, "eight share a sum")
        return [*p.before, main, *after]
    variables["workgroup"] = WORKGROUP
    if variant == "4x8":
        del variables["co_quads"]
        groups = groups_for(-(-pixels // 4) * (co4 // 2), target)
        main = Dispatch("conv2d_1x1_4x8", variables, bindings, (*sizes, *p.params), groups, "1x1, many pixels")
        return [*p.before, main, *after]
    tile = int(variant.removeprefix("vec4_"))
    check_turns(kh * (1 + kw * (1 + cg // 4)), target, "a sum of products in loops")
    variables["tile"] = tile
    groups = groups_for(-(-pixels // tile) * co4, target)
    if is_pointwise(node):
        main = Dispatch("conv2d_1x1_vec4", variables, bindings, (*sizes, *p.params), groups, f"1x1, {tile} rows")
    else:
        main = Dispatch("conv2d_vec4", variables | {"kh": kh, "kw": kw}, bindings, windows, groups, f"{tile} pixels")
    return [*p.before, main, *after]


def _conv2d_shared(node: Node, variant: str, target: Target) -> list[Dispatch]:
    """conv2d_gemv or conv2d_tiled: the invocations of a workgroup share a sum, or what they read."""
    x, y, a = node.required_input(0), node.output, node.attrs
    co, kh, kw, ci = node.required_input(1).type.shape
    p = product(node, target, float16_weights=reads_float16(variant, node))
    pointwise = is_pointwise(node)
    windows = () if pointwise else image_params(x, y, a)
    shape = TiledShape(y.type.size // co, (kh, kw), ci, co, pointwise)
    if variant in GEMVS:
        return gemv_product(node, p, p.w, shape, GEMVS[variant], windows, target)
    weights = conv_columns(p.w, (co, kh, kw, ci), 1, target)
    return tiled_product(node, p, weights, shape, TILES[variant], windows, target)


def _row_quads(node: Node, target: Target) -> int:
    """Quads of output channels that an invocation of conv2d_rows computes; 0 where other kernels are better."""
    a, (co, kh, _, _) = node.attrs, node.required_input(1).type.shape
    n, oh, ow, _ = node.output.type.shape
    if a.groups != 1 or a.stride[0] != 1 or a.dilation[0] != 1 or kh < 3 or co > 8:
        return 0
    return -(-co // 4) if not target.software and n * -(-oh // 4) * ow >= ROWS_FILLED else 0


def _conv2d_rows(node: Node, quads: int, target: Target) -> list[Dispatch]:
    """conv2d_rows: high windows, few output channels, many pixels."""
    x, y, a = node.required_input(0), node.output, node.attrs
    co, kh, kw, ci = node.required_input(1).type.shape
    n, oh, ow, _ = y.type.shape
    p = product(node, target)
    inner = 1 if ci % 4 else 4
    place, after = destination(y, target, single=bool(co % 4))
    variables = p.variables | {
        "co_quads": co % 4 == 0, "workgroup": WORKGROUP, "inner": inner, "quads": quads, "kh": kh, "kw": kw,
    }  # fmt: skip
    params = (
        *u32(pixels=n * oh * ow, images=n, depth=ci // inner, co4=-(-co // 4), co=co, ih=x.type.shape[1]),
        *u32(iw=x.type.shape[2], oh=oh, ow=ow, stride_w=a.stride[1], dilation_w=a.dilation[1]),
        *i32(pad_top=a.pads[0], pad_left=a.pads[2]),
        *p.params,
    )
    bindings = (read("x", x), read("w", conv_columns(p.w, (co, kh, kw, ci), 1, target)), *p.bindings, place)
    groups = groups_for(n * -(-oh // 4) * ow, target)
    main = Dispatch("conv2d_rows", variables, bindings, params, groups, f"{4 * quads} channels of 4 rows")
    return [*p.before, main, *after]


def _conv2d_image(node: Node, target: Target) -> list[Dispatch]:
    """conv2d_image_4x4: input channels do not come in quads (an RGB image), output channels do."""
    x, y, a = node.required_input(0), node.output, node.attrs
    co, kh, kw, ci = node.required_input(1).type.shape
    n, oh, ow, _ = y.type.shape
    p = product(node, target)
    place, after = destination(y, target, single=False)
    variables = p.variables | {"workgroup": WORKGROUP, "kh": kh, "kw": kw}
    bindings = (read("x", x), read("w", conv_columns(p.w, (co, kh, kw, ci), 1, target)), *p.bindings, place)
    params = (*u32(rows=n * oh, ci=ci, co4=co // 4), *image_params(x, y, a), *p.params)
    groups = groups_for(n * oh * -(-ow // 4) * (co // 4), target)
    main = Dispatch("conv2d_image_4x4", variables, bindings, params, groups, f"{ci} input channels")
    return [*p.before, main, *after]


def _conv2d_dot(node: Node, target: Target) -> list[Dispatch]:
    """conv2d_dot_4x1: input channels come in quads, and there are fewer than four output channels."""
    x, y, a = node.required_input(0), node.output, node.attrs
    co, kh, kw, ci = node.required_input(1).type.shape
    n, oh, ow, _ = y.type.shape
    p = product(node, target)
    place, after = destination(y, target, single=True)
    variables = p.variables | {"workgroup": WORKGROUP, "kh": kh, "kw": kw}
    params = (*u32(rows=n * oh, ci4=ci // 4, co=co), *image_params(x, y, a), *p.params)
    groups = groups_for(n * oh * -(-ow // 4) * co, target)
    bindings = (read("x", x), read("w", p.w), *p.bindings, place)
    main = Dispatch("conv2d_dot_4x1", variables, bindings, params, groups, f"{co} output channels")
    return [*p.before, main, *after]


def _conv2d_any(node: Node, target: Target) -> list[Dispatch]:
    """conv2d_any: groups, or channels that no other kernel takes."""
    x, y, a = node.required_input(0), node.output, node.attrs
    co, kh, kw, cg = node.required_input(1).type.shape
    check_turns(kh * (1 + kw * (1 + cg)), target, "a sum of products in loops")
    og = co // a.groups
    og4 = -(-og // 4)
    n, oh, ow, _ = y.type.shape
    p = product(node, target)
    place, after = destination(y, target, single=bool(og % 4))
    variables = p.variables | {"workgroup": WORKGROUP, "kh": kh, "kw": kw, "og_quads": og % 4 == 0, "transposed": False}
    weights = conv_columns(p.w, (co, kh, kw, cg), a.groups, target)
    sizes = u32(pixels=n * oh * ow, groups=a.groups, ci=cg * a.groups, cg=cg, og=og, og4=og4)
    main = Dispatch(
        "conv2d_any", variables, (read("x", x), read("w", weights), *p.bindings, place),
        (*sizes, *image_params(x, y, a), *p.params), groups_for(n * oh * ow * a.groups * og4, target),
        f"{cg} input channels a group",
    )  # fmt: skip
    return [*p.before, main, *after]


def _depthwise(node: Node, target: Target) -> list[Dispatch]:
    """depthwise_4x1 or depthwise_vec4 as `choose` says; depthwise_any where channels do not come in quads."""
    x, y, a = node.required_input(0), node.output, node.attrs
    _, kh, kw, co = node.required_input(1).type.shape
    n, oh, ow, _ = y.type.shape
    ci = x.type.shape[3]
    variant = choose(node, target)
    p = product(node, target, float16_weights=variant in READ_FLOAT16)
    place, after = destination(y, target, single=False)
    variables = p.variables | {"workgroup": WORKGROUP, "kh": kh, "kw": kw}
    bindings = (read("x", x), read("w", p.w), *p.bindings, place)
    each = co % 4 or co != ci
    check_turns((4 if each else 1) * kh * (1 + kw), target, "a sum of products in loops")
    if each:
        sizes = u32(count=y.type.size, ci=ci, co=co, multiplier=co // ci)
        params = (*sizes, *image_params(x, y, a), *p.params)
        groups = groups_for(-(-y.type.size // 4), target)
        main = Dispatch("depthwise_any", variables, bindings, params, groups, "channels do not pair by four")
        return [*p.before, main, *after]
    if variant == "4x1":
        sliding = a.stride[1] == 1 and a.dilation[1] == 1
        params = (*u32(rows=n * oh, co4=co // 4), *image_params(x, y, a), *p.params)
        groups = groups_for(n * oh * -(-ow // 4) * (co // 4), target)
        main = Dispatch("depthwise_4x1", variables | {"sliding": sliding}, bindings, params, groups, "4 pixels")
        return [*p.before, main, *after]
    tile = int(variant.removeprefix("vec4_"))
    params = (*u32(rows=n * oh, co4=co // 4), *image_params(x, y, a), *p.params)
    groups = groups_for(n * oh * -(-ow // tile) * (co // 4), target)
    main = Dispatch("depthwise_vec4", variables | {"tile": tile}, bindings, params, groups, f"{tile} pixels")
    return [*p.before, main, *after]


conv2d, depthwise_conv2d = (with_short_data(real_weights(lower)) for lower in (_conv2d, _depthwise))
