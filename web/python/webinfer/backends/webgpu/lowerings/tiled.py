"""Products through workgroup memory: one shader for matrix products and for convolutions of any window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Dispatch,
    Scratch,
    Source,
    Target,
    groups_for,
    read,
    write,
)
from webinfer.backends.webgpu.lowerings.epilogue import Late, Product, Residual, destination
from webinfer.backends.webgpu.lowerings.variants import Tile
from webinfer.codegen.prelude import Param, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.activation import Activation

# Variables of a product that leaves its epilogue to another dispatch.
PLAIN: dict[str, Variable] = {
    "has_bias": False, "residual": Residual.NONE, "activation": Activation.NONE, "scaled": False, "late": Late.NO,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TiledShape:
    """A product [rows, window * ci] x [window * ci, co]; where `pointwise`, x is a matrix of rows as it lies."""

    rows: int
    window: tuple[int, int]
    ci: int
    co: int
    pointwise: bool


def tiled_product(
    node: Node, p: Product, weights: Source, shape: TiledShape, tile: Tile, windows: Sequence[Param], target: Target
) -> list[Dispatch]:
    """conv2d_tiled.wgsl: the product of `p` with a tile of rows by columns for each workgroup.

    `windows` are the image parameters of a convolution that is not pointwise, else empty.

    Shapes:  weights [window * ci, 4*ceil(co/4)]
    """
    place, after = destination(node.output, target, single=bool(shape.co % 4))
    (kh, kw), quads, co4 = shape.window, shape.ci % 4 == 0, -(-shape.co // 4)
    split = 1 if p.variables["gated"] else tile.split
    total = kh * kw * shape.ci
    variables: dict[str, Variable] = p.variables | {
        "workgroup": tile.workgroup // tile.parts, "parts": tile.parts, "rows": tile.rows, "columns": tile.columns,
        "depth": tile.depth, "per_rows": tile.per_rows, "per_columns": tile.per_columns, "buffers": tile.buffers,
        "unroll": tile.written_out, "pointwise": shape.pointwise, "quads": quads, "unit": 4 if quads else 1,
        "ragged": int(total % (tile.depth * tile.parts * split) != 0), "co_quads": shape.co % 4 == 0, "split": split,
    }  # fmt: skip
    if not shape.pointwise:  # taps are told apart by dividing by these
        variables |= {"ci": shape.ci, "sum": total, "kw": kw}
    length = u32(sum=total) if shape.pointwise else ()
    sizes = u32(pixels=shape.rows, co4=co4, co=shape.co)
    groups = groups_for(-(-shape.rows // tile.rows) * -(-shape.co // tile.columns) * split, target, 1)
    operands = read("x", node.required_input(0), staged=quads), read("w", weights, p.element, staged=True)
    numbers = (*sizes, *length, *windows)
    made = Dispatch("conv2d_tiled", variables, operands, numbers, groups, tile.name)
    return [*p.before, *finished(made, p, (split, shape.rows, shape.co), place, target), *after]


def finished(of: Dispatch, p: Product, shape: tuple[int, int, int], place: Binding, target: Target) -> list[Dispatch]:
    """A product `of` operands alone with its epilogue and its place; `shape`: workgroups of a sum, rows, columns.

    Where several workgroups share a sum, each stores its part, and product_parts.wgsl adds and finishes them.
    """
    split, rows, co = shape
    if split == 1:
        return [replace(of, bindings=(*of.bindings, *p.bindings, place), params=(*of.params, *p.params))]
    co4 = -(-co // 4)
    parts = Scratch((split, rows, 4 * co4))
    first = replace(of, variables={**of.variables, **PLAIN}, bindings=(*of.bindings, write("y", parts)))
    variables = p.variables | {"workgroup": WORKGROUP, "split": split, "co_quads": co % 4 == 0}
    params = (*u32(pixels=rows, co4=co4, co=co), *p.params)
    bindings, groups = (read("x", parts), *p.bindings, place), groups_for(rows * co4, target)
    return [first, Dispatch("product_parts", variables, bindings, params, groups, f"{split} workgroups share a sum")]
