"""Writes at positions that are tensors. Described, every element would look through all updates."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder, Lower, compute_itemsize
from webinfer.backends.wasm.lowerings.affine import integers
from webinfer.backends.wasm.lowerings.cast import F32, compute_dtype, copy
from webinfer.backends.wasm.lowerings.described import positions_ref
from webinfer.backends.wasm.lowerings.elementwise import refuse
from webinfer.graph.ir import Node, Op
from webinfer.ops import gather as ops
from webinfer.ops.strides import row_major
from webinfer.plan.blocks import Arguments, Ref


def _elements(node: Node) -> Arguments:
    """Sizes along the axis of the node, and what lies together behind it."""
    x, p, axis = node.required_input(0).type.shape, node.required_input(1).type.shape, node.attrs.axis
    return {"size": x[axis], "count": p[axis], "inner": math.prod(x[axis + 1 :])}


def _axes_table(builder: Builder, shape: tuple[int, ...], depth: int) -> Ref:
    """The leading axes that a position names: how many, their sizes, their strides in rows."""
    return integers(builder, [depth, *shape[:depth], *row_major(shape[:depth])])


def scatter_elements(node: Node, builder: Builder) -> None:
    """A copy of x, then one step that puts single elements into it."""
    x, p, u = map(node.required_input, range(3))
    itemsize, target = compute_itemsize(x.type.dtype), builder.ref(node.output)
    copy(builder, builder.ref(x), target, x.type.size * itemsize)
    if u.type.size:
        kernel = f"b{8 * itemsize}_scatter_elements"
        positions = positions_ref(builder, p)
        builder.step(kernel, _elements(node), positions=positions, updates=builder.ref(u), y=target, n=u.type.size)


def scatter_nd(node: Node, builder: Builder) -> None:
    """A copy of x, then one step that puts or adds rows into it."""
    x, p, u = map(node.required_input, range(3))
    dtype, depth, target = compute_dtype(x), p.type.shape[-1], builder.ref(node.output)
    row, kernel = math.prod(x.type.shape[depth:]), "b8_scatter_nd"
    if node.attrs.add:
        if dtype is not F32 and dtype.itemsize < 4:
            raise refuse(node.op, dtype)
        kernel = "f32_scatter_nd_add" if dtype is F32 else f"i{8 * dtype.itemsize}_scatter_nd_add"
    else:
        row *= dtype.itemsize
    copy(builder, builder.ref(x), target, x.type.size * dtype.itemsize)
    if u.type.size:
        table = _axes_table(builder, x.type.shape, depth)
        builder.step(
            kernel,
            positions=positions_ref(builder, p), updates=builder.ref(u), y=target, axes=table, depth=depth,
            count=p.type.size // depth, row=row,
        )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {
    ops.SCATTER_ELEMENTS: scatter_elements,
    ops.SCATTER_ND: scatter_nd,
}
