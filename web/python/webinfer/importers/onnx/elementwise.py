"""ONNX operators that compute element by element; most are rows."""

from __future__ import annotations

import functools
import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.limits import MAX_DECIDING
from webinfer.importers.core.narrow import narrowed
from webinfer.importers.core.tensor_list import Listed
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.tensors import dtype_of
from webinfer.ops import elementwise as ew
from webinfer.ops.registry import NoAttrs

UNARY = {
    "Abs": ew.ABS, "Ceil": ew.CEIL, "Cos": ew.COS, "Erf": ew.ERF, "Exp": ew.EXP, "Floor": ew.FLOOR,
    "Acos": ew.ACOS, "Acosh": ew.ACOSH, "Asin": ew.ASIN, "Asinh": ew.ASINH, "Atan": ew.ATAN, "Atanh": ew.ATANH,
    "Cosh": ew.COSH, "Sinh": ew.SINH,
    "HardSwish": ew.HARD_SWISH, "Log": ew.LOG, "Mish": ew.MISH, "Neg": ew.NEG, "Reciprocal": ew.RECIPROCAL,
    "Relu": ew.RELU, "Round": ew.ROUND_EVEN, "Sigmoid": ew.SIGMOID, "Sign": ew.SIGN, "Sin": ew.SIN,
    "Softplus": ew.SOFTPLUS, "Softsign": ew.SOFTSIGN, "Sqrt": ew.SQRT, "Tan": ew.TAN, "Tanh": ew.TANH,
    "Not": ew.LOGICAL_NOT, "IsNaN": ew.IS_NAN,
}  # fmt: skip
# operator, then (attribute, default) of the formula's constants
PARAMETRIC: dict[str, tuple[Op, tuple[tuple[str, float], ...]]] = {
    "Elu": (ew.ELU, (("alpha", 1.0),)),
    "HardSigmoid": (ew.HARD_SIGMOID, (("alpha", 0.2), ("beta", 0.5))),
    "LeakyRelu": (ew.LEAKY_RELU, (("alpha", 0.01),)),
}
BITS = {"BitwiseAnd": ew.BIT_AND, "BitwiseOr": ew.BIT_OR, "BitwiseXor": ew.BIT_XOR}
BINARY = {
    **BITS,
    "Add": ew.ADD, "Div": ew.DIV, "Mul": ew.MUL, "Sub": ew.SUB, "And": ew.LOGICAL_AND, "Or": ew.LOGICAL_OR,
    "Xor": ew.LOGICAL_XOR, "Equal": ew.EQUAL, "Greater": ew.GREATER, "GreaterOrEqual": ew.GREATER_EQUAL,
    "Less": ew.LESS, "LessOrEqual": ew.LESS_EQUAL,
}  # fmt: skip


def _unary(op: Operation) -> Value:
    return op.each(lambda x: op.unary(UNARY[op.name], x))


def _parametric(op: Operation) -> Value:
    kind, parameters = PARAMETRIC[op.name]
    numbers = [op.real(name, default) for name, default in parameters]
    return op.each(lambda x: op.unary(kind, x, *numbers))


def _binary(op: Operation) -> Value:
    kind = BINARY[op.name]
    return op.together(lambda a, b: op.binary(kind, a, b), 0, 1)


def _identity(op: Operation) -> Value:
    """The input itself, which may be a sequence."""
    found = op.passed(0)
    if isinstance(found, Listed):
        return Listed(found.items, found.element)
    x = op.arranged(0)
    return op.view(x.value, x.perm)


def _variadic(op: Operation) -> Value:
    """Sum, Mean, Max or Min of any number of tensors that broadcast."""
    kind = {"Max": ew.MAXIMUM, "Min": ew.MINIMUM, "Sum": ew.ADD, "Mean": ew.ADD}[op.name]
    values, perm = op.aligned([op.arranged(i) for i in range(len(op.inputs))])
    y = functools.reduce(lambda a, b: op.binary(kind, a, b), values)
    if op.name == "Mean":
        y = op.binary(ew.DIV, y, op.scalar_of(float(len(values)), y.type.dtype))
    return op.view(y, perm)


