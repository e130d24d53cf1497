"""Elementwise operators: one row each, with the formula that every backend writes in its own language."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.expr import formula as f
from webinfer.expr.broadcast import broadcast_reads
from webinfer.expr.formula import TRUTHS, A, B, Formula, X
from webinfer.expr.kernel import Kernel, Kind
from webinfer.graph.ir import Case, Op, Quantization, TensorType, Tolerance, TypeRule
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.activation import Activation
from webinfer.ops.registry import (
    EXACT,
    ONE_ROUNDING,
    TRANSCENDENTAL,
    NoAttrs,
    all_whole,
    broadcast,
    declare,
    eight_bit,
    elementwise_cost,
    need,
    numbers,
    operands_alike,
    real_result,
    result_alike,
    stored_result,
)

Inputs = Sequence[TensorType | None]
F32, I32, BOOL = DType.FLOAT32, DType.INT32, DType.BOOL


@dataclass(frozen=True, slots=True)
class UnaryAttrs:
    """Up to two constants of the formula, and the result's type where it is not that of x (quantised tensors)."""

    a: float = 0.0
    b: float = 0.0
    out_type: tuple[DType, Quantization | None] | None = None


@dataclass(frozen=True, slots=True)
class BinaryAttrs:
    """`activation` is applied to the result; `out_type` overrides its type for quantised tensors."""

    activation: Activation = Activation.NONE
    out_type: tuple[DType, Quantization | None] | None = None


@dataclass(frozen=True, slots=True)
class CastAttrs:
    """`cast` converts as NumPy does, float to integer by truncation and saturation.

    `quantize` and `dequantize` read the scale from the quantised side's own type.
    """

    dtype: DType
    quant: Quantization | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ElementwiseOp(Op):
    """An operator of one or two operands that computes each element by itself.

    `formula` says how; None where only the bits of the number tell (`is_nan`). `dtypes` are kinds of elements that it
    takes: float32 stands for all floats, int32 for all integers. `bounds` are those of an operator that only clamps.
    """

    formula: Formula | None = None
    dtypes: tuple[DType, ...] = (F32,)
    bounds: tuple[float, float] | None = None

    @property
    def takes_integers(self) -> bool:
        """Whether it is defined for integers, and so for facts, too."""
        return self.dtypes != (F32,)

    @property
    def gives_truth(self) -> bool:
        """Whether its results are true or false."""
        return self.formula is None or self.formula.name in TRUTHS

    @property
    def leaves_integers(self) -> bool:
        """Whether it changes no integer: it copies, or rounds to a whole number."""
        return self.formula is X or (self.formula is not None and self.formula.name in ("ceil", "floor", "round_even"))


ROWS: dict[str, ElementwiseOp] = {}  # every elementwise operator by its name


def _row(op: ElementwiseOp) -> ElementwiseOp:
    declare(op)
    ROWS[op.name] = op
    return op


def _unary_infer(name: str, to_bool: bool):  # type: ignore[no-untyped-def]
    def infer(inputs: Inputs, a: UnaryAttrs) -> tuple[TensorType, ...]:
        x = need(name, "x", inputs[0])
        if math.isnan(a.a) or math.isnan(a.b):
            raise ShapeError(f"{name}: a constant is {a.a}, the other {a.b}; both must be numbers")
        if to_bool:
            return (TensorType(x.shape, BOOL),)
        return (TensorType(x.shape, *a.out_type) if a.out_type else TensorType(x.shape, x.dtype, x.quant),)

    return infer


def _rules(formula: Formula) -> tuple[TypeRule, ...]:
    """The type rules of a formula: arithmetic is for numbers, copies and extremes are for truth values too."""
    if formula.name in TRUTHS:
        return ()
    copies = formula is X or formula.name in (f.larger(A, B).name, f.smaller(A, B).name)
    return (result_alike,) if copies else (numbers, result_alike)


