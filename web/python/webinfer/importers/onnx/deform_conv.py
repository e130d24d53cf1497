"""ONNX's convolution whose taps lie where another tensor says: samples between pixels, then a product.

Source:  onnx v1.23, DeformConv-22 and onnx/reference/ops/op_deform_conv.py
"""

from __future__ import annotations

import functools
import itertools
import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.onnx.conv import check_groups, window
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import conv, gather
from webinfer.ops import elementwise as ew

_MOST_PLACES = 2**24


def _corner(op: Operation, at: Value, low: Value, size: int, above: bool) -> tuple[Value, Value]:
    """The pixels below or above some places along an axis, within the image, and their weights: none beyond it."""
    pixel = op.unary(ew.LINEAR, low, 1.0, 1.0) if above else low
    part = op.binary(ew.SUB, at, low)
    weight = part if above else op.unary(ew.LINEAR, part, -1.0, 1.0)
    near = op.unary(ew.CLAMP, pixel, 0.0, size - 1.0)
    held = op.cast(op.binary(ew.EQUAL, near, pixel), DType.FLOAT32)
    return op.cast(near, DType.INT32), op.binary(ew.MUL, weight, held)


def _deformed(op: Operation) -> Value:
    x, w, offset = op.channels_last(), op.value(1), op.value(2)
    if x.type.rank != 4 or w.type.rank != 4 or x.type.dtype is not DType.FLOAT32:
        op.refuse(f"images {x.type}")
    (n, height, width, channels), (outer, inner, *kernel) = x.type.shape, w.type.shape
    _, strides, dilations, pads = window(op, (height, width), op.wholes("kernel_shape", tuple(kernel)) or ())
    groups = check_groups(op, x, op.whole("group", 1))
    own = check_groups(op, x, op.whole("offset_group", 1))
    taps, part = math.prod(kernel), channels // own
    sizes = zip((height, width), kernel, strides, dilations, pads, strict=True)
    high, wide = (conv.window_size(op.name, s, *p, k, d, t) for s, k, t, d, p in sizes)
    if inner * groups != channels or offset.type.shape != (n, own * taps * 2, high, wide):
        op.fail(f"weights {w.type.shape} and offsets {offset.type.shape} do not fit images {x.type.shape}")
    within(f"{op.what}: samples", n * high * wide * taps * channels, _MOST_PLACES, "use smaller images")
    moved = op.transpose(op.reshape(offset, (n, own, taps, 2, high, wide)), (0, 4, 5, 1, 2, 3))
    places = list(itertools.product(range(kernel[0]), range(kernel[1])))
    sides = []
    for axis, count in enumerate((high, wide)):
        first = [i * strides[axis] - pads[axis][0] + k[axis] * dilations[axis] for i in range(count) for k in places]
        shape = (1, count, 1, 1, taps) if axis == 0 else (1, 1, count, 1, taps)
        at = op.binary(ew.ADD, op.row(moved, 5, axis), op.constant(first, DType.FLOAT32, shape))
        low, size = op.unary(ew.FLOOR, at), (height, width)[axis]
        sides.append([_corner(op, at, low, size, above) for above in (False, True)])
    rows = op.reshape(x, (n * height * width * own, part))
    starts = op.constant([i * height for i in range(n)], DType.INT32, (n, 1, 1, 1, 1))
    lanes = op.constant(range(own), DType.INT32, (1, 1, 1, own, 1))
    corners = []
    for (row, down), (column, across) in itertools.product(*sides):
        pixel = op.binary(ew.MUL, op.binary(ew.ADD, starts, row), op.scalar_of(width, DType.INT32))
        pixel = op.binary(ew.MUL, op.binary(ew.ADD, pixel, column), op.scalar_of(own, DType.INT32))
        found = op.emit(gather.GATHER, [rows, op.binary(ew.ADD, pixel, lanes)], gather.GatherAttrs(0))
        weight = op.reshape(op.binary(ew.MUL, down, across), (n, high, wide, own, taps, 1))
        corners.append(op.binary(ew.MUL, found, weight))
    y = functools.reduce(lambda a, b: op.binary(ew.ADD, a, b), corners)
    mask = op.optional(4)
    if mask is not None:
        held = op.transpose(op.reshape(mask, (n, own, taps, high, wide)), (0, 3, 4, 1, 2))
        y = op.binary(ew.MUL, y, op.reshape(held, (n, high, wide, own, taps, 1)))
    y = op.reshape(op.transpose(y, (0, 1, 2, 3, 5, 4)), (n, high, wide, channels * taps))
    weights = op.reshape(w, (outer, 1, 1, inner * taps))
    attrs = conv.Conv2dAttrs(groups=groups)
    return op.channels_first(op.emit(conv.CONV2D, [y, weights, op.optional(3)], attrs))


CONVERTERS: dict[str, Convert] = {"DeformConv": _deformed}
