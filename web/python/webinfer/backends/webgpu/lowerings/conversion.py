"""Running a lowering in another element type: inputs converted, results converted back.

For kernels that store elements one by one (which types that share words cannot) and for operators on
quantised tensors that are defined on the real numbers.
"""

from __future__ import annotations

import enum
import functools
import math
import struct
from collections.abc import Callable, Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Dispatch,
    Literal,
    Lower,
    Source,
    Target,
    groups_for,
    read,
    source_dtype,
    write,
)
from webinfer.backends.webgpu.lowerings.described import dispatch
from webinfer.codegen.elements import Element, bits_of, place_of
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType, all_to_f32, round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.expr import formula as f
from webinfer.expr.kernel import Axis, Kernel, Kind, Read, Tensor, axes, real, reals, sizes, whole
from webinfer.graph.ir import Node, Quantization, TensorType, Value
from webinfer.lowering.affine import is_stored, scale_of, zero_of

WIDE = {
    DType.FLOAT16: DType.FLOAT32, DType.INT8: DType.INT32, DType.UINT8: DType.INT32, DType.INT16: DType.INT32,
    DType.UINT16: DType.INT32,
    DType.BOOL: DType.INT32, DType.INT64: DType.INT32, DType.UINT64: DType.UINT32,
}  # fmt: skip
INT_MAX = 2147483520.0  # the largest float32 that fits int32


class CastRule(enum.StrEnum):
    """What a conversion must take care of."""

    PLAIN = "plain"
    SATURATE = "saturate"
    TO_BOOL = "to_bool"
    COPY = "copy"
    FROM_WIDE = "from_wide"
    TO_WIDE = "to_wide"


def cast_dispatch(x: Source, y: Value, target: Target) -> Dispatch:
    """x converted to y's type, element by element."""
    source, wanted = source_dtype(x), y.type.dtype
    if source.itemsize == 8 and (wanted.itemsize == 8 or wanted.is_float):
        rule = CastRule.COPY if wanted.itemsize == 8 else CastRule.FROM_WIDE
        into = write("y", y, Element.BITS64) if wanted.itemsize == 8 else write("y", y)
        return _wide_cast(rule, read("x", x, Element.BITS64), into, y, source is DType.INT64, target)
    if source.is_float and wanted.itemsize == 8:
        into = write("y", y, Element.BITS64)
        return _wide_cast(CastRule.TO_WIDE, read("x", x), into, y, wanted is DType.INT64, target)
    rule, low, high = CastRule.PLAIN, 0.0, 0.0
    if wanted is DType.BOOL:
        rule = CastRule.TO_BOOL
    elif source.is_float and not wanted.is_float:
        rule = CastRule.SATURATE
        smallest, largest = wanted.range
        low = max(float(smallest), -2147483648.0)
        high = min(float(largest), 4294967040.0 if wanted is DType.UINT32 else INT_MAX)
    element = place_of(source) if rule is CastRule.TO_BOOL else None
    extended = Element.U64 if source is DType.UINT32 else Element.I64  # by the sign of what comes, not of y
    into = write("y", y, extended if wanted.itemsize == 8 else None)
    return _cast(rule, read("x", x, element), into, y.type.size, target, low=low, high=high)


