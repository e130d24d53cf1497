"""TFLite's pooling, and the normalisation that is an average over neighbouring channels."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.axes import local_response
from webinfer.importers.core.steps import CLAMPS
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import elementwise as ew
from webinfer.ops import pool
from webinfer.ops.activation import Activation


def _pool_attrs(op: Operation, x: Value, activation: Activation) -> pool.Pool2dAttrs:
    kh, kw, sh, sw = op.positive("filter_height", "filter_width", "stride_h", "stride_w")
    return pool.Pool2dAttrs((kh, kw), (sh, sw), op.pads(x, (kh, kw), (sh, sw)), activation=activation)


def _max_pool(op: Operation) -> Value:
    x = op.value(0)
    return op.emit(pool.MAX_POOL2D, [x], _pool_attrs(op, x, op.activation(CLAMPS)))


def _average_pool(op: Operation) -> Value:
    x = op.value(0)
    return op.emit(pool.AVERAGE_POOL2D, [x], _pool_attrs(op, x, op.activation(CLAMPS)))


def _l2_pool(op: Operation) -> Value:
    """The root of the mean square, padding not counted."""
    x, activation = op.value(0), op.activation(CLAMPS)
    if x.type.dtype is not DType.FLOAT32:
        op.refuse(f"x of type {x.type.dtype}")
    squares = op.unary(ew.SQUARE, x)
    mean = op.emit(pool.AVERAGE_POOL2D, [squares], _pool_attrs(op, x, Activation.NONE))
    root = op.unary(ew.SQRT, mean)
    return op.activate(root, activation)


def _local_response(op: Operation) -> Value:
    return local_response(op, op.value(0), op.number("radius"), op.real("alpha"), op.real("beta"), op.real("bias"))


CONVERTERS: dict[str, Row] = {
    "AVERAGE_POOL_2D": (_average_pool, "Pool2DOptions"),
    "L2_POOL_2D": (_l2_pool, "Pool2DOptions"),
    "LOCAL_RESPONSE_NORMALIZATION": (_local_response, "LocalResponseNormalizationOptions"),
    "MAX_POOL_2D": (_max_pool, "Pool2DOptions"),
}