def _unary(
    name: str, formula: Formula, tolerance: Tolerance, low: float = -4.0, high: float = 4.0, *attrs: UnaryAttrs,
    special: tuple[float, ...] = (), stored: tuple[float, int] | None = None, dtypes: tuple[DType, ...] = (F32,),
    bounds: tuple[float, float] | None = None,
) -> ElementwiseOp:  # fmt: skip
    """A row. Its cases draw from `low` to `high`; `special` are values where the formula changes its branch, saturates
    or ties; `stored` are scale and zero point (from the middle) of an 8-bit result that every stored value is put to.
    """
    first = attrs[0] if attrs else UnaryAttrs()
    cases = [
        Case(f"{label} {a}" if attrs else label, (TensorType(shape),), a, low=low, high=high)
        for a in attrs or (first,)
        for label, shape in (("vec", (2, 3, 4)), ("odd", (7,)), ("scalar", ()))
    ]
    if special:
        cases.append(Case("special values", (TensorType((len(special),)),), first, values={0: special}))
    cases += [Case(f"{dtype}", (TensorType((3, 5), dtype),), first, low=low, high=high) for dtype in dtypes[1:]]
    if stored is not None:
        cases += _eight_bit_unary(*stored, first)
    is_test = formula.name in TRUTHS
    infer = _unary_infer(name, is_test)
    rules = _rules(formula)
    return _row(
        ElementwiseOp(
            name, UnaryAttrs, infer, elementwise_cost, tolerance, tuple(cases), formula, dtypes, bounds, types=rules
        )
    )


def _clamp(
    activation: Activation, low: float = -4.0, high: float = 4.0, *, special: tuple[float, ...] = (),
    stored: tuple[float, int] | None = None,
) -> ElementwiseOp:  # fmt: skip
    """The row of an activation that only clamps."""
    bounds = activation.bounds
    assert bounds is not None
    return _unary(
        str(activation),
        f.bounded(*bounds),
        EXACT,
        low,
        high,
        special=special,
        stored=stored,
        dtypes=_NUMBERS,
        bounds=bounds,
    )


def _eight_bit_unary(scale: float, zero: int, a: UnaryAttrs) -> tuple[Case, ...]:
    """Every stored value once, for each of the two types."""
    cases = []
    for dtype in (DType.UINT8, DType.INT8):
        low, high = dtype.range
        attrs = UnaryAttrs(a.a, a.b, (dtype, eight_bit((), scale, zero, dtype).quant))
        x = eight_bit((257,), 0.047, 3, dtype)
        cases.append(Case(f"{dtype}", (x,), attrs, values={0: (*range(low, high + 1), low)}))
    return tuple(cases)


_NEAR_WHOLE = (-0.5, 0.0, 2.0, -2.0, 8388609.0)
_HALVES = (0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 8388609.0)
_NUMBERS = (F32, I32)
_ELU = f.select(X > 0.0, X, A * f.expm1(X))

_LN2, _SIZE = 0.6931472, abs(X)
_ROOT, _GROWTH = f.exp(0.5 * _SIZE), f.expm1(0.5 * _SIZE)  # of |x| / 2: products overflow where results do
_FALL, _REST = 1.0 / _ROOT, 1.0 / (_GROWTH + 1.0)
_GROWN = f.exp(f.min(X, 20.0)) * (f.exp(f.min(X, 20.0)) + 2.0)  # e^2x + 2e^x, which beyond 20 are as good as infinite
_MISH_GATE = _GROWN / (_GROWN + 2.0)  # tanh(log(1 + e^x))
_COSH = 0.5 * _ROOT * _ROOT + 0.5 * _FALL * _FALL
_SINH = f.select(_SIZE > 80.0, _GROWTH, _GROWTH + _GROWTH * _REST) * (0.5 * (_GROWTH + 1.0) + 0.5 * _REST)
_ASINH = f.log1p(_SIZE + X * X / (1.0 + f.sqrt(X * X + 1.0)))
_ACOSH = f.log1p((X - 1.0) + f.sqrt(X - 1.0) * f.sqrt(X + 1.0))
_ATANH = f.select(
    _SIZE < 0.5, 0.5 * f.log1p(2.0 * _SIZE / (1.0 - _SIZE)), 0.5 * f.log((1.0 + _SIZE) / (1.0 - _SIZE))
)  # fmt: skip

