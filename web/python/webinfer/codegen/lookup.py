"""Elementwise operators on 8-bit quantised tensors: 256 results, computed once, in plain Python.

A backend needs one kernel for all of them: y[i] = table[x[i]]. Tables are indexed by the stored
byte, so int8 values -128..-1 stand at 128..255.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Quantization, TensorType
from webinfer.ops import elementwise as ew
from webinfer.ops.elementwise import UnaryAttrs

Formula = Callable[[float, UnaryAttrs], float]


def _sigmoid(x: float) -> float:
    small = math.exp(-abs(x))
    return 1.0 / (1.0 + small) if x >= 0 else small / (1.0 + small)


def _reciprocal(x: float) -> float:
    return 1.0 / x if x else math.inf


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


FORMULAS: dict[str, Formula] = {
    ew.ABS.name: lambda x, a: abs(x),
    ew.CEIL.name: lambda x, a: math.ceil(x),
    ew.CLAMP.name: lambda x, a: min(max(x, a.a), a.b),
    ew.COS.name: lambda x, a: math.cos(x),
    ew.ELU.name: lambda x, a: x if x > 0 else a.a * math.expm1(x),
    ew.ERF.name: lambda x, a: math.erf(x),
    ew.EXP.name: lambda x, a: math.exp(min(x, 700.0)),
    ew.FLOOR.name: lambda x, a: math.floor(x),
    ew.GELU.name: lambda x, a: 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0))),
    ew.HARD_SIGMOID.name: lambda x, a: min(max(a.a * x + a.b, 0.0), 1.0),
    ew.IDENTITY.name: lambda x, a: x,
    ew.LINEAR.name: lambda x, a: a.a * x + a.b,
    ew.LOG.name: lambda x, a: _log(x),
    ew.NEG.name: lambda x, a: -x,
    ew.RECIPROCAL.name: lambda x, a: _reciprocal(x),
    ew.RELU.name: lambda x, a: max(x, 0.0),
    ew.RELU6.name: lambda x, a: min(max(x, 0.0), 6.0),
    ew.RELU_N1_TO_1.name: lambda x, a: min(max(x, -1.0), 1.0),
    ew.ROUND_EVEN.name: lambda x, a: round(x),
    ew.RSQRT.name: lambda x, a: _reciprocal(_root(x)),
    ew.SIGMOID.name: lambda x, a: _sigmoid(x),
    ew.SIGN.name: lambda x, a: (x > 0) - (x < 0),
    ew.SIN.name: lambda x, a: math.sin(x),
    ew.SOFTPLUS.name: lambda x, a: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
    ew.SOFTSIGN.name: lambda x, a: x / (1.0 + abs(x)),
    ew.SQRT.name: lambda x, a: _root(x),
    ew.SQUARE.name: lambda x, a: x * x,
    ew.TAN.name: lambda x, a: math.tan(x),
    ew.TANH.name: lambda x, a: math.tanh(x),
}


def lookup_table(op: str, attrs: UnaryAttrs, x: TensorType, y: TensorType) -> bytes:
    """256 stored results, at the positions of the stored bytes; "quantize" changes the scale.

    Raises:  ShapeError if the types are not 8-bit with one scale each, or the operator has no formula.
    """
    source, target = _affine(op, x), _affine(op, y)
    if op == ew.HARD_SWISH.name:
        stored = _hard_swish(x, source, target)
    elif op == ew.LEAKY_RELU.name:
        stored = _leaky_relu(x, source, target, attrs.a)
    elif op == ew.QUANTIZE.name:
        stored = _rescale(x, y, source, target)
    elif op in FORMULAS:
        stored = lambda q: _store(FORMULAS[op](source[0] * (q - source[1]), attrs) / target[0]) + target[1]  # noqa: E731
    else:
        raise ShapeError(f"{op}: there is no formula for quantised tensors")
    low, high = y.dtype.range
    results = [min(max(stored(_value(byte, x.dtype)), low), high) for byte in range(256)]
    return struct.pack(f"256{y.dtype.letter}", *results)


def _affine(op: str, type: TensorType) -> tuple[float, int]:
    quant: Quantization | None = type.quant
    if type.dtype not in (DType.INT8, DType.UINT8) or quant is None or len(quant.scales) != 1:
        raise ShapeError(f"{op}: {type} is not an 8-bit tensor with one scale")
    return quant.scales[0], quant.zero_points[0] if quant.zero_points else 0


def _value(byte: int, dtype: DType) -> int:
    return byte - 256 if dtype is DType.INT8 and byte > 127 else byte


def _store(y: float) -> int:
    """The nearest integer, ties to even; infinities become numbers that saturate."""
    return round(min(max(y, -1e6), 1e6)) if y == y else 0


def _leaky_relu(
    x: TensorType, source: tuple[float, int], target: tuple[float, int], slope: float
) -> Callable[[int], int]:
    """XNNPACK's factors of 8 fractional bits."""
    ratio = _f32(source[0] / target[0])
    steep, flat = round(256 * ratio), round(_f32(256 * _f32(ratio * _f32(slope))))

    def stored(q: int) -> int:
        d = q - source[1]
        return ((d * (steep if d >= 0 else flat) + 128) >> 8) + target[1]

    return stored


def _rescale(
    x: TensorType, y: TensorType, source: tuple[float, int], target: tuple[float, int]
) -> Callable[[int], int]:
    """Between tensors of one type XNNPACK's factor of 8 fractional bits, else the nearest integer."""
    ratio = _f32(source[0] / target[0])
    factor = round(256 * ratio)
    if x.dtype is y.dtype and 2.0**-8 <= ratio < 128.0:
        return lambda q: (((q - source[1]) * factor + 128) >> 8) + target[1]
    return lambda q: _store(_f32((q - source[1]) * ratio)) + target[1]


def _hard_swish(x: TensorType, source: tuple[float, int], target: tuple[float, int]) -> Callable[[int], int]:
    """TFLite's 16-bit fixed point.

    Source:  tensorflow/lite/kernels/internal/reference/hard_swish.h (the arithmetic, not the text)
    """
    fine = _f32(_f32(1.0 / 128.0) * source[0])
    out_factor, out_shift = _factor16(_f32(fine / target[0]))
    in_factor, in_shift = _factor16(_f32(fine / _f32(3.0 / 32768.0)))

    def stored(q: int) -> int:
        wide = (q - source[1]) * 128
        gate = wide
        if in_shift > 0:
            gate = _int16(gate << (in_shift - 1))
        gate = _high_product(gate, in_factor)
        if in_shift > 0:
            gate = _int16(gate << 1)
        elif in_shift < 0:
            gate = _halved(gate, -in_shift)
        gate = (gate + 32768) >> 1
        product = (gate * _high_product(wide, out_factor)) // 32768  # truncated below for negatives
        if product < 0 and (gate * _high_product(wide, out_factor)) % 32768:
            product += 1
        return _halved(_int16(product), -out_shift) + target[1]

    return stored


def _f32(x: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", x))[0])


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


def _halved(x: int, times: int) -> int:
    """x / 2**times, rounded to the nearest, ties away from zero."""
    if times <= 0:
        return x
    rest, half = x & ((1 << times) - 1), (1 << times) >> 1
    return (x >> times) + (1 if rest > half - 1 + (1 if x < 0 else 0) else 0)
