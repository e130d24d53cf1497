"""16-bit data in integers, exact as LiteRT: products with sums of 64 bits, and softmax from tables."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Lower, Target, check_turns, groups_for, read, write
from webinfer.backends.webgpu.lowerings.conversion import ints, is_quantized
from webinfer.backends.webgpu.lowerings.epilogue import destination
from webinfer.backends.webgpu.lowerings.geometry import merged
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import i32, u32, u32x8
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.graph.ir import Node
from webinfer.lowering.affine import stored_bounds
from webinfer.lowering.short_products import (
    HALVES_AWAY,
    is_of_short_matrices,
    product_factors,
    rounding_of,
    short_geometry,
    short_matrices,
)
from webinfer.lowering.short_softmax import distance_factor, tables

SIGNED = ("pad_top", "pad_left")


def with_short_data(lower: Lower) -> Lower:
    """The lowering of a product, and one dispatch where data are 16-bit integers."""

    def either(node: Node, target: Target) -> Sequence[Dispatch]:
        x = node.required_input(0)
        return (short_product if is_quantized(x) and x.type.dtype is DType.INT16 else lower)(node, target)

    return either


def short_product(node: Node, target: Target) -> list[Dispatch]:
    """short_product.wgsl: four results an invocation."""
    if is_of_short_matrices(node):
        return [_matrices(node, target)]
    sizes, _ = short_geometry(node)
    x, w, bias, y = node.required_input(0), node.required_input(1), node.optional_input(2), node.output
    check_turns(4 * sizes["kh"] * sizes["kw"] * (sizes["ci"] // sizes["groups"] + 2), target, "products")
    rounding = rounding_of(node)
    scales, shifts = zip(*product_factors(node), strict=True)
    low, high = stored_bounds(y.type, node.attrs.activation)
    params = (
        *u32(count=y.type.size, **{name: n for name, n in sizes.items() if name not in SIGNED}),
        *i32(low=low, high=high, **{name: sizes[name] for name in SIGNED}),
        *(i32(away=int(rounding == HALVES_AWAY)) if rounding else ()),
    )
    given = () if bias is None else (read("bias", bias, None if rounding else Element.BITS64),)
    bindings = (read("x", x), read("w", w), *given, read("scales", ints(scales)), read("shifts", ints(shifts)))
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP,
        "biased": bias is not None,
        "signed": True,
        "rounding": rounding,
    }
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch("short_product", variables, (*bindings, write("y", y)), params, groups, "64-bit sums")]


def _matrices(node: Node, target: Target) -> Dispatch:
    """short_matmul.wgsl: four results an invocation."""
    x, w, y = node.required_input(0), node.required_input(1), node.output
    sizes, (scale, shift) = short_matrices(node)
    m, k, n = y.type.shape[-2], sizes["k"], sizes["n"]
    check_turns(4 * k, target, "products")
    low, high = stored_bounds(y.type, node.attrs.activation)
    lead, (x_batch, w_batch) = merged(y.type.shape[:-2], x.type.shape[:-2], w.type.shape[:-2])
    params = (
        *u32(count=y.type.size, m=m, shift=shift, **sizes),
        *u32x8(size=lead, x_batch=[step * m * k for step in x_batch], w_batch=[step * k * n for step in w_batch]),
        *i32(scale=scale, low=low, high=high),
    )
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "signed": True, "rank": len(lead)}
    groups = groups_for(-(-y.type.size // 4), target)
    return Dispatch(
        "short_matmul", variables, (read("x", x), read("w", w), write("y", y)), params, groups, "64-bit sums"
    )


def short_softmax(node: Node, target: Target) -> Sequence[Dispatch]:
    """short_softmax.wgsl: an invocation a row."""
    x, y = node.required_input(0), node.output
    depth = x.type.shape[-1]
    check_turns(3 * depth, target, "a softmax")
    factor, shift = distance_factor(x.type, node.attrs.beta)
    exponentials, reciprocals = map(ints, tables())
    place, after = destination(y, target, single=True)
    rows = x.type.size // max(depth, 1)
    bindings = (read("x", x), read("exponentials", exponentials), read("reciprocals", reciprocals), place)
    params = (*u32(rows=rows, depth=depth), *i32(factor=factor, shift=shift))
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "signed": True}
    main = Dispatch("short_softmax", variables, bindings, params, groups_for(rows, target), "tables of lines")
    return [main, *after]
