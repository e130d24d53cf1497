"""Elementwise operators on 8-bit quantised tensors: 256 results, computed once, in plain Python.

A backend needs one kernel for all of them: y[i] = table[x[i]]. Tables are indexed by the stored
byte, so int8 values -128..-1 stand at 128..255.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable

from webinfer.dtypes import DType, round_to_f32
from webinfer.errors import ShapeError
from webinfer.expr.formula import CONSTANT, A, B, Formula
from webinfer.graph.ir import Quantization, TensorType
from webinfer.ops import elementwise as ew
from webinfer.ops.elementwise import ROWS, UnaryAttrs

# Operators that clamp, by name.
_CLAMPS = {
    ew.RELU.name: (0.0, math.inf), ew.RELU6.name: (0.0, 6.0), ew.RELU_N1_TO_1.name: (-1.0, 1.0),
}  # fmt: skip


def _quotient(a: float, b: float) -> float:
    return a / b if b else math.inf * a if a else math.nan


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _sigmoid(x: float) -> float:
    small = math.exp(-abs(x))
    return 1.0 / (1.0 + small) if x >= 0 else small / (1.0 + small)


_PRIMITIVES: dict[str, Callable[..., float]] = {
    "*": operator.mul, "+": operator.add, "-": operator.sub, "/": _quotient, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "abs": abs, "ceil": math.ceil,
    "clamp": lambda x, low, high: min(max(x, low), high),
    "cos": math.cos, "erf": math.erf,
    "exp": lambda x: math.exp(min(x, 700.0)),
    "expm1": lambda x: math.expm1(min(x, 700.0)),
    "floor": math.floor,
    "gelu": lambda x: 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0))),
    "log": lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else math.nan,
    "log1p": lambda x: math.log1p(x) if x > -1 else math.nan,
    "max": max, "min": min, "neg": operator.neg, "round_even": round,
    "rsqrt": lambda x: _quotient(1.0, _root(x)),
    "select": lambda condition, yes, no: yes if condition else no,
    "sigmoid": _sigmoid,
    "sign": lambda x: (x > 0) - (x < 0),
    "sin": math.sin, "sqrt": _root, "tan": math.tan, "tanh": math.tanh,
}  # fmt: skip


def _function(formula: Formula, attrs: UnaryAttrs) -> Callable[[float], float]:
    """What computes the formula of a unary operator."""
    numbers = {CONSTANT: formula.value, A.name: attrs.a, B.name: attrs.b}
    if formula.name in numbers:
        number = numbers[formula.name]
        return lambda x: number
    if not formula.parts:
        return lambda x: x
    parts = [_function(part, attrs) for part in formula.parts]
    if formula.name == "keep_nan":  # no stored value stands for a NaN
        return parts[1]
    compute, first = _PRIMITIVES[formula.name], parts[0]
    if len(parts) == 1:
        return lambda x: compute(first(x))
    if len(parts) == 2:
        second = parts[1]
        return lambda x: compute(first(x), second(x))
    return lambda x: compute(*[part(x) for part in parts])


def lookup_table(op: str, attrs: UnaryAttrs, x: TensorType, y: TensorType) -> bytes:
    """256 stored results, at the positions of the stored bytes; "quantize" changes the scale.

    Raises:  ShapeError if the types are not 8-bit with one scale each, the operator has no formula, or its numbers are
             too large to compute with
    """
    try:
        results = _results(op, attrs, x, y)
    except (ArithmeticError, ValueError) as error:
        raise ShapeError(f"{op}: there is no table from {x} to {y} with {attrs}: {error}") from None
    return struct.pack(f"256{y.dtype.letter}", *results)


def _results(op: str, attrs: UnaryAttrs, x: TensorType, y: TensorType) -> list[int]:
    source, target = _affine(op, x), _affine(op, y)
    if op == ew.HARD_SWISH.name:
        stored = _hard_swish(x, source, target)
    elif op == ew.LEAKY_RELU.name:
        stored = _leaky_relu(x, source, target, attrs.a)
    elif op == ew.ABS.name:
        rescaled = _multiplied(source[0] / target[0])
        stored = lambda q: rescaled(abs(q - source[1])) + target[1]  # noqa: E731
    elif (bounds := clamp_bounds(op, attrs)) is not None:
        stored = _clamp(source, target, bounds)
    elif op == ew.QUANTIZE.name:
        stored = _rescale(x, y, source, target)
    elif (formula := _number_formula(op)) is not None:
        function = _function(formula, attrs)
        stored = lambda q: _store(function(source[0] * (q - source[1])) / target[0]) + target[1]  # noqa: E731
    else:
        raise ShapeError(f"{op}: there is no formula for quantised tensors")
    low, high = y.dtype.range
    return [min(max(stored(_value(byte, x.dtype)), low), high) for byte in range(256)]


def clamp_bounds(op: str, attrs: UnaryAttrs) -> tuple[float, float] | None:
    """The bounds of a clamp, which TFLite rescales in fixed point; None for all other operators."""
    if op == ew.CLAMP.name:
        return attrs.a, attrs.b
    return _CLAMPS.get(op)


def _number_formula(op: str) -> Formula | None:
    """The formula of a unary operator whose results are numbers."""
    row = ROWS.get(op)
    return row.formula if row is not None and row.attrs is UnaryAttrs and not row.gives_truth else None


def _affine(op: str, type: TensorType) -> tuple[float, int]:
    quant: Quantization | None = type.quant
    if type.dtype not in (DType.INT8, DType.UINT8) or quant is None or len(quant.scales) != 1:
        raise ShapeError(f"{op}: {type} is not an 8-bit tensor with one scale")
    return quant.scales[0], quant.zero_points[0] if quant.zero_points else 0


def _value(byte: int, dtype: DType) -> int:
    return byte - 256 if dtype is DType.INT8 and byte > 127 else byte


def _multiplied(ratio: float) -> Callable[[int], int]:
    """What multiplies a 32-bit number by a ratio of scales, in two roundings, halves away from zero.

    Source:  tensorflow v2.18.0, lite/kernels/internal, QuantizeMultiplier and MultiplyByQuantizedMultiplier
    """
    fraction, exponent = math.frexp(ratio)
    factor = math.floor(fraction * 2.0**31 + 0.5)
    left, right = max(exponent, 0), max(-exponent, 0)

    def multiplied(d: int) -> int:
        high = ((d << left) * factor + (1 << 30)) >> 31
        return _divided_by_power(high, right)

    return multiplied


def _clamp(source: tuple[float, int], target: tuple[float, int], bounds: tuple[float, float]) -> Callable[[int], int]:
    """TFLite's clamp of stored numbers.

    Source:  tensorflow v2.18.0, lite/kernels/activations.cc, QuantizedReluX
    """
    rescaled = _multiplied(source[0] / target[0])
    low, high = (
        target[1] + math.floor(abs(b) / target[0] + 0.5) * (1 if b > 0 else -1) if math.isfinite(b) else b
        for b in bounds
    )
    return lambda q: round(min(max(rescaled(q - source[1]) + target[1], low, -1e6), high, 1e6))


def _store(y: float) -> int:
    """The nearest integer, ties to even; infinities become numbers that saturate."""
    return round(min(max(y, -1e6), 1e6)) if y == y else 0


def _leaky_relu(
    x: TensorType, source: tuple[float, int], target: tuple[float, int], slope: float
) -> Callable[[int], int]:
    """XNNPACK's factors of 8 fractional bits."""
    ratio = round_to_f32(source[0] / target[0])
    steep, flat = round(256 * ratio), round(round_to_f32(256 * round_to_f32(ratio * round_to_f32(slope))))

    def stored(q: int) -> int:
        d = q - source[1]
        return ((d * (steep if d >= 0 else flat) + 128) >> 8) + target[1]

    return stored


