"""Every WebNN operator and what reads it. Elementwise operators and reductions are rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Op, Value
from webinfer.importers.webnn import images, recurrent, shaping
from webinfer.importers.webnn.reader import DTYPES, Call, Handler, Reader
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import reduce as red
from webinfer.ops import softmax as sm

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
REDUCTION = {
    "reduceL1": red.REDUCE_L1, "reduceL2": red.REDUCE_L2, "reduceLogSum": red.REDUCE_LOG_SUM,
    "reduceLogSumExp": red.REDUCE_LOG_SUM_EXP, "reduceMax": red.REDUCE_MAX, "reduceMean": red.REDUCE_MEAN,
    "reduceMin": red.REDUCE_MIN, "reduceProduct": red.REDUCE_PRODUCT, "reduceSum": red.REDUCE_SUM,
    "reduceSumSquare": red.REDUCE_SUM_SQUARE,
}  # fmt: skip


def _unary(r: Reader, c: Call) -> Value:
    return r.unary(UNARY[c.name], r.value(c, "input"))


def _parametric(r: Reader, c: Call) -> Value:
    op, parameters = PARAMETRIC[c.name]
    return r.unary(op, r.value(c, "input"), *(c.get(name, default) for name, default in parameters))


def _binary(r: Reader, c: Call) -> Value:
    return r.emit(BINARY[c.name], [r.value(c, "a"), r.value(c, "b")], ew.BinaryAttrs())


def _comparison(r: Reader, c: Call) -> Value:
    return r.cast(r.emit(COMPARISON[c.name], [r.value(c, "a"), r.value(c, "b")], ew.BinaryAttrs()), DType.UINT8)


def _logical(r: Reader, c: Call) -> Value:
    facts = [r.cast(r.value(c, name), DType.BOOL) for name in ("a", "b")]
    return r.cast(r.emit(LOGICAL[c.name], facts, ew.BinaryAttrs()), DType.UINT8)


def _question(r: Reader, c: Call) -> Value:
    x = r.value(c, "a" if "a" in c.arguments else "input")
    return r.cast(r.unary(QUESTION[c.name], x), DType.UINT8)


def _prelu(r: Reader, c: Call) -> Value:
    return r.emit(ew.PRELU, [r.value(c, "input"), r.value(c, "slope")], ew.BinaryAttrs())


def _reduction(r: Reader, c: Call) -> Value:
    x = r.value(c, "input")
    attrs = red.ReduceAttrs(tuple(c.get("axes", range(x.type.rank))), c.get("keepDimensions", False))
    return r.emit(REDUCTION[c.name], [x], attrs)


def _arg(r: Reader, c: Call) -> Value:
    dtype = DTYPES.get(c.get("outputDataType", "int32"))
    if dtype not in (DType.INT32, DType.INT64):
        raise ShapeError(f"{c.name}: positions as {c.get('outputDataType')} must be int32 or int64")
    op = red.ARG_MAX if c.name == "argMax" else red.ARG_MIN
    return r.emit(op, [r.value(c, "input")], red.ArgAttrs(c.need("axis"), c.get("keepDimensions", False), dtype))


def _softmax(r: Reader, c: Call) -> Value:
    """Before the axis became an argument, softmax took a matrix and worked on its rows."""
    x = r.value(c, "input")
    axis = c.get("axis", 1) if x.type.rank == 2 else c.need("axis")
    return r.emit(sm.SOFTMAX, [x], sm.SoftmaxAttrs(axis))


def _matmul(r: Reader, c: Call) -> Value:
    return r.emit(mm.MATMUL, [r.value(c, "a"), r.value(c, "b")], mm.MatmulAttrs())


def _gemm(r: Reader, c: Call) -> Value:
    """alpha * A * B + beta * C"""
    attrs = mm.MatmulAttrs(c.get("aTranspose", False), c.get("bTranspose", False))
    y = r.emit(mm.MATMUL, [r.value(c, "a"), r.value(c, "b")], attrs)
    alpha, beta, addend = c.get("alpha", 1.0), c.get("beta", 1.0), r.optional(c, "c")
    if alpha != 1.0:
        y = r.unary(ew.LINEAR, y, alpha, 0.0)
    if addend is None:
        return y
    scaled = addend if beta == 1.0 else r.unary(ew.LINEAR, addend, beta, 0.0)
    return r.emit(ew.ADD, [y, scaled], ew.BinaryAttrs())


def _along(r: Reader, x: Value, axes: Sequence[int], like: Value) -> Value:
    """A scale or bias whose axes are those of `like` named by `axes`, in that order, made to broadcast."""
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    x = r.transpose(x, order) if x.type.rank == len(axes) else x
    return r.reshape(x, [d if i in axes else 1 for i, d in enumerate(like.type.shape)])


def _scaled(r: Reader, c: Call, y: Value, axes: Sequence[int]) -> Value:
    for argument, op in (("scale", ew.MUL), ("bias", ew.ADD)):
        operand = r.optional(c, argument)
        if operand is not None:
            y = r.emit(op, [y, _along(r, operand, axes, y)], ew.BinaryAttrs())
    return y


def _normalized(r: Reader, c: Call, centered: Value, variance: Value) -> Value:
    epsilon = r.number(c.get("epsilon", 1e-5), variance)
    deviation = r.unary(ew.SQRT, r.emit(ew.ADD, [variance, epsilon], ew.BinaryAttrs()))
    return r.emit(ew.DIV, [centered, deviation], ew.BinaryAttrs())


def _batch_normalization(r: Reader, c: Call) -> Value:
    x, axis = r.value(c, "input"), c.get("axis", 1)
    mean, variance = (_along(r, r.value(c, name), [axis], x) for name in ("mean", "variance"))
    centered = r.emit(ew.SUB, [x, mean], ew.BinaryAttrs())
    return _scaled(r, c, _normalized(r, c, centered, variance), [axis])


def _over(r: Reader, c: Call, x: Value, axes: Sequence[int], parameter_axes: Sequence[int]) -> Value:
    """x less its mean, over its deviation, both along `axes`; then scale and bias."""
    attrs = red.ReduceAttrs(tuple(sorted(axes)), keep_dims=True)
    mean = r.emit(red.REDUCE_MEAN, [x], attrs)
    centered = r.emit(ew.SUB, [x, mean], ew.BinaryAttrs())
    variance = r.emit(red.REDUCE_MEAN, [r.unary(ew.SQUARE, centered)], attrs)
    return _scaled(r, c, _normalized(r, c, centered, variance), parameter_axes)


def _instance_normalization(r: Reader, c: Call) -> Value:
    channel = 3 if c.get("layout", "nchw") == "nhwc" else 1
    return _over(r, c, r.value(c, "input"), [i for i in (1, 2, 3) if i != channel], [channel])


def _layer_normalization(r: Reader, c: Call) -> Value:
    x = r.value(c, "input")
    axes = c.get("axes", range(1, x.type.rank))
    return _over(r, c, x, list(axes), list(axes))


OPERATORS: dict[str, Handler] = {
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(PARAMETRIC, _parametric),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(COMPARISON, _comparison),
    **dict.fromkeys(LOGICAL, _logical),
    **dict.fromkeys(QUESTION, _question),
    **dict.fromkeys(REDUCTION, _reduction),
    "argMax": _arg,
    "argMin": _arg,
    "batchNormalization": _batch_normalization,
    "gemm": _gemm,
    "instanceNormalization": _instance_normalization,
    "layerNormalization": _layer_normalization,
    "matmul": _matmul,
    "prelu": _prelu,
    "softmax": _softmax,
    **images.HANDLERS,
    **recurrent.HANDLERS,
    **shaping.HANDLERS,
}
