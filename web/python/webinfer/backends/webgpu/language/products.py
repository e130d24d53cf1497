"""Products with weights in a file's blocks, and rows of a table of blocks."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import replace

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Dispatch,
    Scratch,
    Source,
    Target,
    check_turns,
    groups_for,
    read,
    read_given,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.backends.webgpu.lowerings.epilogue import destination
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import Access, Slot, f32, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.graph.dims import hint_of
from webinfer.graph.ir import Node, Value
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.language import BlockType
from webinfer.ops.normalization import LAYER_NORM

_ROWS = 4  # of weights, that a workgroup multiplies with one row
_MOST = 128  # invocations of a workgroup that multiplies one row


class Layout(enum.StrEnum):
    """The cases of _blocks.wgsl: how 32 weights lie."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    SMALL = "small"
    EIGHT = "eight"
    K = "k"
    SIX = "six"
    PACKED = "packed"


_LAYOUTS = {
    BlockType.F32: Layout.FLOAT32, BlockType.F16: Layout.FLOAT16, BlockType.BF16: Layout.BFLOAT16,
    BlockType.Q8_0: Layout.EIGHT, BlockType.Q4_K: Layout.K, BlockType.Q5_K: Layout.K, BlockType.Q6_K: Layout.SIX,
}  # fmt: skip


def words(name: str, source: Source) -> Binding:
    """A binding that the shader reads one 32-bit word at a time."""
    element = Element.F32 if isinstance(source, Value) and source.type.dtype.is_float else Element.U32
    return Binding(Slot(name, element, Access.READ, single=True), source)


