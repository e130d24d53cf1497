"""Elementwise operators: one shader for each number of inputs, one row an operator in web/shaders."""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Dispatch,
    Literal,
    Target,
    groups_for,
    operand,
    read,
    write,
)
from webinfer.codegen.elements import Element, bits_of
from webinfer.codegen.prelude import DIMS, f32, u32, u32x8
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Quantization, Value
from webinfer.ops.activation import Activation
from webinfer.ops.elementwise import UnaryAttrs
from webinfer.ops.strided import row_major

FLOAT_MAX = 3.4028234663852886e38
INT_MAX = 2147483520.0  # the largest float32 that fits int32


class Formula(enum.StrEnum):
    """Rows of _unary.wgsl and _binary.wgsl."""

    ABS = "abs"
    ADD = "add"
    CEIL = "ceil"
    CLAMP = "clamp"
    CLAMP_HIGH = "clamp_high"
    CLAMP_LOW = "clamp_low"
    COS = "cos"
    DIV = "div"
    ELU = "elu"
    EQUAL = "equal"
    ERF = "erf"
    EXP = "exp"
    FLOOR = "floor"
    FLOOR_DIV = "floor_div"
    FLOOR_DIV_INTEGER = "floor_div_integer"
    FLOOR_MOD = "floor_mod"
    FLOOR_MOD_INTEGER = "floor_mod_integer"
    GELU = "gelu"
    GREATER = "greater"
    GREATER_EQUAL = "greater_equal"
    HARD_SIGMOID = "hard_sigmoid"
    HARD_SWISH = "hard_swish"
    IDENTITY = "identity"
    IS_INFINITE = "is_infinite"
    IS_NAN = "is_nan"
    LEAKY_RELU = "leaky_relu"
    LESS = "less"
    LESS_EQUAL = "less_equal"
    LINEAR = "linear"
    LOG = "log"
    LOGICAL_AND = "logical_and"
    LOGICAL_NOT = "logical_not"
    LOGICAL_OR = "logical_or"
    LOGICAL_XOR = "logical_xor"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    MUL = "mul"
    NEG = "neg"
    NOT_EQUAL = "not_equal"
    POW = "pow"
    POW_INTEGER = "pow_integer"
    PRELU = "prelu"
    RECIPROCAL = "reciprocal"
    RELU = "relu"
    RELU6 = "relu6"
    RELU_N1_TO_1 = "relu_n1_to_1"
    ROUND_EVEN = "round_even"
    RSQRT = "rsqrt"
    SIGMOID = "sigmoid"
    SIGN = "sign"
    SIN = "sin"
    SOFTPLUS = "softplus"
    SOFTSIGN = "softsign"
    SQRT = "sqrt"
    SQUARE = "square"
    SQUARED_DIFFERENCE = "squared_difference"
    SUB = "sub"
    TAN = "tan"
    TANH = "tanh"


class Access(enum.StrEnum):
    """How a binary step reads its inputs."""

    FLAT = "flat"
    ROW = "row"
    EACH = "each"


# Operators that integers share with floats; the others are computed on floats only.
INTEGER_UNARY = {"abs", "clamp", "identity", "logical_not", "neg", "relu", "relu6", "relu_n1_to_1", "sign", "square"}
INTEGER_BINARY = {
    "add", "div", "equal", "floor_div", "floor_mod", "greater", "greater_equal", "less", "less_equal", "logical_and",
    "logical_or", "logical_xor", "maximum", "minimum", "mul", "not_equal", "pow", "prelu", "squared_difference", "sub",
}  # fmt: skip
OWN_INTEGER_ROW = {"floor_div", "floor_mod", "pow"}


def _unsigned_as_signed(value: Value, op: str) -> Element | None:
    """neg and abs of uint32 in two's complement: WGSL has them only for i32."""
    return Element.I32 if op == "neg" and value.type.dtype is DType.UINT32 else None


def _clamp_row(a: UnaryAttrs, integer: bool) -> tuple[Formula, float, float]:
    """The row and finite bounds of a clamp; infinite bounds are left out, WGSL assumes finite numbers."""
    low, high = a.a, a.b
    if integer:
        low = max(math.ceil(low), -INT_MAX) if math.isfinite(low) else low
        high = min(math.floor(high), INT_MAX) if math.isfinite(high) else high
    has_low, has_high = low > -FLOAT_MAX, high < FLOAT_MAX
    row = {
        (True, True): Formula.CLAMP,
        (True, False): Formula.CLAMP_LOW,
        (False, True): Formula.CLAMP_HIGH,
        (False, False): Formula.IDENTITY,
    }[has_low, has_high]
    return row, low if has_low else 0.0, high if has_high else 0.0


