"""Elementwise operators: float32 in vectors, int32 and int64 as they are, narrower integers widened."""

from __future__ import annotations

import math
import struct

from webinfer.backends.wasm.builder import Builder, Lower, compute_itemsize
from webinfer.backends.wasm.lowerings.cast import F32, compute_dtype, convert, converted, copy
from webinfer.backends.wasm.lowerings.nest import broadcast_nest
from webinfer.codegen.formulas import BITS
from webinfer.dtypes import DType, round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Op, Value
from webinfer.ops import elementwise as ops
from webinfer.ops.activation import Activation, integer_bounds
from webinfer.plan.blocks import Ref

INFINITY = math.inf
I32, I64, U64, BOOL = DType.INT32, DType.INT64, DType.UINT64, DType.BOOL
WIDENED = {DType.INT8: I32, DType.UINT8: I32, DType.INT16: I32, DType.UINT16: I32, DType.BOOL: I32, DType.UINT32: I64}
_WRAPS = ("+", "-", "*", "neg", *BITS)
SHORT = {F32: "f32", I32: "i32", I64: "i64", U64: "u64"}


def refuse(op: Op, dtype: DType) -> UnsupportedOpError:
    """The error of an operator that has no kernel for a type."""
    return UnsupportedOpError([f"no kernel for {dtype}; cast to float32 first"])


def clamp_bounds(node: Node) -> tuple[float, float] | None:
    """The bounds of an operator that is a clamp."""
    return (node.attrs.a, node.attrs.b) if node.op is ops.CLAMP else ops.ROWS[node.op.name].bounds


def unary(node: Node, builder: Builder) -> None:
    """One step: the operator's kernel, a clamp, or a copy."""
    x, y, row = node.required_input(0), node.output, ops.ROWS[node.op.name]
    dtype, bounds, n = compute_dtype(x), clamp_bounds(node), x.type.size
    source, target = builder.ref(x), builder.ref(y)
    if node.op is ops.IDENTITY or (row.leaves_integers and dtype is not F32):
        copy(builder, source, target, n * dtype.itemsize)
    elif dtype is F32:
        kernel = "f32_clamp" if bounds is not None else f"f32_{row.name}"
        a, b = map(round_to_f32, bounds or (node.attrs.a, node.attrs.b))
        builder.step(kernel, x=source, y=target, a=a, b=b, units=n)
    elif bounds is not None:
        clip(builder, source, target, dtype, bounds, n)
    elif row.takes_integers:
        _integer_unary(node, builder, dtype)
    else:
        raise refuse(node.op, dtype)


def _kernel_dtype(node: Node, dtype: DType) -> DType:
    """The integers that the kernel computes with: sums and products wrap, which is the same for both signs."""
    formula = ops.ROWS[node.op.name].formula
    wraps = formula is not None and all(part.name in _WRAPS for part in formula if part.parts)
    return I64 if dtype is U64 and wraps else WIDENED.get(dtype, dtype)


def _integer_unary(node: Node, builder: Builder, dtype: DType) -> None:
    x, y = node.required_input(0), node.output
    wide = _kernel_dtype(node, dtype)
    if wide not in (I32, I64):
        raise refuse(node.op, dtype)
    source = builder.ref(x) if dtype is U64 else converted(builder, x, wide)
    _narrowed(builder, y, dtype, wide, lambda target: builder.step(
        f"{SHORT[wide]}_{node.op.name}", x=source, y=target, units=x.type.size))  # fmt: skip


def _narrowed(builder: Builder, y: Value, dtype: DType, wide: DType, compute: object) -> None:
    """Lets `compute` write y, or a wider scratch that is cut to y's type afterwards."""
    assert callable(compute)
    if wide.itemsize == dtype.itemsize:
        compute(builder.ref(y))
        return
    scratch = builder.scratch(y.type.size * wide.itemsize)
    compute(scratch)
    convert(builder, scratch, wide, builder.ref(y), dtype, y.type.size)


def clip(builder: Builder, source: Ref, target: Ref, dtype: DType, bounds: tuple[float, float], n: int) -> None:
    """Clamps integers; the bounds are cut to what the type can hold."""
    lo, hi = integer_bounds(*bounds, *dtype.range)
    wide = dtype if dtype is U64 else WIDENED.get(dtype, dtype)
    data = struct.pack(f"<2{wide.letter}", lo, hi)
    table = builder.table(("bounds", wide, data), data)
    kernel = f"{SHORT[wide]}_clip"
    if wide is dtype:
        builder.step(kernel, x=source, y=target, bounds=table, units=n)
        return
    scratch = builder.scratch(n * wide.itemsize)
    convert(builder, source, dtype, scratch, wide, n)
    builder.step(kernel, x=scratch, y=scratch, bounds=table, units=n)
    convert(builder, scratch, wide, target, dtype, n)