ABS = _unary("abs", abs(X), EXACT, stored=(0.047, 3), dtypes=_NUMBERS)
ACOS = _unary("acos", 2.0 * f.arctan(f.sqrt((1.0 - X) / (1.0 + X))), TRANSCENDENTAL, -1, 1, special=(-1.0, 0.0, 1.0))
ACOSH = _unary(
    "acosh", f.select(X > 1e10, f.log(X) + _LN2, _ACOSH), TRANSCENDENTAL, 1, 9, special=(1.0, 1.001, 1e8, 3e15)
)  # fmt: skip
ASIN = _unary(
    "asin", f.arctan(X / f.sqrt((1.0 - X) * (1.0 + X))), TRANSCENDENTAL, -1, 1, special=(-1.0, 0.0, 1e-6, 1.0)
)
ASINH = _unary(
    "asinh", f.odd(X, f.select(_SIZE > 1e10, f.log(_SIZE) + _LN2, _ASINH)), TRANSCENDENTAL,
    special=(-1e15, -1e-4, 0.0, 1e8),
)  # fmt: skip
ATAN = _unary("atan", f.arctan(X), TRANSCENDENTAL, special=(-1e30, -2.5, -0.4, 0.0, 0.42, 1.0, 3.0, 1e9))
ATANH = _unary("atanh", f.odd(X, _ATANH), TRANSCENDENTAL, -0.999, 0.999, special=(-0.5, 1e-5, 0.0, 0.9999))
CEIL = _unary("ceil", f.ceil(X), EXACT, special=_NEAR_WHOLE)
CLAMP = _unary("clamp", f.bounded(A, B), EXACT, -4, 4, UnaryAttrs(-1.0, 2.5), dtypes=_NUMBERS)
COS = _unary("cos", f.cos(X), TRANSCENDENTAL)
COSH = _unary("cosh", _COSH, TRANSCENDENTAL, special=(-20.0, 0.0, 88.0, 89.3))
ELU = _unary("elu", _ELU, TRANSCENDENTAL, -4, 4, UnaryAttrs(1.0), UnaryAttrs(0.3), stored=(0.051, -20))
ERF = _unary("erf", f.erf(X), TRANSCENDENTAL, special=(-6.0, 6.0, 0.0, 1e-3))
EXP = _unary(
    "exp", f.exp(X), Tolerance(1e-6, 4e-6, "3 + 2|x| ULP are allowed in WGSL"), special=(-100.0, 0.0, 88.0),
    stored=(2.9, -60),
)  # fmt: skip
FLOOR = _unary("floor", f.floor(X), EXACT, special=_NEAR_WHOLE)
GELU = _unary("gelu", f.gelu(X), TRANSCENDENTAL, special=(-12.0, 12.0, 0.0), stored=(0.047, -20))
GELU_TANH = _unary(
    "gelu_tanh", X * f.sigmoid(X * (1.5957691216057308 + 0.07135481282553 * (X * X))), TRANSCENDENTAL,
    special=(-12.0, 12.0, 0.0),
)  # fmt: skip
HARD_SIGMOID = _unary("hard_sigmoid", f.clamp(A * X + B, 0.0, 1.0), ONE_ROUNDING, -4, 4, UnaryAttrs(0.2, 0.5))
HARD_SWISH = _unary(
    "hard_swish", X * f.clamp(X + 3.0, 0.0, 6.0) / 6.0, ONE_ROUNDING, special=(-5.0, -3.0, 0.0, 3.0, 5.0),
    stored=(0.031, -40),
)  # fmt: skip
IDENTITY = _unary("identity", X, EXACT, dtypes=_NUMBERS)
LEAKY_RELU = _unary(
    "leaky_relu", f.select(X >= 0.0, X, A * X), ONE_ROUNDING, -4, 4, UnaryAttrs(0.1), stored=(0.041, -20)
)
LINEAR = _unary("linear", A * X + B, ONE_ROUNDING, -4, 4, UnaryAttrs(2.5, -1.5))
LOG = _unary("log", f.log(X), TRANSCENDENTAL, 0.01, 9.0)
LOGICAL_NOT = _unary(
    "logical_not", f.equal(X, 0.0), EXACT, special=(0.0, 1.0, -2.0, 0.0, 1e-30), dtypes=(F32, I32, BOOL)
)
MISH = _unary("mish", X * _MISH_GATE, TRANSCENDENTAL, special=(-50.0, 0.0, 50.0), stored=(0.047, -110))
NEG = _unary("neg", -X, EXACT, dtypes=_NUMBERS)
RECIPROCAL = _unary("reciprocal", 1.0 / X, Tolerance(1e-6, 1e-6, "2.5 ULP division in WGSL"), 0.2, 4.0)
RELU = _clamp(Activation.RELU, stored=(0.047, 3))
RELU6 = _clamp(Activation.RELU6, -4, 9, special=(-0.5, 0.0, 5.5, 6.0, 7.0), stored=(0.041, -60))
RELU_N1_TO_1 = _clamp(Activation.RELU_N1_TO_1)
ROUND_EVEN = _unary("round_even", f.round_even(X), EXACT, special=_HALVES)
RSQRT = _unary("rsqrt", f.rsqrt(X), Tolerance(1e-6, 1e-6, "2 ULP in WGSL"), 0.2, 9.0, stored=(0.05, -3))
SIGMOID = _unary("sigmoid", f.sigmoid(X), TRANSCENDENTAL, -9, 9, special=(-100.0, 0.0, 100.0), stored=(1 / 256, -128))
SIGN = _unary("sign", f.sign(X), EXACT, special=(0.0, 2.0, -3.0, -0.0), dtypes=_NUMBERS)
SILU = _unary(
    "silu", X * f.sigmoid(A * X), TRANSCENDENTAL, -6, 6, UnaryAttrs(1.0), UnaryAttrs(1.702), special=(-90.0, 0.0, 90.0)
)
SIN = _unary("sin", f.sin(X), TRANSCENDENTAL)
SINH = _unary("sinh", f.odd(X, _SINH), TRANSCENDENTAL, special=(-89.3, -20.0, -1e-4, 0.0, 88.0))
SOFTPLUS = _unary("softplus", f.softplus(X), TRANSCENDENTAL, special=(-50.0, 0.0, 50.0, 100.0))
SOFTSIGN = _unary("softsign", X / (1.0 + abs(X)), ONE_ROUNDING)
SQRT = _unary("sqrt", f.sqrt(X), ONE_ROUNDING, 0.0, 9.0)
SQUARE = _unary("square", X * X, ONE_ROUNDING, dtypes=_NUMBERS)
TAN = _unary("tan", f.tan(X), Tolerance(1e-5, 2e-5, "sin over cos"), -1.3, 1.3)
TANH = _unary("tanh", f.tanh(X), TRANSCENDENTAL, special=(-90.0, -12.0, 1e-4, 0.0, 12.0, 90.0), stored=(1 / 128, 0))


