"""The declared search space of products: which kernels and tiles may compute a node, the likely best first.

`candidates` and `tuning_key` are what a tuner needs: it times the candidates of a node and puts the winner
under the node's key into `Target.tuned`, which the lowerings honour. What cannot run on the target is never
offered; what a rough model of the device rules out is not offered either.

Names of kernels: "tiled_*" (Tile) and "gemv_*" (Gemv) use workgroup memory, "split_k" shares sums; "vec4_N" and "4x8"
read quads of input channels, "4x1" is depthwise, "image" reads input channels and "dot" writes output channels one by
one, "any" takes every shape.
"""

from __future__ import annotations

import dataclasses
import math

from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.lowerings import attention_tiles
from webinfer.dtypes import DType
from webinfer.graph.ir import Node
from webinfer.host.gpu import MATRICES
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.activation import Activation
from webinfer.ops.matmul import matrix_sizes

LANES = 128  # of a core of an H200, on which all costs here were measured
BUSY = {False: 16384, True: 64}  # invocations that fill a device: hardware, software
# Quads of input channels from which invocations share a sum: 8 took 0.95 of the time, 32 1.07 (H100, 2026-11-28).
LONG_SUM = 16
FEW_SLICES = 8  # slices of a sum from which a tile reads weights as float16: 4 and 16 took as long (H100, 2026-11-28)
MAX_TILES = 14  # tiles that a tuner is asked to time
SLACK = 2.5  # a tile that the model calls this much slower than the best is not offered
# Of one more dispatch, that waits for another one: half took 0.78 of the time over 7 products, double 1.3 (H100, wgpu,
# 2026-11-28).
DISPATCH_CYCLES = 4800.0
MAX_PARTS = 1 << 26  # bytes of the parts of a product's sums: half of what WebGPU promises a binding
# Of which workgroups do not lose each other: 512 took 0.97 of the time of the only product that it changed (H100,
# 2026-11-28).
SHORT_SUM = 1024
# That a core moves in a cycle: half took 1.1 times as long, double 0.54 to 1.05 (H100, wgpu, 2026-11-28).
CORE_BYTES = 20.0
# To fill and to drain the device: half and double took 0.97 and 1.01 of the time (H100, 2026-11-28).
WAVE_CYCLES = 600.0
# Kernels without tiles: the share of the device's peak that they reach, and cycles that one product of a sum takes.
UNTILED = {
    "vec4": (0.25, 135.0), "4x8": (0.27, 135.0), "split": (0.18, 17.0), "image": (0.12, 460.0), "dot": (0.1, 70.0),
    "any": (0.1, 460.0), "gemv": (0.12, 3.0),
}  # fmt: skip
SMALL_MATRICES = 32  # rows or columns, below which most of 16x16 matrices would be empty
# Results of an invocation, whose loops stay: that compiles in 0.7 of the time (2026-11-23) and, with wgpu, runs 1.2
# times as long as with 8 (H100, 2026-11-28).
SMALL_SHARE = 16
# Rows of open sizes that share a kernel: one, as a decoder has, then few classes, as each may need a shader of its own.
CLASSES, LARGEST = (1, 16, 256, 4096), 65536
READ_FLOAT16 = ("4x1", "4x8", "split_k")  # besides tiles and GEMVs: the others use a weight too seldom


