"""TFLite operators that compute element by element: arithmetic, comparisons, activations, conversions of type."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.angles import arctangent
from webinfer.importers.core.steps import QUANTIZED
from webinfer.importers.tflite.operation import Convert, Operation, Row
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.ops.registry import NoAttrs

SMALL = 16  # elements of a constant that is read at once, as it may be a threshold


def _unary(target: Op, *, only_float: bool = False, a: float = 0.0, b: float = 0.0) -> Convert:
    """A formula of one operand; `only_float` ones run on dequantised values where the operand is quantised."""

    def convert(op: Operation) -> Value:
        x = op.value(0)
        if not op.quantized(x):
            return op.unary(target, x, a, b)
        if only_float:
            return op.in_float(lambda v: op.unary(target, v[0], a, b), [x])
        return op.emit(target, [x], ew.UnaryAttrs(a, b, op.out_type()))

    return convert


def _log(op: Operation) -> Value:
    """A logarithm. Of a stored number that stands for nothing positive it is the least that the result's type holds."""
    x = op.value(0)
    if not op.quantized(x):
        return op.unary(ew.LOG, x)
    assert x.type.quant is not None
    positive = op.emit(ew.RELU, [x], ew.UnaryAttrs(out_type=(x.type.dtype, x.type.quant)))
    return op.emit(ew.LOG, [positive], ew.UnaryAttrs(out_type=op.out_type()))


def _binary(target: Op, *, fused: bool = False, to_bool: bool = False, only_float: bool = False) -> Convert:
    """A formula of two operands that broadcast."""

    def convert(op: Operation) -> Value:
        operands = [op.value(0), op.value(1)]
        if to_bool:
            if operands[0].type.quant != operands[1].type.quant and operands[0].type.dtype is not DType.INT16:
                operands = [op.as_float(v) for v in operands]  # equal scales keep the order of stored numbers
            return op.binary(target, *operands)
        activation = op.fused_clamp() if fused else Activation.NONE
        if target is not ew.DIV and all(v.type.dtype is DType.INT16 and v.type.quant is None for v in operands):
            wide = [op.cast(v, DType.INT32) for v in operands]  # numbers that stand for themselves
            return op.cast(op.activate(op.binary(target, *wide), activation), DType.INT16)
        quantized = [op.quantized(v) for v in operands]
        if only_float and any(quantized):
            return op.in_float(lambda v: op.activate(op.binary(target, *v), activation), operands)
        return op.emit(target, operands, ew.BinaryAttrs(activation, op.out_type()))

    return convert


def _leaky_relu(op: Operation) -> Value:
    x = op.value(0)
    if op.quantized(x) and x.type.dtype is DType.INT16:
        return op.in_float(lambda v: op.unary(ew.LEAKY_RELU, v[0], op.real("alpha")), [x])
    return op.emit(ew.LEAKY_RELU, [x], ew.UnaryAttrs(op.real("alpha"), 0.0, op.out_type()))


def _sqrt(op: Operation) -> Value:
    """LiteRT cuts the parts of stored roots off."""
    x, out = op.value(0), op.out_type()
    if not op.quantized(x) or out is None or out[1] is None:
        return op.unary(ew.SQRT, x)
    root, scale = op.unary(ew.SQRT, op.as_float(x)), out[1].scales[0]
    whole = op.unary(ew.FLOOR, op.binary(ew.DIV, root, op.scalar_of(scale, DType.FLOAT32)))
    return op.emit(ew.QUANTIZE, [op.unary(ew.LINEAR, whole, scale)], ew.CastAttrs(*out))


def _gelu(op: Operation) -> Value:
    x = op.value(0)
    if not op.flag("approximate"):
        return op.in_float(lambda v: op.unary(ew.GELU, v[0]), [x])
    return op.in_float(lambda v: _gelu_tanh(op, v[0]), [x])