def _class_test(name: str) -> ElementwiseOp:
    strange = (0.0, float("nan"), 1.5, float("inf"), -float("inf"), -0.0, 3e38)
    case = Case("special values", (TensorType((7,)),), UnaryAttrs(), values={0: strange})
    return _row(ElementwiseOp(name, UnaryAttrs, _unary_infer(name, True), elementwise_cost, EXACT, (case,)))


IS_INFINITE = _class_test("is_infinite")
IS_NAN = _class_test("is_nan")


def _binary_infer(name: str, to_bool: bool):  # type: ignore[no-untyped-def]
    def infer(inputs: Inputs, a: BinaryAttrs) -> tuple[TensorType, ...]:
        x, y = need(name, "a", inputs[0]), need(name, "b", inputs[1])
        if x.dtype is not y.dtype:
            raise ShapeError(f"{name}: a is {x.dtype} and b is {y.dtype}; both must have the same type")
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
_POWERS = ((-2, -2, 0, 3, 0, 1), (2, 3, 2, 1, 0, 5))
_CLAMPS = (Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)


def _binary(
    name: str, formula: Formula, tolerance: Tolerance, *, low: float = -4.0, high: float = 4.0,
    dtypes: tuple[DType, ...] = _NUMBERS, special: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    carries_clamps: bool = False,
) -> ElementwiseOp:  # fmt: skip
    """A row. Its cases draw from `low` to `high`; `special` are pairs where the formula changes its branch. An operator
    that `carries_clamps` takes them as its activation, in 8 bits too.
    """
    cases = [
        Case(f"{label} {dtype}", (TensorType(a, dtype), TensorType(b, dtype)), BinaryAttrs(), low=low, high=high)
        for dtype in dtypes
        for label, a, b in _PAIRS
    ]
    if carries_clamps:
        pair = (TensorType((1, 3, 5, 8)), TensorType((1, 3, 5, 8)))
        cases += [Case(f"{activation}", pair, BinaryAttrs(activation), -6.0, 6.0) for activation in _CLAMPS]
    if special is not None:
        values: dict[int, Sequence[float]] = dict(enumerate(special))
        cases += [
            Case(f"special values {dtype}", (TensorType((len(special[0]),), dtype),) * 2, BinaryAttrs(), values=values)
            for dtype in dtypes
        ]
    if carries_clamps:
        cases += [_eight_bit_binary(dtype, b, activation) for dtype, b, activation in _EIGHT_BIT_BINARY]
    is_test = formula.name in TRUTHS
    whole = () if F32 in dtypes or is_test else (all_whole,)
    infer, rules = _binary_infer(name, is_test), (operands_alike, *whole, *_rules(formula))
    return _row(
        ElementwiseOp(name, BinaryAttrs, infer, elementwise_cost, tolerance, tuple(cases), formula, dtypes, types=rules)
    )


