"""Reads and writes at positions that are tensors."""

from __future__ import annotations

import math
import struct

from webinfer.backends.wasm.builder import Builder, Lower, compute_itemsize
from webinfer.backends.wasm.lowerings.affine import integers
from webinfer.backends.wasm.lowerings.cast import F32, compute_dtype, convert, copy
from webinfer.backends.wasm.lowerings.elementwise import I32, I64, refuse
from webinfer.backends.wasm.lowerings.reduce import lines_of
from webinfer.graph.ir import Node, Op, Value
from webinfer.ops import gather as ops
from webinfer.ops.strides import row_major
from webinfer.plan.blocks import Arguments, Ref


def positions_ref(builder: Builder, value: Value) -> Ref:
    """Positions as int32; what int32 cannot hold lies outside every tensor anyway and saturates."""
    dtype, n = value.type.dtype, value.type.size
    if dtype is I32:
        return builder.ref(value)
    wide, target = builder.ref(value), builder.scratch(4 * n)
    if dtype.itemsize < 4:
        convert(builder, wide, dtype, target, I32, n)
        return target
    scratch = builder.scratch(8 * n)
    convert(builder, wide, dtype, scratch, I64, n)
    bounds = struct.pack("<qq", *I32.range)
    table = builder.table(("bounds", I64, bounds), bounds)
    builder.step("i64_clip", x=scratch, y=scratch, bounds=table, units=n)
    convert(builder, scratch, I64, target, I32, n)
    return target


def gather(node: Node, builder: Builder) -> None:
    """One step that copies rows of bytes, whatever their type."""
    x, p, y, a = node.required_input(0), node.required_input(1), node.output, node.attrs
    outer = math.prod(x.type.shape[a.batch_dims : a.axis])
    count = math.prod(p.type.shape[a.batch_dims :])
    _, size, inner = lines_of(x.type.shape, a.axis)
    row = inner * compute_itemsize(x.type.dtype)
    builder.step(
        "b8_gather",
        x=builder.ref(x), positions=positions_ref(builder, p), y=builder.ref(y),
        outer=outer, size=size, count=count, row_bytes=row, units=y.type.size // inner,
    )  # fmt: skip


def _elements(node: Node) -> Arguments:
    """Sizes along the axis of the node, and what lies together behind it."""
    x, p, axis = node.required_input(0).type.shape, node.required_input(1).type.shape, node.attrs.axis
    return {"size": x[axis], "count": p[axis], "inner": math.prod(x[axis + 1 :])}


def gather_elements(node: Node, builder: Builder) -> None:
    """One step that picks single elements by their width."""
    x, p, y = node.required_input(0), node.required_input(1), node.output
    kernel = f"b{8 * compute_itemsize(x.type.dtype)}_gather_elements"
    positions = positions_ref(builder, p)
    builder.step(kernel, _elements(node), x=builder.ref(x), positions=positions, y=builder.ref(y), units=y.type.size)


def _axes_table(builder: Builder, shape: tuple[int, ...], depth: int) -> Ref:
    """The leading axes that a position names: how many, their sizes, their strides in rows."""
    return integers(builder, [depth, *shape[:depth], *row_major(shape[:depth])])


def gather_nd(node: Node, builder: Builder) -> None:
    """One step that copies rows of bytes; a position names several axes."""
    x, p, y, batch = node.required_input(0), node.required_input(1), node.output, node.attrs.batch_dims
    depth, rest = p.type.shape[-1], x.type.shape[batch:]
    itemsize = compute_itemsize(x.type.dtype)
    row = math.prod(rest[depth:]) * itemsize
    count = math.prod(p.type.shape[batch:-1])
    builder.step(
        "b8_gather_nd",
        x=builder.ref(x), positions=positions_ref(builder, p), y=builder.ref(y),
        axes=_axes_table(builder, rest, depth), depth=depth, count=count, batch_bytes=math.prod(rest) * itemsize,
        row_bytes=row, units=p.type.size // depth,
    )  # fmt: skip


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
        if dtype is not F32 and dtype.itemsize != 4:
            raise refuse(node.op, dtype)
        kernel = "f32_scatter_nd_add" if dtype is F32 else "i32_scatter_nd_add"
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
    ops.GATHER: gather,
    ops.GATHER_ELEMENTS: gather_elements,
    ops.GATHER_ND: gather_nd,
    ops.SCATTER_ELEMENTS: scatter_elements,
    ops.SCATTER_ND: scatter_nd,
}
