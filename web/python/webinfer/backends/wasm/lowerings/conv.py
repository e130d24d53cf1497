"""Convolutions in float32: register tiles chosen by shape, weights packed once where they are constant.

A tuner overrides the choice: `candidates` lists the tiles of a node, `tuning_key` names its shape in
`Builder.tuned`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings import winograd
from webinfer.backends.wasm.lowerings.nest import nest
from webinfer.backends.wasm.lowerings.products import (
    DenseWeights,
    activation_args,
    epilogue,
    pack_dense,
    pack_depthwise,
    require_float,
)
from webinfer.backends.wasm.lowerings.rows import typical_rows
from webinfer.backends.wasm.lowerings.sparse_conv import skips_zeros, sparse_conv2d
from webinfer.backends.wasm.lowerings.windows import geometry_of, image_sizes, window_of
from webinfer.graph.ir import Node, Op, TensorType, Value
from webinfer.kernel_constants import IMAGE_TILE_COLUMNS
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import conv as ops
from webinfer.ops.strides import row_major
from webinfer.plan.blocks import Arguments, Ref

# Rows x columns of each tile, and the share of a core's peak that it reaches when it is full: measured in V8 on an
# x86-64 of 2025. Without a fused multiply-add a product takes a register more, and 6x8 spills.
TILES = {"6x8": 1.0, "5x8": 0.95, "4x8": 0.93, "2x16": 0.93, "8x4": 0.7, "8x1": 0.45, "1x32": 0.8}
UNFUSED_TILES = {**TILES, "6x8": 0.55, "5x8": 0.98, "4x8": 0.96, "2x16": 0.85}
SCALAR_TILES = {"4x8": 1.0, "8x1": 0.6}
DEEP_TILES = {"3x3": 0.75}  # three outputs with lanes along the depth, which is whole vectors a tap, and
PANEL_COLUMNS = {"8x4": 4, "8x1": 1, "3x3": 3}  # of the panels that a tile reads; 8 of all others, side by side
ENDLESS = 120  # pixels, whole tiles of all of them: what a layout is chosen for. 60 and 240 changed none of 146 graphs
# So deep that adding lanes up is little beside it: without, models took 1.0 to 1.07 times as long (EPYC, 2026-11-28).
LEAST_DEPTH = 64
IMAGE_CHANNELS = 3  # of the pictures that image tiles are for
MIN_LAID = 8  # images of one column that are rows for a depthwise kernel, whose threads share rows
# Of a core's peak that they reach: with twice the share three graphs took 1.2 to 2.2 times as long (EPYC, 2026-11-28).
IMAGE_SHARE = 0.87
IMAGES = {(3, 2): "image_3x3_s2", (5, 2): "image_5x5_s2"}  # (window, stride) of the tiles for 3 channels
TRANSPOSE_TILES = {"4x8": 1.0, "8x4": 0.7}
WINDOWS = {(3, 1): "3x3_s1", (3, 2): "3x3_s2", (5, 1): "5x5_s1", (5, 2): "5x5_s2", (7, 1): "7x7_s1"}


@cache
def _rows_columns(tile: str) -> tuple[int, int]:
    rows, columns = tile.split("x")
    return int(rows), int(columns)


def tile_work(tile: str, share: float, pixels: int, co: int) -> float:
    """Multiplications that a tile spends on the product, padding included, over the speed it reaches."""
    rows, columns = _rows_columns(tile)
    co, pixels = typical_rows(co), typical_rows(pixels)
    return -(-pixels // rows) * rows * -(-co // columns) * columns / share


def panel_columns(tile: str) -> int:
    """How many outputs a panel of the weights has that the tile reads."""
    return PANEL_COLUMNS.get(tile, 8)


def tiles_of_one_layout(tiles: Mapping[str, float], co: int) -> dict[str, float]:
    """The tiles that read the layout that weights of so many outputs have, whatever images or rows come.

    It is that of the tile that is best where there are many pixels: a weight is packed once.
    """
    best = min(tiles, key=lambda tile: tile_work(tile, tiles[tile], ENDLESS, co))
    return {tile: share for tile, share in tiles.items() if panel_columns(tile) == panel_columns(best)}


def is_direct(node: Node) -> bool:
    """Whether a dense convolution is one product of matrices that include/matrix_tile.h has the tiles for."""
    (_, kh, kw, ci), a = node.required_input(1).type.shape, node.attrs
    return (kh, kw) == a.stride == (1, 1) and not any(a.pads) and ci % 4 == 0


def _pixels(node: Node) -> int:
    n, oh, ow, _ = node.output.type.shape
    return n * oh * ow


def tuning_key(node: Node) -> str:
    """What a tuned choice is filed under: the operator and everything that its speed depends on."""
    x, w, a = node.required_input(0).type.shape, node.required_input(1).type.shape, node.attrs
    return f"{node.op.name} x{x} w{w} s{a.stride} d{a.dilation} p{a.pads} g{a.groups}".replace(" ", "")


def tiles_of(isa: str) -> dict[str, float]:
    """The tiles of a build with their shares."""
    return {"relaxed": TILES, "simd128": UNFUSED_TILES, "scalar": SCALAR_TILES}[isa.removesuffix("-threads")]


def _tiles_for(isa: str, ci: int, taps: int) -> dict[str, float]:
    """The tiles for products of so many channels and taps."""
    return {**tiles_of(isa), **_deep_tiles(isa, ci, taps)}


def _deep_tiles(isa: str, ci: int, taps: int = 1) -> dict[str, float]:
    """The tiles with lanes along the depth, if products of so many channels and taps suit them."""
    return DEEP_TILES if ci % 4 == 0 and taps * ci >= LEAST_DEPTH and not isa.startswith("scalar") else {}


def candidates(node: Node, isa: str = "relaxed") -> list[str]:
    """Tiles worth timing for a dense convolution, the default first; empty where there is no choice."""
    constant = node.inputs[1].constant if node.op is ops.CONV2D and node.inputs[1] is not None else None
    if node.op is not ops.CONV2D or (constant is not None and constant.sparsity is not None):
        return []
    _, kh, kw, ci = node.required_input(1).type.shape
    tiles, pixels, co = _tiles_for(isa, ci, kh * kw), _pixels(node), node.output.type.shape[3] // node.attrs.groups
    tiles = tiles_of_one_layout(tiles, co)
    work = {tile: tile_work(tile, share, pixels, co) for tile, share in tiles.items()}
    turns = constant is not None and winograd.fits(node)
    if turns:
        work[winograd.NAME] = winograd.work(node, isa)
    ranked = sorted((tile for tile in work if work[tile] <= 1.5 * min(work.values())), key=work.__getitem__)
    return list(dict.fromkeys([*_picture_tiles(node, isa, turns), *ranked]))


def _dense(node: Node, builder: Builder, weights: DenseWeights, window: tuple[int, int]) -> None:
    """A dense or grouped convolution as steps."""
    x, y = node.required_input(0), node.output
    tile, origin = _choose(node, builder, _tiles_for(builder.isa, weights.ci, weights.taps), weights.co)
    if tile == winograd.NAME:
        winograd.convolve(node, builder, weights, _pack(node, builder, weights, winograd.COLUMNS))
        builder.because(f"Winograd's transform ({origin}), {builder.isa} build")
        return
    image = tile in IMAGES.values()
    rows, columns = (1, IMAGE_TILE_COLUMNS) if image else _rows_columns(tile)
    packed = _pack(node, builder, weights, IMAGE_TILE_COLUMNS if image else panel_columns(tile))
    tiles = weights.groups * -(-weights.co // columns) * -(-_pixels(node) // rows)
    builder.step(
        f"f32_conv2d_nhwc_{tile}", geometry_of(node, window), epilogue(node, builder),
        x=builder.ref(x), x_stride=x.type.shape[3], ci=weights.ci, w=packed,
        y=builder.ref(y), y_stride=weights.groups * weights.co, co=weights.co,
        units=y.type.shape[0] * y.type.shape[1] if image else tiles,
    )  # fmt: skip
    builder.because(f"{tile} tile ({origin}), {builder.isa} build")


def _pack(node: Node, builder: Builder, weights: DenseWeights, columns: int) -> Ref:
    """Panels of the weights, packed from the file's own layout where that is another one than ours.

    Transposed first they would be written and read once more: a third of the load of ResNet-50.
    """
    w = node.required_input(1)
    origin, perm = builder.origin(w)
    if not perm or weights.groups > 1 or weights.taps * weights.ci * weights.co != w.type.size:
        return pack_dense(node, builder, weights, columns)
    strides = row_major(origin.type.shape)
    out, high, wide, deep = (strides[axis] for axis in perm)
    _, kh, kw, _ = w.type.shape
    if kh > 1 and kw > 1 and high != kw * wide:
        return pack_dense(node, builder, weights, columns)
    tap = wide if kw > 1 else high
    moved = DenseWeights(1, weights.co, weights.taps, weights.ci, 0, out, tap, ci_stride=deep)
    return pack_dense(node, builder, moved, columns, source=origin)


def _choose(node: Node, builder: Builder, tiles: dict[str, float], co: int) -> tuple[str, str]:
    """The tuned tile of this shape, or the one that the shares promise most of; and which of both it is."""
    best = builder.tuned.get(tuning_key(node)) if builder.tuned else None
    tiles = tiles_of_one_layout(tiles, co)
    turns = winograd.fits(node) and winograd.is_known(node, builder)
    pictures = _picture_tiles(node, builder.isa, turns)
    if best is not None and best in (*tiles, *pictures, *([winograd.NAME] * turns)):
        return best, "tuned"
    if pictures:
        return pictures[0], "default"
    work = {tile: tile_work(tile, share, _pixels(node), co) for tile, share in tiles.items()}
    if turns:
        work[winograd.NAME] = winograd.work(node, builder.isa)
    return min(work, key=work.__getitem__), "default"


def _image_tile(node: Node) -> str | None:
    """The tile for images of 3 channels, if there is one for this window."""
    (_, kh, kw, ci), a = node.required_input(1).type.shape, node.attrs
    square = kh == kw and a.stride[0] == a.stride[1] and a.dilation == (1, 1) and a.groups == 1
    image = node.op is ops.CONV2D and ci == IMAGE_CHANNELS and square
    return IMAGES.get((kh, a.stride[0])) if image else None


def _picture_tiles(node: Node, isa: str, turns: bool) -> list[str]:
    """What is made for pictures of 3 channels and this window, the best first; `turns`: the transform can be had."""
    image = _image_tile(node)
    if image is None:
        return []
    whole = tile_work(f"1x{IMAGE_TILE_COLUMNS}", IMAGE_SHARE, _pixels(node), node.output.type.shape[3])
    return [winograd.NAME, image] if turns and winograd.work(node, isa) < whole else [image]


def conv2d(node: Node, builder: Builder) -> None:
    """A convolution: one filter a channel, by its entries where weights are sparse, or dense."""
    require_float(node)
    co, kh, kw, ci = node.required_input(1).type.shape
    groups = node.attrs.groups
    if ci == 1 and groups == co > 1:
        _depthwise(node, builder, (kh, kw), 1, kh * kw)
        return
    if skips_zeros(node, builder):
        sparse_conv2d(node, builder, epilogue(node, builder))
        return
    depth = kh * kw * ci
    _dense(node, builder, DenseWeights(groups, co // groups, kh * kw, ci, co // groups * depth, depth, ci), (kh, kw))


@dataclass(frozen=True, slots=True)
class After:
    """What follows a depthwise convolution in its step: result = plain + convolution * factor."""

    result: Value
    plain: Value
    factor: float


def depthwise_conv2d(node: Node, builder: Builder, after: After | None = None) -> None:
    """A depthwise convolution; with more outputs than inputs it is a grouped one."""
    require_float(node)
    _, kh, kw, co = node.required_input(1).type.shape
    ci = node.required_input(0).type.shape[3]
    if co == ci:
        _depthwise(node, builder, (kh, kw), co, 1, after)
    else:
        _dense(node, builder, DenseWeights(ci, co // ci, kh * kw, 1, co // ci, 1, co), (kh, kw))


def _depthwise(
    node: Node,
    builder: Builder,
    window: tuple[int, int],
    tap_stride: int,
    channel_stride: int,
    after: After | None = None,
) -> None:
    """One filter a channel."""
    x, y, (kh, kw) = node.required_input(0), after.result if after else node.output, window
    n, oh, _, c = y.type.shape
    packed = pack_depthwise(node, builder, kh * kw, tap_stride, channel_stride)
    variant = fixed_window(node, window)
    plain, laid = image_sizes(x.type, y.type) | window_of(node, window), geometry_of(node, window)
    is_laid = laid != plain and (n >= MIN_LAID or not builder.isa.endswith("threads"))
    builder.step(
        f"f32_depthwise_nhwc_{variant}" if variant else "f32_depthwise_nhwc",
        laid if is_laid else plain, epilogue(node, builder),
        _after_args(after, builder) if variant else {},
        x=builder.ref(x), x_stride=c, w=packed, y=builder.ref(y), y_stride=c, c=c, units=n if is_laid else n * oh,
    )  # fmt: skip
    builder.because(f"{'fixed' if variant else 'any'} window, {builder.isa} build")


def _after_args(after: After | None, builder: Builder) -> Arguments:
    return {"post": builder.ref(after.plain), "factor": after.factor} if after else {"post": None, "factor": 1.0}


def fixed_window(node: Node, window: tuple[int, int]) -> str | None:
    """The depthwise kernel that is made for this window, if there is one."""
    a, (kh, kw) = node.attrs, window
    square = kh == kw and a.stride[0] == a.stride[1] and a.dilation[0] == a.dilation[1]
    spread = a.dilation[0] > 1 and (kh != 3 or a.stride[0] != 1 or node.optional_input(3) is not None)
    return WINDOWS.get((kh, a.stride[0])) if square and not spread else None


def conv_transpose2d(node: Node, builder: Builder) -> None:
    """A transposed convolution; one whose windows do not overlap is a few plain products."""
    require_float(node)
    if _windows_are_apart(node, builder):
        _transpose_apart(node, builder)
        return
    x, y, groups = node.required_input(0), node.output, node.attrs.groups
    co, kh, kw, channels = node.required_input(1).type.shape
    ci = channels // groups
    tile, origin = _choose(node, builder, TRANSPOSE_TILES, co)
    weights = DenseWeights(groups, co, kh * kw, ci, ci, kh * kw * channels, channels)
    packed = pack_dense(node, builder, weights, _rows_columns(tile)[1])
    builder.step(
        f"f32_conv_transpose2d_nhwc_{tile}",
        image_sizes(x.type, y.type), window_of(node, (kh, kw)), epilogue(node, builder),
        x=builder.ref(x), ci=ci, w=packed, y=builder.ref(y), co=co, groups=groups,
        units=y.type.shape[0] * y.type.shape[1],
    )  # fmt: skip
    builder.because(f"{tile} tile ({origin}), {builder.isa} build")


def _windows_are_apart(node: Node, builder: Builder) -> bool:
    """Whether an output pixel has one tap or none, and the epilogue knows of channels nothing but fixed slopes."""
    a: ops.ConvTranspose2dAttrs = node.attrs
    n, ih, iw, _ = node.required_input(0).type.shape
    (_, kh, kw, _), (sh, sw) = node.required_input(1).type.shape, a.stride
    if a.groups > 1 or a.dilation != (1, 1) or any(a.pads) or node.optional_input(3) is not None:
        return False
    slope = node.optional_input(4)
    fits = slope is None or builder.is_fixed(slope)
    return fits and kh <= sh and kw <= sw and node.output.type.shape[:3] == (n, ih * sh, iw * sw)


def _repeated(builder: Builder, slope: Value, count: int) -> Ref:
    """The slopes so many times, one behind the other."""
    size = slope.type.size
    value, is_new = builder.derived(("repeated", slope, count), TensorType((count * size,)), slope.name)
    if is_new:
        table = nest(builder, (count, size), (0, 1), (size, 1))
        builder.prepare("b32_copy", x=builder.ref(slope), y=builder.ref(value), nest=table, units=count * size)
    return builder.ref(value)


def _transpose_apart(node: Node, builder: Builder) -> None:
    """One product for each row of the window; its columns are the window's columns and the outputs."""
    x, a, slope = node.required_input(0), node.attrs, node.optional_input(4)
    co, kh, kw, ci = node.required_input(1).type.shape
    n, ih, iw, _ = x.type.shape
    tile, _ = _choose(node, builder, {**TRANSPOSE_TILES, **_deep_tiles(builder.isa, ci)}, kw * co)
    joined = tile == "8x4" and co == 1 and (kh, kw) == a.stride == (2, 2)
    groups, taps = (1, kh * kw) if joined else (kh, kw)
    weights = DenseWeights(groups, taps * co, 1, ci, taps * ci, ci, 0, co, kh * kw * ci)
    packed = pack_dense(node, builder, weights, _rows_columns(tile)[1])
    builder.step(
        f"f32_conv_transpose2d_nhwc_apart_{tile}", activation_args(a.activation),
        x=builder.ref(x), n=n, ih=ih, iw=iw, ci=ci, w=packed, y=builder.ref(node.output), co=co, kh=kh, kw=kw,
        sh=a.stride[0], sw=a.stride[1], slope=None if slope is None else _repeated(builder, slope, taps),
        joined=int(joined), units=n * ih,
    )  # fmt: skip
    builder.because(f"{tile} tile, windows do not overlap, {builder.isa} build")


LOWERINGS: dict[Op, Lower] = {
    ops.CONV2D: conv2d,
    ops.CONV_TRANSPOSE2D: conv_transpose2d,
    ops.DEPTHWISE_CONV2D: depthwise_conv2d,
}
