"""Random nodes that compute each element by itself: arithmetic, functions, comparisons, casts."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.draw import ANY, BOOL, FLOATS, INTEGERS, NUMBERS, UNSIGNED, Draw
from build_scripts.judge.fuzz.graphs import FuzzNode

Row = Callable[[Draw], FuzzNode | list[FuzzNode] | None]
CODES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip


def unary(op: str, kinds: Sequence[str] = FLOATS, **attrs: tuple[float, ...]) -> Row:
    """One operand; each attribute is one of its numbers or near it, or left out."""

    def row(d: Draw) -> FuzzNode:
        return d.node(op, [d.value(kinds)], **{key: d.maybe(d.real(*numbers), 0.7) for key, numbers in attrs.items()})

    return row


def binary(op: str, kinds: Sequence[str] = NUMBERS) -> Row:
    """Two operands that broadcast, in either order."""

    def row(d: Draw) -> FuzzNode:
        x = d.value(kinds)
        pair = [x, d.partner(x)]
        return d.node(op, pair[::-1] if d.chance(0.4) else pair)

    return row


def several(op: str, kinds: Sequence[str] = NUMBERS) -> Row:
    """One to four operands that broadcast."""

    def row(d: Draw) -> FuzzNode:
        x = d.value(kinds)
        return d.node(op, [x, *(d.partner(x) for _ in range(d.integer(0, 3)))])

    return row


def _clip(d: Draw) -> FuzzNode:
    x = d.value(NUMBERS)
    kind = d.known(x).dtype
    low, high = sorted((d.real(-2, 0, 0, 1), d.real(0, 1, 6, 3)))
    if d.version < 11:
        return d.node("Clip", [x], min=d.maybe(low, 0.8), max=d.maybe(high, 0.8))
    if kind.kind == "u":
        low, high = abs(low), abs(high) + 2
    bounds = [d.constant(b, kind.name) if d.chance(0.8) else "" for b in (low, high)]
    return d.node("Clip", [x, *bounds] if bounds[1] else [x, *bounds[:1]] if bounds[0] else [x])


def _cast(d: Draw) -> FuzzNode:
    return d.node("Cast", [d.value(ANY)], to=CODES[d.dtype(ANY)])


def _cast_like(d: Draw) -> FuzzNode:
    return d.node("CastLike", [d.value(ANY), d.value(ANY)])


def _shift(d: Draw) -> FuzzNode:
    x = d.value(UNSIGNED)
    a = d.known(x)
    y = d.new(d.array(a.dtype.name, a.shape if d.chance(0.7) else (1,), 0, 8 * a.itemsize - 1))
    return d.node("BitShift", [x, y], direction=d.pick(("LEFT", "RIGHT")))


def _mod(d: Draw) -> FuzzNode:
    x = d.value(NUMBERS)
    y = d.partner(x)
    if d.known(y).dtype.kind in "iu" and (d.known(y) == 0).any():
        y = d.new(_nonzero(d, d.known(y)))
    return d.node("Mod", [x, y], fmod=1 if d.known(x).dtype.kind == "f" else d.maybe(d.integer(0, 1)))


def _div(d: Draw) -> FuzzNode:
    x = d.value(NUMBERS)
    y = d.partner(x)
    if d.known(y).dtype.kind in "iu" and (d.known(y) == 0).any():  # the runtime ends its process
        y = d.new(_nonzero(d, d.known(y)))
    return d.node("Div", [x, y])


def _nonzero(d: Draw, like: Any) -> Any:
    numbers = d.array(like.dtype.name, like.shape, 1, 7)
    return (
        numbers
        if like.dtype.kind == "u"
        else np.where(d.rng.random(like.shape) < 0.3, -numbers, numbers).astype(like.dtype)
    )


def _pow(d: Draw) -> FuzzNode:
    x = d.value((*FLOATS, "int32", "int64"))
    a = d.known(x)
    exponent = d.pick(((), (1,), a.shape))
    kind = d.dtype(("float32", "int64", "int32")) if d.version >= 12 else a.dtype.name
    y = d.new(
        np.asarray(d.array(kind, exponent, 0, 4)) if d.chance(0.6) else np.full(exponent, d.pick((0.5, 2, 3, -1)), kind)
    )
    return d.node("Pow", [x, y])


def _where(d: Draw) -> FuzzNode:
    x = d.value(ANY)
    y = d.partner(x)
    shape = np.broadcast_shapes(d.known(x).shape, d.known(y).shape)
    found = d.fitting(BOOL, lambda a: a.shape == shape)
    kept = d.integer(0, len(shape))
    c = (
        d.pick(found)
        if found and d.chance(0.8)
        else d.new(d.array("bool", [n if d.chance(0.8) else 1 for n in shape[kept // 2 :]]))
    )
    return d.node("Where", [c, x, y])


def _prelu(d: Draw) -> FuzzNode:
    x = d.value(FLOATS, 1, 4)
    shape = d.known(x).shape
    slope = [n if d.chance(0.5) else 1 for n in shape][d.integer(0, len(shape)) :]
    return d.node("PRelu", [x, d.like(x, slope)])


def _dropout(d: Draw) -> FuzzNode:
    x = d.value(FLOATS)
    if d.version < 12:
        return d.node("Dropout", [x], ratio=d.maybe(0.3))
    return d.node("Dropout", [x], outputs=d.integer(1, 2))


def _is_inf(d: Draw) -> FuzzNode:
    return d.node("IsInf", [d.value(FLOATS)], detect_negative=d.maybe(d.integer(0, 1)), detect_positive=d.maybe(1))


def _swish(d: Draw) -> FuzzNode:
    return d.node("com.microsoft.QuickGelu", [d.value(("float32",))], alpha=d.maybe(d.real(1.0, 1.702)))


def _bias_gelu(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(("float32",), 1, 3)
        return d.node(op, [x, d.like(x, d.known(x).shape[-1:])] if op.endswith("BiasGelu") or d.chance(0.5) else [x])

    return row


_SIMPLE = (
    "Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor HardSwish Log Mish Reciprocal Round Sigmoid Sin Sinh "
    "Softplus Softsign Sqrt Tan Tanh IsNaN"
).split()

ROWS: dict[str, Row] = {
    **{op: unary(op) for op in _SIMPLE},
    **{op: unary(op, NUMBERS) for op in ("Abs", "Neg", "Sign", "Relu")},
    **{op: unary(op, ANY) for op in ("Identity", "Size", "Shape")},
    **{op: binary(op) for op in ("Add", "Sub", "Mul", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")},
    **{op: several(op) for op in ("Max", "Min")},
    **{op: several(op, FLOATS) for op in ("Mean", "Sum")},
    **{op: binary(op, BOOL) for op in ("And", "Or", "Xor")},
    **{op: binary(op, INTEGERS) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    "BitShift": _shift,
    "BitwiseNot": unary("BitwiseNot", INTEGERS),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Celu": unary("Celu", ("float32",), alpha=(1.0, 0.5, 2.0)),
    "Clip": _clip,
    "Div": _div,
    "Dropout": _dropout,
    "Elu": unary("Elu", alpha=(1.0, 0.5)),
    "Gelu": lambda d: d.node("Gelu", [d.value(FLOATS)], approximate=d.maybe(d.pick(("none", "tanh")))),
    "HardSigmoid": unary("HardSigmoid", alpha=(0.2, 0.5), beta=(0.5, 0.3)),
    "IsInf": _is_inf,
    "LeakyRelu": unary("LeakyRelu", alpha=(0.01, 0.3, -0.5)),
    "Mod": _mod,
    "Not": unary("Not", BOOL),
    "PRelu": _prelu,
    "Pow": _pow,
    "Selu": unary("Selu", alpha=(1.6,), gamma=(1.05,)),
    "Shrink": unary("Shrink", NUMBERS, bias=(0.0, 0.5), lambd=(0.5, 1.0)),
    "Swish": unary("Swish", alpha=(1.0, 0.5)),
    "ThresholdedRelu": unary("ThresholdedRelu", alpha=(1.0, 0.1)),
    "Where": _where,
    "com.microsoft.BiasGelu": _bias_gelu("com.microsoft.BiasGelu"),
    "com.microsoft.FastGelu": _bias_gelu("com.microsoft.FastGelu"),
    "com.microsoft.Gelu": unary("com.microsoft.Gelu", ("float32",)),
    "com.microsoft.QuickGelu": _swish,
}