def unary(node: Node, target: Target) -> list[Dispatch]:
    x, y, a = operand(node, 0), node.output, node.attrs
    name = node.op.name
    if x.type.quant is not None and name not in ("identity",):
        raise UnsupportedOpError([f"{name} of quantised {x.type}"])
    if not x.type.dtype.is_float and name not in INTEGER_UNARY:
        raise UnsupportedOpError([f"{name} of {x.type.dtype}; it is defined for floats"])
    row, low, high = Formula(name), a.a, a.b
    if row is Formula.CLAMP:
        row, low, high = _clamp_row(a, not x.type.dtype.is_float)
    element = _unsigned_as_signed(x, name)
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "op": row}
    params = (*u32(count=y.type.size), *f32(a=low, b=high))
    bindings = (read("x", x, element), write("y", y, element))
    return [Dispatch("elementwise_unary", variables, bindings, params, groups_for(-(-y.type.size // 4), target))]


def merged(shape: Sequence[int], *inputs: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """Sizes of y's dimensions and each input's strides there, neighbours merged where all inputs allow.

    Raises:  UnsupportedOpError if more than 8 dimensions remain
    """
    rank = len(shape)
    strides = []
    for dims in inputs:
        padded = (1,) * (rank - len(dims)) + tuple(dims)
        strides.append([0 if d == 1 else s for d, s in zip(padded, row_major(padded), strict=True)])
    sizes: list[int] = []
    out: list[list[int]] = [[] for _ in inputs]
    for d in range(rank):
        if shape[d] == 1:
            continue
        if sizes and all(o[-1] == s[d] * shape[d] for o, s in zip(out, strides, strict=True)):
            sizes[-1] *= shape[d]
            for o, s in zip(out, strides, strict=True):
                o[-1] = s[d]
        else:
            sizes.append(shape[d])
            for o, s in zip(out, strides, strict=True):
                o.append(s[d])
    if len(sizes) > DIMS:
        raise UnsupportedOpError([f"broadcast over {len(sizes)} dimensions; webgpu has at most {DIMS}"])
    return sizes or [1], [o or [1] for o in out]


def _access(sizes: Sequence[int], a: Sequence[int], b: Sequence[int]) -> Access:
    if len(sizes) == 1 and a[0] == b[0] == 1:
        return Access.FLAT
    aligned = sizes[-1] % 4 == 0 and all(s % 4 == 0 for s in (*a[:-1], *b[:-1]))
    return Access.ROW if aligned else Access.EACH


def binary(node: Node, target: Target) -> list[Dispatch]:
    a, b, y = operand(node, 0), operand(node, 1), node.output
    name, dtype = node.op.name, a.type.dtype
    if a.type.quant is not None or b.type.quant is not None:
        raise UnsupportedOpError([f"{name} of quantised {a.type}"])
    if not dtype.is_float and name not in INTEGER_BINARY:
        raise UnsupportedOpError([f"{name} of {dtype}; it is defined for floats"])
    activation = node.attrs.activation
    if activation is not Activation.NONE and not dtype.is_float:
        raise UnsupportedOpError([f"{name} of {dtype} with activation {activation}"])
    row = Formula(f"{name}_integer" if not dtype.is_float and name in OWN_INTEGER_ROW else name)
    sizes, (a_stride, b_stride) = merged(y.type.shape, a.type.shape, b.type.shape)
    access = _access(sizes, a_stride, b_stride)
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "op": row, "rank": len(sizes), "access": access, "a_step": a_stride[-1],
        "b_step": b_stride[-1], "activation": activation, "has_activation": activation is not Activation.NONE,
    }  # fmt: skip
    params = (*u32(count=y.type.size), *u32x8(size=sizes, a_stride=a_stride, b_stride=b_stride))
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch("elementwise_binary", variables, (read("a", a), read("b", b), write("y", y)), params, groups, access)]


def where(node: Node, target: Target) -> list[Dispatch]:
    c, a, b, y = operand(node, 0), operand(node, 1), operand(node, 2), node.output
    sizes, (c_stride, a_stride, b_stride) = merged(y.type.shape, c.type.shape, a.type.shape, b.type.shape)
    bits = bits_of(y.type.dtype)
    params = (*u32(count=y.type.size), *u32x8(size=sizes, c_stride=c_stride, a_stride=a_stride, b_stride=b_stride))
    bindings = (read("c", c), read("a", a, bits), read("b", b, bits), write("y", y, bits))
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch("where", {"workgroup": WORKGROUP, "rank": len(sizes)}, bindings, params, groups)]


class CastRule(enum.StrEnum):
    """What a conversion must take care of."""

    PLAIN = "plain"
    SATURATE = "saturate"
    TO_BOOL = "to_bool"


def cast(node: Node, target: Target) -> list[Dispatch]:
    return [cast_dispatch(operand(node, 0), node.output, target)]


def cast_dispatch(x: Value, y: Value, target: Target) -> Dispatch:
    """x converted to y's type, element by element."""
    source, wanted = x.type.dtype, y.type.dtype
    rule, low, high = CastRule.PLAIN, 0.0, 0.0
    if wanted is DType.BOOL:
        rule = CastRule.TO_BOOL
    elif source.is_float and not wanted.is_float:
        rule = CastRule.SATURATE
        smallest, largest = wanted.range
        low = max(float(smallest), -2147483648.0)
        high = min(float(largest), 4294967040.0 if wanted in (DType.UINT32, DType.UINT64) else INT_MAX)
    params = (*u32(count=y.type.size), *f32(low=low, high=high))
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "rule": rule}
    return Dispatch("cast", variables, (read("x", x), write("y", y)), params, groups_for(-(-y.type.size // 4), target))


def _scales(quant: Quantization, shape: Sequence[int]) -> tuple[Literal, Literal, int, int]:
    """Scales and zero points as bytes, their count, and the elements that share one in a row."""
    count = len(quant.scales)
    zeros = quant.zero_points if len(quant.zero_points) == count else (quant.zero_points[:1] or (0,)) * count
    inner = 1
    if quant.axis is not None and count > 1:
        inner = math.prod(shape[quant.axis + 1 :])
    scales = Literal(struct.pack(f"<{count}f", *quant.scales))
    return scales, Literal(struct.pack(f"<{count}i", *zeros), DType.INT32), count, inner


def dequantize(node: Node, target: Target) -> list[Dispatch]:
    x, y = operand(node, 0), node.output
    if x.type.quant is None:
        return [cast_dispatch(x, y, target)]
    scales, zeros, channels, inner = _scales(x.type.quant, x.type.shape)
    bindings = (read("x", x), read("scales", scales), read("zero_points", zeros), write("y", y))
    params = u32(count=y.type.size, channels=channels, inner=inner)
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch("dequantize", {"workgroup": WORKGROUP}, bindings, params, groups)]