@dataclass(frozen=True, slots=True)
class Tile:
    """A workgroup's share of a product: rows by columns of the result, `depth` products of each sum at a time.

    An invocation computes `per_rows` by `per_columns`; `parts` groups of invocations share the sums, and so do `split`
    workgroups, by one more dispatch; `buffers` slices are in workgroup memory at a time; of large shares `unroll`
    products are written out in the shader's text. `share` is the part of a core's peak that it reaches, `slice_cycles`
    what a slice takes at least, `resident` how many workgroups a core holds.
    """

    rows: int
    columns: int
    depth: int
    per_rows: int
    per_columns: int
    buffers: int
    unroll: int
    share: float
    slice_cycles: int
    resident: int
    parts: int = 1
    split: int = 1
    wave: float = 8.0  # cycles to fill and to drain the device
    drift: float = 0.1  # share that a doubling of a sum costs: 2,048 ^ 3 and 4,096 ^ 3 on an H100

    @property
    def name(self) -> str:
        """The name in tunings."""
        sizes = f"{self.rows}x{self.columns}x{self.depth}_{self.per_rows}x{self.per_columns}"
        shared = (f"_in{self.parts}" if self.parts > 1 else "") + (f"_by{self.split}" if self.split > 1 else "")
        return f"tiled_{sizes}_{self.buffers}_{self.unroll}{shared}"

    @property
    def written_out(self) -> int:
        """Products in the shader's text: drivers unroll a small share's loop as well, and compile it sooner."""
        return self.unroll if self.per_rows * self.per_columns > SMALL_SHARE else 1

    @property
    def workgroup(self) -> int:
        """Invocations of a workgroup."""
        return self.rows // self.per_rows * (self.columns // self.per_columns) * self.parts

    @property
    def nbytes(self) -> int:
        """Bytes of workgroup memory."""
        met = 4 * self.rows * self.columns if self.parts > 1 else 0
        return 4 * self.buffers * self.depth * (self.rows + 4 + self.columns) * self.parts + met

    def fits(self, target: Target, rows: int = 1, columns: int = 1) -> bool:
        """Whether the device has the memory of a workgroup and its invocations, and room for the parts of sums."""
        parts = 16 * self.split * rows * -(-columns // 4) if self.split > 1 else 0
        return (
            parts <= min(MAX_PARTS, target.limits.get("maxStorageBufferBindingSize", MAX_PARTS))
            and self.nbytes <= target.limit("maxComputeWorkgroupStorageSize")
            and self.workgroup <= target.limit("maxComputeInvocationsPerWorkgroup")
        )

    def cycles(self, rows: int, inner: int, columns: int, cores: int) -> float:
        """A rough count of cycles for [rows, inner] x [inner, columns], in waves of workgroups that run together."""
        groups = math.ceil(rows / self.rows) * math.ceil(columns / self.columns) * self.split
        slices = math.ceil(inner / (self.depth * self.parts * self.split))
        work = slices * self.depth * self.parts * self.rows * self.columns / (LANES * self.share)
        # Workgroups that are long at their sums lose each other, and so what they share in the cache.
        work *= 1 + self.drift * max(0.0, math.log2(slices * self.depth / SHORT_SUM))
        waves, rest = divmod(groups, cores * self.resident)
        cycles = waves * max(self.resident * work, slices * self.slice_cycles)
        if rest:
            cycles += max(math.ceil(rest / cores) * work, slices * self.slice_cycles) + self.wave
        if self.split > 1:
            cycles += DISPATCH_CYCLES + rows * columns * (self.split + 1) * 4 / (cores * CORE_BYTES)
        return cycles


# Shares, cycles and workgroups are fitted to 24 products by 53 tiles on an H100 (Dawn, 2026-11-26): the best one by
# them takes 1.02 times as long as the best one measured, in geometric mean.
_OF_MATRICES = (
    Tile(128, 64, 16, 8, 8, 1, 16, 0.64, 22, 1),
    Tile(128, 64, 16, 8, 8, 2, 16, 0.60, 73, 3),
    Tile(64, 128, 16, 8, 8, 1, 16, 0.55, 53, 4),
    Tile(128, 128, 16, 8, 8, 2, 16, 0.64, 58, 1),
    Tile(128, 128, 16, 8, 8, 1, 1, 0.64, 37, 2),
    Tile(128, 128, 8, 8, 8, 2, 8, 0.62, 41, 1),
    Tile(256, 128, 8, 16, 8, 2, 8, 0.64, 53, 4),
    Tile(64, 64, 16, 8, 4, 1, 16, 0.55, 1545, 5),
    Tile(64, 64, 16, 8, 8, 2, 16, 0.54, 1740, 3),
    Tile(64, 64, 16, 4, 4, 1, 16, 0.46, 36, 4),
    Tile(128, 32, 16, 8, 4, 1, 16, 0.52, 1055, 5),
    Tile(64, 32, 16, 4, 4, 1, 16, 0.45, 1475, 7),
    Tile(32, 64, 16, 4, 4, 1, 16, 0.49, 1381, 8),
    Tile(32, 32, 16, 4, 4, 1, 16, 0.42, 1310, 9),
    Tile(32, 32, 32, 4, 4, 1, 32, 0.40, 1021, 5),
    Tile(32, 32, 32, 4, 4, 1, 32, 0.40, 1345, 2, 4),
    Tile(32, 32, 32, 4, 4, 1, 32, 0.38, 1418, 2, 2),
    Tile(32, 32, 16, 4, 4, 1, 16, 0.38, 1733, 2, 4),
    Tile(64, 64, 16, 8, 8, 1, 16, 0.51, 1010, 6, 2),
    # H100, Dawn, 2026-11-28: 47.1 and 46.6 TFLOP/s for 4,096 ^ 3, where the best one of 8x8 has 39.6.
    Tile(256, 128, 16, 16, 8, 1, 16, 0.69, 37, 1, drift=0.035),
    Tile(128, 128, 16, 16, 8, 1, 16, 0.69, 5500, 2, drift=0.05),
    Tile(32, 32, 16, 8, 4, 1, 16, 0.38, 1950, 2, 4),
)
_SHARED = (_OF_MATRICES[0], _OF_MATRICES[7])  # by several workgroups
# The same of convolutions, as measured on an H200; of those the tiles by several workgroups are not yet timed.
_OF_CONVOLUTIONS = (
    Tile(128, 64, 16, 8, 8, 1, 16, 0.56, 50, 1),
    Tile(128, 64, 16, 8, 8, 2, 16, 0.47, 50, 1),
    Tile(64, 128, 16, 8, 8, 1, 16, 0.48, 50, 2),
    Tile(128, 128, 16, 8, 8, 2, 16, 0.50, 50, 1),
    Tile(128, 128, 16, 8, 8, 1, 1, 0.50, 50, 1),
    Tile(128, 128, 8, 8, 8, 2, 8, 0.48, 50, 1),
    Tile(256, 128, 8, 16, 8, 2, 8, 0.50, 50, 1),
    Tile(64, 64, 16, 8, 4, 1, 16, 0.50, 1200, 8),
    Tile(64, 64, 16, 8, 8, 2, 16, 0.34, 50, 3),
    Tile(64, 64, 16, 4, 4, 1, 16, 0.40, 50, 1),
    Tile(128, 32, 16, 8, 4, 1, 16, 0.46, 1200, 4),
    Tile(64, 32, 16, 4, 4, 1, 16, 0.38, 1000, 4),
    Tile(32, 64, 16, 4, 4, 1, 16, 0.38, 1000, 4),
    Tile(32, 32, 16, 4, 4, 1, 16, 0.36, 1000, 8),
    Tile(32, 32, 32, 4, 4, 1, 32, 0.32, 1200, 6),
    Tile(32, 32, 32, 4, 4, 1, 32, 0.32, 1400, 1, 4),
    Tile(32, 32, 32, 4, 4, 1, 32, 0.32, 1300, 3, 2),
    Tile(32, 32, 16, 4, 4, 1, 16, 0.32, 1000, 2, 4),
    Tile(64, 32, 16, 4, 4, 1, 16, 0.36, 1000, 2, 2),
    Tile(64, 32, 16, 4, 4, 1, 16, 0.36, 1000, 1, 4),
    Tile(64, 64, 16, 8, 4, 1, 16, 0.45, 1200, 2, 2),
    Tile(64, 64, 16, 8, 8, 1, 16, 0.45, 1200, 2, 2),
    Tile(128, 64, 16, 8, 8, 1, 16, 0.50, 1200, 2, 2),
)
# By operator, since gathered rows cost more; what a tile computes is the same.
COSTS: dict[str, dict[str, Tile]] = {
    "conv2d": {tile.name: dataclasses.replace(tile, wave=600.0, drift=0.0) for tile in _OF_CONVOLUTIONS},
    "matmul": {
        tile.name: tile
        for tile in (
            *_OF_MATRICES,
            *(dataclasses.replace(tile, split=split) for tile in _SHARED for split in (2, 3, 4, 6, 8)),
        )
    },
}
TILES = COSTS["conv2d"] | COSTS["matmul"]


@dataclass(frozen=True, slots=True)
class MatrixTile:
    """A workgroup's share where the device multiplies matrices of 16x16 itself: `high` by `wide` subgroups, each of
    which computes `down` by `across` matrices.
    """

    down: int
    across: int
    high: int
    wide: int
    depth: int = 32

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return 16 * self.down * self.high

    @property
    def columns(self) -> int:
        """Columns of the result."""
        return 16 * self.across * self.wide

    @property
    def name(self) -> str:
        """The name in tunings."""
        return f"matrices_{self.rows}x{self.columns}"

    def workgroups(self, rows: int, columns: int) -> int:
        """Workgroups of a product, where none share sums."""
        return -(-rows // self.rows) * -(-columns // self.columns)

    def split(self, rows: int, inner: int, columns: int, target: Target) -> int:
        """How many workgroups share a sum: of few, so many that the device is busy, each with some slices."""
        idle = MATRIX_WAVES * target.cores // self.workgroups(rows, columns)
        return max(1, min(idle, inner // (MATRIX_SLICES * self.depth), MAX_SPLIT))


# H100, Dawn, 2026-11-27, of 13 shares: 182, 130 and 126 TFLOP/s for 4,096 ^ 3, where the best tile of float32 has 40;
# 75, 91 and 90 for 512x768 by 3,072 (38), 40, 57 and 60 for 1,024x768 by 768 (30).
MATRIX_TILES = {tile.name: tile for tile in (MatrixTile(2, 8, 4, 1), MatrixTile(2, 4, 2, 2), MatrixTile(2, 2, 2, 2))}
MATRIX_WAVES = 2  # workgroups of a core, from which the larger share is the default, and sums are not shared
MATRIX_SLICES, MAX_SPLIT = 6, 8  # slices of a sum that a workgroup has at least where it is shared, by how many at most


def matrix_tiles(node: Node, shape: ProductShape, target: Target) -> tuple[str, ...]:
    """Names of the shares that the device's own products of matrices may compute, the likely best first."""
    x, w = node.required_input(0), node.required_input(1)
    narrow = w.type.dtype is DType.FLOAT16 and x.type.dtype.is_float
    if MATRICES not in target.features or not narrow or node.op.name != "matmul" or shape.inner % 4:
        return ()
    if shape.rows < SMALL_MATRICES or shape.columns < SMALL_MATRICES or getattr(node.attrs, "gated", False):
        return ()
    large, middle, small = MATRIX_TILES
    enough = MATRIX_TILES[large].workgroups(shape.rows, shape.columns) >= MATRIX_WAVES * target.cores
    return (large, middle, small) if enough else (small, middle, large)


@dataclass(frozen=True, slots=True)
class Gemv:
    """A workgroup's share of a product with few rows: the sums of `rows` by four channels, split among all of it."""

    rows: int
    workgroup: int  # invocations

    @property
    def name(self) -> str:
        """The name in tunings."""
        return f"gemv_{self.rows}_{self.workgroup}"

    def suits(self, rows: int, quads: int, target: Target) -> bool:
        """Whether the device has the invocations, and each of them finds a few of a sum's `quads`."""
        fits = self.workgroup <= target.limit("maxComputeInvocationsPerWorkgroup")
        few = self.workgroup <= max(quads, GEMV_SIZES[0])
        return fits and few and (8 * self.workgroup >= quads or self.workgroup == GEMV_SIZES[-1]) and self.rows <= rows


GEMV_SIZES = (32, 64, 128, 256)  # invocations: up to WebGPU's limit of a workgroup
GEMVS: dict[str, Gemv] = {g.name: g for g in (Gemv(rows, size) for rows in (1, 4) for size in GEMV_SIZES)}
# Quads of a sum that an invocation takes by default, at most: 2 and 8 took as long, 1 took 1.09 times (H100,
# 2026-11-28).
GEMV_TURNS = 4
LONG_GEMV = {True: 16, False: 24}  # quads of a sum from which GEMVs are the default: one row, several rows
# Up to so many rows, and results of several rows: 32 rows took 1.3 times as long, 4,096 results 1.6, and 16,384 0.7
# with wgpu (H100, 2026-11-28).
GEMV_ROWS, GEMV_RESULTS = 64, 8192


@dataclass(frozen=True, slots=True)
class ProductShape:
    """A dense product as matrices: [rows, inner] x [inner, columns]."""

    rows: int
    inner: int
    columns: int
    inner_quads: bool  # input channels come in whole quads
    pointwise: bool  # rows of x are read as they lie


def is_pointwise(node: Node) -> bool:
    """Whether a convolution is a matrix product of the pixels of x as they lie: 1x1, stride 1, no pads."""
    window, a = node.required_input(1).type.shape[1:3], node.attrs
    return window == (1, 1) and a.stride == (1, 1) and not any(a.pads)


def product_shape(node: Node) -> ProductShape | None:
    """The matrices of a dense convolution or of a product with one right operand; None for everything else.

    Kernels are chosen by it. Of a size that follows symbols it has the upper end of its class: every kernel computes
    any number of rows, and a cost of each number would be a plan of each.
    """
    x, w, y = node.required_input(0), node.required_input(1), node.output
    if y.type.size == 0:
        return None
    if node.op.name == "conv2d" and node.attrs.groups == 1:
        co, kh, kw, ci = w.type.shape
        return ProductShape(typical(y.type.size // co), kh * kw * ci, co, ci % 4 == 0, is_pointwise(node))
    if node.op.name == "matmul" and not node.attrs.transpose_a and math.prod(w.type.shape[:-2]) == 1:
        m, k, n = matrix_sizes([x.type, w.type], node.attrs)
        rows = math.prod(x.type.shape[:-2]) * m
        return ProductShape(typical(rows), typical(k), typical(n), k % 4 == 0, True) if k else None
    return None


def typical(size: int) -> int:
    """How many rows, or other sizes of a product, a kernel is chosen for."""
    return attention_tiles.end_of_class(size, CLASSES, LARGEST)


def tuning_key(node: Node) -> str:
    """The key of a node in tunings: the operator and everything that its speed depends on."""
    if node.op.name == "attention":
        return attention_tiles.tuning_key(node)
    x, w, a = node.required_input(0).type, node.required_input(1).type, node.attrs
    parts = [node.op.name, f"{x.dtype}", f"x{x.shape}", f"w{w.shape}"]
    if node.op.name == "matmul":
        parts.append(f"t{int(a.transpose_a)}{int(a.transpose_b)}")
    else:
        parts.append(f"s{a.stride} d{a.dilation} p{a.pads} g{a.groups}")
    carried = "none" if a.activation is Activation.SILU else str(a.activation)  # it costs what none costs
    residual = node.op.name != "matmul" and node.optional_input(3) is not None  # matrix products get theirs in groups
    return " ".join([*parts, "+".join([carried, "residual"][: 1 + residual])])


def candidates(node: Node, target: Target) -> tuple[str, ...]:
    """Names of the kernels that may compute this node, the default first; empty where there is no choice."""
    if node.op.name == "depthwise_conv2d":
        return _depthwise_candidates(node, target)
    if node.op.name == "attention":
        return attention_tiles.candidates(node, target)
    if node.op.name not in ("conv2d", "matmul"):
        return ()
    shape = product_shape(node)
    if shape is None:
        return ()
    if matrices := matrix_tiles(node, shape, target):
        return matrices
    plain = _untiled(node, shape, target)
    if not all(v.type.dtype.is_float for v in (node.required_input(0), node.output)):
        return plain[:1]
    if target.software:
        return plain
    cycles = {
        name: tile.cycles(shape.rows, shape.inner, shape.columns, target.cores)
        for name, tile in COSTS[node.op.name].items()
        if tile.fits(target, shape.rows, shape.columns)
    }
    if not cycles:
        return plain
    ranked = sorted(cycles, key=cycles.__getitem__)
    best = cycles[ranked[0]]
    tiles = tuple(name for name in ranked if cycles[name] <= SLACK * best)[:MAX_TILES]
    tiled = best < _untiled_cycles(plain[0], shape, target.cores) and plain[0] not in GEMVS
    return (*tiles, *plain) if tiled else (*plain, *tiles)


def _untiled_cycles(name: str, shape: ProductShape, cores: int) -> float:
    share, each = UNTILED[name.split("_")[0]]
    work = shape.rows * shape.inner * shape.columns / (cores * LANES * share)
    return max(work, shape.inner * each) + WAVE_CYCLES


def choose(node: Node, target: Target) -> str:
    """The tuned kernel of a node if there is one and it may run here, else the default; "" without a choice."""
    offered = candidates(node, target)
    if not offered:
        return ""
    chosen = target.tuned.get(tuning_key(node), offered[0])
    shape = product_shape(node)
    fits = chosen in TILES and shape is not None and TILES[chosen].fits(target, shape.rows, shape.columns)
    return chosen if chosen in offered or fits else offered[0]


def _untiled(node: Node, shape: ProductShape, target: Target) -> tuple[str, ...]:
    """Kernels that read storage only, by what the operands allow."""
    quads, columns4 = shape.columns % 4 == 0, -(-shape.columns // 4)
    if not shape.inner_quads:
        return ("image",) if quads and node.op.name == "conv2d" else ("any",)
    if shape.columns < 4 and node.op.name == "conv2d":
        return ("dot",)
    pixels = tile_for(shape.rows, columns4, target)
    names = [f"vec4_{n}" for n in (pixels, *(n for n in (1, 2, 4) if n != pixels))]
    if shape.pointwise and shape.columns % 8 == 0:
        names.insert(0 if pixels == 4 and node.op.name == "conv2d" else len(names), "4x8")
    if shape.inner >= 4 * LONG_SUM and not target.software:
        few = splits_sum(shape.rows, columns4, shape.inner // 4, target)
        names.insert(0 if few else len(names), "split_k")
        if few and _has_rows(node):
            found = [g.name for g in gemvs(shape.rows, shape.inner // 4, target)]
            at = 0 if is_gemv(shape.rows, shape.inner // 4, shape.columns) else len(names)
            names[at:at] = found
    return tuple(names)


def gemvs(rows: int, quads: int, target: Target) -> list[Gemv]:
    """The GEMVs that may compute a product of `rows` with sums of `quads` quads, the likely best first."""
    suiting = [g for g in GEMVS.values() if g.suits(rows, quads, target)]
    together = max((g.rows for g in suiting), default=1)
    return sorted(suiting, key=lambda g: (g.rows != together, GEMV_TURNS * g.workgroup < quads))


def _has_rows(node: Node) -> bool:
    """Whether weights lie, or can be laid at load, with the input channels innermost."""
    return node.op.name == "conv2d" or node.attrs.transpose_b or node.required_input(1).is_constant


def is_gemv(rows: int, quads: int, columns: int) -> bool:
    """Whether a GEMV is the default: few results, long sums. It is two to five times as fast there."""
    if rows == 1:
        return quads >= LONG_GEMV[True]
    return rows <= GEMV_ROWS and rows * columns <= GEMV_RESULTS and quads >= LONG_GEMV[False]


def _depthwise_candidates(node: Node, target: Target) -> tuple[str, ...]:
    x, y = node.required_input(0), node.output
    n, oh, ow, co = y.type.shape
    if co % 4 or co != x.type.shape[3]:
        return ()
    pixels = tile_for(ow, n * oh * (co // 4), target)
    names = ["4x1", "vec4_2", "vec4_1"]
    first = "4x1" if pixels == 4 else f"vec4_{pixels}"
    return (first, *(name for name in names if name != first))


def reads_float16(name: str, node: Node) -> bool:
    """Whether a kernel is no slower where it widens float16 weights as it reads them.

    Tiles that are wider than high, or whose sums are over in a few slices, would wait for the weights.
    """
    tile, shape = TILES.get(name), product_shape(node)
    if tile is None or shape is None:
        return name in READ_FLOAT16 or name in GEMVS
    return tile.columns <= tile.rows and shape.inner >= FEW_SLICES * tile.depth


def splits_sum(pixels: int, co4: int, quads: int, target: Target) -> bool:
    """Whether eight invocations share each sum by default: few results, long sums, real hardware."""
    few = -(-pixels // 4) * co4 < BUSY[False] // 4
    return not target.software and few and quads >= LONG_SUM


def tile_for(pixels: int, quads: int, target: Target, largest: int = 4) -> int:
    """Pixels that an invocation computes: as many, up to `largest`, as leave enough invocations for the device."""
    tile = largest
    while tile > 1 and -(-pixels // tile) * quads < BUSY[target.software]:
        tile //= 2
    return tile
