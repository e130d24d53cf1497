"""TFLite operators that combine elements along axes: sums, extremes, their positions, lengths."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.tflite.operation import Convert, Operation, Row
from webinfer.importers.tflite.schema import DTYPES
from webinfer.ops import elementwise as ew
from webinfer.ops import reduce


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


def _l2_normalization(op: Operation) -> Value:
    """x / max(sqrt(sum x^2), 1e-6) along the last axis."""
    x, activation = op.value(0), op.activation()
    axis = op.axis(-1, x.type.rank)

    def compute(v: list[Value]) -> Value:
        norm = op.emit(reduce.REDUCE_L2, v, reduce.ReduceAttrs((axis,), True))
        bounded = op.unary(ew.CLAMP, norm, 1e-6, math.inf)
        return op.activate(op.binary(ew.DIV, v[0], bounded), activation)

    return op.in_float(compute, [x])


CONVERTERS: dict[str, Row] = {
    "ARG_MAX": (_arg(reduce.ARG_MAX), "ArgMaxOptions"),
    "ARG_MIN": (_arg(reduce.ARG_MIN), "ArgMinOptions"),
    "L2_NORMALIZATION": (_l2_normalization, "L2NormOptions"),
    "MEAN": (_reduce(reduce.REDUCE_MEAN), "ReducerOptions"),
    "REDUCE_ALL": (_reduce(reduce.REDUCE_ALL), "ReducerOptions"),
    "REDUCE_ANY": (_reduce(reduce.REDUCE_ANY), "ReducerOptions"),
    "REDUCE_MAX": (_reduce(reduce.REDUCE_MAX), "ReducerOptions"),
    "REDUCE_MIN": (_reduce(reduce.REDUCE_MIN), "ReducerOptions"),
    "REDUCE_PROD": (_reduce(reduce.REDUCE_PRODUCT, only_float=True), "ReducerOptions"),
    "SUM": (_reduce(reduce.REDUCE_SUM), "ReducerOptions"),
}
