"""Elementwise operators: one row each. Every backend renders these rows in its own language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Op, Quantization, TensorType, Tolerance
from webinfer.ops.activation import Activation
from webinfer.ops.registry import (
    EXACT,
    ONE_ROUNDING,
    TRANSCENDENTAL,
    NoAttrs,
    broadcast,
    declare,
    eight_bit,
    elementwise_cost,
    need,
)

Inputs = Sequence[TensorType | None]
F32, I32, BOOL = DType.FLOAT32, DType.INT32, DType.BOOL


@dataclass(frozen=True, slots=True)
class UnaryAttrs:
    """Up to two constants of the formula; what `a` and `b` mean stands in the row."""

    a: float = 0.0
    b: float = 0.0
    out_type: tuple[DType, Quantization | None] | None = None


@dataclass(frozen=True, slots=True)
class BinaryAttrs:
    activation: Activation = Activation.NONE
    out_type: tuple[DType, Quantization | None] | None = None


@dataclass(frozen=True, slots=True)
class CastAttrs:
    """`cast` converts as NumPy does, float to integer by truncation and saturation.

    `quantize` and `dequantize` read the scale from the quantised side's own type.
    """

    dtype: DType
    quant: Quantization | None = None


def _unary_infer(name: str, to_bool: bool):  # type: ignore[no-untyped-def]
    def infer(inputs: Inputs, a: UnaryAttrs) -> tuple[TensorType, ...]:
        x = need(name, "x", inputs[0])
        if to_bool:
            return (TensorType(x.shape, BOOL),)
        return (TensorType(x.shape, *a.out_type) if a.out_type else TensorType(x.shape, x.dtype, x.quant),)

    return infer


def _unary(
    name: str, tolerance: Tolerance, low: float = -4.0, high: float = 4.0, *attrs: UnaryAttrs, to_bool: bool = False
) -> Op:
    cases = tuple(
        Case(f"{label} {a}" if attrs else label, (TensorType(shape),), a, low=low, high=high)
        for a in attrs or (UnaryAttrs(),)
        for label, shape in (("vec", (2, 3, 4)), ("odd", (7,)), ("scalar", ()))
    )
    if name in _SPECIAL:
        numbers = _SPECIAL[name]
        special = Case(
            "special values", (TensorType((len(numbers),)),), attrs[0] if attrs else UnaryAttrs(), values={0: numbers}
        )
        cases += (special,)
    if name == "logical_not":
        cases += (Case("facts", (TensorType((3, 5), BOOL),), UnaryAttrs()),)
    if name in _EIGHT_BIT:
        cases += _eight_bit_unary(*_EIGHT_BIT[name], attrs[0] if attrs else UnaryAttrs())
    return declare(Op(name, UnaryAttrs, _unary_infer(name, to_bool), elementwise_cost, tolerance, cases))


# Values where a formula changes its branch, saturates or ties.
_SPECIAL = {
    "ceil": (-0.5, 0.0, 2.0, -2.0, 8388609.0), "erf": (-6.0, 6.0, 0.0, 1e-3), "exp": (-100.0, 0.0, 88.0),
    "floor": (-0.5, 0.0, 2.0, -2.0, 8388609.0), "gelu": (-12.0, 12.0, 0.0), "hard_swish": (-5.0, -3.0, 0.0, 3.0, 5.0),
    "logical_not": (0.0, 1.0, -2.0, 0.0, 1e-30), "relu6": (-0.5, 0.0, 5.5, 6.0, 7.0),
    "round_even": (0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 8388609.0), "sigmoid": (-100.0, 0.0, 100.0),
    "sign": (0.0, 2.0, -3.0, -0.0), "softplus": (-50.0, 0.0, 50.0, 100.0),
    "tanh": (-90.0, -12.0, 1e-4, 0.0, 12.0, 90.0),
}  # fmt: skip

# Scale and zero point (from the middle) of the results of operators that quantised models use.
_EIGHT_BIT = {
    "abs": (0.047, 3), "elu": (0.051, -20), "exp": (2.9, -60), "gelu": (0.047, -20), "hard_swish": (0.031, -40),
    "leaky_relu": (0.041, -20), "relu": (0.047, 3), "relu6": (0.041, -60), "rsqrt": (0.05, -3),
    "sigmoid": (1 / 256, -128), "tanh": (1 / 128, 0),
}  # fmt: skip


def _eight_bit_unary(scale: float, zero: int, a: UnaryAttrs) -> tuple[Case, ...]:
    """Every stored value once, for each of the two types."""
    cases = []
    for dtype in (DType.UINT8, DType.INT8):
        low, high = dtype.range
        attrs = UnaryAttrs(a.a, a.b, (dtype, eight_bit((), scale, zero, dtype).quant))
        x = eight_bit((257,), 0.047, 3, dtype)
        cases.append(Case(f"{dtype}", (x,), attrs, values={0: (*range(low, high + 1), low)}))
    return tuple(cases)


ABS = _unary("abs", EXACT)
CEIL = _unary("ceil", EXACT)
CLAMP = _unary("clamp", EXACT, -4, 4, UnaryAttrs(-1.0, 2.5))  # min(max(x, a), b)
COS = _unary("cos", TRANSCENDENTAL)
ELU = _unary("elu", TRANSCENDENTAL, -4, 4, UnaryAttrs(1.0), UnaryAttrs(0.3))  # x if x > 0 else a*(e^x - 1)
ERF = _unary("erf", TRANSCENDENTAL)
EXP = _unary("exp", Tolerance(1e-6, 4e-6, "3 + 2|x| ULP are allowed in WGSL"))
FLOOR = _unary("floor", EXACT)
GELU = _unary("gelu", TRANSCENDENTAL)  # 0.5*x*(1 + erf(x / sqrt 2))
HARD_SIGMOID = _unary("hard_sigmoid", ONE_ROUNDING, -4, 4, UnaryAttrs(0.2, 0.5))  # clamp(a*x + b, 0, 1)
HARD_SWISH = _unary("hard_swish", ONE_ROUNDING)  # x * clamp(x + 3, 0, 6) / 6
IDENTITY = _unary("identity", EXACT)
LEAKY_RELU = _unary("leaky_relu", ONE_ROUNDING, -4, 4, UnaryAttrs(0.1))  # x if x >= 0 else a*x
LINEAR = _unary("linear", ONE_ROUNDING, -4, 4, UnaryAttrs(2.5, -1.5))  # a*x + b
LOG = _unary("log", TRANSCENDENTAL, 0.01, 9.0)
LOGICAL_NOT = _unary("logical_not", EXACT, to_bool=True)  # x == 0
NEG = _unary("neg", EXACT)
RECIPROCAL = _unary("reciprocal", Tolerance(1e-6, 1e-6, "2.5 ULP division in WGSL"), 0.2, 4.0)
RELU = _unary("relu", EXACT)
RELU6 = _unary("relu6", EXACT, -4, 9)
RELU_N1_TO_1 = _unary("relu_n1_to_1", EXACT)
ROUND_EVEN = _unary("round_even", EXACT)
RSQRT = _unary("rsqrt", Tolerance(1e-6, 1e-6, "2 ULP in WGSL"), 0.2, 9.0)
SIGMOID = _unary("sigmoid", TRANSCENDENTAL, -9, 9)
SIGN = _unary("sign", EXACT)
SIN = _unary("sin", TRANSCENDENTAL)
SOFTPLUS = _unary("softplus", TRANSCENDENTAL)  # log(1 + e^x)
SOFTSIGN = _unary("softsign", ONE_ROUNDING)  # x / (1 + |x|)
SQRT = _unary("sqrt", ONE_ROUNDING, 0.0, 9.0)
SQUARE = _unary("square", ONE_ROUNDING)
TAN = _unary("tan", Tolerance(1e-5, 2e-5, "sin over cos"), -1.3, 1.3)
TANH = _unary("tanh", TRANSCENDENTAL)


def _class_test(name: str) -> Op:
    strange = (0.0, float("nan"), 1.5, float("inf"), -float("inf"), -0.0, 3e38)
    case = Case("special values", (TensorType((7,)),), UnaryAttrs(), values={0: strange})
    return declare(Op(name, UnaryAttrs, _unary_infer(name, True), elementwise_cost, EXACT, (case,)))


IS_INFINITE = _class_test("is_infinite")
IS_NAN = _class_test("is_nan")


def _binary_infer(name: str, to_bool: bool):  # type: ignore[no-untyped-def]
    def infer(inputs: Inputs, a: BinaryAttrs) -> tuple[TensorType, ...]:
        x, y = need(name, "a", inputs[0]), need(name, "b", inputs[1])
        if x.dtype is not y.dtype:
            raise ShapeError(f"{name}: a is {x.dtype} and b is {y.dtype}; both must have one type")
        shape = broadcast(name, x.shape, y.shape)
        if to_bool:
            return (TensorType(shape, BOOL),)
        return (TensorType(shape, *a.out_type) if a.out_type else TensorType(shape, x.dtype),)

    return infer


_PAIRS = (
    ("same shape", (1, 3, 5, 8), (1, 3, 5, 8)),
    ("odd", (5, 7), (5, 7)),
    ("scalar b", (2, 3, 4), ()),
    ("scalar a", (1,), (2, 3, 4)),
    ("channels b", (1, 2, 3, 8), (8,)),
    ("odd channels b", (2, 3, 5), (5,)),
    ("pixel b", (1, 4, 3, 8), (1, 4, 3, 1)),
    ("both stretched", (3, 1, 5), (1, 4, 1)),
)


_EIGHT_BIT_BINARY = (
    (DType.UINT8, (1, 3, 5, 8), Activation.NONE),
    (DType.UINT8, (1, 3, 5, 8), Activation.RELU6),
    (DType.INT8, (1, 3, 5, 8), Activation.RELU),
    (DType.INT8, (8,), Activation.NONE),
    (DType.INT8, (1, 1, 1, 1), Activation.NONE),
    (DType.UINT8, (1, 1, 1, 8), Activation.NONE),
)


def _eight_bit_binary(dtype: DType, b: tuple[int, ...], activation: Activation) -> Case:
    pair = (eight_bit((1, 3, 5, 8), 0.0513, 3, dtype), eight_bit(b, 0.0317, -4, dtype))
    attrs = BinaryAttrs(activation, (dtype, eight_bit((), 0.0719, 1, dtype).quant))
    return Case(f"{dtype} with {b}, {activation}", pair, attrs, low=dtype.range[0], high=dtype.range[1])


_TIES = ((1, 2, -1, 0, -3), (1, 3, -2, 0, -3))
_SIGNS = ((7, -7, 7, -7, 6, -6, 0), (2, 2, -2, -2, 3, 3, 5))
_SPECIAL_PAIRS = {
    "div": _SIGNS, "equal": _TIES, "floor_div": _SIGNS, "floor_mod": _SIGNS, "greater": _TIES, "greater_equal": _TIES,
    "less": _TIES, "less_equal": _TIES, "not_equal": _TIES, "pow": ((-2, -2, 0, 3, 0, 1), (2, 3, 2, 1, 0, 5)),
}  # fmt: skip


def _special_pair(dtype: DType, a: tuple[float, ...], b: tuple[float, ...]) -> Case:
    types = (TensorType((len(a),), dtype), TensorType((len(b),), dtype))
    return Case(f"special values {dtype}", types, BinaryAttrs(), values={0: a, 1: b})


def _binary(
    name: str,
    tolerance: Tolerance,
    *,
    low: float = -4.0,
    high: float = 4.0,
    dtypes: tuple[DType, ...] = (F32,),
    to_bool: bool = False,
    activations: tuple[Activation, ...] = (),
) -> Op:
    cases = [
        Case(f"{label} {dtype}", (TensorType(a, dtype), TensorType(b, dtype)), BinaryAttrs(), low=low, high=high)
        for dtype in dtypes
        for label, a, b in _PAIRS
    ]
    cases += [
        Case(f"{activation}", (TensorType((1, 3, 5, 8)), TensorType((1, 3, 5, 8))), BinaryAttrs(activation), -6.0, 6.0)
        for activation in activations
    ]
    if name in _SPECIAL_PAIRS:
        cases += [_special_pair(dtype, *_SPECIAL_PAIRS[name]) for dtype in dtypes]
    if name in ("add", "mul", "sub"):
        cases += [_eight_bit_binary(dtype, b, activation) for dtype, b, activation in _EIGHT_BIT_BINARY]
    return declare(Op(name, BinaryAttrs, _binary_infer(name, to_bool), elementwise_cost, tolerance, tuple(cases)))


_CLAMPS = (Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)
ADD = _binary("add", ONE_ROUNDING, dtypes=(F32, I32), activations=_CLAMPS)
SUB = _binary("sub", ONE_ROUNDING, dtypes=(F32, I32), activations=_CLAMPS)
MUL = _binary("mul", ONE_ROUNDING, dtypes=(F32, I32), activations=_CLAMPS)
# An integer quotient is cut towards zero; by zero it is 0.
DIV = _binary("div", Tolerance(1e-6, 1e-6, "2.5 ULP in WGSL"), low=1.3, high=9.0, dtypes=(F32, I32))
MAXIMUM = _binary("maximum", EXACT, dtypes=(F32, I32))
MINIMUM = _binary("minimum", EXACT, dtypes=(F32, I32))
POW = _binary("pow", Tolerance(1e-5, 2e-5, "exp2(y * log2(x))"), low=0.2, high=3.0, dtypes=(F32, I32))
SQUARED_DIFFERENCE = _binary("squared_difference", Tolerance(2e-6, 2e-6, "two roundings"), dtypes=(F32, I32))
FLOOR_DIV = _binary("floor_div", EXACT, low=1.3, high=9.0, dtypes=(F32, I32))
FLOOR_MOD = _binary(
    "floor_mod", Tolerance(2e-6, 2e-6, "division and product rounded"), low=1.3, high=9.0, dtypes=(F32, I32)
)
PRELU = _binary("prelu", ONE_ROUNDING)  # a if a >= 0 else a*b
EQUAL = _binary("equal", EXACT, to_bool=True, dtypes=(F32, I32))
NOT_EQUAL = _binary("not_equal", EXACT, to_bool=True, dtypes=(F32, I32))
GREATER = _binary("greater", EXACT, to_bool=True, dtypes=(F32, I32))
GREATER_EQUAL = _binary("greater_equal", EXACT, to_bool=True, dtypes=(F32, I32))
LESS = _binary("less", EXACT, to_bool=True, dtypes=(F32, I32))
LESS_EQUAL = _binary("less_equal", EXACT, to_bool=True, dtypes=(F32, I32))
LOGICAL_AND = _binary("logical_and", EXACT, to_bool=True, dtypes=(BOOL,))
LOGICAL_OR = _binary("logical_or", EXACT, to_bool=True, dtypes=(BOOL,))
LOGICAL_XOR = _binary("logical_xor", EXACT, to_bool=True, dtypes=(BOOL,))


def _where_infer(inputs: Inputs, a: object) -> tuple[TensorType, ...]:
    """Shapes:  condition (bool), x, y broadcast together."""
    c, x, y = (need("where", n, t) for n, t in zip(("condition", "x", "y"), inputs, strict=True))
    if c.dtype is not BOOL:
        raise ShapeError(f"where: condition is {c.dtype}, needs bool")
    if x.dtype is not y.dtype:
        raise ShapeError(f"where: x is {x.dtype} and y is {y.dtype}; both must have one type")
    return (TensorType(broadcast("where", c.shape, x.shape, y.shape), x.dtype, x.quant),)


def _cast_infer(name: str):  # type: ignore[no-untyped-def]
    def infer(inputs: Inputs, a: CastAttrs) -> tuple[TensorType, ...]:
        x = need(name, "x", inputs[0])
        if name == "dequantize" and x.quant is None and not x.dtype.is_float:
            raise ShapeError(f"dequantize: x is {x.dtype} without a scale")
        if name == "quantize" and a.quant is None:
            raise ShapeError("quantize: the result needs a scale")
        return (TensorType(x.shape, a.dtype, a.quant),)

    return infer


WHERE = declare(
    Op(
        "where", NoAttrs, _where_infer, elementwise_cost, EXACT,
        (
            Case("same shape", (TensorType((2, 3, 4), BOOL), TensorType((2, 3, 4)), TensorType((2, 3, 4))), NoAttrs()),
            Case("stretched", (TensorType((3, 1), BOOL), TensorType((4,)), TensorType((2, 1, 1))), NoAttrs()),
        ),
    )
)  # fmt: skip


def _cast_case(source: DType, target: DType, low: float = -3.0, high: float = 3.0) -> Case:
    return Case(f"{source} to {target}", (TensorType((3, 7), source),), CastAttrs(target), low=low, high=high)


CAST = declare(
    Op(
        "cast", CastAttrs, _cast_infer("cast"), elementwise_cost, EXACT,
        (
            _cast_case(F32, I32, -9, 9), _cast_case(F32, DType.UINT8, -9, 300), _cast_case(F32, DType.INT8, -200, 200),
            _cast_case(I32, F32), _cast_case(DType.UINT8, F32, 0, 255), _cast_case(DType.INT8, F32, -128, 127),
            _cast_case(BOOL, F32), _cast_case(F32, BOOL), _cast_case(F32, DType.INT64, -9, 9),
                _cast_case(DType.INT64, F32),
            _cast_case(F32, DType.FLOAT16), _cast_case(DType.FLOAT16, F32),
        ),
    )
)  # fmt: skip
_Q = Quantization((0.05,), (3,))
QUANTIZE = declare(
    Op(
        "quantize", CastAttrs, _cast_infer("quantize"), elementwise_cost, EXACT,
        (
            Case("to int8, saturating", (TensorType((3, 7)),), CastAttrs(DType.INT8, _Q), low=-9, high=9),
            Case("to uint8, saturating", (TensorType((3, 8)),), CastAttrs(DType.UINT8, _Q), low=-9, high=19),
            Case("uint8 to int8", (TensorType((3, 8), DType.UINT8, Quantization((0.05,), (131,))),),
                CastAttrs(DType.INT8, _Q), low=0, high=255),
            Case("int8 to another scale", (eight_bit((3, 21), 0.0513, -5),), CastAttrs(DType.INT8,
                Quantization((0.0317,), (7,))), low=-128, high=127),
        ),
    )
)  # fmt: skip
DEQUANTIZE = declare(
    Op(
        "dequantize", CastAttrs, _cast_infer("dequantize"), elementwise_cost, ONE_ROUNDING,
        (
            Case("int8", (TensorType((3, 7), DType.INT8, _Q),), CastAttrs(F32), low=-128, high=127),
            Case("uint8", (TensorType((3, 8), DType.UINT8, _Q),), CastAttrs(F32), low=0, high=255),
            Case("float16", (TensorType((3, 7), DType.FLOAT16),), CastAttrs(F32)),
        ),
    )
)  # fmt: skip