ADD = _binary("add", A + B, ONE_ROUNDING, carries_clamps=True)
SUB = _binary("sub", A - B, ONE_ROUNDING, carries_clamps=True)
MUL = _binary("mul", A * B, ONE_ROUNDING, carries_clamps=True)
DIV = _binary("div", A / B, Tolerance(1e-6, 1e-6, "2.5 ULP in WGSL"), low=1.3, high=9.0, special=_SIGNS)
MAXIMUM = _binary("maximum", f.larger(A, B), EXACT)
MINIMUM = _binary("minimum", f.smaller(A, B), EXACT)
POW = _binary("pow", A**B, Tolerance(1e-5, 2e-5, "exp2(y * log2(x))"), low=0.2, high=3.0, special=_POWERS)
SQUARED_DIFFERENCE = _binary(
    "squared_difference", (A - B) * (A - B), Tolerance(2e-6, 2e-6, "two roundings", summed=True)
)
FLOOR_DIV = _binary("floor_div", A // B, EXACT, low=1.3, high=9.0, special=_SIGNS)
FLOOR_MOD = _binary(
    "floor_mod", A % B, Tolerance(2e-6, 2e-6, "division and product rounded"), low=1.3, high=9.0, special=_SIGNS
)
PRELU = _binary("prelu", f.select(A >= 0.0, A, A * B), ONE_ROUNDING)
EQUAL = _binary("equal", f.equal(A, B), EXACT, special=_TIES)
NOT_EQUAL = _binary("not_equal", f.not_equal(A, B), EXACT, special=_TIES)
GREATER = _binary("greater", A > B, EXACT, special=_TIES)
GREATER_EQUAL = _binary("greater_equal", A >= B, EXACT, special=_TIES)
LESS = _binary("less", A < B, EXACT, special=_TIES)
LESS_EQUAL = _binary("less_equal", A <= B, EXACT, special=_TIES)
LOGICAL_AND = _binary("logical_and", f.not_equal(A, 0.0) & f.not_equal(B, 0.0), EXACT, dtypes=(BOOL,))
LOGICAL_OR = _binary("logical_or", f.not_equal(A, 0.0) | f.not_equal(B, 0.0), EXACT, dtypes=(BOOL,))
LOGICAL_XOR = _binary("logical_xor", f.not_equal(A, 0.0) ^ f.not_equal(B, 0.0), EXACT, dtypes=(BOOL,))

_BIT_PATTERNS = ((12, -1, 0x7FFF0000, -(2**31)), (10, 255, -3, 2**31 - 1))
BIT_AND = _binary("bit_and", f.bit_and(A, B), EXACT, dtypes=(I32,), special=_BIT_PATTERNS)
BIT_OR = _binary("bit_or", f.bit_or(A, B), EXACT, dtypes=(I32,), special=_BIT_PATTERNS)
BIT_XOR = _binary("bit_xor", f.bit_xor(A, B), EXACT, dtypes=(I32,), special=_BIT_PATTERNS)

# The operator that each activation is where it stands alone.
ACTIVATIONS: dict[Activation, Op] = {activation: ROWS[activation] for activation in Activation if activation in ROWS}


def _where_infer(inputs: Inputs, a: object) -> tuple[TensorType, ...]:
    """Shapes:  condition (bool), x, y broadcast together."""
    c, x, y = (need("where", n, t) for n, t in zip(("condition", "x", "y"), inputs, strict=True))
    if c.dtype is not BOOL:
        raise ShapeError(f"where: condition is {c.dtype}, needs bool")
    if x.dtype is not y.dtype:
        raise ShapeError(f"where: x is {x.dtype} and y is {y.dtype}; both must have the same type")
    return (TensorType(broadcast("where", c.shape, x.shape, y.shape), x.dtype, x.quant),)


def _where_kernel(inputs: Sequence[TensorType], outputs: Sequence[TensorType], a: object) -> Kernel:
    kinds = {"c": Kind.INDEX, "a": Kind.BITS, "b": Kind.BITS}
    seen = {name: (t.shape, kind) for (name, kind), t in zip(kinds.items(), inputs, strict=True)}
    space, (c, x, y) = broadcast_reads(outputs[0].shape, seen)
    return Kernel("where", tuple(read.tensor for read in (c, x, y)), space, f.select(f.not_equal(c, 0), x, y))


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
        kernel=_where_kernel,
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


def _bitcast_infer(inputs: Inputs, a: CastAttrs) -> tuple[TensorType, ...]:
    x = need("bitcast", "x", inputs[0])
    if x.dtype.itemsize != a.dtype.itemsize:
        raise ShapeError(f"bitcast: {x.dtype} and {a.dtype} do not have the same size")
    return (TensorType(x.shape, a.dtype),)


def _bitcast_case(source: DType, target: DType, *values: float) -> Case:
    return Case(f"{source} as {target}", (TensorType((len(values),), source),), CastAttrs(target), values={0: values})


BITCAST = declare(
    Op(
        "bitcast", CastAttrs, _bitcast_infer, elementwise_cost, EXACT,
        (
            _bitcast_case(F32, I32, 1.5, -0.0, 3e38, 1e-3, -7.0),
            _bitcast_case(I32, F32, 0x3F800000, 5 << 24, -(2**30)),
            _bitcast_case(DType.INT8, DType.UINT8, -1, 127, -128), _bitcast_case(DType.UINT64, DType.INT64, 2**63, 5),
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
        types=(stored_result,),
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
        types=(real_result,),
    )
)  # fmt: skip
