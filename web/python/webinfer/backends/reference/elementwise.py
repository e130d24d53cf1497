"""Elementwise operators: one formula each, computed in float64 for floats. Quantised tensors: quantized.py."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from webinfer.backends.reference import quantized
from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, saturated, single, wide
from webinfer.graph.ir import Node, Op
from webinfer.ops import elementwise as ops
from webinfer.ops.activation import Activation, integer_bounds

_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    """The error function of every element."""
    return np.asarray(_erf(x)).astype(np.float64)


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0 / (1.0 + small), small / (1.0 + small))


def hard_swish(x: Array) -> Array:
    """x * clip(x + 3, 0, 6) / 6."""
    return single(x * np.clip(x + 3.0, 0.0, 6.0)) / 6.0


def gelu(x: Array) -> Array:
    """x/2 * (1 + erf(x / sqrt 2)); of minus infinity its limit, zero."""
    return np.where(np.isneginf(x), -0.0, 0.5 * x * (1.0 + erf(x / math.sqrt(2.0))))


def activate(x: Array, activation: Activation, slope: Array | None = None) -> Array:
    """The activation of a result; `slope` is PReLU's, one number a channel of the last axis."""
    bounds = activation.bounds
    if bounds is not None:
        low, high = bounds
        if math.isinf(low) and math.isinf(high):
            return x
        return np.clip(x, low, high) if x.dtype.kind == "f" else _clamp(x, low, high)  # as a float it would lose digits
    if activation is Activation.PRELU:
        return np.where(x >= 0, x, x * wide(required(slope)).reshape(-1))
    return _EPILOGUES[activation](x)


_EPILOGUES: dict[Activation, Callable[[Array], Array]] = {
    Activation.HARD_SWISH: hard_swish,
    Activation.SIGMOID: sigmoid,
    Activation.TANH: np.tanh,
    Activation.SILU: lambda x: x * sigmoid(x),
}


def _clamp(x: Array, a: float, b: float) -> Array:
    if x.dtype.kind != "f":  # bounds may lie outside the integer type
        info = np.iinfo(x.dtype)
        low, high = integer_bounds(a, b, int(info.min), int(info.max))
        return np.asarray(np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high)))
    return np.asarray(np.minimum(np.maximum(x, a), b))


UNARY: dict[Op, Callable[[Array, float, float], Array]] = {
    ops.ABS: lambda x, a, b: np.abs(x),
    ops.ACOS: lambda x, a, b: np.arccos(x),
    ops.ACOSH: lambda x, a, b: np.arccosh(x),
    ops.ASIN: lambda x, a, b: np.arcsin(x),
    ops.ASINH: lambda x, a, b: np.arcsinh(x),
    ops.ATAN: lambda x, a, b: np.arctan(x),
    ops.ATANH: lambda x, a, b: np.arctanh(x),
    ops.CEIL: lambda x, a, b: np.ceil(x),
    ops.CLAMP: _clamp,
    ops.COS: lambda x, a, b: np.cos(x),
    ops.COSH: lambda x, a, b: np.cosh(x),
    ops.ELU: lambda x, a, b: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0.0))),
    ops.ERF: lambda x, a, b: erf(x),
    ops.EXP: lambda x, a, b: np.exp(x),
    ops.FLOOR: lambda x, a, b: np.floor(x),
    ops.GELU: lambda x, a, b: gelu(x),
    ops.HARD_SIGMOID: lambda x, a, b: np.clip(a * x + b, 0.0, 1.0),
    ops.HARD_SWISH: lambda x, a, b: hard_swish(x),
    ops.IDENTITY: lambda x, a, b: x,
    ops.IS_INFINITE: lambda x, a, b: np.isinf(x),
    ops.IS_NAN: lambda x, a, b: np.isnan(x),
    ops.LEAKY_RELU: lambda x, a, b: np.where(x >= 0, x, a * x),
    ops.LINEAR: lambda x, a, b: single(a * x) + b,
    ops.LOG: lambda x, a, b: np.log(x),
    ops.LOGICAL_NOT: lambda x, a, b: x == 0,
    ops.GELU_TANH: lambda x, a, b: x * sigmoid(x * (1.5957691216057308 + 0.07135481282553 * np.square(x))),
    ops.MISH: lambda x, a, b: x * np.tanh(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))),
    ops.NEG: lambda x, a, b: np.negative(x),
    ops.RECIPROCAL: lambda x, a, b: 1.0 / x,
    ops.RELU: lambda x, a, b: np.maximum(x, x.dtype.type(0)),
    ops.RELU6: lambda x, a, b: _clamp(x, 0.0, 6.0),
    ops.RELU_N1_TO_1: lambda x, a, b: _clamp(x, -1.0, 1.0),
    ops.ROUND_EVEN: lambda x, a, b: np.rint(x),
    ops.RSQRT: lambda x, a, b: 1.0 / np.sqrt(x),
    ops.SIGMOID: lambda x, a, b: sigmoid(x),
    ops.SIGN: lambda x, a, b: np.sign(x),
    ops.SIN: lambda x, a, b: np.sin(x),
    ops.SINH: lambda x, a, b: np.sinh(x),
    ops.SOFTPLUS: lambda x, a, b: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))),
    ops.SILU: lambda x, a, b: x * sigmoid(a * x),
    ops.SOFTSIGN: lambda x, a, b: x / (1.0 + np.abs(x)),
    ops.SQRT: lambda x, a, b: np.sqrt(x),
    ops.SQUARE: lambda x, a, b: x * x,
    ops.TAN: lambda x, a, b: np.tan(x),
    ops.TANH: lambda x, a, b: np.tanh(x),
}


