"""Convolutions and matrix products of 16-bit data with 8-bit weights: 64-bit sums."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.affine import integers
from webinfer.dtypes import DType
from webinfer.graph.ir import Node
from webinfer.lowering.affine import product_factors, stored_bounds
from webinfer.lowering.short_products import short_geometry
from webinfer.plan.blocks import Arguments


def with_short_data(lower: Lower) -> Lower:
    """The lowering for 8-bit data, and one step where data are 16-bit integers."""

    def lower_either(node: Node, builder: Builder) -> None:
        (short_product if node.required_input(0).type.dtype is DType.INT16 else lower)(node, builder)

    return lower_either


def short_product(node: Node, builder: Builder) -> None:
    """One step over pixels of the result."""
    x, w, bias = node.required_input(0), node.required_input(1), node.optional_input(2)
    geometry, pixels = short_geometry(node)
    sizes: Arguments = dict(geometry)
    lo, hi = stored_bounds(node.output.type, node.attrs.activation)
    scales, shifts = zip(*product_factors(x.type, w.type, node.output.type), strict=True)
    builder.step(
        "i16_conv2d_nhwc", sizes,
        x=builder.ref(x), w=builder.ref(w), bias=builder.optional_ref(bias), scales=integers(builder, scales),
        shifts=integers(builder, shifts), y=builder.ref(node.output), lo=lo, hi=hi, units=pixels,
    )  # fmt: skip
    builder.because("64-bit sums")
