"""TensorFlow nodes that compute element by element; most are rows. Operands of two types meet in the wider one."""

from __future__ import annotations

import functools
from collections.abc import Callable

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core import shifts
from webinfer.importers.core.angles import arctangent
from webinfer.importers.core.steps import Steps
from webinfer.importers.tfjs.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops.registry import NoAttrs

# Whether integers stay integers.
UNARY: dict[str, tuple[Op, bool]] = {
    "Abs": (ew.ABS, True), "Acos": (ew.ACOS, False), "Acosh": (ew.ACOSH, False), "Asin": (ew.ASIN, False),
    "Asinh": (ew.ASINH, False), "Atan": (ew.ATAN, False), "Atanh": (ew.ATANH, False), "Ceil": (ew.CEIL, False),
    "Cos": (ew.COS, False), "Cosh": (ew.COSH, False), "Erf": (ew.ERF, False), "Exp": (ew.EXP, False),
    "Floor": (ew.FLOOR, False), "Log": (ew.LOG, False), "Neg": (ew.NEG, True), "Reciprocal": (ew.RECIPROCAL, False),
    "Relu": (ew.RELU, True), "Relu6": (ew.RELU6, True), "Round": (ew.ROUND_EVEN, False), "Rsqrt": (ew.RSQRT, False),
    "Sigmoid": (ew.SIGMOID, False), "Sign": (ew.SIGN, True), "Sin": (ew.SIN, False), "Sinh": (ew.SINH, False),
    "Softplus": (ew.SOFTPLUS, False), "Sqrt": (ew.SQRT, False), "Square": (ew.SQUARE, True), "Tan": (ew.TAN, False),
    "Tanh": (ew.TANH, False),
}  # fmt: skip
BINARY = {
    "Add": ew.ADD, "AddV2": ew.ADD, "FloorDiv": ew.FLOOR_DIV, "FloorMod": ew.FLOOR_MOD, "Maximum": ew.MAXIMUM,
    "Minimum": ew.MINIMUM, "Mod": ew.FLOOR_MOD, "Mul": ew.MUL, "Pow": ew.POW,
    "SquaredDifference": ew.SQUARED_DIFFERENCE, "Sub": ew.SUB,
}  # fmt: skip
COMPARISON = {
    "Equal": ew.EQUAL, "Greater": ew.GREATER, "GreaterEqual": ew.GREATER_EQUAL, "Less": ew.LESS,
    "LessEqual": ew.LESS_EQUAL, "NotEqual": ew.NOT_EQUAL,
}  # fmt: skip
LOGICAL = {"LogicalAnd": ew.LOGICAL_AND, "LogicalOr": ew.LOGICAL_OR}
ACTIVATIONS: dict[str, Callable[[Operation, Value], Value]] = {
    "Relu": lambda op, x: op.unary(ew.RELU, x),
    "Relu6": lambda op, x: op.unary(ew.RELU6, x),
    "Elu": lambda op, x: op.unary(ew.ELU, x, 1.0),
    "LeakyRelu": lambda op, x: op.unary(ew.LEAKY_RELU, x, op.real("leakyrelu_alpha", 0.2)),
    "Sigmoid": lambda op, x: op.unary(ew.SIGMOID, x),
    "Tanh": lambda op, x: op.unary(ew.TANH, x),
}


def real(op: Operation, key: int = 0) -> Value:
    """An input in float32."""
    return op.cast(op.value(key), DType.FLOAT32)


def number(op: Operation, key: int = 0) -> Value:
    """An input that is added or multiplied: bool becomes int32."""
    x = op.value(key)
    return op.cast(x, DType.INT32) if x.type.dtype is DType.BOOL else x


def _unary(op: Operation) -> Value:
    kind, whole = UNARY[op.name]
    return op.unary(kind, number(op) if whole else real(op))


def _binary(op: Operation) -> Value:
    return op.binary(BINARY[op.name], *op.alike([number(op, 0), number(op, 1)]))


def _bias_add(op: Operation) -> Value:
    op.channels_last()
    return op.binary(ew.ADD, *op.alike([number(op, 0), number(op, 1)]))


def _divide(op: Operation) -> Value:
    """Whole numbers are divided downwards, as TensorFlow.js does."""
    a, b = op.alike([number(op, 0), number(op, 1)])
    return op.binary(ew.DIV if a.type.dtype.is_float else ew.FLOOR_DIV, a, b)