def block_variables(type: BlockType, matrices: int = 1) -> dict[str, Variable]:
    """The variables of _blocks.wgsl."""
    return {
        "layout": _LAYOUTS.get(type, Layout.SMALL), "block_bytes": type.nbytes, "floats": type.is_float,
        "minimum": int(type.name.endswith("_1")), "fifth": int(type.name.startswith("Q5")),
        "aligned": type.is_float or type.nbytes % 4 == 0, "matrices": matrices,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tile:
    """A workgroup's share of a product of many rows: 8 * `per_rows` rows by 32 * `wide` columns of all matrices.

    `depth` products of each sum are in workgroup memory at a time, for each of `parts` groups of 64 invocations.
    """

    per_rows: int
    wide: int
    depth: int
    parts: int

    def workgroups(self, rows: int, columns: int) -> int:
        """How many workgroups compute [rows, columns], where columns are those of all matrices."""
        return -(-rows // (8 * self.per_rows)) * -(-columns // (32 * self.wide))

    def within(self, target: Target) -> Tile:
        """With as many parts as the device has workgroup memory and invocations for."""
        part = 16 * self.depth * (2 * self.per_rows + 8 * self.wide)  # bytes
        memory = target.limit("maxComputeWorkgroupStorageSize") // part
        invocations = target.limit("maxComputeInvocationsPerWorkgroup") // _LANES
        return replace(self, parts=min(self.parts, memory, invocations))


# H100, Dawn, 2026-11-28, of 11 tiles: 512x576 by 3,072 63 us, where 64 rows by 32 columns in 4 parts for all took 101;
# by 960 34 (48), 512x1,536 by 576 57 (74), 238x576 by 960 24 (26), 64x576 by 960 16 (26). Of many workgroups each has
# fewer parts, of few each is smaller.
TILES = LARGE, SHARED, MIDDLE, SMALL, SMALL_GATED = (
    Tile(8, 2, 16, 2), Tile(8, 2, 16, 4), Tile(8, 1, 32, 4), Tile(4, 1, 32, 6), Tile(4, 2, 32, 4),
)  # fmt: skip
_LANES = 64  # invocations of a part


def tile_of(rows: int, columns: int, gated: bool, target: Target) -> Tile:
    """The tile for `rows`, and the columns of all matrices together: the largest that gives half of the cores work."""
    if target.software:  # parts give it nothing, and it compiles short loops sooner
        return Tile(4, 2 if gated else 1, 16, 1)
    tiles = (SHARED, SMALL_GATED) if gated else (SHARED, MIDDLE, SMALL)
    busy = (tile for tile in tiles if 2 * tile.workgroups(rows, columns) >= target.cores)
    tile = next(busy, tiles[-1])
    if tile is SHARED and tile.workgroups(rows, columns) > target.cores:
        tile = LARGE
    return tile.within(target)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The weights of one product: where their blocks lie, how many columns they make, and what is added to these."""

    blocks: Source
    columns: int
    bias: Value | None


@dataclass(frozen=True, slots=True)
class Ends:
    """What products of the same rows give: `y`, side by side or as SwiGLU if `gated`; or one result each if `apart`."""

    y: Source
    gated: bool = False
    apart: tuple[Source, ...] = ()


def block_matmul(node: Node, target: Target) -> list[Dispatch]:
    """One product by itself."""
    return block_products([node], target, Ends(node.output))


def block_products(nodes: Sequence[Node], target: Target, ends: Ends, norm: Node | None = None) -> list[Dispatch]:
    """Products of the same rows by weights in a file's blocks; one row may be that which the RMS norm makes."""
    node, type = nodes[0], nodes[0].attrs.type
    matrices = [Matrix(w, w.type.shape[0], each.optional_input(2)) for each in nodes for w in [each.required_input(1)]]
    form = block_variables(type, len(nodes))
    row_bytes = node.required_input(1).type.shape[1]
    given = {"residual": node.optional_input(3), "place": node.optional_input(4)}
    text = f"blocks of {type.name}"
    return product((norm or node).required_input(0), matrices, (form, row_bytes, text), target, ends, given, norm)


def product(
    x: Value,
    matrices: Sequence[Matrix],
    form: tuple[Mapping[str, Variable], int, str],
    target: Target,
    ends: Ends,
    given: Mapping[str, Value | None],
    norm: Node | None = None,
) -> list[Dispatch]:
    """Products of one and the same rows: block_product_row.wgsl for one row, else block_product.wgsl.

    `form` are the variables of _blocks.wgsl, the bytes of a row of weights and words for the plan; `given` is what is
    added or asked besides: residual, place. One row may be that which the RMS norm `norm` makes of its input.
    """
    layout, row_bytes, text = form
    k, widths = x.type.shape[-1], [one.columns for one in matrices]
    rows, gated, exact = x.type.size // k, ends.gated, layout["floats"]
    n = widths[0] if gated else sum(widths)
    variables: dict[str, Variable] = {
        **layout, "gated": gated, "has_bias": matrices[0].bias is not None, "apart": bool(ends.apart),
        **{f"has_{name}": given.get(name) is not None for name in ("residual", "place")},
    }  # fmt: skip
    weights = [words(_numbered("w", i), one.blocks) for i, one in enumerate(matrices)]
    extra = {_numbered("bias", i): one.bias for i, one in enumerate(matrices)} | dict(given)
    scale = norm.optional_input(1) if norm else None
    is_row = rows == 1
    rounded = x if is_row or exact else Scratch((rows, k))
    reads = (read("x", rounded), *weights, *read_given(scale=scale, **extra))
    starts = {f"first{i}": sum(widths[:i]) for i in range(1, len(matrices))}
    params = u32(n=n, k=k, row_bytes=row_bytes, **({} if gated else starts))
    why = ", ".join([text] + [f"{len(matrices)} products"] * (len(matrices) > 1) + ["SwiGLU"] * gated)
    shared = Dispatch("", variables, reads, params, (1, 1, 1), why)
    narrow = isinstance(ends.y, Value) and ends.y.type.dtype is DType.FLOAT16
    quads = n % 4 == 0 and (not is_row or bool(ends.apart) or (narrow and not gated))
    stored, after = (ends, []) if quads or not isinstance(ends.y, Value) else _one_by_one(ends.y, gated, target)
    if is_row:
        return [_of_one_row(shared, k, n, stored, quads, norm, target), *after]
    main = _of_rows(shared, rows, k, n, sum(widths), stored, target)
    return [main, *after] if rounded is x else [_rounded(x, rounded, target), main]


def _one_by_one(y: Value, gated: bool, target: Target) -> tuple[Ends, list[Dispatch]]:
    """Where a result lies whose elements are stored alone, and what casts it to a type of which two share a word."""
    place, after = destination(y, target, single=True)
    return Ends(place.source, gated), after


def _of_rows(shared: Dispatch, rows: int, k: int, n: int, columns: int, ends: Ends, target: Target) -> Dispatch:
    """block_product.wgsl: [rows, k] by `columns` of all matrices, of which n become columns of the result."""
    check_turns(k * 3, target, f"a sum of {k} products in loops")
    tile = tile_of(hint_of(rows), columns, ends.gated, target)
    tiled: dict[str, Variable] = {
        "per_rows": tile.per_rows, "wide": tile.wide, "parts": tile.parts, "quads": n % 4 == 0, "depth": tile.depth,
        "ragged": k // tile.depth % tile.parts != 0,
    }  # fmt: skip
    bindings = (*shared.bindings, *_written(ends, n % 4 == 0))
    groups = groups_for(tile.workgroups(rows, columns), target, 1)
    why = f"{shared.why}, {8 * tile.per_rows} rows by {32 * tile.wide} columns, {tile.parts} parts of a sum"
    params = (*shared.params, *u32(rows=rows))
    return Dispatch("block_product", {**shared.variables, **tiled}, bindings, params, groups, why)


def _of_one_row(
    shared: Dispatch, k: int, n: int, ends: Ends, quads: bool, norm: Node | None, target: Target
) -> Dispatch:
    """block_product_row.wgsl: one row, which may be normed on the way."""
    at_a_time = _ROWS // 2 if ends.gated else _ROWS
    workgroup = min(_MOST, max(32, 1 << (k // 32 - 1).bit_length()))
    check_turns(-(-k // 32 // workgroup) * 80 + k // 4 // workgroup, target, f"a sum of {k} products in loops")
    split: dict[str, Variable] = {
        **workgroup_reduction(target), "workgroup": workgroup, "rows": at_a_time, "normed": norm is not None,
        "quads": quads,
    }  # fmt: skip
    bindings = (*shared.bindings, *_written(ends, quads))
    params = (*shared.params, *(f32(epsilon=norm.attrs.epsilon) if norm else ()))
    normed = ["of what is normed on the way"] * (norm is not None)
    why = ", ".join([shared.why, workgroup_reduction_text(target), *normed])
    groups = groups_for(-(-n // at_a_time), target, 1)
    return Dispatch("block_product_row", {**shared.variables, **split}, bindings, params, groups, why)


def _written(ends: Ends, quads: bool) -> list[Binding]:
    """The bindings of the results."""
    return [write(_numbered("y", i), one, single=not quads) for i, one in enumerate(ends.apart or (ends.y,))]


def _rounded(x: Value, y: Source, target: Target) -> Dispatch:
    """rounded_blocks.wgsl: what a row of one token rounds on the way, once for all columns of a product."""
    count, k = x.type.size, x.type.shape[-1]
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "floats": False, "normed": False}
    groups = groups_for(count // 32, target)
    return Dispatch("rounded_blocks", variables, (read("x", x), write("y", y)), u32(count=count, k=k), groups)


def joinable(nodes: Sequence[Node], target: Target) -> bool:
    """Whether products of the same rows can be one dispatch."""
    first, count = nodes[0], len(nodes)
    biased = first.optional_input(2) is not None
    bindings = 1 + count * (2 if biased else 1) + (first.optional_input(4) is not None) + 2  # x, scale and y
    return bindings <= target.limit("maxStorageBuffersPerShaderStage") and all(
        node.attrs == first.attrs
        and node.inputs[0] is first.inputs[0]
        and node.optional_input(3) is None
        and node.optional_input(4) is first.optional_input(4)
        and (node.optional_input(2) is not None) is biased
        and node.required_input(1).type.shape[0] % _ROWS == 0
        for node in nodes
    )


def norms_a_row(node: Node) -> bool:
    """Whether it is an RMS norm of one row without a shift, which a product of that row can compute on the way."""
    if node.op is not LAYER_NORM or node.attrs.centred or node.optional_input(2) is not None:
        return False
    type = node.required_input(0).type
    return node.attrs.axes == 1 and node.optional_input(1) is not None and type.size // type.shape[-1] == 1


def _numbered(name: str, i: int) -> str:
    return f"{name}{i}" if i else name


def block_rows(node: Node, target: Target) -> list[Dispatch]:
    """block_rows.wgsl: an invocation a block."""
    table, ids, y = node.required_input(0), node.required_input(1), node.output
    count, k = y.type.size, y.type.shape[1]
    variables: dict[str, Variable] = {**block_variables(node.attrs.type), "workgroup": WORKGROUP}
    params = u32(count=count, k=k, words=table.type.shape[0], row_bytes=table.type.shape[1])
    bindings = (words("w", table), read("ids", ids), write("y", y))
    why = f"blocks of {node.attrs.type.name}"
    return [Dispatch("block_rows", variables, bindings, params, groups_for(count // 32, target), why)]
