"""Dense convolutions by Winograd's F(4x4, 3x3) and, of three taps in a line, F(4, 3): 36 products where windows take
144, and 6 where they take 12. 5x5 and 6x6 windows that step by two pixels of a picture are 3x3 ones over squares of
2x2 pixels.
"""

from __future__ import annotations

from dataclasses import replace

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.lowerings.products import DenseWeights, epilogue
from webinfer.backends.wasm.lowerings.rows import typical_rows
from webinfer.backends.wasm.lowerings.windows import image_sizes
from webinfer.graph.dims import minimum
from webinfer.graph.ir import Node
from webinfer.kernel_constants import (
    WINOGRAD_LINE_POINTS,
    WINOGRAD_LINE_TILES,
    WINOGRAD_POINTS,
    WINOGRAD_SQUARE,
    WINOGRAD_TILES,
)
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import conv as ops
from webinfer.plan.blocks import Arguments, Ref

NAME = "winograd"
COLUMNS, OUT = 8, 4  # outputs of a panel, and of a side of a tile
PARTS = 32  # of a step, at most: each has room of its own; 16 and 64 took 0.93 to 1.02 times as long (EPYC, 2026-11-28)
ENOUGH = 12  # of them, for the threads of a machine. A guess
LEAST_SLICE = 24  # outputs whose products are worth transforming a tile for. A guess
SHARE = {"relaxed": 0.93, "simd128": 0.9}  # of a core's peak that products reach
ROWS = {"relaxed": 6, "simd128": 4, "scalar": 4}  # of a product: what the tiles of a block are a multiple of
# Of that, where transformed inputs are read for one panel of outputs: 0.35 and 1.4 took 1.13 and 1.24 times as long
# (EPYC, 2026-11-28).
ALONE = 0.7
PICTURE_CHANNELS = 3  # of the pictures whose windows are squares of pixels
# Of transformed weights: with half, 128 channels by 128 took 3.2 times as long (EPYC, 2026-11-28).
MAX_TURNED_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Form:
    """A kernel, the transform of its weights, its products for a tile, and how many tiles are a block.

    `turn_in` and `turn_out` are what a tile's transforms cost, in multiplications of the product, for an input channel
    and an output channel; `start` what a product costs beside its depth, for an output channel.
    """

    kernel: str
    pack: str
    points: int
    tiles: int
    turn_in: int
    turn_out: int
    start: int = 0


_SQUARE = Form("f32_conv2d_nhwc_winograd", "f32_pack_winograd_weights", WINOGRAD_POINTS, WINOGRAD_TILES, 170, 150)
_LINE = Form(
    "f32_conv2d_nhwc_winograd_line", "f32_pack_winograd_line_weights", WINOGRAD_LINE_POINTS, WINOGRAD_LINE_TILES,
    15, 70, 3,
)  # fmt: skip
FORMS: dict[tuple[int, ...], Form] = {(3, 3): _SQUARE, (1, 3): _LINE, (3, 1): _LINE}  # by window
_PICTURE = replace(_SQUARE, start=4)
PICTURES: dict[tuple[int, ...], Form] = {(5, 5): _PICTURE, (6, 6): _PICTURE}  # with a stride of two pixels
_ALL = FORMS | PICTURES


def _form(node: Node) -> Form:
    return _ALL[node.required_input(1).type.shape[1:3]]


def _depth(node: Node) -> int:
    """What products go over."""
    _, kh, _, ci = node.required_input(1).type.shape
    return WINOGRAD_SQUARE if kh > 3 else ci


def fits(node: Node) -> bool:
    """Whether the kernel can do the node, if its weights are known at load."""
    a, (_, kh, kw, ci) = node.attrs, node.required_input(1).type.shape
    if node.op is not ops.CONV2D or a.dilation != (1, 1) or a.groups > 1 or a.exact:
        return False  # the transforms round: sums of whole numbers would not stay whole
    if (kh, kw) in PICTURES:
        even = not any(size % 2 for size in node.required_input(0).type.shape[1:3])
        return (
            even and ci == PICTURE_CHANNELS and a.stride == (2, 2) and (kh == 5 or not any(p % 2 for p in a.pads[::2]))
        )
    if (kh, kw) not in FORMS or ci % 4 or a.stride != (1, 1):
        return False
    return 4 * _turned_floats(node) <= MAX_TURNED_BYTES


