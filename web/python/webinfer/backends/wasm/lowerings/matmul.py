"""Matrix products in float32: the tiles of the 1x1 convolution, weights packed once where they are constant."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.lowerings.cast import F32, compute_dtype
from webinfer.backends.wasm.lowerings.conv import panel_columns, tile_work, tiles_of, tiles_of_one_layout
from webinfer.backends.wasm.lowerings.each_product import batch_of, each_product
from webinfer.backends.wasm.lowerings.movement import fill, strided_copy
from webinfer.backends.wasm.lowerings.products import DenseWeights, activation, pack_dense
from webinfer.backends.wasm.lowerings.windows import window
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Value
from webinfer.ops import matmul as ops
from webinfer.ops.strides import StridedCopy, coalesce, row_major
from webinfer.plan.blocks import Ref


def transposed(builder: Builder, value: Value, itemsize: int) -> Ref:
    """The value with its last two axes swapped."""
    *lead, rows, columns = value.type.shape
    strides = row_major(value.type.shape)
    shape = (*lead, columns, rows)
    part = StridedCopy(0, shape, 0, (*strides[:-2], strides[-1], strides[-2]), 0, row_major(shape))
    target = builder.scratch(value.type.size * itemsize)
    strided_copy(builder, coalesce(part), builder.ref(value), target, itemsize)
    return target


def matmul(node: Node, builder: Builder) -> None:
    """Matrix products: 1x1 convolutions of images one pixel high."""
    a, b, y, attrs = node.required_input(0), node.required_input(1), node.output, node.attrs
    if compute_dtype(a) is not F32 or compute_dtype(b) is not F32:
        raise UnsupportedOpError([f"no product of {a.type} and {b.type}; cast to float32 first"])
    m, k, n = sizes = ops.matrix_sizes([None if v is None else v.type for v in node.inputs], attrs)
    if k == 0:
        fill(builder, builder.ref(y), y.type.dtype, 0.0, y.type.size)
        return
    source = transposed(builder, a, 4) if attrs.transpose_a else builder.ref(a)
    batch = batch_of(a.type.shape, b.type.shape, y.type.shape)
    rows = m if batch.shape else m * math.prod(y.type.shape[:-2])
    tiles = tiles_of_one_layout(tiles_of(builder.isa), n)
    tile = min(tiles, key=lambda t: tile_work(t, tiles[t], rows, n))
    (height, width), columns = map(int, tile.split("x")), panel_columns(tile)
    packed, panel_bytes = _pack(node, builder, sizes, columns), 4 * columns * (k + 1)
    each_product(
        builder, batch, f"f32_conv2d_nhwc_{tile}", {"a": "x", "b": "w", "y": "y"},
        {"a": (source, 4 * m * k), "b": (packed, -(-n // columns) * panel_bytes), "y": (builder.ref(y), 4 * m * n)},
        window((1, 1), (1, 1), (0, 0)), activation(node, builder), residual=None, residual_c=0, slope=None,
        n=1, ih=1, iw=rows, ci=k, x_stride=k, oh=1, ow=rows, co=n, y_stride=n,
        units=-(-n // width) * -(-rows // height),
    )  # fmt: skip
    builder.because(f"{tile} tile, {builder.isa} build")


def _pack(node: Node, builder: Builder, sizes: tuple[int, int, int], columns: int) -> Ref:
    """Column panels of every matrix of b, one after the other, each with the bias."""
    _, k, n = sizes
    count = math.prod(node.required_input(1).type.shape[:-2])
    # Rows of b are taps of one channel each, or, transposed, one tap of k channels.
    transpose = node.attrs.transpose_b
    weights = DenseWeights(count, n, 1, k, k * n, k, 0) if transpose else DenseWeights(count, n, k, 1, k * n, 1, n)
    return pack_dense(node, builder, weights, columns)
