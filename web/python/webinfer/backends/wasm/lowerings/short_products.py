"""Convolutions and matrix products of 16-bit data: 64-bit sums."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.affine import integers
from webinfer.backends.wasm.lowerings.each_product import Batch, batch_of, each_product
from webinfer.dtypes import DType
from webinfer.graph.ir import Node
from webinfer.lowering.affine import stored_bounds
from webinfer.lowering.short_products import (
    is_of_short_matrices,
    product_factors,
    rounding_of,
    short_geometry,
    short_matrices,
)
from webinfer.ops.strides import row_major
from webinfer.plan.blocks import Arguments


def with_short_data(lower: Lower) -> Lower:
    """The lowering for 8-bit data, and one step where data are 16-bit integers."""

    def lower_either(node: Node, builder: Builder) -> None:
        (short_product if node.required_input(0).type.dtype is DType.INT16 else lower)(node, builder)

    return lower_either


def short_product(node: Node, builder: Builder) -> None:
    """One step over pixels of the result."""
    if is_of_short_matrices(node):
        return _matrices(node, builder)
    x, w, bias = node.required_input(0), node.required_input(1), node.optional_input(2)
    geometry, pixels = short_geometry(node)
    sizes: Arguments = dict(geometry)
    lo, hi = stored_bounds(node.output.type, node.attrs.activation)
    scales, shifts = zip(*product_factors(node), strict=True)
    builder.step(
        "i16_conv2d_nhwc", sizes,
        x=builder.ref(x), w=builder.ref(w), bias=builder.optional_ref(bias), scales=integers(builder, scales),
        shifts=integers(builder, shifts), y=builder.ref(node.output), narrow=rounding_of(node), lo=lo, hi=hi,
        units=pixels,
    )  # fmt: skip
    builder.because("64-bit sums")


def _matrices(node: Node, builder: Builder) -> None:
    x, w, y = node.required_input(0), node.required_input(1), node.output
    (sizes, (scale, shift)), (lo, hi) = short_matrices(node), stored_bounds(y.type, node.attrs.activation)
    batch, k, n = batch_of(x.type.shape, w.type.shape, y.type.shape), sizes["k"], sizes["n"]
    if node.attrs.transpose_a and not batch.shape:  # rows of several matrices do not follow each other
        lead = y.type.shape[:-2]
        batch = Batch(lead, row_major(lead), (0,) * len(lead))
    m = y.type.shape[-2] if batch.shape else y.type.size // max(n, 1)
    each_product(
        builder, batch, "i16_matmul", {"a": "x", "b": "w", "y": "y"},
        {"a": (builder.ref(x), 2 * m * k), "b": (builder.ref(w), 2 * k * n), "y": (builder.ref(y), 2 * m * n)},
        dict(sizes), scale=scale, shift=shift, lo=lo, hi=hi, units=m,
    )  # fmt: skip
    builder.because("64-bit sums")
