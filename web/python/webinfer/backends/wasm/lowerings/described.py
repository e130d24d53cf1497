"""Operators that are described as kernels of expr/kernel.py: one lowering for all whose C is made of that."""

from __future__ import annotations

import struct

from webinfer.backends.wasm.builder import Builder, Lower, compute_itemsize
from webinfer.backends.wasm.lowerings.affine import integers
from webinfer.backends.wasm.lowerings.cast import convert
from webinfer.backends.wasm.lowerings.elementwise import I32, I64
from webinfer.backends.wasm.lowerings.movement import fill_words
from webinfer.expr.kernel import Element, Kernel, Kind, Real
from webinfer.graph.dims import whole
from webinfer.graph.ir import Node, Op, Value
from webinfer.lowering.described import kernel_of
from webinfer.ops import OPS
from webinfer.plan.blocks import Argument, Ref


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


def lower(node: Node, builder: Builder) -> None:
    """One step over rows of y; rows that are copied as they are count words, or bytes."""
    kernel, inputs, y = kernel_of(node), [v for v in node.inputs if v is not None], node.output
    itemsize, row = compute_itemsize(y.type.dtype), whole(kernel.space[-1].extent.value)
    unit = itemsize if not kernel.copies_rows() else 1 if itemsize % 4 else 4
    args = _parameters(kernel, y, itemsize // unit)
    for tensor, value in zip(kernel.inputs, inputs, strict=True):
        args[tensor.name] = positions_ref(builder, value) if tensor.kind is Kind.INDEX else builder.ref(value)
    args |= {table.name: integers(builder, table.values) for table in kernel.tables}
    prefix = "f32" if kernel.gives is Kind.NUMBER else f"b{8 * unit}"
    builder.step(f"{prefix}_{kernel.name}", args, y=builder.ref(y), units=y.type.size // row if row else 0)


def _parameters(kernel: Kernel, y: Value, scale: int) -> dict[str, Argument]:
    """The numbers that the kernel is given; the last size counts parts of elements, `scale` of them in each."""
    found: dict[str, Argument] = {}
    for part in kernel.parameters():
        if isinstance(part, Element):
            words = fill_words(y.type.dtype, part.number)
            found |= {part.name: words["low"], f"{part.name}_high": words["high"]}
        elif isinstance(part, Real):
            found[part.name] = part.value
        else:
            found[part.name] = whole(part.value) * (scale if part is kernel.space[-1].extent else 1)
    return found


# Where kernels.toml says that one is written by hand, that family's own row follows in the table and counts.
LOWERINGS: dict[Op, Lower] = {op: lower for op in OPS.values() if op.kernel is not None}