def _clip(op: Operation) -> Value:
    if op.opset < 11:
        low, high = op.real("min", -math.inf), op.real("max", math.inf)
        return op.each(lambda x: op.clamp(x, low, high))
    x = op.arranged(0)
    for key in (1, 2):
        if op.optional(key) is not None and op.value(key).type.size != 1:
            op.fail(f"bound {key} has shape {op.value(key).type.shape}, needs one number")
    floating = x.value.type.dtype.is_float
    if floating and all(op.optional(key) is None or op.known(key) for key in (1, 2)):
        low = -math.inf if op.optional(1) is None else float(op.scalar(1))
        high = math.inf if op.optional(2) is None else float(op.scalar(2))
        if not low > high:
            return op.view(op.clamp(x.value, low, high), x.perm)
    bounds = [None if op.optional(key) is None else op.reshape(op.value(key), ()) for key in (1, 2)]
    return op.view(op.bounded(x.value, *bounds), x.perm)


def _pow(op: Operation) -> Value:
    """The exponent may be of another type; small whole constants become products."""
    if op.known(1) and op.value(1).type.size == 1 and op.kind.is_float:
        exponent = float(op.scalar(1))
        rank = len(op.arranged(0).perm)
        if exponent in (2.0, 3.0, 0.5, 1.0) and op.value(1).type.rank <= rank:
            return op.each(lambda x: _whole_power(op, x, exponent))
    base = op.kind
    if not base.is_float and op.value(1).type.dtype.is_float:
        return op.together(lambda a, b: _real_power(op, a, b), 0, 1)
    return op.together(lambda a, b: op.binary(ew.POW, a, op.cast(b, base)), 0, 1)


def _real_power(op: Operation, a: Value, b: Value) -> Value:
    """Whole numbers to a real power, cut to whole ones; what is one but for a rounding error is that one."""
    y = op.binary(ew.POW, op.cast(a, DType.FLOAT32), op.cast(b, DType.FLOAT32))
    near = op.unary(ew.ROUND_EVEN, y)
    apart = op.unary(ew.ABS, op.binary(ew.SUB, y, near))
    is_near = op.binary(ew.LESS_EQUAL, apart, op.unary(ew.LINEAR, op.unary(ew.ABS, y), 1e-5))
    return op.cast(op.emit(ew.WHERE, [is_near, near, y], NoAttrs()), a.type.dtype)


def _whole_power(op: Operation, x: Value, exponent: float) -> Value:
    if exponent == 0.5:
        return op.unary(ew.SQRT, x)
    if exponent == 1.0:
        return x
    square = op.unary(ew.SQUARE, x)
    return square if exponent == 2.0 else op.binary(ew.MUL, square, x)


def _mod(op: Operation) -> Value:
    """The rest of a division; with `fmod` it has the sign of the dividend.

    Of floats it is exact as long as the quotient is small.
    """
    if op.kind.is_float:
        return op.together(lambda a, b: _float_mod(op, a, b, bool(op.whole("fmod", 0))), 0, 1)
    if not op.whole("fmod", 0):
        return op.together(lambda a, b: op.binary(ew.FLOOR_MOD, a, b), 0, 1)
    return op.together(lambda a, b: _cut_mod(op, a, b), 0, 1)


def _float_mod(op: Operation, a: Value, b: Value, cut: bool) -> Value:
    zero = op.scalar_of(0.0, a.type.dtype)
    x, y = (op.unary(ew.ABS, a), op.unary(ew.ABS, b)) if cut else (a, b)
    rest = op.binary(ew.FLOOR_MOD, x, y)
    small = b.constant is not None and b.constant.sparsity is None and b.type.size <= MAX_DECIDING
    if not small or not all(map(math.isfinite, b.numbers())):  # what is infinite leaves the dividend, or is the rest
        far = op.binary(ew.LOGICAL_AND, op.unary(ew.IS_INFINITE, b), op.unary(ew.LOGICAL_NOT, _no_number(op, a)))
        apart = op.binary(ew.LESS, op.binary(ew.MUL, op.unary(ew.SIGN, x), op.unary(ew.SIGN, y)), zero)
        rest = op.emit(ew.WHERE, [far, op.emit(ew.WHERE, [apart, y, x], NoAttrs()), rest], NoAttrs())
    if not cut:
        return rest
    return op.emit(ew.WHERE, [op.binary(ew.LESS, a, zero), op.unary(ew.NEG, rest), rest], NoAttrs())


