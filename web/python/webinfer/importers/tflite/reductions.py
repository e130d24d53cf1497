"""Operators that run along an axis: sums, extremes, positions, softmax, normalisation."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Op, Value
from webinfer.importers.tflite.operation import QUANTIZED, Convert, Operation, Row
from webinfer.importers.tflite.schema import DTYPES
from webinfer.importers.tflite.windows import activate
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops import pool, reduce, scan, softmax
from webinfer.ops.activation import Activation


def _reduce(target: Op, only_float: bool = False) -> Convert:
    def convert(op: Operation) -> Value:
        x = op.value(0)
        axes, keep = op.axes(1, x.type.rank), op.flag("keep_dims")
        if op.quantized(x) and only_float:
            return op.in_float(lambda v: op.emit(target, v, reduce.ReduceAttrs(axes, keep)), [x])
        out = op.out_type() if op.quantized(x) else None
        return op.emit(target, [x], reduce.ReduceAttrs(axes, keep, out))

    return convert


def _arg(target: Op) -> Convert:
    def convert(op: Operation) -> Value:
        x = op.value(0)
        axis = op.axis(op.integer(1), x.type.rank)
        dtype = DTYPES.get(op.number("output_type"), DType.INT32)
        return op.emit(target, [x], reduce.ArgAttrs(axis, False, dtype if dtype is DType.INT64 else DType.INT32))

    return convert


def _softmax(op: Operation) -> Value:
    x = op.value(0)
    op.quantized(x)
    axis = op.axis(-1, x.type.rank)
    return op.emit(softmax.SOFTMAX, [x], softmax.SoftmaxAttrs(axis, op.real("beta"), op.out_type()))


def _log_softmax(op: Operation) -> Value:
    x = op.value(0)
    attrs = softmax.SoftmaxAttrs(op.axis(-1, x.type.rank))
    return op.in_float(lambda v: op.emit(softmax.LOG_SOFTMAX, v, attrs), [x])


def _l2_normalization(op: Operation) -> Value:
    """x / max(sqrt(sum x^2), 1e-6) along the last axis."""
    x, activation = op.value(0), op.activation()
    axis = op.axis(-1, x.type.rank)

    def compute(v: list[Value]) -> Value:
        norm = op.emit(reduce.REDUCE_L2, v, reduce.ReduceAttrs((axis,), True))
        bounded = op.emit(ew.CLAMP, [norm], ew.UnaryAttrs(1e-6, math.inf))
        return activate(op, op.emit(ew.DIV, [v[0], bounded], ew.BinaryAttrs()), activation)

    return op.in_float(compute, [x])


def _local_response(op: Operation) -> Value:
    """x / (bias + alpha * sum of x^2 over 2*radius + 1 channels)^beta: the sum as an average over a padded row."""
    x, radius = op.value(0), op.number("radius")
    if x.type.rank != 4 or not 0 <= radius <= 65536:
        raise ModelFormatError(
            f"{op.info}: x has shape {x.type.shape}, needs rank 4; radius {radius} must not be negative"
        )
    n, h, w, c = x.type.shape
    squares = op.reshape(op.emit(ew.SQUARE, [x], ew.UnaryAttrs()), (n, h * w, c, 1))
    wide = op.emit(mv.PAD, [squares], mv.PadAttrs((0, 0, radius, 0), (0, 0, radius, 0)))
    taps = 2 * radius + 1
    mean = op.emit(pool.AVERAGE_POOL2D, [wide], pool.Pool2dAttrs((1, taps), activation=Activation.NONE))
    base = op.emit(ew.LINEAR, [mean], ew.UnaryAttrs(op.real("alpha") * taps, op.real("bias")))
    power = op.emit(ew.POW, [base, op.constant([-op.real("beta")], DType.FLOAT32, ())], ew.BinaryAttrs())
    return op.emit(ew.MUL, [x, op.reshape(power, (n, h, w, c))], ew.BinaryAttrs())


def _cumsum(op: Operation) -> Value:
    x = op.value(0)
    axis = op.axis(op.integer(1), x.type.rank)
    return op.emit(scan.CUMULATIVE_SUM, [x], scan.CumulativeSumAttrs(axis, op.flag("exclusive"), op.flag("reverse")))


def _top_k(op: Operation) -> list[Value]:
    x, k = op.value(0), op.integer(1)
    if x.type.dtype in QUANTIZED:
        op.quantized(x)
    return op.emit_all(scan.TOP_K, [x], scan.TopKAttrs(k))


CONVERTERS: dict[str, Row] = {
    "ARG_MAX": (_arg(reduce.ARG_MAX), "ArgMaxOptions"),
    "ARG_MIN": (_arg(reduce.ARG_MIN), "ArgMinOptions"),
    "CUMSUM": (_cumsum, "CumsumOptions"),
    "L2_NORMALIZATION": (_l2_normalization, "L2NormOptions"),
    "LOCAL_RESPONSE_NORMALIZATION": (_local_response, "LocalResponseNormalizationOptions"),
    "LOG_SOFTMAX": (_log_softmax, ""),
    "MEAN": (_reduce(reduce.REDUCE_MEAN), "ReducerOptions"),
    "REDUCE_ALL": (_reduce(reduce.REDUCE_ALL), "ReducerOptions"),
    "REDUCE_ANY": (_reduce(reduce.REDUCE_ANY), "ReducerOptions"),
    "REDUCE_MAX": (_reduce(reduce.REDUCE_MAX), "ReducerOptions"),
    "REDUCE_MIN": (_reduce(reduce.REDUCE_MIN), "ReducerOptions"),
    "REDUCE_PROD": (_reduce(reduce.REDUCE_PRODUCT, only_float=True), "ReducerOptions"),
    "SOFTMAX": (_softmax, "SoftmaxOptions"),
    "SUM": (_reduce(reduce.REDUCE_SUM), "ReducerOptions"),
    "TOPK_V2": (_top_k, ""),
}