def _gelu_tanh(op: Operation, x: Value) -> Value:
    """0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))"""
    slope = math.sqrt(2 / math.pi)
    square = op.unary(ew.SQUARE, x)
    factor = op.unary(ew.LINEAR, square, 0.044715 * slope, slope)
    inner = op.binary(ew.MUL, x, factor)
    half = op.unary(ew.LINEAR, op.unary(ew.TANH, inner), 0.5, 0.5)
    return op.binary(ew.MUL, x, half)


def _prelu(op: Operation) -> Value:
    x, slope = op.value(0), op.value(1)
    if op.quantized(x):
        op.quantized(slope)
        return op.emit(ew.PRELU, [x, slope], ew.BinaryAttrs(out_type=op.out_type()))
    return op.binary(ew.PRELU, x, op.as_float(slope))


def _add_n(op: Operation) -> Value:
    first = op.value(0)
    for value in op.values()[1:]:
        first = op.binary(ew.ADD, first, value)
    return first


def _select(op: Operation) -> Value:
    """SELECT broadcasts a condition of rank 1 along the first axis, SELECT_V2 as NumPy does."""
    condition, x, y = op.value(0), op.value(1), op.value(2)
    if op.info.name == "SELECT" and condition.type.rank == 1 and x.type.rank > 1:
        condition = op.reshape(condition, (*condition.type.shape, *(1 for _ in x.type.shape[1:])))
    return op.emit(ew.WHERE, [condition, x, y], NoAttrs())


def _cast(op: Operation) -> Value:
    x, out = op.value(0), op.declared()
    if x.type.dtype is out.dtype:
        return x
    return op.emit(ew.CAST, [x], ew.CastAttrs(out.dtype))


def _quantize(op: Operation) -> Value:
    x, out = op.value(0), op.out_type()
    if out is None:
        declared = op.declared()
        if declared.dtype is not DType.INT32 or declared.quant is None:
            op.refuse(f"a result of {declared.dtype} without a scale")
        out = (declared.dtype, declared.quant)
    if not x.type.dtype.is_float:
        op.quantized(x)
    return op.emit(ew.QUANTIZE, [x], ew.CastAttrs(*out))


def _dequantize(op: Operation) -> Value:
    x = op.value(0)
    if x.type.dtype in QUANTIZED:
        op.quantized(x)
    elif x.type.dtype is DType.FLOAT32:
        return x
    elif x.constant is not None and x.type.dtype is DType.FLOAT16 and x.type.size <= SMALL:
        return op.constant(x.numbers(), DType.FLOAT32, x.type.shape)
    elif x.type.dtype is not DType.FLOAT16 and x.type.quant is None:
        op.fail(f"x is {x.type.dtype} and has no scale")
    return op.emit(ew.DEQUANTIZE, [x], ew.CastAttrs(DType.FLOAT32))


def _fake_quant(op: Operation) -> Value:
    """Rounds to one of 2^bits levels between min and max, moved so that zero is one of them.

    Source:  tensorflow v2.18, lite/kernels/internal/quantization_util.h, NudgeQuantizationRange
    """
    low, high, bits = op.real("min"), op.real("max"), op.number("num_bits")
    bottom, top = (1 if op.flag("narrow_range") else 0), 2**bits - 1 if 2 <= bits <= 16 else 0
    if top <= bottom or not low < high or not math.isfinite(high - low):
        op.fail(f"{bits} bits from {low} to {high} make no levels")
    scale = (high - low) / (top - bottom)
    zero = round(min(max(bottom - low / scale, bottom), top))
    clamped = op.unary(ew.CLAMP, op.value(0), (bottom - zero) * scale, (top - zero) * scale)
    level = op.unary(ew.LINEAR, clamped, 1 / scale, 0.0)
    # floor(x + 0.5) from the lowest level on, as the kernel rounds
    floor = op.unary(ew.FLOOR, op.unary(ew.LINEAR, level, 1.0, 0.5))
    return op.unary(ew.LINEAR, floor, scale, 0.0)


