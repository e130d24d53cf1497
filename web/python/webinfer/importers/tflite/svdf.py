"""TFLite's SVDF: a filter over features, then one over the time that its memory holds."""

from __future__ import annotations

import dataclasses

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul, reduce

_FEATURES, _TIMES, _BIAS, _STATE = 1, 2, 3, 4


def _svdf(op: Operation) -> Value:
    """The memory of each filter moves on by one; what a unit gives is the sum over its filters and their memory.

    Shapes:  x [B, I], features [F, I], times [F, M], bias [U], memory [B, F * M] -> [B, U]; F is U times the rank
    Source:  tensorflow v2.18.0, lite/kernels/svdf.cc and internal/reference/svdf.h
    """
    x, rank = op.value(0), op.number("rank")
    features, times = op.value(_FEATURES).type.shape, op.value(_TIMES).type.shape
    if x.type.rank != 2 or len(features) != 2 or len(times) != 2 or features[1] != x.type.shape[1]:
        op.fail(f"x {x.type.shape}, weights {features} and {times} must have rank 2 and fit together")
    batch, filters, memory = x.type.shape[0], *times
    if rank < 1 or filters % rank or features[0] != filters or memory < 1:
        op.fail(f"{filters} filters of {features[0]} do not divide by rank {rank}")
    state = op.state(_STATE, (batch, filters * memory))
    if state is None:
        op.fail("it has no memory")
    kept = _next(op, x, state, (batch, filters, memory))
    op.keep(_STATE, op.reshape(kept, (batch, filters * memory)))
    products = op.binary(ew.MUL, op.as_float(kept), op.reshape(op.float_weights(_TIMES), (1, filters, memory)))
    sums = op.emit(reduce.REDUCE_SUM, [products], reduce.ReduceAttrs((2,), False))
    if rank > 1:
        units = op.reshape(sums, (batch, filters // rank, rank))
        sums = op.emit(reduce.REDUCE_SUM, [units], reduce.ReduceAttrs((2,), False))
    if op.optional(_BIAS) is not None:
        sums = op.binary(ew.ADD, sums, _bias(op, state))
    y, out = op.activate(sums, op.activation()), op.out_type()
    return y if out is None else op.emit(ew.QUANTIZE, [y], ew.CastAttrs(*out))


def _next(op: Operation, x: Value, state: Value, shape: tuple[int, int, int]) -> Value:
    """The memory with the newest value at the end of each filter's, stored as it was."""
    batch, filters, memory = shape
    if x.type.dtype is DType.FLOAT32:
        x = op.rounded(x, _FEATURES, 1, symmetric=not op.flag("asymmetric_quantize_inputs"))
    rows = [op.as_float(x), op.float_weights(_FEATURES)]
    newest = op.emit(matmul.MATMUL, rows, matmul.MatmulAttrs(transpose_b=True))
    if state.type.dtype is not DType.FLOAT32:
        newest = op.emit(ew.QUANTIZE, [newest], ew.CastAttrs(state.type.dtype, state.type.quant))
    older = op.cut(op.reshape(state, shape), 2, 1, memory - 1)
    return op.concat([older, op.reshape(newest, (batch, filters, 1))], 2)


def _bias(op: Operation, state: Value) -> Value:
    """The bias in real numbers; an integer one has the scale of the products that it is added to."""
    bias, quant = op.value(_BIAS), state.type.quant
    times = op.value(_TIMES).type.quant
    if bias.type.dtype.is_float or quant is None or times is None:
        return op.as_float(bias)
    scaled = dataclasses.replace(quant, scales=(quant.scales[0] * times.scales[0],), zero_points=(0,))
    stored = Value(bias.name, dataclasses.replace(bias.type, quant=scaled), bias.constant)
    return op.as_float(stored)


CONVERTERS: dict[str, Row] = {"SVDF": (_svdf, "SVDFOptions")}
