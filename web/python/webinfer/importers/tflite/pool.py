"""TFLite's pooling, and the normalisation that is an average over neighbouring channels."""

from __future__ import annotations

import dataclasses

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.axes import local_response
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops import pool
from webinfer.ops.activation import Activation


def _pool_attrs(op: Operation, x: Value, activation: Activation) -> pool.Pool2dAttrs:
    kh, kw, sh, sw = op.positive("filter_height", "filter_width", "stride_h", "stride_w")
    return pool.Pool2dAttrs((kh, kw), (sh, sw), op.pads(x, (kh, kw), (sh, sw)), activation=activation)


def _beyond(op: Operation, x: Value) -> tuple[int, int]:
    """How far VALID windows reach below and beside images that are smaller."""
    window = op.positive("filter_height", "filter_width")
    if op.same() or x.type.rank != 4:
        return 0, 0
    high, wide = (max(k - size, 0) for k, size in zip(window, x.type.shape[1:3], strict=True))
    return high, wide


def _empty(op: Operation, x: Value) -> Value | None:
    sizes = op.positive("filter_height", "filter_width", "stride_h", "stride_w")
    return op.without_windows(x, sizes[:2], sizes[2:])


def _max_pool(op: Operation) -> Value:
    """LiteRT's delegate takes floats and bytes; where windows are larger than x, it takes one that is cut off."""
    x = op.value(0)
    attrs = _pool_attrs(op, x, op.fused_clamp())
    if any(beyond := _beyond(op, x)):
        if x.type.dtype is DType.INT16 and (nothing := _empty(op, x)) is not None:
            return nothing
        window = (attrs.window[0] - beyond[0], attrs.window[1] - beyond[1])
        attrs = dataclasses.replace(attrs, window=window)
    return op.emit(pool.MAX_POOL2D, [x], attrs)


def _average_pool(op: Operation) -> Value:
    """LiteRT's delegate takes floats; where windows are larger than x, there are zeros beside it."""
    x = op.value(0)
    attrs = _pool_attrs(op, x, op.fused_clamp())
    if any(beyond := _beyond(op, x)):
        if x.type.dtype is not DType.FLOAT32 and (nothing := _empty(op, x)) is not None:
            return nothing
        x = op.emit(mv.PAD, [x], mv.PadAttrs((0,) * 4, (0, *beyond, 0)))
    return op.emit(pool.AVERAGE_POOL2D, [x], attrs)


def _l2_pool(op: Operation) -> Value:
    """The root of the mean square, padding not counted."""
    x, activation = op.value(0), op.fused_clamp()
    if x.type.dtype is not DType.FLOAT32:
        op.refuse(f"x of type {x.type.dtype}")
    if (nothing := _empty(op, x)) is not None:
        return nothing
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