def _cast(
    rule: CastRule, x: Binding, y: Binding, count: int, target: Target, why: str = "", *,
    low: float = 0.0, high: float = 0.0,
) -> Dispatch:  # fmt: skip
    params = (*u32(count=count), *f32(low=low, high=high))
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "rule": rule}
    return Dispatch("cast", variables, (x, y), params, groups_for(-(-count // 4), target), why)


def _wide_cast(rule: CastRule, x: Binding, y: Binding, value: Value, signed: bool, target: Target) -> Dispatch:
    """A conversion from or to 64-bit integers that knows both their words."""
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "rule": rule, "signed": signed}
    groups = groups_for(-(-value.type.size // 4), target)
    return Dispatch("cast_wide", variables, (x, y), u32(count=value.type.size), groups, "64 bits")


def bits_dispatch(x: Value, y: Value, target: Target) -> Dispatch:
    """x's bits as y's type."""
    bits = bits_of(y.type.dtype)
    source, into = read("x", x, bits), write("y", y, bits)
    if y.type.dtype.itemsize == 8:
        return _wide_cast(CastRule.COPY, source, into, y, False, target)
    return _cast(CastRule.PLAIN, source, into, y.type.size, target, "bit for bit")


def plain_cast(x: Source, y: Source, count: int, target: Target) -> Dispatch:
    """`count` elements of x in y's type, which loses nothing or rounds."""
    return _cast(CastRule.PLAIN, read("x", x), write("y", y), count, target, "stored narrower")


def is_quantized(value: Value | None) -> bool:
    """Whether the value's integers stand for real numbers."""
    return value is not None and is_stored(value.type)


def scale_literals(quant: Quantization, shape: Sequence[int]) -> tuple[list[float], list[int], int]:
    """Scales as float32, zero points, and how many elements in a row share one.

    `shape` is the shape of the tensor that `quant` belongs to; both lists are equally long.
    """
    count = len(quant.scales)
    zeros = list(quant.zero_points) or [0]
    zeros = zeros if len(zeros) == count else zeros[:1] * count
    inner = math.prod(shape[quant.axis + 1 :]) if quant.axis is not None and count > 1 else 1
    return all_to_f32(quant.scales), zeros, inner


def floats(values: Sequence[float]) -> Literal:
    """A literal of float32 elements."""
    return Literal(struct.pack(f"<{len(values)}f", *values))


def ints(values: Sequence[int]) -> Literal:
    """A literal of int32 elements."""
    return Literal(struct.pack(f"<{len(values)}i", *values), DType.INT32)


def channel_reads(
    type: TensorType, channels: int, inner: int, *names: str
) -> tuple[Read, list[Read], tuple[Axis, ...]]:
    """An element of a tensor, the numbers of its channel, and the space: of (outer, channel, inner), or of as few axes
    as the tensor can be seen with."""
    rows, length = (1, type.size) if channels == 1 else (type.size // max(channels * inner, 1), inner)
    outer, depth, size = sizes(outer=rows, channels=channels, inner=length)
    tables = [Tensor(name, (depth,), Kind.NUMBER) for name in names]
    if channels > 1 and inner == 1:
        o, c = axes(o=outer, c=depth)
        return Tensor("x", (outer, depth), Kind.NUMBER)[o, c], [table[c] for table in tables], (o, c)
    if channels == 1:
        o, i = axes(o=outer, i=size)
        return Tensor("x", (outer, size), Kind.NUMBER)[o, i], [table[0] for table in tables], (o, i)
    o, c, i = axes(o=outer, c=depth, i=size)
    return Tensor("x", (outer, depth, size), Kind.NUMBER)[o, c, i], [table[c] for table in tables], (o, c, i)


def dequantize_dispatch(x: Value, y: Value, target: Target) -> Dispatch:
    """The real numbers that the stored integers of x stand for: (x - zero point) * scale."""
    assert x.type.quant is not None
    scales, zeros, inner = scale_literals(x.type.quant, x.type.shape)
    stored, (scale, zero), space = channel_reads(x.type, len(scales), inner, "scales", "zero_points")
    inputs = (stored.tensor, scale.tensor, zero.tensor)
    kernel = Kernel("dequantize", inputs, space, real(whole(stored) - zero) * scale, Kind.NUMBER)
    return dispatch(kernel, (x, floats(scales), ints(zeros)), y, target, "to real numbers")


def quantize_dispatch(x: Value, y: Value, target: Target) -> Dispatch:
    """x in y's scale, rounded to the nearest integer with ties to even, saturated; a NaN is the zero point."""
    assert y.type.quant is not None
    scales, zeros, inner = scale_literals(y.type.quant, y.type.shape)
    inverses = floats([round_to_f32(1.0 / s) if s else 0.0 for s in scales])
    least, most = y.type.dtype.range
    low, high = reals(low=max(float(least), -2147483520.0), high=min(float(most), 2147483520.0))
    number, (inverse, zero_point), space = channel_reads(x.type, len(scales), inner, "inverse", "zero_points")
    zero, v = real(zero_point), f.round_even(real(number) * inverse)
    value = f.clamp(f.select(f.equal(v, v), v, 0.0), low - zero, high - zero) + zero
    inputs = (number.tensor, inverse.tensor, zero_point.tensor)
    kernel = Kernel("quantize", inputs, space, value, Kind.NUMBER)
    return dispatch(kernel, (x, inverses, ints(zeros)), y, target, "to stored integers")


def rescale_dispatch(x: Value, y: Value, target: Target) -> Dispatch:
    """The stored integers of x in the scale of y, rounded to the nearest with ties to even, saturated.

    Raises:  UnsupportedOpError if x or y has a scale for each channel
    """
    least, most = y.type.dtype.range
    (scale,) = reals(scale=round_to_f32(scale_of(x.type) / scale_of(y.type)))
    x_zero, y_zero, low, high = sizes(x_zero=zero_of(x.type), y_zero=zero_of(y.type), low=least, high=most)
    stored, _, space = channel_reads(x.type, 1, 1)
    value = f.clamp(whole(f.round_even(real(stored - x_zero) * scale)) + y_zero, low, high)
    return dispatch(Kernel("rescale", (stored.tensor,), space, value, Kind.NUMBER), (x,), y, target, "another scale")


Convert = Callable[[Value, Value, Target], Dispatch]


def _through(
    node: Node, target: Target, lower: Lower, inner_type: Callable[[Value], TensorType], into: Convert, back: Convert
) -> list[Dispatch]:
    """The node between conversions of every value whose type changes."""
    before: list[Dispatch] = []
    known: dict[Value, Value] = {}
    inputs: list[Value | None] = []
    for value in node.inputs:
        if value is None or inner_type(value) == value.type:
            inputs.append(value)
            continue
        if value not in known:
            known[value] = Value(value.name, inner_type(value))
            before.append(into(value, known[value], target))
        inputs.append(known[value])
    outputs = [v if inner_type(v) == v.type else Value(v.name, inner_type(v)) for v in node.outputs]
    inner = Node(node.op, inputs, outputs, node.attrs, node.label)
    after = [back(i, o, target) for i, o in zip(outputs, node.outputs, strict=True) if i is not o]
    return [*before, *lower(inner, target), *after]


def one_word(lower: Lower) -> Lower:
    """The lowering, for all but integers of two words, of which the shader knows one."""

    @functools.wraps(lower)
    def checked(node: Node, target: Target) -> Sequence[Dispatch]:
        x = node.required_input(0)
        if x.type.dtype.itemsize == 8:
            raise UnsupportedOpError([f"{node.op.name} of {x.type.dtype}; only its low 32 bits would count"])
        return lower(node, target)

    return checked


def in_words(lower: Lower) -> Lower:
    """The lowering for every element type: narrow types are computed as 32-bit ones and stored narrow again.

    cast.wgsl runs before and after where a type changes.
    """

    def wide(node: Node, target: Target) -> list[Dispatch]:
        def inner(value: Value) -> TensorType:
            return TensorType(value.type.shape, WIDE.get(value.type.dtype, value.type.dtype), value.type.quant)

        return _through(node, target, lower, inner, cast_dispatch, cast_dispatch)

    return wide


def on_reals(lower: Lower) -> Lower:
    """The lowering for quantised tensors too: they become real numbers before it and stored integers after it.

    Conversions run before and after; without quantised tensors nothing changes.
    """

    def real(node: Node, target: Target) -> Sequence[Dispatch]:
        if not any(is_quantized(v) for v in (*node.inputs, *node.outputs)):
            return lower(node, target)

        def inner(value: Value) -> TensorType:
            return TensorType(value.type.shape) if is_quantized(value) else value.type

        return _through(node, target, lower, inner, dequantize_dispatch, quantize_dispatch)

    return real


def real_weights(lower: Lower) -> Lower:
    """The lowering of a float product for quantised weights too: dequantize.wgsl makes them real, at load."""

    def real(node: Node, target: Target) -> Sequence[Dispatch]:
        w = node.required_input(1)
        if not is_quantized(w) or is_quantized(node.inputs[0]):
            return lower(node, target)
        weights = Value(w.name, TensorType(w.type.shape))
        inner = Node(node.op, [node.inputs[0], weights, *node.inputs[2:]], node.outputs, node.attrs, node.label)
        return [dequantize_dispatch(w, weights, target), *lower(inner, target)]

    return real
