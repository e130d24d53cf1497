"""Matrix products in float32: the tiles of the 1x1 convolution, weights packed once where they are constant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.lowerings.cast import F32, compute_dtype
from webinfer.backends.wasm.lowerings.conv import TILES, tile_work
from webinfer.backends.wasm.lowerings.movement import fill, strided_copy
from webinfer.backends.wasm.lowerings.nest import broadcast_strides
from webinfer.backends.wasm.lowerings.products import DenseWeights, activation_args, pack_dense
from webinfer.backends.wasm.lowerings.windows import window
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, TensorType, Value
from webinfer.ops import matmul as ops
from webinfer.ops.strides import StridedCopy, coalesce, row_major
from webinfer.plan.blocks import Arguments, Ref

MAX_BATCHES = 4096  # products that one node may become


def batches(
    a: TensorType, b: TensorType, y: TensorType, sizes: tuple[int, int, int]
) -> Iterator[tuple[int, int, int, int]]:
    """(rows, first element of a, of b, of y) of each product; one product where b is the same for all.

    Raises:  UnsupportedOpError if there are too many
    """
    m, k, n = sizes
    lead = y.shape[:-2]
    if math.prod(b.shape[:-2]) == 1 and math.prod(a.shape[:-2]) == math.prod(lead):
        yield m * math.prod(lead), 0, 0, 0
        return
    if math.prod(lead) > MAX_BATCHES:
        raise UnsupportedOpError([f"a product of {math.prod(lead)} pairs of matrices; at most {MAX_BATCHES}"])
    steps_a, steps_b = broadcast_strides(a.shape[:-2], lead), broadcast_strides(b.shape[:-2], lead)
    for i, index in enumerate(product(*map(range, lead))):
        at_a = sum(p * q for p, q in zip(index, steps_a, strict=True)) * m * k
        at_b = sum(p * q for p, q in zip(index, steps_b, strict=True)) * k * n
        yield m, at_a, at_b, i * m * n


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
    sizes = ops.matrix_sizes([None if v is None else v.type for v in node.inputs], attrs)
    if sizes[1] == 0:
        fill(builder, builder.ref(y), y.type.dtype, 0.0, y.type.size)
        return
    source = transposed(builder, a, 4) if attrs.transpose_a else builder.ref(a)
    epilogue: Arguments = {"residual": None, "residual_c": 0, "slope": None, **activation_args(attrs.activation)}
    _, k, n = sizes
    products = list(batches(a.type, b.type, y.type, sizes))
    rows = products[0][0]
    tile = min(TILES, key=lambda t: tile_work(t, TILES[t], rows, n, k % 4 == 0))
    height, width = map(int, tile.split("x"))
    packed, panel_bytes = _pack(node, builder, sizes, width), 4 * width * (k + 1)
    for _, at_a, at_b, at_y in products:
        panels = packed + at_b // (k * n) * -(-n // width) * panel_bytes
        builder.step(
            f"f32_conv2d_nhwc_{tile}", window((1, 1), (1, 1), (0, 0)), epilogue,
            x=source + 4 * at_a, n=1, ih=1, iw=rows, ci=k, x_stride=k, w=panels,
            y=builder.ref(y) + 4 * at_y, oh=1, ow=rows, co=n, y_stride=n,
            units=-(-n // width) * -(-rows // height),
        )  # fmt: skip
    builder.because(f"{tile} tile, {builder.isa} build")


def _pack(node: Node, builder: Builder, sizes: tuple[int, int, int], width: int) -> Ref:
    """Column panels of every matrix of b, one after the other, each with the bias."""
    _, k, n = sizes
    count = math.prod(node.required_input(1).type.shape[:-2])
    # Rows of b are taps of one channel each, or, transposed, one tap of k channels.
    transpose = node.attrs.transpose_b
    weights = DenseWeights(count, n, 1, k, k * n, k, 0) if transpose else DenseWeights(count, n, k, 1, k * n, 1, n)
    return pack_dense(node, builder, weights, width)
