"""Quantised tensors: to and from floats, functions of one byte, sums, products, softmax, reductions.

Rounding is the reference backend's, which is ai-edge-litert's. What has no integer kernel goes through
float32: dequantised, computed, quantised again.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Callable

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings import reduce as float_reduce
from webinfer.backends.wasm.lowerings import softmax as float_softmax
from webinfer.backends.wasm.lowerings.affine import EIGHT_BIT, byte_zero, flip_of, floats, integers, result_args
from webinfer.backends.wasm.lowerings.cast import F32, compute_dtype, copy
from webinfer.backends.wasm.lowerings.elementwise import binary, unary
from webinfer.backends.wasm.lowerings.nest import broadcast_nest
from webinfer.backends.wasm.lowerings.piecewise_linear import piecewise_linear
from webinfer.codegen.lookup import lookup_table
from webinfer.dtypes import DType, all_to_f32, round_to_f32
from webinfer.errors import ShapeError, UnsupportedOpError
from webinfer.graph.ir import Node, Op, TensorType, Value
from webinfer.lowering.affine import is_stored, scale_of, sum_factors, zeros_of
from webinfer.lowering.short_softmax import distance_factor, short_rows, tables
from webinfer.ops import elementwise as ops
from webinfer.ops import reduce as reduce_ops
from webinfer.ops import softmax as softmax_ops
from webinfer.plan.blocks import Arguments, Ref

_SHORT = {DType.INT8: "i8", DType.UINT8: "u8", DType.INT16: "i16", DType.INT32: "i32"}


def _channels(type: TensorType) -> tuple[int, int]:
    """(channels, elements that lie together in one channel) of the scales."""
    assert type.quant is not None
    count = len(type.quant.scales)
    if count == 1:
        return 1, max(type.size, 1)
    return count, math.prod(type.shape[(type.quant.axis or 0) + 1 :])


def _short(dtype: DType) -> str:
    if dtype not in _SHORT:
        raise UnsupportedOpError([f"{dtype} is not a quantised type; needs {', '.join(_SHORT)}"])
    return _SHORT[dtype]


def dequantize_steps(
    builder: Builder, put: Callable[..., None], value: Value, source: Ref, target: Ref, factor: float = 1.0
) -> None:
    """Puts the step that writes the real numbers of a stored tensor, divided by `factor`."""
    assert value.type.quant is not None
    channels, inner = _channels(value.type)
    scales = floats(builder, all_to_f32([s / factor for s in all_to_f32(value.type.quant.scales)]))
    zeros = integers(builder, zeros_of(value.type, channels))
    put(
        f"{_short(value.type.dtype)}_dequantize",
        x=source, y=target, scales=scales, zeros=zeros, channels=channels, inner=inner, units=value.type.size,
    )  # fmt: skip


def dequantized(builder: Builder, value: Value, target: Ref, factor: float = 1.0) -> None:
    """Writes the real numbers of a stored tensor, divided by `factor`."""
    dequantize_steps(builder, builder.step, value, builder.ref(value), target, factor)


def quantized(builder: Builder, source: Ref, value: Value, scaled: bool = False) -> None:
    """Writes real numbers as a stored tensor; `scaled` ones are divided by its scale already."""
    assert value.type.quant is not None
    channels, inner = _channels(value.type)
    scales = all_to_f32(value.type.quant.scales)
    if any(not s > 0 for s in scales):
        raise UnsupportedOpError([f"{value.type} has a scale that is not positive"])
    inverses = floats(builder, [1.0] * len(scales) if scaled else all_to_f32([1.0 / s for s in scales]))
    zeros = integers(builder, zeros_of(value.type, channels))
    builder.step(
        f"{_short(value.type.dtype)}_quantize",
        x=source, y=builder.ref(value), scales=inverses, zeros=zeros, channels=channels, inner=inner,
        units=value.type.size,
    )  # fmt: skip


def dequantize(node: Node, builder: Builder) -> None:
    """One step: real numbers of stored ones, or a copy where they are real already."""
    x, y = node.required_input(0), node.output
    if compute_dtype(x) is F32:
        copy(builder, builder.ref(x), builder.ref(y), 4 * x.type.size)
    else:
        dequantized(builder, x, builder.ref(y))


def quantize(node: Node, builder: Builder) -> None:
    """One step: stored numbers of real ones; bytes go to another scale by a table."""
    x, y = node.required_input(0), node.output
    if compute_dtype(x) is F32:
        quantized(builder, builder.ref(x), y)
    elif not is_stored(x.type):
        raise UnsupportedOpError([f"{x.type} has no scale; cast to float32 first"])
    elif x.type.dtype in EIGHT_BIT and y.type.dtype in EIGHT_BIT:
        _lookup(builder, node, ops.UnaryAttrs())
    else:
        scratch = builder.scratch(4 * x.type.size)
        dequantized(builder, x, scratch, scale_of(y.type))
        quantized(builder, scratch, y, scaled=True)


def _lookup(builder: Builder, node: Node, attrs: ops.UnaryAttrs) -> None:
    """One step that replaces each byte by another."""
    x, y = node.required_input(0), node.output
    try:
        table = lookup_table(node.op.name, attrs, x.type, y.type)
    except ShapeError as error:
        raise UnsupportedOpError([str(error)]) from None
    lines = piecewise_linear(table, flip_of(x.type), flip_of(y.type), byte_zero(x.type)) if x.type.quant else None
    builder.step(
        "b8_lookup" if lines is None else "b8_two_lines", lines or {},
        x=builder.ref(x), y=builder.ref(y), table=builder.table(("bytes", table), table), units=x.type.size,
    )  # fmt: skip


def table_unary(node: Node, builder: Builder) -> None:
    """One step that looks bytes up in a table of 256 results; wider integers go through float32."""
    x, y = node.required_input(0), node.output
    if x.type.dtype in EIGHT_BIT and y.type.dtype in EIGHT_BIT:
        _lookup(builder, node, node.attrs)
    else:
        through_float(unary)(node, builder)


def through_float(lower: Lower) -> Lower:
    """The lowering of the float operator between a dequantisation and a quantisation."""

    def lower_through(node: Node, builder: Builder) -> None:
        inputs = [_as_float(builder, v) if v is not None and is_stored(v.type) else v for v in node.inputs]
        outputs = [Value(v.name, TensorType(v.type.shape)) if is_stored(v.type) else v for v in node.outputs]
        attrs = node.attrs
        if getattr(attrs, "out_type", None) is not None:
            attrs = dataclasses.replace(attrs, out_type=None)
        lower(Node(node.op, inputs, outputs, attrs, node.label), builder)
        for real, y in zip(outputs, node.outputs, strict=True):
            if real is not y:
                quantized(builder, builder.ref(real), y)

    return lower_through


def _as_float(builder: Builder, value: Value) -> Value:
    real = Value(value.name, TensorType(value.type.shape))
    dequantized(builder, value, builder.ref(real))
    return real


def add(node: Node, builder: Builder) -> None:
    """Sums and differences with fixed-point factors of 21 bits."""
    a, b, y = node.required_input(0), node.required_input(1), node.output
    factors = sum_factors(a.type, b.type, y.type) if _one_byte_type(node) else None
    if factors is None:
        through_float(binary)(node, builder)
        return
    p, q, shift = factors
    builder.step(
        "q8_add", _operands(node, builder), p=p, q=q if node.op is ops.ADD else -q, shift=shift, units=y.type.size,
    )  # fmt: skip


def _operands(node: Node, builder: Builder) -> Arguments:
    """Both operands and the result, all of one type: where they lie, how they are broadcast and stored."""
    a, b, y = node.required_input(0), node.required_input(1), node.output
    refs: Arguments = {"a": builder.ref(a), "b": builder.ref(b), "y": builder.ref(y)}
    nest = broadcast_nest(builder, y.type.shape, a.type.shape, b.type.shape)
    result = result_args(y.type, node.attrs.activation)
    flip = result.pop("y_flip")
    return refs | result | {"nest": nest, "a_zero": byte_zero(a.type), "b_zero": byte_zero(b.type), "flip": flip}


def mul(node: Node, builder: Builder) -> None:
    """One step on bytes of one type; anything else goes through float32."""
    a, b, y = node.required_input(0), node.required_input(1), node.output
    if not _one_byte_type(node):
        through_float(binary)(node, builder)
        return
    scale = round_to_f32(round_to_f32(scale_of(a.type) * scale_of(b.type)) / scale_of(y.type))
    builder.step("q8_mul", _operands(node, builder), scale=scale, units=y.type.size)


def _one_byte_type(node: Node) -> bool:
    """Whether both operands and the result have the same 8-bit type."""
    types = {v.type.dtype for v in (*node.inputs, *node.outputs) if v is not None}
    return len(types) == 1 and types <= set(EIGHT_BIT)


def softmax(node: Node, builder: Builder) -> None:
    """One step on bytes with a table of exponentials; scales that it cannot hold go through float32."""
    x, y, a = node.required_input(0), node.output, node.attrs
    if short_rows(node):
        exponentials, reciprocals = (integers(builder, table) for table in tables())
        factor, left = distance_factor(x.type, a.beta)
        outer, r, _ = float_reduce.lines_of(x.type.shape, a.axis)
        builder.step(
            "i16_softmax", x=builder.ref(x), y=builder.ref(y), exponentials=exponentials, reciprocals=reciprocals,
            r=r, factor=factor, shift=left, units=outer,
        )  # fmt: skip
        return
    short = x.type.dtype not in EIGHT_BIT or y.type.dtype not in EIGHT_BIT
    if short or not 0 < a.beta * scale_of(x.type) < math.inf:
        through_float(float_softmax.softmax)(node, builder)
        return
    outer, r, inner = float_reduce.lines_of(x.type.shape, a.axis)
    step = -a.beta * scale_of(x.type)
    data = struct.pack("<256d", *(math.exp(step * distance) for distance in range(256)))
    table = builder.table(("exp", data), data)
    builder.step(
        "q8_softmax", result_args(y.type),
        x=builder.ref(x), x_flip=flip_of(x.type), y=builder.ref(y), scale=scale_of(y.type), table=table,
        r=r, inner=inner, units=outer * inner,
    )  # fmt: skip


def reduce(node: Node, builder: Builder) -> None:
    """Sums and means in integers; extremes compare stored numbers; anything else goes through float32."""
    x, y, a = node.required_input(0), node.output, node.attrs
    if node.op in (reduce_ops.REDUCE_MAX, reduce_ops.REDUCE_MIN):
        float_reduce.reduce(node, builder)
        return
    if node.op not in (reduce_ops.REDUCE_SUM, reduce_ops.REDUCE_MEAN) or x.type.dtype not in EIGHT_BIT:
        through_float(float_reduce.reduce)(node, builder)
        return
    source, (_, r, inner) = float_reduce.gathered_axes(builder, builder.ref(x), x.type.shape, a.axes, 1)
    count = r if node.op is reduce_ops.REDUCE_MEAN else 1
    scale = round_to_f32(scale_of(x.type) / round_to_f32(scale_of(y.type) * round_to_f32(count)))
    builder.step(
        "q8_reduce_sum", result_args(y.type),
        x=source, x_zero=byte_zero(x.type), x_flip=flip_of(x.type), y=builder.ref(y), scale=scale,
        r=r, inner=inner, units=y.type.size,
    )  # fmt: skip


_REDUCTIONS = [op for op in reduce_ops.REDUCTIONS if op not in (reduce_ops.REDUCE_ALL, reduce_ops.REDUCE_ANY)]


def _elementwise(row: ops.ElementwiseOp) -> Lower:
    return table_unary if row.attrs is ops.UnaryAttrs else through_float(binary)


_NUMERIC = [row for row in ops.ROWS.values() if not row.gives_truth and row is not ops.IDENTITY]
PLAIN: dict[Op, Lower] = {ops.DEQUANTIZE: dequantize, ops.QUANTIZE: quantize}
QUANTIZED: dict[Op, Lower] = {
    **{row: _elementwise(row) for row in _NUMERIC},
    **dict.fromkeys(_REDUCTIONS, reduce),
    softmax_ops.LOG_SOFTMAX: through_float(float_softmax.softmax),
    ops.ADD: add,
    ops.MUL: mul,
    softmax_ops.SOFTMAX: softmax,
    ops.SUB: add,
}
