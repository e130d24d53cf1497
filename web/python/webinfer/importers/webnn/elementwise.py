"""WebNN operators that compute element by element; most are rows."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.narrow import narrowed
from webinfer.importers.webnn.operation import DTYPES, Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops.registry import NoAttrs

UNARY = {
    "abs": ew.ABS, "ceil": ew.CEIL, "cos": ew.COS, "erf": ew.ERF, "exp": ew.EXP, "floor": ew.FLOOR, "gelu": ew.GELU,
    "hardSwish": ew.HARD_SWISH, "identity": ew.IDENTITY, "log": ew.LOG, "neg": ew.NEG, "reciprocal": ew.RECIPROCAL,
    "relu": ew.RELU, "roundEven": ew.ROUND_EVEN, "sigmoid": ew.SIGMOID, "sign": ew.SIGN, "sin": ew.SIN,
    "softplus": ew.SOFTPLUS, "softsign": ew.SOFTSIGN, "sqrt": ew.SQRT, "tan": ew.TAN, "tanh": ew.TANH,
}  # fmt: skip
# operator, then (argument, default) of the formula's constants
PARAMETRIC: dict[str, tuple[Op, tuple[tuple[str, float], ...]]] = {
    "clamp": (ew.CLAMP, (("minValue", -math.inf), ("maxValue", math.inf))),
    "elu": (ew.ELU, (("alpha", 1.0),)),
    "hardSigmoid": (ew.HARD_SIGMOID, (("alpha", 0.2), ("beta", 0.5))),
    "leakyRelu": (ew.LEAKY_RELU, (("alpha", 0.01),)),
    "linear": (ew.LINEAR, (("alpha", 1.0), ("beta", 0.0))),
}
BINARY = {
    "add": ew.ADD, "div": ew.DIV, "max": ew.MAXIMUM, "min": ew.MINIMUM, "mul": ew.MUL, "pow": ew.POW, "sub": ew.SUB,
}  # fmt: skip
COMPARISON = {
    "equal": ew.EQUAL, "greater": ew.GREATER, "greaterOrEqual": ew.GREATER_EQUAL, "lesser": ew.LESS,
    "lesserOrEqual": ew.LESS_EQUAL, "notEqual": ew.NOT_EQUAL,
}  # fmt: skip
LOGICAL = {"logicalAnd": ew.LOGICAL_AND, "logicalOr": ew.LOGICAL_OR, "logicalXor": ew.LOGICAL_XOR}
QUESTION = {"isInfinite": ew.IS_INFINITE, "isNaN": ew.IS_NAN, "logicalNot": ew.LOGICAL_NOT}


def _unary(op: Operation) -> Value:
    return op.unary(UNARY[op.name], op.value("input"))


def _parametric(op: Operation) -> Value:
    kind, parameters = PARAMETRIC[op.name]
    x, numbers = op.value("input"), [op.get(name, default) for name, default in parameters]
    clamped = op.clamp(x, *numbers) if kind is ew.CLAMP else x
    return (
        op.unary(kind, x, *numbers) if clamped is x else clamped
    )  # a result is an operand of its own, never the input


def _binary(op: Operation) -> Value:
    return op.binary(BINARY[op.name], op.value("a"), op.value("b"))


def _comparison(op: Operation) -> Value:
    return op.cast(op.binary(COMPARISON[op.name], op.value("a"), op.value("b")), DType.UINT8)


def _logical(op: Operation) -> Value:
    facts = [op.cast(op.value(name), DType.BOOL) for name in ("a", "b")]
    return op.cast(op.emit(LOGICAL[op.name], facts, ew.BinaryAttrs()), DType.UINT8)


def _question(op: Operation) -> Value:
    x = op.value("a" if "a" in op.arguments else "input")
    return op.cast(op.unary(QUESTION[op.name], x), DType.UINT8)


def _prelu(op: Operation) -> Value:
    return op.binary(ew.PRELU, op.value("input"), op.value("slope"))


def _cast(op: Operation) -> Value:
    dtype = DTYPES.get(str(op.need("type")))
    if dtype is None:
        op.refuse(f"cast to {op.need('type')}")
    if dtype.inner is not dtype:
        return narrowed(op, op.value("input"), dtype)
    return op.emit(ew.CAST, [op.value("input")], ew.CastAttrs(dtype))


def _where(op: Operation) -> Value:
    condition = op.cast(op.value("condition"), DType.BOOL)
    return op.emit(ew.WHERE, [condition, op.value("trueValue"), op.value("falseValue")], NoAttrs())


def _blocks(op: Operation, x: Value, shape: tuple[int, ...]) -> Value:
    """A scale or zero point spread over blocks, so that it has the shape of the tensor or broadcasts."""
    padded = (1,) * (len(shape) - x.type.rank) + x.type.shape
    if all(s in (1, d) for s, d in zip(padded, shape, strict=True)):
        return x
    if any(d % s for s, d in zip(padded, shape, strict=True)):
        op.fail(f"blocks of {x.type.shape} do not divide {shape}")
    split = [n for s in padded for n in (s, 1)]
    spread = [n for s, d in zip(padded, shape, strict=True) for n in (s, d // s)]
    blocks = op.emit(mv.EXPAND, [op.reshape(x, split)], mv.ExpandAttrs(tuple(spread)))
    return op.reshape(blocks, shape)


def _dequantize(op: Operation) -> Value:
    """(input - zero point) * scale; the difference is exact."""
    x, scale, zero = (op.value(name) for name in ("input", "scale", "zeroPoint"))
    shape = x.type.shape
    exact = DType.INT32 if x.type.dtype is DType.INT32 else scale.type.dtype
    difference = op.binary(ew.SUB, op.cast(x, exact), op.cast(_blocks(op, zero, shape), exact))
    return op.binary(ew.MUL, op.cast(difference, scale.type.dtype), _blocks(op, scale, shape))


def _quantize(op: Operation) -> Value:
    """clamp(round(input / scale) + zero point)"""
    x, scale, zero = (op.value(name) for name in ("input", "scale", "zeroPoint"))
    shape, dtype = x.type.shape, op.writer.kind(zero)
    quotient = op.binary(ew.DIV, x, _blocks(op, scale, shape))
    offset = op.cast(_blocks(op, zero, shape), x.type.dtype)
    shifted = op.binary(ew.ADD, op.unary(ew.ROUND_EVEN, quotient), offset)
    y = op.emit(ew.CAST, [op.unary(ew.CLAMP, shifted, *map(float, dtype.range))], ew.CastAttrs(dtype.inner))
    return op.writer.typed(y, dtype)


CONVERTERS: dict[str, Convert] = {
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(PARAMETRIC, _parametric),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(COMPARISON, _comparison),
    **dict.fromkeys(LOGICAL, _logical),
    **dict.fromkeys(QUESTION, _question),
    "cast": _cast,
    "dequantizeLinear": _dequantize,
    "prelu": _prelu,
    "quantizeLinear": _quantize,
    "where": _where,
}