def _no_number(op: Operation, x: Value) -> Value:
    """Where x is infinite or NaN."""
    return op.binary(ew.LOGICAL_OR, op.unary(ew.IS_NAN, x), op.unary(ew.IS_INFINITE, x))


def _cut_mod(op: Operation, a: Value, b: Value) -> Value:
    return op.binary(ew.SUB, a, op.binary(ew.MUL, op.binary(ew.DIV, a, b), b))


def _cast(op: Operation) -> Value:
    return _cast_to(op, dtype_of(op.whole("to", 0), "to"))


def _cast_like(op: Operation) -> Value:
    return _cast_to(op, op.file_type(1))


def _cast_to(op: Operation, dtype: DType) -> Value:
    x = op.arranged(0)
    if dtype.inner is not dtype:
        return op.view(narrowed(op, x.value, dtype, bool(op.whole("saturate", 1))), x.perm)
    if x.value.type.dtype is dtype:
        return op.view(x.value, x.perm)
    if x.value.type.dtype.is_float and not dtype.is_float and dtype is not DType.BOOL and dtype.itemsize < 4:
        wide = op.cast(x.value, DType.INT32)  # beyond the type, bits are cut off, as C does
        return op.view(op.emit(ew.CAST, [wide], ew.CastAttrs(dtype)), x.perm)
    return op.view(op.emit(ew.CAST, [x.value], ew.CastAttrs(dtype)), x.perm)


def _where(op: Operation) -> Value:
    return op.together(lambda c, a, b: op.emit(ew.WHERE, [c, a, b], NoAttrs()), 0, 1, 2)


def _is_inf(op: Operation) -> Value:
    negative, positive = op.whole("detect_negative", 1), op.whole("detect_positive", 1)
    if negative and positive:
        return op.each(lambda x: op.unary(ew.IS_INFINITE, x))
    if not negative and not positive:
        return op.each(
            lambda x: op.binary(ew.LOGICAL_AND, *(op.unary(test, x) for test in (ew.IS_NAN, ew.IS_INFINITE)))
        )
    side = ew.LESS if negative else ew.GREATER
    return op.each(
        lambda x: op.binary(
            ew.LOGICAL_AND, op.unary(ew.IS_INFINITE, x), op.binary(side, x, op.scalar_of(0.0, x.type.dtype))
        )
    )


def _gelu(op: Operation) -> Value:
    """x * Φ(x), or the approximation of it by tanh."""
    if op.chosen("approximate", ("none", "tanh"), "none") == "none":
        return op.each(lambda x: op.unary(ew.GELU, x))
    return op.each(lambda x: tanh_gelu(op, x))


def tanh_gelu(op: Operation, x: Value) -> Value:
    """x/2 * (1 + tanh(√(2/π) * (x + 0.044715 x³)))"""
    cube = op.binary(ew.MUL, op.unary(ew.SQUARE, x), x)
    inside = op.binary(ew.ADD, x, op.unary(ew.LINEAR, cube, 0.044715))
    wave = op.unary(ew.TANH, op.unary(ew.LINEAR, inside, math.sqrt(2 / math.pi)))
    return op.binary(ew.MUL, op.unary(ew.LINEAR, x, 0.5), op.unary(ew.LINEAR, wave, 1.0, 1.0))


def _swish(op: Operation, usual: float = 1.0) -> Value:
    """x * sigmoid(alpha * x)"""
    alpha = op.real("alpha", usual)

    def compute(x: Value) -> Value:
        inner = x if alpha == 1.0 else op.unary(ew.LINEAR, x, alpha)
        return op.binary(ew.MUL, x, op.unary(ew.SIGMOID, inner))

    return op.each(compute)


def _selu(op: Operation) -> Value:
    alpha, gamma = op.real("alpha", 1.6732632423543772), op.real("gamma", 1.0507009873554805)
    return op.each(lambda x: op.unary(ew.LINEAR, op.unary(ew.ELU, x, alpha), gamma))