CONVERTERS: dict[str, Row] = {
    "ABS": (_unary(ew.ABS), ""),
    "ADD": (_binary(ew.ADD, fused=True), "AddOptions"),
    "ADD_N": (_add_n, ""),
    "ATAN2": (lambda op: arctangent(op, op.value(0), op.value(1)), ""),
    "CAST": (_cast, "CastOptions"),
    "CEIL": (_unary(ew.CEIL), ""),
    "COS": (_unary(ew.COS, only_float=True), ""),
    "DEQUANTIZE": (_dequantize, ""),
    "DIV": (_binary(ew.DIV, fused=True, only_float=True), "DivOptions"),
    "ELU": (_unary(ew.ELU, a=1.0), ""),
    "EQUAL": (_binary(ew.EQUAL, to_bool=True), ""),
    "EXP": (_unary(ew.EXP), ""),
    "FAKE_QUANT": (_fake_quant, "FakeQuantOptions"),
    "FLOOR": (_unary(ew.FLOOR), ""),
    "FLOOR_DIV": (_binary(ew.FLOOR_DIV, only_float=True), ""),
    "FLOOR_MOD": (_binary(ew.FLOOR_MOD, only_float=True), ""),
    "GELU": (_gelu, "GeluOptions"),
    "GREATER": (_binary(ew.GREATER, to_bool=True), ""),
    "GREATER_EQUAL": (_binary(ew.GREATER_EQUAL, to_bool=True), ""),
    "HARD_SWISH": (_unary(ew.HARD_SWISH), ""),
    "LEAKY_RELU": (_leaky_relu, "LeakyReluOptions"),
    "LESS": (_binary(ew.LESS, to_bool=True), ""),
    "LESS_EQUAL": (_binary(ew.LESS_EQUAL, to_bool=True), ""),
    "LOG": (_log, ""),
    "LOGICAL_AND": (_binary(ew.LOGICAL_AND, to_bool=True), ""),
    "LOGICAL_NOT": (_unary(ew.LOGICAL_NOT), ""),
    "LOGICAL_OR": (_binary(ew.LOGICAL_OR, to_bool=True), ""),
    "LOGISTIC": (_unary(ew.SIGMOID), ""),
    "MAXIMUM": (_binary(ew.MAXIMUM), ""),
    "MINIMUM": (_binary(ew.MINIMUM), ""),
    "MUL": (_binary(ew.MUL, fused=True), "MulOptions"),
    "NEG": (_unary(ew.NEG), ""),
    "NOT_EQUAL": (_binary(ew.NOT_EQUAL, to_bool=True), ""),
    "POW": (_binary(ew.POW, only_float=True), ""),
    "PRELU": (_prelu, ""),
    "QUANTIZE": (_quantize, ""),
    "RELU": (_unary(ew.RELU), ""),
    "RELU6": (_unary(ew.RELU6), ""),
    "RELU_0_TO_1": (_unary(ew.CLAMP, a=0.0, b=1.0), ""),
    "RELU_N1_TO_1": (_unary(ew.RELU_N1_TO_1), ""),
    "ROUND": (_unary(ew.ROUND_EVEN, only_float=True), ""),
    "RSQRT": (_unary(ew.RSQRT), ""),
    "SELECT": (_select, ""),
    "SELECT_V2": (_select, ""),
    "SIGN": (_unary(ew.SIGN, only_float=True), ""),
    "SIN": (_unary(ew.SIN, only_float=True), ""),
    "SQRT": (_sqrt, ""),
    "SQUARE": (_unary(ew.SQUARE, only_float=True), ""),
    "SQUARED_DIFFERENCE": (_binary(ew.SQUARED_DIFFERENCE, only_float=True), ""),
    "SUB": (_binary(ew.SUB, fused=True), "SubOptions"),
    "TANH": (_unary(ew.TANH), ""),
}