def _rescale(
    x: TensorType, y: TensorType, source: tuple[float, int], target: tuple[float, int]
) -> Callable[[int], int]:
    """Between tensors of one type XNNPACK's factor of 8 fractional bits, else the nearest integer."""
    ratio = round_to_f32(source[0] / target[0])
    factor = round(256 * ratio)
    if x.dtype is y.dtype and 2.0**-8 <= ratio < 128.0:
        return lambda q: (((q - source[1]) * factor + 128) >> 8) + target[1]
    return lambda q: _store(round_to_f32((q - source[1]) * ratio)) + target[1]


def _hard_swish(x: TensorType, source: tuple[float, int], target: tuple[float, int]) -> Callable[[int], int]:
    """TFLite's 16-bit fixed point.

    Source:  tensorflow/lite/kernels/internal/reference/hard_swish.h (the arithmetic, not the text)
    """
    fine = round_to_f32(round_to_f32(1.0 / 128.0) * source[0])
    out_factor, out_shift = _factor16(round_to_f32(fine / target[0]))
    in_factor, in_shift = _factor16(round_to_f32(fine / round_to_f32(3.0 / 32768.0)))

    def stored(q: int) -> int:
        wide = (q - source[1]) * 128
        gate = wide
        if in_shift > 0:
            gate = _int16(gate << (in_shift - 1))
        gate = _high_product(gate, in_factor)
        if in_shift > 0:
            gate = _int16(gate << 1)
        elif in_shift < 0:
            gate = _divided_by_power(gate, -in_shift)
        gate = (gate + 32768) >> 1
        product = (gate * _high_product(wide, out_factor)) // 32768  # truncated below for negatives
        if product < 0 and (gate * _high_product(wide, out_factor)) % 32768:
            product += 1
        return _divided_by_power(_int16(product), -out_shift) + target[1]

    return stored


def _factor16(x: float) -> tuple[int, int]:
    """x as a 16-bit fraction of 2**15 times a power of two."""
    fraction, exponent = math.frexp(x)
    bits = math.floor(fraction * 2.0**31 + 0.5)
    if bits == 2**31:
        bits, exponent = bits // 2, exponent + 1
    return min((bits + 32768) >> 16, 32767), exponent


def _int16(x: int) -> int:
    return min(max(x, -32768), 32767)


def _high_product(a: int, b: int) -> int:
    """The upper half of twice the 16-bit product, rounded, halves up."""
    if a == b == -32768:
        return 32767
    twice = a * b
    nudged = twice + (16384 if twice >= 0 else 1 - 16384)
    return nudged // 32768 if nudged >= 0 else -(-nudged // 32768)


def _divided_by_power(x: int, times: int) -> int:
    """x / 2**times, rounded to the nearest, ties away from zero."""
    if times <= 0:
        return x
    rest, half = x & ((1 << times) - 1), (1 << times) >> 1
    return (x >> times) + (1 if rest > half - 1 + (1 if x < 0 else 0) else 0)
