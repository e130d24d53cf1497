"""Convolutions in float32: register tiles chosen by shape, weights packed once where they are constant.

A tuner overrides the choice: `candidates` lists the tiles of a node, `tuning_key` names its shape in
`Builder.choices`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.kernel_constants import (
    ACTIVATION_CLAMP,
    ACTIVATION_HARD_SWISH,
    ACTIVATION_PRELU,
    ACTIVATION_SIGMOID,
    ACTIVATION_TANH,
    IMAGE_TILE_COLUMNS,
    VECTOR_LANES,
)
from webinfer.backends.wasm.lowerings.cast import present
from webinfer.backends.wasm.lowerings.constants import expand_constant
from webinfer.backends.wasm.lowerings.sparse_conv import skips_zeros, sparse_conv2d
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Op, Value
from webinfer.ops import conv as ops
from webinfer.ops.activation import Activation
from webinfer.plan.blocks import Argument, Ref

# Rows x columns of each tile, and the share of a core's peak that it reaches when it is full: measured in V8 on an
# x86-64 of 2025. Without a fused multiply-add a product takes a register more, and 6x8 spills.
TILES = {"6x8": 1.0, "5x8": 0.95, "4x8": 0.93, "3x12": 0.93, "2x16": 0.93, "8x4": 0.7, "8x1": 0.45, "1x32": 0.8}
UNFUSED_TILES = {**TILES, "6x8": 0.55, "5x8": 0.98, "4x8": 0.96, "3x12": 0.95, "2x16": 0.85}
SCALAR_TILES = {"4x8": 1.0, "8x1": 0.6}
MIN_CUT_ROWS, CUT_PANEL = 5, 0.66  # a panel of one vector: what it costs of a whole one, in tiles of enough rows
IMAGES = {(3, 2): "image_3x3_s2", (5, 2): "image_5x5_s2"}  # (window, stride) of the tiles for 3 channels
TRANSPOSE_TILES = {"4x8": 1.0, "8x4": 0.7}
WINDOWS = {(3, 1): "3x3_s1", (3, 2): "3x3_s2", (5, 1): "5x5_s1", (5, 2): "5x5_s2"}
ACTIVATIONS = {
    Activation.PRELU: ACTIVATION_PRELU,
    Activation.HARD_SWISH: ACTIVATION_HARD_SWISH,
    Activation.SIGMOID: ACTIVATION_SIGMOID,
    Activation.TANH: ACTIVATION_TANH,
}  # every other one is a clamp


@dataclass(frozen=True, slots=True)
class DenseWeights:
    """How a weight tensor is read by f32_pack_conv_weights. Strides in elements, sizes of one group."""

    groups: int
    co: int
    taps: int
    ci: int
    group_stride: int
    out_stride: int
    tap_stride: int
    inner: int = 1  # neighbouring outputs that are inner_stride apart
    inner_stride: int = 0


def _rows_columns(tile: str) -> tuple[int, int]:
    rows, columns = tile.split("x")
    return int(rows), int(columns)


def tile_work(tile: str, share: float, pixels: int, co: int, direct: bool = False) -> float:
    """Multiplications that a tile spends on the product, padding included, over the speed it reaches.

    `direct`: the product is one of include/matrix_tile.h, which cuts a last panel of up to 4 columns.
    """
    rows, columns = _rows_columns(tile)
    panels = -(-co // columns)
    cut = direct and rows >= MIN_CUT_ROWS and columns > 4 and 0 < co % columns <= 4
    return -(-pixels // rows) * rows * (panels - (1 - CUT_PANEL) * cut) * columns / share


def is_direct(node: Node) -> bool:
    """Whether a dense convolution is one product of matrices that include/matrix_tile.h has the tiles for."""
    (_, kh, kw, ci), a = present(node.inputs[1]).type.shape, node.attrs
    simple = a.activation.bounds is not None or a.activation is Activation.PRELU
    return simple and (kh, kw) == a.stride == (1, 1) and not any(a.pads) and ci % 4 == 0


def _pixels(node: Node) -> int:
    n, oh, ow, _ = node.output.type.shape
    return n * oh * ow


def tuning_key(node: Node) -> str:
    """What a tuned choice is filed under: the operator and everything that its speed depends on."""
    x, w, a = present(node.inputs[0]).type.shape, present(node.inputs[1]).type.shape, node.attrs
    return f"{node.op.name} x{x} w{w} s{a.stride} d{a.dilation} p{a.pads} g{a.groups}".replace(" ", "")


def tiles_of(isa: str) -> dict[str, float]:
    """The tiles of a build with their shares."""
    return {"relaxed": TILES, "simd128": UNFUSED_TILES, "scalar": SCALAR_TILES}[isa.removesuffix("-threads")]


def candidates(node: Node, isa: str = "relaxed") -> list[str]:
    """Tiles worth timing for a dense convolution, the default first; empty where there is no choice."""
    constant = node.inputs[1].constant if node.op is ops.CONV2D and node.inputs[1] is not None else None
    if node.op is not ops.CONV2D or (constant is not None and constant.sparsity is not None):
        return []
    tiles, pixels, co = tiles_of(isa), _pixels(node), node.output.type.shape[3] // node.attrs.groups
    direct = is_direct(node)
    work = {tile: tile_work(tile, share, pixels, co, direct) for tile, share in tiles.items()}
    ranked = sorted((tile for tile in work if work[tile] <= 1.5 * min(work.values())), key=work.__getitem__)
    image = _image_tile(node)
    return [image, *ranked] if image else ranked


def require_float(node: Node) -> None:
    """Raises UnsupportedOpError unless data and weights are floats."""
    for value in node.inputs[:3]:
        if value is not None and not value.type.dtype.is_float:
            raise UnsupportedOpError([f"no kernel for {value.type} ({value.name!r}); only float32 and float16"])


def epilogue(node: Node, builder: Builder) -> tuple[Argument, ...]:
    """The arguments that end every convolution: residual, its channels, slope, activation, bounds."""
    residual, slope = (list(node.inputs[3:5]) + [None] * 2)[:2]
    activation = node.attrs.activation
    lo, hi = activation.bounds or (-math.inf, math.inf)
    return (
        builder.ref(residual) if residual is not None else 0,
        residual.type.shape[3] if residual is not None else 0,
        builder.ref(slope) if slope is not None else 0,
        ACTIVATIONS.get(activation, ACTIVATION_CLAMP), lo, hi,
    )  # fmt: skip


def _stored(builder: Builder, value: Value, fixed: bool) -> tuple[Ref, int]:
    """Where a pack kernel reads weights, and whether they lie there as float16."""
    constant = value.constant
    if constant is None or not fixed:
        return builder.ref(value), 0
    if constant.sparsity is None:
        return builder.weights(value), int(constant.stored is DType.FLOAT16)
    dense = builder.scratch(4 * value.type.size)
    expand_constant(builder, value, dense)
    return dense, 0


def _pack(node: Node, builder: Builder, kernel: str, key: tuple[object, ...], size: int, units: int) -> Ref:
    """The node's weights and bias in a kernel's layout: packed at load, or every time if they can change."""
    w, bias = present(node.inputs[1]), node.inputs[2] if len(node.inputs) > 2 else None
    fixed = builder.is_fixed(w) and (bias is None or builder.is_fixed(bias))
    target, is_new = builder.packed((kernel, w, bias, key), 4 * size) if fixed else (builder.scratch(4 * size), True)
    if is_new:
        source, stored_f16 = _stored(builder, w, fixed)
        put = builder.prepare if fixed else builder.step
        put(kernel, source, builder.ref(bias) if bias is not None else 0, target, *key, stored_f16, units=units)  # type: ignore[arg-type]
    return target


def pack_dense(node: Node, builder: Builder, weights: DenseWeights, columns: int) -> Ref:
    """Column panels of the node's weights."""
    panels = weights.groups * -(-weights.co // columns)
    size = panels * (columns + weights.taps * weights.ci * columns)
    key = (
        weights.co, weights.taps, weights.ci, columns, weights.group_stride, weights.out_stride, weights.inner,
        weights.inner_stride, weights.tap_stride, node.output.type.shape[-1],
    )  # fmt: skip
    return _pack(node, builder, "f32_pack_conv_weights", key, size, panels)


def _dense(node: Node, builder: Builder, weights: DenseWeights, window: tuple[int, int]) -> None:
    """A dense or grouped convolution as steps."""
    x, a = present(node.inputs[0]), node.attrs
    (n, ih, iw, channels), (_, oh, ow, _) = x.type.shape, node.output.type.shape
    tile = _choose(node, builder, tiles_of(builder.isa), weights.co)
    image = tile in IMAGES.values()
    rows, columns = (1, IMAGE_TILE_COLUMNS) if image else _rows_columns(tile)
    packed = pack_dense(node, builder, weights, columns)
    total = weights.groups * weights.co
    tiles = weights.groups * -(-weights.co // columns) * -(-_pixels(node) // rows)
    builder.step(
        f"f32_conv2d_nhwc_{tile}", builder.ref(x), packed, builder.ref(node.output), n, ih, iw, weights.ci, channels,
        oh, ow, weights.co, total, *window, *a.stride, *a.dilation, a.pads[0], a.pads[2], *epilogue(node, builder),
        units=n * oh if image else tiles,
    )  # fmt: skip
    origin = "tuned" if builder.choices.get(tuning_key(node)) == tile else "default"
    builder.because(f"{tile} tile ({origin}), {builder.isa} build")


def _choose(node: Node, builder: Builder, tiles: dict[str, float], co: int) -> str:
    """The tuned tile of this shape, or the one that the shares promise most of."""
    image = _image_tile(node)
    chosen = builder.choices.get(tuning_key(node))
    if chosen is not None and chosen in (*tiles, image):
        return chosen
    direct = node.op is ops.CONV2D and builder.isa != "scalar" and is_direct(node)
    return image or min(tiles, key=lambda tile: tile_work(tile, tiles[tile], _pixels(node), co, direct))


def _image_tile(node: Node) -> str | None:
    """The tile for images of 3 channels, if there is one for this window."""
    (_, kh, kw, ci), a = present(node.inputs[1]).type.shape, node.attrs
    square = kh == kw and a.stride[0] == a.stride[1] and a.dilation == (1, 1) and a.groups == 1
    return IMAGES.get((kh, a.stride[0])) if node.op is ops.CONV2D and ci == 3 and square else None


def conv2d(node: Node, builder: Builder) -> None:
    require_float(node)
    co, kh, kw, ci = present(node.inputs[1]).type.shape
    groups = node.attrs.groups
    if ci == 1 and groups == co > 1:
        _depthwise(node, builder, (kh, kw), 1, kh * kw)
        return
    if skips_zeros(node, builder):
        sparse_conv2d(node, builder, epilogue(node, builder))
        return
    depth = kh * kw * ci
    _dense(node, builder, DenseWeights(groups, co // groups, kh * kw, ci, co // groups * depth, depth, ci), (kh, kw))


def depthwise_conv2d(node: Node, builder: Builder) -> None:
    require_float(node)
    _, kh, kw, co = present(node.inputs[1]).type.shape
    ci = present(node.inputs[0]).type.shape[3]
    if co == ci:
        _depthwise(node, builder, (kh, kw), co, 1)
    else:
        _dense(node, builder, DenseWeights(ci, co // ci, kh * kw, 1, co // ci, 1, co), (kh, kw))


def _depthwise(node: Node, builder: Builder, window: tuple[int, int], tap_stride: int, channel_stride: int) -> None:
    """One filter a channel."""
    x, a, (kh, kw) = present(node.inputs[0]), node.attrs, window
    (n, ih, iw, c), (_, oh, ow, _) = x.type.shape, node.output.type.shape
    blocks = -(-c // VECTOR_LANES)
    key = (c, kh * kw, tap_stride, channel_stride)
    packed = _pack(node, builder, "f32_pack_depthwise_weights", key, blocks * VECTOR_LANES * (1 + kh * kw), blocks)
    square = kh == kw and a.stride[0] == a.stride[1] and a.dilation == (1, 1)
    variant = WINDOWS.get((kh, a.stride[0])) if square else None
    builder.step(
        f"f32_depthwise_nhwc_{variant}" if variant else "f32_depthwise_nhwc",
        builder.ref(x), packed, builder.ref(node.output), n, ih, iw, c, c, oh, ow, c, kh, kw,
        *a.stride, *a.dilation, a.pads[0], a.pads[2], *epilogue(node, builder), units=n * oh,
    )  # fmt: skip
    builder.because(f"{'fixed' if variant else 'any'} window, {builder.isa} build")


def conv_transpose2d(node: Node, builder: Builder) -> None:
    require_float(node)
    if _windows_are_apart(node):
        _transpose_apart(node, builder)
        return
    x, a = present(node.inputs[0]), node.attrs
    co, kh, kw, channels = present(node.inputs[1]).type.shape
    ci = channels // a.groups
    (n, ih, iw, _), (_, oh, ow, _) = x.type.shape, node.output.type.shape
    tile = _choose(node, builder, TRANSPOSE_TILES, co)
    weights = DenseWeights(a.groups, co, kh * kw, ci, ci, kh * kw * channels, channels)
    packed = pack_dense(node, builder, weights, _rows_columns(tile)[1])
    builder.step(
        f"f32_conv_transpose2d_nhwc_{tile}", builder.ref(x), packed, builder.ref(node.output), n, ih, iw, ci, oh, ow,
        co, a.groups, kh, kw, *a.stride, *a.dilation, a.pads[0], a.pads[2], *epilogue(node, builder), units=n * oh,
    )  # fmt: skip
    origin = "tuned" if builder.choices.get(tuning_key(node)) == tile else "default"
    builder.because(f"{tile} tile ({origin}), {builder.isa} build")


def _windows_are_apart(node: Node) -> bool:
    """Whether every output pixel has one tap, and nothing in the epilogue depends on its channel."""
    a: ops.ConvTranspose2dAttrs = node.attrs
    plain = a.groups == 1 and a.dilation == (1, 1) and not any(a.pads) and not any(a.output_padding)
    window = present(node.inputs[1]).type.shape[1:3]
    return plain and window == a.stride and all(v is None for v in node.inputs[3:])


def _transpose_apart(node: Node, builder: Builder) -> None:
    """One product for each row of the window; its columns are the window's columns and the outputs."""
    x, a = present(node.inputs[0]), node.attrs
    co, kh, kw, ci = present(node.inputs[1]).type.shape
    n, ih, iw, _ = x.type.shape
    tile = _choose(node, builder, TRANSPOSE_TILES, kw * co)
    weights = DenseWeights(kh, kw * co, 1, ci, kw * ci, ci, 0, co, kh * kw * ci)
    packed = pack_dense(node, builder, weights, _rows_columns(tile)[1])
    builder.step(
        f"f32_conv_transpose2d_nhwc_apart_{tile}", builder.ref(x), packed, builder.ref(node.output), n, ih, iw, ci, co,
        *a.stride, *epilogue(node, builder)[3:], units=n * ih * kh,
    )  # fmt: skip
    builder.because(f"{tile} tile, windows do not overlap, {builder.isa} build")


LOWERINGS: dict[Op, Lower] = {
    ops.CONV2D: conv2d,
    ops.CONV_TRANSPOSE2D: conv_transpose2d,
    ops.DEPTHWISE_CONV2D: depthwise_conv2d,
}
