"""Dense 3x3 convolutions by Winograd's F(4x4, 3x3): 36 products where windows take 144."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.kernel_constants import WINOGRAD_POINTS, WINOGRAD_TILES
from webinfer.backends.wasm.lowerings.products import DenseWeights, epilogue, pack_dense
from webinfer.backends.wasm.lowerings.windows import image_sizes
from webinfer.graph.ir import Node
from webinfer.ops import conv as ops

NAME = "winograd"
COLUMNS, OUT = 8, 4  # outputs of a panel, and of a side of a tile
PARTS = 32  # of a step, at most: each has room of its own
# What a tile's transforms cost, in multiplications of the product: an input channel, an output channel.
TURN_IN, TURN_OUT = 170, 150
SHARE = {"relaxed": 0.93, "simd128": 0.9}  # of a core's peak that its products reach
MAX_TURNED_BYTES = 4 << 20  # of transformed weights


def fits(node: Node) -> bool:
    """Whether the kernel can do the node, if its weights are known at load."""
    a, (co, kh, kw, ci) = node.attrs, node.required_input(1).type.shape
    if node.op is not ops.CONV2D or (kh, kw) != (3, 3) or ci % 4 or 4 * turned_floats(ci, co) > MAX_TURNED_BYTES:
        return False
    return bool(a.stride == a.dilation == (1, 1) and a.groups == 1)


def is_known(node: Node, builder: Builder) -> bool:
    """Whether weights and bias are known at load."""
    return all(v is None or builder.is_fixed(v) for v in node.inputs[1:3])


def turned_floats(ci: int, co: int) -> int:
    """Floats of the transformed weights."""
    return -(-co // COLUMNS) * WINOGRAD_POINTS * ci * COLUMNS


def _tiles(node: Node) -> int:
    n, oh, ow, _ = node.output.type.shape
    return n * -(-oh // OUT) * -(-ow // OUT)


def work(node: Node, isa: str) -> float:
    """What it costs, in the measure of conv.tile_work: multiplications over 9 times the input channels."""
    co, _, _, ci = node.required_input(1).type.shape
    share = SHARE.get(isa.removesuffix("-threads"))
    if share is None:
        return float("inf")
    tiles, columns = _tiles(node), -(-co // COLUMNS) * COLUMNS
    products = -(-tiles // 6) * 6 * WINOGRAD_POINTS * ci * columns / share
    return (products + tiles * (TURN_IN * ci + TURN_OUT * columns)) / (9 * ci)


def convolve(node: Node, builder: Builder, weights: DenseWeights) -> None:
    """The convolution as a step; its weights are transformed at load."""
    x, y, a = node.required_input(0), node.output, node.attrs
    panels = pack_dense(node, builder, weights, COLUMNS)
    turned, is_new = builder.packed((NAME, panels), 4 * turned_floats(weights.ci, weights.co))
    if is_new:
        builder.prepare(
            "f32_pack_winograd_weights", panels=panels, y=turned, ci=weights.ci, units=-(-weights.co // COLUMNS)
        )
    blocks = -(-_tiles(node) // WINOGRAD_TILES)
    parts = min(blocks, PARTS)
    builder.step(
        "f32_conv2d_nhwc_winograd", image_sizes(x.type, y.type), epilogue(node, builder),
        x=builder.ref(x), panels=panels, turned=turned, y=builder.ref(y), ci=weights.ci, co=weights.co,
        scratch=builder.scratch(4 * parts * WINOGRAD_POINTS * WINOGRAD_TILES * weights.ci),
        pad_top=a.pads[0], pad_left=a.pads[2], blocks=blocks, parts=parts, units=parts,
    )  # fmt: skip