def _divide_no_nan(op: Operation) -> Value:
    a, b = op.alike([number(op, 0), number(op, 1)])
    zero = op.scalar_of(0, a.type.dtype)
    quotient = op.binary(ew.DIV if a.type.dtype.is_float else ew.FLOOR_DIV, a, b)
    return op.emit(ew.WHERE, [op.binary(ew.EQUAL, b, zero), zero, quotient], NoAttrs())


def _sum(op: Operation) -> Value:
    return functools.reduce(lambda a, b: op.binary(ew.ADD, a, b), op.alike(op.values()))


def _comparison(op: Operation) -> Value:
    a, b = op.alike(op.values()[:2])
    if a.type.dtype is DType.BOOL:
        a, b = (op.cast(v, DType.INT32) for v in (a, b))
    return op.binary(COMPARISON[op.name], a, b)


def _logical(op: Operation) -> Value:
    return op.binary(LOGICAL[op.name], *(op.cast(op.value(i), DType.BOOL) for i in (0, 1)))


def _not(op: Operation) -> Value:
    return op.unary(ew.LOGICAL_NOT, op.cast(op.value(0), DType.BOOL))


def _select(op: Operation) -> Value:
    """The old operator takes a condition of rank 1 along the first axis."""
    condition, x, y = op.cast(op.value(0), DType.BOOL), *op.alike([op.value(1), op.value(2)])
    if op.name == "Select" and condition.type.rank == 1 and x.type.rank > 1:
        condition = op.reshape(condition, (*condition.type.shape, *(1 for _ in x.type.shape[1:])))
    return op.emit(ew.WHERE, [condition, x, y], NoAttrs())


def _cast(op: Operation) -> Value:
    return op.cast(op.value(0), op.dtype("DstT"))


def _elu(op: Operation) -> Value:
    return op.unary(ew.ELU, real(op), 1.0)


def selu(op: Steps, x: Value) -> Value:
    """x, or a saturating exponential below zero, both scaled."""
    return op.unary(ew.LINEAR, op.unary(ew.ELU, x, 1.6732632423543772), 1.0507009873554805)


def _leaky_relu(op: Operation) -> Value:
    return op.unary(ew.LEAKY_RELU, real(op), op.real("alpha", 0.2))


def _prelu(op: Operation) -> Value:
    return op.binary(ew.PRELU, real(op, 0), real(op, 1))


def _clip(op: Operation) -> Value:
    x = number(op)
    if x.type.dtype.is_float and all(op.value(i).constant is not None for i in (1, 2)):
        return op.clamp(x, float(op.scalar(1)), float(op.scalar(2)))
    low, high = (op.cast(op.value(i), x.type.dtype) for i in (1, 2))
    return op.bounded(x, low, high)


def _expm1(op: Operation) -> Value:
    return op.unary(ew.LINEAR, op.unary(ew.EXP, real(op)), 1.0, -1.0)


def _log1p(op: Operation) -> Value:
    return op.unary(ew.LOG, op.unary(ew.LINEAR, real(op), 1.0, 1.0))


def _atan2(op: Operation) -> Value:
    return arctangent(op, real(op, 0), real(op, 1))


def _is_finite(op: Operation) -> Value:
    x = real(op)
    return op.unary(ew.LOGICAL_NOT, op.binary(ew.LOGICAL_OR, op.unary(ew.IS_NAN, x), op.unary(ew.IS_INFINITE, x)))


CONVERTERS: dict[str, Convert] = {
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(COMPARISON, _comparison),
    **dict.fromkeys(LOGICAL, _logical),
    "AddN": _sum,
    "Atan2": _atan2,
    "BiasAdd": _bias_add,
    "BitwiseAnd": lambda op: shifts.pattern(op, ew.BIT_AND, op.value(0), op.value(1)),
    "Cast": _cast,
    "ClipByValue": _clip,
    "Div": _divide,
    "DivNoNan": _divide_no_nan,
    "Elu": _elu,
    "Expm1": _expm1,
    "IsFinite": _is_finite,
    "IsInf": lambda op: op.unary(ew.IS_INFINITE, real(op)),
    "IsNan": lambda op: op.unary(ew.IS_NAN, real(op)),
    "LeakyRelu": _leaky_relu,
    "Log1p": _log1p,
    "LogicalNot": _not,
    "Prelu": _prelu,
    "RealDiv": _divide,
    "Select": _select,
    "SelectV2": _select,
    "Selu": lambda op: selu(op, real(op)),
}