def _celu(op: Operation) -> Value:
    """max(0, x) + min(0, α (e^(x/α) - 1))"""
    alpha = op.real("alpha", 1.0)
    if not alpha:
        op.refuse("alpha 0, which divides")

    def compute(x: Value) -> Value:
        part = op.unary(ew.LINEAR, x, 1 / alpha)
        if alpha > 0:
            return op.unary(ew.LINEAR, op.unary(ew.ELU, part, 1.0), alpha)
        zero = op.scalar_of(0.0, x.type.dtype)  # both terms may count: x / α is positive where x is negative
        fallen = op.unary(ew.LINEAR, op.unary(ew.EXP, part), alpha, -alpha)
        return op.binary(ew.ADD, op.unary(ew.RELU, x), op.binary(ew.MINIMUM, fallen, zero))

    return op.each(compute)


def _thresholded_relu(op: Operation) -> Value:
    alpha = op.real("alpha", 1.0)

    def compute(x: Value) -> Value:
        above = op.binary(ew.GREATER, x, op.scalar_of(alpha, x.type.dtype))
        return op.emit(ew.WHERE, [above, x, op.scalar_of(0.0, x.type.dtype)], NoAttrs())

    return op.each(compute)


def _shrink(op: Operation) -> Value:
    bias, limit = op.real("bias", 0.0), op.real("lambd", 0.5)
    if not op.kind.is_float:
        op.refuse(f"shrinking {op.kind}")

    def compute(x: Value) -> Value:
        zero = op.scalar_of(0.0, x.type.dtype)
        small = op.binary(ew.LESS, x, op.scalar_of(-limit, x.type.dtype))
        large = op.binary(ew.GREATER, x, op.scalar_of(limit, x.type.dtype))
        up = op.emit(ew.WHERE, [small, op.unary(ew.LINEAR, x, 1.0, bias), zero], NoAttrs())
        return op.emit(ew.WHERE, [large, op.unary(ew.LINEAR, x, 1.0, -bias), up], NoAttrs())

    return op.each(compute)


def _prelu(op: Operation) -> Value:
    """A slope of one axis belongs to the last axis, as it broadcasts."""
    return op.together(lambda x, slope: op.binary(ew.PRELU, x, slope), 0, 1)


def _dropout(op: Operation) -> list[Value]:
    """Dropout as it is when nobody trains: the input, and a mask of ones."""
    if op.optional(2) is not None and op.scalar(2) and (op.optional(1) is None or op.scalar(1)):
        op.refuse("training mode")
    x = op.arranged(0)
    results = [op.view(x.value, x.perm)]
    if len(op.info.outputs) > 1:
        size = math.prod(x.shape)
        kind = DType.BOOL if op.opset >= 10 else x.value.type.dtype
        ones = op.scalar_of(1, kind)
        results.append(op.expand(ones, x.shape) if size else op.zeros(x.shape, kind))
    return results


def _bit_cast(op: Operation) -> Value:
    """The bits as another type; the bits of types that are computed in another one are not known."""
    dtype = dtype_of(op.whole("to", 0), "to")
    x = op.value(0)
    if dtype.inner is not dtype or op.file_type(0) is not x.type.dtype:
        op.refuse(f"the bits of {op.file_type(0)} as {dtype}")
    if x.type.dtype.itemsize != dtype.itemsize:
        op.refuse(f"the bits of {x.type.dtype} as {dtype}, which is of another size")
    return op.emit(ew.BITCAST, [x], ew.CastAttrs(dtype))


def _bit_not(op: Operation) -> Value:
    dtype = op.kind
    ones = -1 if dtype.range[0] else dtype.range[1]
    return op.each(lambda x: op.binary(ew.BIT_XOR, x, op.scalar_of(ones, dtype)))


CONVERTERS: dict[str, Convert] = {
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(PARAMETRIC, _parametric),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _variadic),
    "BitCast": _bit_cast,
    "BitwiseNot": _bit_not,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Celu": _celu,
    "Clip": _clip,
    "Dropout": _dropout,
    "Gelu": _gelu,
    "Identity": _identity,
    "IsInf": _is_inf,
    "Mod": _mod,
    "PRelu": _prelu,
    "Pow": _pow,
    "Selu": _selu,
    "Shrink": _shrink,
    "Swish": _swish,
    "ThresholdedRelu": _thresholded_relu,
    "Where": _where,
    "com.microsoft.Gelu": lambda op: op.each(lambda x: op.unary(ew.GELU, x)),
    "com.microsoft.QuickGelu": lambda op: _swish(op, 1.702),
}
