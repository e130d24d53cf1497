"""Conversions between element types, and the copies that other lowerings ask for."""

from __future__ import annotations

from webinfer.backends.wasm.builder import COMPUTE, Builder, Lower, compute_itemsize
from webinfer.backends.wasm.lowerings.nest import nest
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Op, Value
from webinfer.ops import elementwise as ops
from webinfer.plan.blocks import Ref

F32, F16, BOOL = DType.FLOAT32, DType.FLOAT16, DType.BOOL
_SHORT = {DType.INT8: "i8", DType.UINT8: "u8", DType.INT16: "i16", DType.UINT16: "u16", DType.INT32: "i32",
          DType.UINT32: "u32", DType.INT64: "i64", DType.UINT64: "u64", DType.BOOL: "u8",
          DType.FLOAT32: "f32"}  # fmt: skip


def compute_dtype(value: Value) -> DType:
    """The type that kernels hold the value in."""
    return COMPUTE.get(value.type.dtype, value.type.dtype)


def copy(builder: Builder, source: Ref, target: Ref, nbytes: int) -> None:
    """Copies bytes that lie together, unless they already are the target."""
    if source != target:
        unit = 4 if nbytes % 4 == 0 else 1
        count = nbytes // unit
        table = nest(builder, (count,), (1,), (1,))
        builder.step(f"b{8 * unit}_copy", x=source, y=target, nest=table, units=count)


def convert(builder: Builder, source: Ref, from_dtype: DType, target: Ref, to_dtype: DType, count: int) -> None:
    """Converts `count` elements between compute types; both float16 and float32 are held as float32."""
    kernel = _kernel(COMPUTE.get(from_dtype, from_dtype), to_dtype)
    if from_dtype is to_dtype or kernel is None:
        copy(builder, source, target, count * compute_itemsize(to_dtype))
    elif to_dtype is F16 and not from_dtype.is_float:
        builder.step(kernel, x=source, y=target, units=count)
        builder.step("f32_round_to_f16", x=target, y=target, units=count)
    else:
        builder.step(kernel, x=source, y=target, units=count)


def _kernel(source: DType, target: DType) -> str | None:
    """The kernel of a conversion, None where the bytes stay as they are."""
    short = _SHORT[source]
    if target is BOOL:
        return None if source is BOOL else f"{'f32' if source is F32 else f'b{8 * source.itemsize}'}_to_bool"
    if source is F32:
        return {F32: None, F16: "f32_round_to_f16"}.get(target, f"f32_to_{_SHORT.get(target)}")
    if target.is_float:
        return f"{short}_to_f32"
    if target.itemsize == source.itemsize:
        return None
    bits = 8 * target.itemsize
    return f"b{8 * source.itemsize}_to_b{bits}" if target.itemsize < source.itemsize else f"{short}_to_b{bits}"


def converted(builder: Builder, value: Value, dtype: DType) -> Ref:
    """The value in another compute type: itself, or a conversion that lives for this node."""
    if compute_dtype(value) is dtype:
        return builder.ref(value)
    target = builder.scratch(value.type.size * dtype.itemsize)
    convert(builder, builder.ref(value), value.type.dtype, target, dtype, value.type.size)
    return target


def cast(node: Node, builder: Builder) -> None:
    """The elements as another type."""
    x, y = node.required_input(0), node.output
    convert(builder, builder.ref(x), x.type.dtype, builder.ref(y), y.type.dtype, x.type.size)


def bitcast(node: Node, builder: Builder) -> None:
    """A copy: the same bits are another type. float16 is not held by its bits."""
    x, y = node.required_input(0), node.output
    if F16 in (x.type.dtype, y.type.dtype):
        raise UnsupportedOpError(["the bits of float16, which is held as float32"])
    copy(builder, builder.ref(x), builder.ref(y), y.type.nbytes)


LOWERINGS: dict[Op, Lower] = {ops.BITCAST: bitcast, ops.CAST: cast}
