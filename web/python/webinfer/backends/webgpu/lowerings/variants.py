"""The declared search space of products: which kernels and tiles may compute a node, the likely best first.

`candidates` and `tuning_key` are what a tuner needs: it times the candidates of a node and puts the winner
under the node's key into `Target.tuned`, which the lowerings honour. What cannot run on the target is never
offered; what a rough model of the device rules out is not offered either.

Names of kernels: "tiled_*" (Tile) and "gemv_*" (Gemv) use workgroup memory, "split_k" shares sums; "vec4_N" and "4x8"
read quads of input channels, "4x1" is depthwise, "image" reads input channels and "dot" writes output channels one by
one, "any" takes every shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from webinfer.backends.webgpu.dispatch import Target
from webinfer.graph.ir import Node
from webinfer.ops.activation import Activation
from webinfer.ops.matmul import matrix_sizes

CORES, LANES = 132, 128  # of a large device: an H200, on which all costs here were measured
BUSY = {False: 16384, True: 64}  # invocations that fill a device: hardware, software
LONG_SUM = 16  # quads of input channels from which invocations share a sum
FEW_SLICES = 8
MAX_TILES = 10  # tiles that a tuner is asked to time
SLACK = 2.5  # a tile that the model calls this much slower than the best is not offered
WAVE_CYCLES = 600.0  # to fill and to drain the device
# Kernels without tiles: the share of the device's peak that they reach, and cycles that one product of a sum takes.
UNTILED = {
    "vec4": (0.25, 135.0), "4x8": (0.27, 135.0), "split": (0.18, 17.0), "image": (0.12, 460.0), "dot": (0.1, 70.0),
    "any": (0.1, 460.0), "gemv": (0.12, 3.0),
}  # fmt: skip
SMALL_SHARE = 16  # results of an invocation
READ_FLOAT16 = ("4x1", "4x8", "split_k")  # besides tiles and GEMVs: the others use a weight too seldom
MIN_LIMITS = {
    "maxComputeWorkgroupStorageSize": 16384,
    "maxComputeInvocationsPerWorkgroup": 256,
    "maxStorageBuffersPerShaderStage": 8,
}


@dataclass(frozen=True, slots=True)
class Tile:
    """A workgroup's share of a product: rows by columns of the result, `depth` products of each sum at a time.

    An invocation computes `per_rows` by `per_columns`; `buffers` slices are in workgroup memory at a time; of large
    shares `unroll` products are written out in the shader's text. `share` is the part of a core's peak that it reaches,
    `slice_cycles` what a slice takes at least, `resident` how many workgroups a core holds.
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

    @property
    def name(self) -> str:
        """The name in tunings."""
        sizes = f"{self.rows}x{self.columns}x{self.depth}_{self.per_rows}x{self.per_columns}"
        return f"tiled_{sizes}_{self.buffers}_{self.unroll}"

    @property
    def written_out(self) -> int:
        """Products in the shader's text: drivers unroll a small share's loop as well, and compile it sooner."""
        return self.unroll if self.per_rows * self.per_columns > SMALL_SHARE else 1

    @property
    def workgroup(self) -> int:
        """Invocations of a workgroup."""
        return self.rows // self.per_rows * (self.columns // self.per_columns)

    @property
    def nbytes(self) -> int:
        """Bytes of workgroup memory."""
        return 4 * self.buffers * self.depth * (self.rows + 4 + self.columns)

    def fits(self, target: Target) -> bool:
        """Whether the device has the workgroup memory and the invocations."""
        limit = {name: target.limits.get(name, least) for name, least in MIN_LIMITS.items()}
        return (
            self.nbytes <= limit["maxComputeWorkgroupStorageSize"]
            and self.workgroup <= limit["maxComputeInvocationsPerWorkgroup"]
        )

    def cycles(self, rows: int, inner: int, columns: int) -> float:
        """A rough count of cycles for [rows, inner] x [inner, columns], in waves of workgroups that run together."""
        groups = math.ceil(rows / self.rows) * math.ceil(columns / self.columns)
        slices = math.ceil(inner / self.depth)
        work = slices * self.depth * self.rows * self.columns / (LANES * self.share)
        waves, rest = divmod(groups, CORES * self.resident)
        cycles = waves * max(self.resident * work, slices * self.slice_cycles)
        if rest:
            cycles += max(math.ceil(rest / CORES) * work, slices * self.slice_cycles) + WAVE_CYCLES
        return cycles


