"""Transposed convolutions."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Target, groups_for, read
from webinfer.backends.webgpu.lowerings.conv import conv_columns, image_params
from webinfer.backends.webgpu.lowerings.conversion import real_weights
from webinfer.backends.webgpu.lowerings.epilogue import destination, packed_columns, product
from webinfer.backends.webgpu.lowerings.short import with_short_data
from webinfer.codegen.prelude import i32, u32
from webinfer.graph.ir import Node
from webinfer.ops.strides import StridedCopy

# Invocations of a core, of 2,048 that it can have at work: with 248 14 graphs took 1.32 times as long in the mean, with
# 4,096 1.08 times (H100, 2026-11-28).
BUSY = 1024
# Quads of sums that an invocation holds in registers: with 4, windows of 16 took 12 times as long (H100, 2026-11-28).
MANY_SUMS = 16
# Invocations that share a sum, at most: with 4, four graphs took 1.09 to 1.63 times as long (H100, 2026-11-28).
MAX_SLICES = 16


def _conv_transpose2d(node: Node, target: Target) -> list[Dispatch]:
    """conv_transpose2d_rows where input channels come in quads, in one group and undilated; else conv_transpose2d."""
    w, a = node.required_input(1), node.attrs
    plain = a.groups == 1 and w.type.shape[3] % 4 == 0 and a.dilation == (1, 1)
    return (_rows if plain and a.stride[1] <= MANY_SUMS else _gathered)(node, target)


def _rows(node: Node, target: Target) -> list[Dispatch]:
    x, y, a = node.required_input(0), node.output, node.attrs
    co, kh, kw, ci = node.required_input(1).type.shape
    n, oh, ow, _ = y.type.shape
    (sh, sw), pad_left, co4 = a.stride, a.pads[2], -(-co // 4)
    first = pad_left // sw
    cells = (ow - 1 + pad_left) // sw - first + 1
    tile, slices = _shares(n * oh * co4, cells, sw, ci // 4, target)
    tiles = -(-cells // tile)
    p = product(node, target)
    place, after = destination(y, target, single=bool(co % 4))
    variables = p.variables | {
        "co_quads": co % 4 == 0, "slices": slices, "tile": tile, "sh": sh, "sw": sw, "kh": kh, "kw": kw,
    }  # fmt: skip
    params = (
        *u32(pixels=n * oh * ow, rows=n * oh, oh=oh, ow=ow, ih=x.type.shape[1], iw=x.type.shape[2], ci4=ci // 4),
        *u32(co4=co4, co=co, tiles=tiles, first=first),
        *i32(pad_top=a.pads[0], pad_left=pad_left),
        *p.params,
    )
    bindings = (read("x", x), read("w", conv_columns(p.w, (co, kh, kw, ci), 1, target)), *p.bindings, place)
    groups = groups_for(n * oh * tiles * co4, target, WORKGROUP // slices)
    why = f"{tile * sw} pixels" if slices == 1 else f"{slices} share a sum"
    return [*p.before, Dispatch("conv_transpose2d_rows", variables, bindings, params, groups, why), *after]


def _shares(lines: int, cells: int, width: int, quads: int, target: Target) -> tuple[int, int]:
    """Cells of `width` pixels that an invocation computes, and how many invocations share its sums.

    As many cells as leave enough invocations for the device; where even one leaves too few, sums of `quads` are shared.
    """
    if target.software:
        return 1, 1
    tile, busy = 4, BUSY * target.cores
    while tile > 1 and (tile * width > MANY_SUMS or lines * -(-cells // tile) < busy):
        tile //= 2
    slices = 1
    while 2 * slices <= min(MAX_SLICES, quads // 2) and lines * -(-cells // tile) * slices < busy:
        slices *= 2
    return tile, slices


def _gathered(node: Node, target: Target) -> list[Dispatch]:
    """conv2d_any, transposed: each invocation gathers the input pixels that reach its output pixel."""
    x, y, a = node.required_input(0), node.output, node.attrs
    og, kh, kw, ci = node.required_input(1).type.shape
    cg, og4, taps = ci // a.groups, -(-og // 4), kh * kw
    n, oh, ow, _ = y.type.shape
    p = product(node, target)
    width = og4 * 4
    strides = (cg, ci, 1, taps * ci)
    targets = (taps * cg * width, cg * width, width, 1)
    copy = StridedCopy(0, (a.groups, taps, cg, og), 0, strides, 0, targets)
    weights = packed_columns(p.w, copy, (a.groups, kh, kw, cg, width), ("transpose", a.groups), target)
    place, after = destination(y, target, single=bool(og % 4))
    variables = p.variables | {"workgroup": WORKGROUP, "kh": kh, "kw": kw, "og_quads": og % 4 == 0, "transposed": True}
    sizes = u32(pixels=n * oh * ow, groups=a.groups, ci=ci, cg=cg, og=og, og4=og4)
    main = Dispatch(
        "conv2d_any", variables, (read("x", x), read("w", weights), *p.bindings, place),
        (*sizes, *image_params(x, y, a), *p.params), groups_for(n * oh * ow * a.groups * og4, target), "gathered",
    )  # fmt: skip
    return [*p.before, main, *after]


conv_transpose2d = with_short_data(real_weights(_conv_transpose2d))
