"""Dense 3x3 convolutions of 8-bit tensors by Winograd's F(4x4, 3x3) in whole numbers: exact, with a quarter of the
products.
"""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.lowerings.affine import byte_zero, flip_of, result_args
from webinfer.backends.wasm.lowerings.quantized_weights import Weights, bias_of, factors, is_known, source_of
from webinfer.backends.wasm.lowerings.windows import image_sizes
from webinfer.backends.wasm.lowerings.winograd import pieces
from webinfer.dtypes import DType
from webinfer.graph.ir import Node
from webinfer.kernel_constants import (
    Q8_COLUMNS,
    Q8_ROWS,
    Q8_WINOGRAD_HEAD_BYTES,
    WINOGRAD_POINTS,
    WINOGRAD_TILES,
)
from webinfer.lowering.affine import zeros_of

OUT = 4  # outputs of a side of a tile
LEAST_SLICE = 48  # outputs whose products are worth transforming a tile for. A guess
SUM_BITS = 25  # of an exact sum, beside its sign
# What a tile's transforms cost, in multiplications of the product: an input channel, an output channel, whose
# doubles took 1.03 and 1.05 times as long (EPYC, 2026-11-28).
TURN_IN, TURN_OUT = 300, 400
# Over windows: engines with exact products of bytes are twice as fast at these; 3 took 1.27 times as long, 0.75 as long
# (EPYC, 2026-11-28).
LEAST_GAIN = 1.5
MAX_PACKED_BYTES = 4 << 20  # of transformed weights, as in winograd; 2 and 8 MiB changed none of 146 graphs


def pays(node: Node, builder: Builder) -> bool:
    """Whether the kernel can do the node, exactly, and is faster than one of windows."""
    a, w = node.attrs, node.required_input(1)
    co, kh, kw, ci = w.type.shape
    if (kh, kw) != (3, 3) or ci % 8 or a.groups != 1 or not a.stride == a.dilation == (1, 1):
        return False
    farthest = 128 if w.type.dtype is DType.INT8 and not any(zeros_of(w.type, co)) else 255  # a weight from zero
    if 9 * ci * 255 * farthest >> SUM_BITS or _packed_bytes(ci, co) > MAX_PACKED_BYTES:
        return False
    if builder.isa.startswith("scalar") or not is_known(node, builder):
        return False
    n, oh, ow, _ = node.output.type.shape
    columns, tiles = -(-co // Q8_COLUMNS) * Q8_COLUMNS, _tiles(node)
    products = -(-tiles // Q8_ROWS) * Q8_ROWS * WINOGRAD_POINTS * ci * columns
    turns = tiles * (TURN_IN * ci + TURN_OUT * columns)
    return n * oh * ow * 9 * ci * columns >= LEAST_GAIN * (products + turns)


def _packed_bytes(ci: int, co: int) -> int:
    return -(-co // Q8_COLUMNS) * (Q8_WINOGRAD_HEAD_BYTES + 2 * WINOGRAD_POINTS * ci * Q8_COLUMNS)


def _tiles(node: Node) -> int:
    n, oh, ow, _ = node.output.type.shape
    return n * -(-oh // OUT) * -(-ow // OUT)


def convolve(node: Node, builder: Builder) -> None:
    """The convolution as a step; its weights are transformed at load."""
    x, w, y, a = node.required_input(0), node.required_input(1), node.output, node.attrs
    co, _, _, ci = w.type.shape
    scales, zeros = factors(node, builder, Weights(co, 9, ci, 9 * ci, ci, 1))
    bias = bias_of(node)
    key = ("q8 winograd", w, bias, scales, zeros, byte_zero(x.type))
    packed, is_new = builder.packed(key, _packed_bytes(ci, co))
    if is_new:
        builder.prepare(
            "q8_pack_winograd_weights",
            w=source_of(w, builder, True), w_signed=int(w.type.dtype is DType.INT8), bias=builder.optional_ref(bias),
            scales=scales, zeros=zeros, y=packed, co=co, ci=ci, co_step=9 * ci, tap_step=ci, ci_step=1,
            x_zero=byte_zero(x.type), units=-(-co // Q8_COLUMNS),
        )  # fmt: skip
    cut, parts = pieces(builder, _tiles(node), WINOGRAD_TILES, WINOGRAD_TILES, co, LEAST_SLICE)
    builder.step(
        "q8_conv2d_nhwc_winograd", cut, image_sizes(x.type, y.type), result_args(y.type, a.activation),
        x=builder.ref(x), x_zero=byte_zero(x.type), x_flip=flip_of(x.type), ci=ci, x_stride=ci, w=packed,
        y=builder.ref(y), co=co, y_stride=co, pad_top=a.pads[0], pad_left=a.pads[2],
        scratch=builder.scratch(2 * parts * WINOGRAD_POINTS * WINOGRAD_TILES * ci), units=parts,
    )  # fmt: skip
    builder.because(f"8-bit, 3x3 window by its transform, {builder.isa} build")