TILES: dict[str, Tile] = {
    tile.name: tile
    for tile in (
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
    )
}


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
        least = MIN_LIMITS["maxComputeInvocationsPerWorkgroup"]
        fits = self.workgroup <= target.limits.get("maxComputeInvocationsPerWorkgroup", least)
        few = self.workgroup <= max(quads, GEMV_SIZES[0])
        return fits and few and (8 * self.workgroup >= quads or self.workgroup == GEMV_SIZES[-1]) and self.rows <= rows


GEMV_SIZES = (32, 64, 128, 256)
GEMVS: dict[str, Gemv] = {g.name: g for g in (Gemv(rows, size) for rows in (1, 4) for size in GEMV_SIZES)}
GEMV_TURNS = 4  # quads of a sum that an invocation takes by default, at most
LONG_GEMV = {True: 16, False: 24}  # quads of a sum from which GEMVs are the default: one row, several rows
GEMV_ROWS, GEMV_RESULTS = 64, 8192  # up to so many rows, and results of several rows


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
    """The matrices of a dense convolution or of a product with one right operand; None for everything else."""
    x, w, y = node.required_input(0), node.required_input(1), node.output
    if y.type.size == 0:
        return None
    if node.op.name == "conv2d" and node.attrs.groups == 1:
        co, kh, kw, ci = w.type.shape
        return ProductShape(y.type.size // co, kh * kw * ci, co, ci % 4 == 0, is_pointwise(node))
    if node.op.name == "matmul" and not node.attrs.transpose_a and math.prod(w.type.shape[:-2]) == 1:
        m, k, n = matrix_sizes([x.type, w.type], node.attrs)
        return ProductShape(math.prod(x.type.shape[:-2]) * m, k, n, k % 4 == 0, True) if k else None
    return None


def tuning_key(node: Node) -> str:
    """The key of a node in tunings: the operator and everything that its speed depends on."""
    x, w, a = node.required_input(0).type, node.required_input(1).type, node.attrs
    parts = [node.op.name, f"{x.dtype}", f"x{x.shape}", f"w{w.shape}"]
    if node.op.name == "matmul":
        parts.append(f"t{int(a.transpose_a)}{int(a.transpose_b)}")
    else:
        parts.append(f"s{a.stride} d{a.dilation} p{a.pads} g{a.groups}")
    carried = "none" if a.activation is Activation.SILU else str(a.activation)  # it costs what none costs
    return " ".join([*parts, "+".join([carried, "residual"][: 1 + (node.optional_input(3) is not None)])])


def candidates(node: Node, target: Target) -> tuple[str, ...]:
    """Names of the kernels that may compute this node, the default first; empty where there is no choice."""
    if node.op.name == "depthwise_conv2d":
        return _depthwise_candidates(node, target)
    if node.op.name not in ("conv2d", "matmul"):
        return ()
    shape = product_shape(node)
    if shape is None:
        return ()
    plain = _untiled(node, shape, target)
    if not all(v.type.dtype.is_float for v in (node.required_input(0), node.output)):
        return plain[:1]
    if target.software:
        return plain
    cycles = {
        name: tile.cycles(shape.rows, shape.inner, shape.columns) for name, tile in TILES.items() if tile.fits(target)
    }
    if not cycles:
        return plain
    ranked = sorted(cycles, key=cycles.__getitem__)
    best = cycles[ranked[0]]
    tiles = tuple(name for name in ranked if cycles[name] <= SLACK * best)[:MAX_TILES]
    tiled = best < _untiled_cycles(plain[0], shape) and plain[0] not in GEMVS
    return (*tiles, *plain) if tiled else (*plain, *tiles)


def _untiled_cycles(name: str, shape: ProductShape) -> float:
    share, each = UNTILED[name.split("_")[0]]
    work = shape.rows * shape.inner * shape.columns / (CORES * LANES * share)
    return max(work, shape.inner * each) + WAVE_CYCLES


def choose(node: Node, target: Target) -> str:
    """The tuned kernel of a node if there is one and it may run here, else the default; "" without a choice."""
    offered = candidates(node, target)
    if not offered:
        return ""
    chosen = target.tuned.get(tuning_key(node), offered[0])
    return chosen if chosen in offered or (chosen in TILES and TILES[chosen].fits(target)) else offered[0]


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