def class_test(node: Node, builder: Builder) -> None:
    """One step: whether each float is a NaN or an infinity; an integer never is."""
    x, y = node.required_input(0), node.output
    if compute_dtype(x) is F32:
        builder.step(f"f32_{node.op.name}", x=builder.ref(x), y=builder.ref(y), units=x.type.size)
    else:
        builder.step("b8_fill", y=builder.ref(y), low=0, high=0, units=y.type.size)


def logical_not(node: Node, builder: Builder) -> None:
    """One step: whether each element is zero."""
    x = node.required_input(0)
    dtype = compute_dtype(x)
    prefix = "f32" if dtype is F32 else f"b{8 * dtype.itemsize}"
    builder.step(f"{prefix}_is_zero", x=builder.ref(x), y=builder.ref(node.output), units=x.type.size)


def binary(node: Node, builder: Builder) -> None:
    """One step: the operator's kernel with its clamp; any other activation is a step behind it."""
    a, b, y = node.required_input(0), node.required_input(1), node.output
    dtype, activation = compute_dtype(a), node.attrs.activation
    table = broadcast_nest(builder, y.type.shape, a.type.shape, b.type.shape)
    if dtype is F32:
        lo, hi = activation.bounds or (-INFINITY, INFINITY)
        builder.step(
            f"f32_{node.op.name}",
            a=builder.ref(a), b=builder.ref(b), y=builder.ref(y), nest=table, lo=lo, hi=hi, units=y.type.size,
        )  # fmt: skip
        if activation is Activation.PRELU:
            raise UnsupportedOpError([f"activation {activation} needs a slope"])
        if activation.bounds is None:
            target = builder.ref(y)
            builder.step(f"f32_{activation}", x=target, y=target, a=0.0, b=0.0, units=y.type.size)
        return
    wide = _kernel_dtype(node, dtype)
    if wide not in (I32, I64) or not ops.ROWS[node.op.name].takes_integers or activation.bounds is None:
        raise refuse(node.op, dtype)
    left, right = (builder.ref(v) if dtype is U64 else converted(builder, v, wide) for v in (a, b))
    _narrowed(builder, y, dtype, wide, lambda target: builder.step(
        f"{SHORT[wide]}_{node.op.name}", a=left, b=right, y=target, nest=table, units=y.type.size))  # fmt: skip
    if activation is not Activation.NONE:
        clip(builder, builder.ref(y), builder.ref(y), dtype, activation.bounds, y.type.size)


def comparison(node: Node, builder: Builder) -> None:
    """One step in the type of the operands, widened where it has no kernel."""
    a, b, y = node.required_input(0), node.required_input(1), node.output
    dtype = compute_dtype(a)
    wide = WIDENED.get(dtype, dtype)
    if wide is U64 and node.op in (ops.EQUAL, ops.NOT_EQUAL):
        wide = I64  # equal bits are equal numbers
    if wide is U64:
        raise refuse(node.op, dtype)
    left, right = (builder.ref(v) if dtype is U64 else converted(builder, v, wide) for v in (a, b))
    table = broadcast_nest(builder, y.type.shape, a.type.shape, b.type.shape)
    kernel = f"{SHORT[wide]}_{node.op.name}"
    builder.step(kernel, a=left, b=right, y=builder.ref(y), nest=table, units=y.type.size)


def logic(node: Node, builder: Builder) -> None:
    """One step on bytes, in which anything but 0 is true."""
    a, b, y = node.required_input(0), node.required_input(1), node.output
    left, right = (
        builder.ref(v) if compute_itemsize(v.type.dtype) == 1 else converted(builder, v, BOOL) for v in (a, b)
    )
    table = broadcast_nest(builder, y.type.shape, a.type.shape, b.type.shape)
    builder.step(f"b8_{node.op.name}", a=left, b=right, y=builder.ref(y), nest=table, units=y.type.size)


def where(node: Node, builder: Builder) -> None:
    """One step that moves elements by their width alone."""
    c, x, z = map(node.required_input, range(3))
    y = node.output
    table = broadcast_nest(builder, y.type.shape, c.type.shape, x.type.shape, z.type.shape)
    kernel = f"b{8 * compute_itemsize(y.type.dtype)}_where"
    condition, left, right = map(builder.ref, (c, x, z))
    builder.step(kernel, condition=condition, x=left, z=right, y=builder.ref(y), nest=table, units=y.type.size)


def _lowering(row: ops.ElementwiseOp) -> Lower:
    if row is ops.LOGICAL_NOT:
        return logical_not
    if row.formula is None:
        return class_test
    if row.attrs is ops.UnaryAttrs:
        return unary
    return binary if not row.gives_truth else logic if row.dtypes == (BOOL,) else comparison


LOWERINGS: dict[Op, Lower] = {row: _lowering(row) for row in ops.ROWS.values()} | {ops.WHERE: where}