def _pow(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.power(x, y)
    with np.errstate(all="ignore"):
        exact = np.power(x, np.maximum(y, 0).astype(x.dtype))
        inverse = np.where(np.abs(x) == 1, np.where(y % 2 == 0, x * x, x), 0)  # 1 / x^n as an integer
    return np.where(y < 0, inverse, exact).astype(x.dtype)


def _div(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return x / y
    down = _floor_div(x, y)  # a division by zero gives 0: no kernel may trap
    is_cut = (y != 0) & ((x < 0) != (y < 0)) & (down * y != x)
    return np.asarray(down + is_cut, x.dtype)


def _floor_div(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.floor(x / y)
    return np.where(y == 0, 0, x // np.where(y == 0, 1, y)).astype(x.dtype)


def _floor_mod(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.asarray(np.mod(x, y))
    return np.where(y == 0, 0, x % np.where(y == 0, 1, y)).astype(x.dtype)


BINARY: dict[Op, Callable[[Array, Array], Array]] = {
    ops.ADD: np.add,
    ops.BIT_AND: np.bitwise_and,
    ops.BIT_OR: np.bitwise_or,
    ops.BIT_XOR: np.bitwise_xor,
    ops.DIV: _div,
    ops.EQUAL: np.equal,
    ops.FLOOR_DIV: _floor_div,
    ops.FLOOR_MOD: _floor_mod,
    ops.GREATER: np.greater,
    ops.GREATER_EQUAL: np.greater_equal,
    ops.LESS: np.less,
    ops.LESS_EQUAL: np.less_equal,
    ops.LOGICAL_AND: lambda x, y: (x != 0) & (y != 0),
    ops.LOGICAL_OR: lambda x, y: (x != 0) | (y != 0),
    ops.LOGICAL_XOR: lambda x, y: (x != 0) ^ (y != 0),
    ops.MAXIMUM: np.maximum,
    ops.MINIMUM: np.minimum,
    ops.MUL: np.multiply,
    ops.NOT_EQUAL: np.not_equal,
    ops.POW: _pow,
    ops.PRELU: lambda x, y: np.where(x >= 0, x, x * y),
    ops.SQUARED_DIFFERENCE: lambda x, y: (x - y) * (x - y),
    ops.SUB: np.subtract,
}
COMPARISONS = {ops.EQUAL, ops.NOT_EQUAL, ops.GREATER, ops.GREATER_EQUAL, ops.LESS, ops.LESS_EQUAL}


def unary(inputs: Inputs, node: Node) -> list[Array]:
    """The formula of the node's operator on one input; the attributes `a` and `b` are its numbers."""
    x, formula = required(inputs[0]), UNARY[node.op]
    a, b = node.attrs.a, node.attrs.b
    if quantized.is_quantized(node) and node.op is not ops.IDENTITY:
        return [quantized.unary(lambda r: formula(r, a, b), x, node)]
    if x.dtype.kind != "f" and node.op in (ops.CEIL, ops.FLOOR, ops.ROUND_EVEN):
        return [x.copy()]
    return [rounded(formula(wide(x), a, b), node.output.type)]


def binary(inputs: Inputs, node: Node) -> list[Array]:
    """The formula of the node's operator on two inputs that broadcast, and its activation."""
    x, y = required(inputs[0]), required(inputs[1])
    if quantized.is_quantized(node):
        return [quantized.binary(BINARY[node.op], x, y, node)]
    result = BINARY[node.op](wide(x), wide(y))
    if node.attrs.activation is not Activation.NONE:
        result = activate(result, node.attrs.activation)
    return [rounded(result, node.output.type)]


def where(inputs: Inputs, node: Node) -> list[Array]:
    """Elements of the second input where the first is true, else of the third."""
    c, x, y = map(required, inputs)
    return [rounded(np.where(c, x, y), node.output.type)]


def cast(inputs: Inputs, node: Node) -> list[Array]:
    """The input in the output's element type: floats truncated and saturated."""
    return [saturated(required(inputs[0]), node.output.type.dtype)]


def bitcast(inputs: Inputs, node: Node) -> list[Array]:
    """The input's bits as another element type."""
    return [
        np.ascontiguousarray(required(inputs[0])).view(node.output.type.dtype.value).reshape(node.output.type.shape)
    ]


def quantize(inputs: Inputs, node: Node) -> list[Array]:
    """The stored integers nearest to the input: of floats, or of integers with another scale."""
    return [quantized.quantize(required(inputs[0]), node)]


def dequantize(inputs: Inputs, node: Node) -> list[Array]:
    """The real numbers that stored integers stand for."""
    x, source = required(inputs[0]), node.inputs[0]
    assert source is not None
    if source.type.quant is None:
        return [rounded(x, node.output.type)]
    return [rounded(quantized.real(x, source.type), node.output.type)]


LOWERINGS: dict[Op, Compute] = {
    **dict.fromkeys(UNARY, unary),
    **dict.fromkeys(BINARY, binary),
    ops.BITCAST: bitcast,
    ops.CAST: cast,
    ops.DEQUANTIZE: dequantize,
    ops.QUANTIZE: quantize,
    ops.WHERE: where,
}
