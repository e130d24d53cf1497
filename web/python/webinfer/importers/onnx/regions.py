"""ONNX operators on parts of images: columns put back, regions sampled; and the different elements of a tensor.

Source:  onnx v1.23, Col2Im-18, RoiAlign-22 and onnx/reference/ops/op_roi_align.py, Unique-11
"""

from __future__ import annotations

import functools
import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.distinct import distinct
from webinfer.importers.core.limits import MAX_READ, within
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import conv, gather, reduce, scan
from webinfer.ops import elementwise as ew
from webinfer.ops.registry import NoAttrs

_MOST_WEIGHTS = 2**22


def _col2im(op: Operation) -> Value:
    """Columns [N, C*K, L] added up where their windows lie: a transposed convolution with one tap for each column."""
    x, image, block = op.value(0), op.integers(1), op.integers(2)
    if len(image) != 2 or len(block) != 2 or x.type.rank != 3 or not x.type.dtype.is_float:
        op.refuse(f"images {image} of {len(image)} axes, or {x.type.dtype}")
    strides, dilations = op.wholes("strides", (1, 1)) or (), op.wholes("dilations", (1, 1)) or ()
    pads, taps = op.wholes("pads", (0, 0, 0, 0)) or (), math.prod(block)
    if len(strides) != 2 or len(dilations) != 2 or len(pads) != 4 or taps < 1 or x.type.shape[1] % taps:
        op.fail(f"columns {x.type.shape} do not fit windows of {block}")
    counts, more = list[int](), list[int]()
    for size, k, stride, dilation, before, after in zip(
        image, block, strides, dilations, pads[:2], pads[2:], strict=True
    ):
        left = size + before + after - (k - 1) * dilation - 1
        counts.append(left // stride + 1)
        more.append(left % stride)
    n, channels, length = x.type.shape
    if math.prod(counts) != length or min(counts) < 1:
        op.fail(f"{length} columns do not fit {counts} windows")
    within(f"{op.what}: weights", channels * taps, _MOST_WEIGHTS, "use smaller windows")
    ones = [float(c % taps == tap) for tap in range(taps) for c in range(channels)]
    w = op.constant(ones, x.type.dtype, (1, *block, channels))
    columns = op.transpose(op.reshape(x, (n, channels, *counts)), (0, 2, 3, 1))
    attrs = conv.ConvTranspose2dAttrs(
        (strides[0], strides[1]), (pads[0], pads[2], pads[1], pads[3]), (dilations[0], dilations[1]),
        channels // taps, (more[0], more[1]),
    )  # fmt: skip
    return op.channels_first(op.emit(conv.CONV_TRANSPOSE2D, [columns, w, None], attrs))


class _Side:
    """Samples along one axis of all regions: the pixels beside them and their weights. Shapes:  [R, count]"""

    def __init__(self, op: Operation, start: Value, length: Value, size: int, count: int) -> None:
        steps = op.constant([(i + 0.5) / count for i in range(count)], DType.FLOAT32, (1, count))
        at = op.binary(ew.ADD, start, op.binary(ew.MUL, length, steps))
        self.held = op.binary(
            ew.LOGICAL_AND, op.binary(ew.GREATER_EQUAL, at, op.scalar_of(-1.0, DType.FLOAT32)),
            op.binary(ew.LESS_EQUAL, at, op.scalar_of(float(size), DType.FLOAT32)),
        )  # fmt: skip
        at = op.unary(ew.CLAMP, at, 0.0, size - 1.0)
        low = op.unary(ew.FLOOR, at)
        part = op.binary(ew.SUB, at, low)
        self.pixels = [op.cast(low, DType.INT32), op.cast(op.unary(ew.CEIL, at), DType.INT32)]
        self.weights = [op.unary(ew.LINEAR, part, -1.0, 1.0), part]


def _roi_align(op: Operation) -> Value:
    """Regions of images in one size: means of samples between pixels, or the largest weighted pixel of each bin."""
    x, rois, images = op.channels_last(), op.value(1), op.saturated(op.value(2))
    sizes, ratio = (op.whole("output_height", 1), op.whole("output_width", 1)), op.whole("sampling_ratio", 0)
    if x.type.rank != 4 or rois.type.rank != 2 or rois.type.shape[1] != 4 or min(sizes) < 1 or not x.type.size:
        op.fail(f"images {x.type.shape} and regions {rois.type.shape} do not fit")
    if ratio < 1:
        op.refuse("as many samples as regions have pixels")
    within(f"{op.what}: samples", max(sizes) * ratio, MAX_READ, "use smaller regions")
    mode = op.chosen("mode", ("avg", "max"), "avg")
    usual = "half_pixel" if op.opset >= 16 else "output_half_pixel"
    half = op.chosen("coordinate_transformation_mode", ("half_pixel", "output_half_pixel"), usual) == "half_pixel"
    scaled = op.unary(ew.LINEAR, rois, op.real("spatial_scale", 1.0), -0.5 if half else 0.0)
    left, top, right, bottom = op.pieces(scaled, 1, (1, 1, 1, 1))
    n, height, width, channels = x.type.shape
    sides = []
    for first, last, size, count in ((top, bottom, height, sizes[0]), (left, right, width, sizes[1])):
        length = op.binary(ew.SUB, last, first)
        length = length if half else op.binary(ew.MAXIMUM, length, op.scalar_of(1.0, DType.FLOAT32))
        sides.append(_Side(op, first, length, size, count * ratio))
    rows, columns = sides
    regions, (down, across) = rois.type.shape[0], (count * ratio for count in sizes)
    flat = op.reshape(x, (n * height * width, channels))
    first_row = op.reshape(op.binary(ew.MUL, images, op.constant([height], DType.INT32)), (regions, 1))
    corners = []
    for row, own in zip(rows.pixels, rows.weights, strict=True):
        start = op.binary(ew.MUL, op.binary(ew.ADD, first_row, row), op.constant([width], DType.INT32))
        for column, other in zip(columns.pixels, columns.weights, strict=True):
            at = op.binary(ew.ADD, op.reshape(start, (regions, down, 1)), op.reshape(column, (regions, 1, across)))
            found = _at(op, flat, at)
            weight = op.binary(
                ew.MUL, op.reshape(own, (regions, down, 1, 1)), op.reshape(other, (regions, 1, across, 1))
            )
            corners.append(op.binary(ew.MUL, found, weight))
    y = functools.reduce(lambda a, b: op.binary(ew.ADD if mode == "avg" else ew.MAXIMUM, a, b), corners)
    held = op.binary(
        ew.LOGICAL_AND, op.reshape(rows.held, (regions, down, 1, 1)), op.reshape(columns.held, (regions, 1, across, 1))
    )
    y = op.emit(ew.WHERE, [held, y, op.scalar_of(0.0, DType.FLOAT32)], NoAttrs())
    bins = op.reshape(y, (regions, sizes[0], ratio, sizes[1], ratio, channels))
    kind: Op = reduce.REDUCE_MEAN if mode == "avg" else reduce.REDUCE_MAX
    return op.channels_first(op.emit(kind, [bins], reduce.ReduceAttrs((2, 4))))


def _unique(op: Operation) -> list[Value]:
    """The different elements, where each is first, which of them each element is, and how often each is there."""
    x = op.value(0)
    if "axis" in op.attributes and x.type.rank != 1:
        axis = op.axis(op.whole("axis", 0), x.type.rank)
        _, first, *others = distinct(op, _order_of_rows(op, x, axis), bool(op.whole("sorted", 1)))
        values = op.emit(gather.GATHER, [x, first], gather.GatherAttrs(axis))
        return [values, *(op.cast(v, DType.INT64) for v in (first, *others))]
    values, *others = distinct(op, op.reshape(x, (x.type.size,)), bool(op.whole("sorted", 1)))
    return [values, *(op.cast(v, DType.INT64) for v in others)]


def _order_of_rows(op: Operation, x: Value, axis: int) -> Value:
    """For each part of x along an axis, how many others come before it where they are compared like words."""
    n = x.type.shape[axis]
    width = x.type.size // max(n, 1)
    if not x.type.size:
        op.refuse(f"different rows of {x.type.shape}")
    within(f"{op.what}: comparisons of rows", n * n * width, _MOST_WEIGHTS, "use fewer rows")
    rows = op.reshape(op.transpose(x, [axis, *(i for i in range(x.type.rank) if i != axis)]), (n, width))
    mine, other = op.reshape(rows, (n, 1, width)), op.reshape(rows, (1, n, width))
    differs = op.cast(op.binary(ew.NOT_EQUAL, mine, other), DType.INT32)
    before = op.emit(scan.CUMULATIVE_SUM, [differs], scan.CumulativeSumAttrs(2, True))
    decides = op.binary(ew.EQUAL, before, op.scalar_of(0, DType.INT32))
    less = op.binary(ew.LOGICAL_AND, op.binary(ew.GREATER, mine, other), decides)
    count = op.emit(reduce.REDUCE_SUM, [op.cast(less, DType.INT32)], reduce.ReduceAttrs((1, 2)))
    return op.reshape(count, (n,))


def _at(op: Operation, x: Value, positions: Value) -> Value:
    return op.emit(gather.GATHER, [x, positions], gather.GatherAttrs(0))


CONVERTERS: dict[str, Convert] = {"Col2Im": _col2im, "RoiAlign": _roi_align, "Unique": _unique}
