"""Products through workgroup memory: one shader for matrix products and for convolutions of any window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webinfer.backends.webgpu.dispatch import Dispatch, Source, Target, groups_for, read
from webinfer.backends.webgpu.lowerings.epilogue import Product, destination
from webinfer.backends.webgpu.lowerings.variants import Tile
from webinfer.codegen.prelude import Param, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node


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
    (kh, kw), quads = shape.window, shape.ci % 4 == 0
    total = kh * kw * shape.ci
    variables: dict[str, Variable] = p.variables | {
        "workgroup": tile.workgroup, "rows": tile.rows, "columns": tile.columns, "depth": tile.depth,
        "per_rows": tile.per_rows, "per_columns": tile.per_columns, "buffers": tile.buffers, "unroll": tile.written_out,
        "pointwise": shape.pointwise, "quads": quads, "unit": 4 if quads else 1,
        "ragged": int(total % tile.depth != 0), "co_quads": shape.co % 4 == 0,
    }  # fmt: skip
    if not shape.pointwise:  # taps are told apart by dividing by these
        variables |= {"ci": shape.ci, "sum": total, "kw": kw}
    co4 = -(-shape.co // 4)
    length = u32(sum=total) if shape.pointwise else ()
    params = (*u32(pixels=shape.rows, co4=co4, co=shape.co), *length, *windows, *p.params)
    groups = groups_for(-(-shape.rows // tile.rows) * -(-shape.co // tile.columns), target, 1)
    x = read("x", node.required_input(0), staged=quads)
    bindings = (x, read("w", weights, p.element, staged=True), *p.bindings, place)
    main = Dispatch("conv2d_tiled", variables, bindings, params, groups, tile.name)
    return [*p.before, main, *after]