def is_known(node: Node, builder: Builder) -> bool:
    """Whether weights and bias are known at load."""
    return all(v is None or builder.is_fixed(v) for v in node.inputs[1:3])


def _turned_floats(node: Node) -> int:
    """Floats of the transformed weights."""
    return -(-node.output.type.shape[3] // COLUMNS) * _form(node).points * _depth(node) * COLUMNS


def _tiles(node: Node) -> int:
    (n, oh, ow, _), (kh, kw) = node.output.type.shape, node.required_input(1).type.shape[1:3]
    return n * (-(-oh // OUT) if kh > 1 else oh) * (-(-ow // OUT) if kw > 1 else ow)


def _typical_tiles(node: Node) -> int:
    """Tiles of as many pixels as `typical_rows` has; their number itself where it is known."""
    (n, oh, ow, _), (kh, kw) = node.output.type.shape, node.required_input(1).type.shape[1:3]
    pixels = n * oh * ow
    if (typical := typical_rows(pixels)) is pixels:
        return _tiles(node)
    return -(-typical // ((OUT if kh > 1 else 1) * (OUT if kw > 1 else 1)))


def work(node: Node, isa: str) -> float:
    """What it costs, in the measure of conv.tile_work: multiplications over the input channels and the taps."""
    (co, kh, kw, ci), form, depth = node.required_input(1).type.shape, _form(node), _depth(node)
    share = SHARE.get(isa.removesuffix("-threads"))
    if share is None:
        return float("inf")
    tiles, columns = _typical_tiles(node), -(-co // COLUMNS) * COLUMNS
    share *= ALONE if columns == COLUMNS else 1
    products = -(-tiles // 6) * 6 * form.points * (depth + form.start) * columns / share
    return (products + tiles * (form.turn_in * depth + form.turn_out * columns)) / (kh * kw * ci)


def pieces(
    builder: Builder, tiles: int, block: int, least_block: int, outputs: int, least: int
) -> tuple[Arguments, int]:
    """How a step of so many tiles is cut, and in how many parts: in blocks of tiles.

    Where these are too few for threads, they are small, and each has slices of at least `least` outputs, whose tiles
    are transformed anew if another thread takes them.
    """
    blocks, slices = -(-tiles // block), 1
    if builder.isa.endswith("threads"):
        blocks = -(-tiles // least_block) if blocks < ENOUGH else blocks
        while blocks * slices < ENOUGH and 2 * slices * least <= outputs:
            slices *= 2
    parts = minimum(blocks * slices, PARTS)
    return {"blocks": blocks, "slices": slices, "parts": parts}, parts


def convolve(node: Node, builder: Builder, weights: DenseWeights, panels: Ref) -> None:
    """The convolution as a step; its weights, packed in `panels`, are transformed at load."""
    x, y, a, form = node.required_input(0), node.output, node.attrs, _form(node)
    k, depth = node.required_input(1).type.shape[1], _depth(node)
    sides: Arguments = {"k": k, "depth": depth} if form is not _LINE else {}
    top, left = (a.pads[0] % 2, a.pads[2] % 2) if k > OUT else (0, 0)
    shifts: Arguments = {"top": top, "left": left} if form is not _LINE else {}
    turned, is_new = builder.packed((NAME, panels, top, left), 4 * _turned_floats(node))
    if is_new:
        units = -(-weights.co // COLUMNS)
        builder.prepare(form.pack, shifts, sides, panels=panels, y=turned, ci=weights.ci, units=units)
    rows = ROWS[builder.isa.removesuffix("-threads")]
    cut, parts = pieces(builder, _tiles(node), form.tiles, rows, weights.co, LEAST_SLICE)
    builder.step(
        form.kernel, cut, image_sizes(x.type, y.type), epilogue(node, builder),
        sides or {"kh": k},
        x=builder.ref(x), panels=panels, turned=turned, y=builder.ref(y), ci=weights.ci, co=weights.co,
        scratch=builder.scratch(4 * parts * form.points * form.tiles * depth),
        pad_top=a.pads[0], pad_left=a.pads[2], units=parts,
    )  # fmt: skip
