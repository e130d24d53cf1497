"""ONNX operators on parts of images: columns put back, regions sampled; and the different elements of a tensor.

Source:  onnx v1.23, Col2Im-18, RoiAlign-22 and onnx/reference/ops/op_roi_align.py, Unique-11
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.limits import MAX_READ, within
from webinfer.importers.core.nonzero import counted
from webinfer.importers.core.unique import distinct
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
    """Samples along one axis of all regions: the pixels beside them and their weights. Shapes:  [R, bins*ratio]

    With `counts` [R, 1] each region has its own number of samples a bin, of which `ratio` is the largest.
    """

    def __init__(
        self, op: Operation, start: Value, length: Value, size: int, bins: int, ratio: int, counts: Value | None
    ) -> None:
        if counts is None:
            steps = op.constant(
                [(i + 0.5) / (bins * ratio) for i in range(bins * ratio)], DType.FLOAT32, (1, bins * ratio)
            )
        else:
            inner = op.constant([i % ratio + 0.5 for i in range(bins * ratio)], DType.FLOAT32, (1, bins * ratio))
            outer = op.constant([i // ratio for i in range(bins * ratio)], DType.FLOAT32, (1, bins * ratio))
            steps = op.unary(ew.LINEAR, op.binary(ew.ADD, outer, op.binary(ew.DIV, inner, counts)), 1 / bins)
        at = op.binary(ew.ADD, start, op.binary(ew.MUL, length, steps))
        self.held = op.binary(
            ew.LOGICAL_AND, op.binary(ew.GREATER_EQUAL, at, op.scalar_of(-1.0, DType.FLOAT32)),
            op.binary(ew.LESS_EQUAL, at, op.scalar_of(float(size), DType.FLOAT32)),
        )  # fmt: skip
        self.counted = None if counts is None else op.binary(ew.LESS, inner, counts)
        at = op.unary(ew.CLAMP, at, 0.0, size - 1.0)
        low = op.unary(ew.FLOOR, at)
        part = op.binary(ew.SUB, at, low)
        self.pixels = [op.cast(low, DType.INT32), op.cast(op.unary(ew.CEIL, at), DType.INT32)]
        self.weights = [op.unary(ew.LINEAR, part, -1.0, 1.0), part]


def _counts(op: Operation, lengths: Sequence[Value], bins: Sequence[int]) -> tuple[list[Value], int]:
    """Samples a bin along both axes of each region [R, 1], as many as a bin has pixels; a run shows the largest."""
    counts = [op.unary(ew.CEIL, op.unary(ew.LINEAR, x, 1 / n)) for x, n in zip(lengths, bins, strict=True)]
    counts = [op.binary(ew.MAXIMUM, x, op.scalar_of(1.0, DType.FLOAT32)) for x in counts]
    both = op.concat(counts, 1)
    most = op.emit(reduce.REDUCE_MAX, [both], reduce.ReduceAttrs((0, 1)))
    return counts, counted(op, op.cast(op.reshape(most, (1,)), DType.INT32))


def _roi_align(op: Operation) -> Value:
    """Regions of images in one size: means of samples between pixels, or the largest weighted pixel of each bin."""
    x, rois, images = op.channels_last(), op.value(1), op.cast(op.value(2), DType.INT32)
    sizes, ratio = (op.whole("output_height", 1), op.whole("output_width", 1)), op.whole("sampling_ratio", 0)
    if x.type.rank != 4 or rois.type.rank != 2 or rois.type.shape[1] != 4 or min(sizes) < 1 or not x.type.size:
        op.fail(f"images {x.type.shape} and regions {rois.type.shape} do not fit")
    mode = op.chosen("mode", ("avg", "max"), "avg")
    usual = "half_pixel" if op.opset >= 16 else "output_half_pixel"
    half = op.chosen("coordinate_transformation_mode", ("half_pixel", "output_half_pixel"), usual) == "half_pixel"
    scaled = op.unary(ew.LINEAR, rois, op.real("spatial_scale", 1.0), -0.5 if half else 0.0)
    left, top, right, bottom = op.pieces(scaled, 1, (1, 1, 1, 1))
    lengths = [op.binary(ew.SUB, last, first) for first, last in ((top, bottom), (left, right))]
    if not half:
        lengths = [op.binary(ew.MAXIMUM, length, op.scalar_of(1.0, DType.FLOAT32)) for length in lengths]
    counts: list[Value] | list[None] = [None, None]
    if ratio < 1:
        counts, ratio = _counts(op, lengths, sizes)
    within(f"{op.what}: samples", max(sizes) * ratio, MAX_READ, "use smaller regions")
    pairs = zip((top, left), lengths, x.type.shape[1:3], sizes, counts, strict=True)
    rows, columns = (_Side(op, first, length, size, bins, ratio, n) for first, length, size, bins, n in pairs)
    y = _sampled(op, x, images, rows, columns, mode)
    regions, channels = rois.type.shape[0], x.type.shape[3]
    bins = op.reshape(y, (regions, sizes[0], ratio, sizes[1], ratio, channels))
    if counts[0] is None or counts[1] is None:
        kind: Op = reduce.REDUCE_MEAN if mode == "avg" else reduce.REDUCE_MAX
        return op.channels_first(op.emit(kind, [bins], reduce.ReduceAttrs((2, 4))))
    kind = reduce.REDUCE_SUM if mode == "avg" else reduce.REDUCE_MAX
    y = op.emit(kind, [bins], reduce.ReduceAttrs((2, 4)))
    if mode == "avg":
        y = op.binary(ew.DIV, y, op.reshape(op.binary(ew.MUL, counts[0], counts[1]), (regions, 1, 1, 1)))
    return op.channels_first(y)


def _sampled(op: Operation, x: Value, images: Value, rows: _Side, columns: _Side, mode: str) -> Value:
    """The samples of all regions. Shapes:  [R, rows, columns, C]"""
    n, height, width, channels = x.type.shape
    (regions, down), across = rows.held.type.shape, columns.held.type.shape[1]
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

    def both(a: Value, b: Value) -> Value:
        a, b = op.reshape(a, (a.type.shape[0], down, 1, 1)), op.reshape(b, (b.type.shape[0], 1, across, 1))
        return op.binary(ew.LOGICAL_AND, a, b)

    y = op.emit(ew.WHERE, [both(rows.held, columns.held), y, op.scalar_of(0.0, DType.FLOAT32)], NoAttrs())
    if rows.counted is None or columns.counted is None:
        return y
    none = op.scalar_of(0.0 if mode == "avg" else -math.inf, DType.FLOAT32)
    return op.emit(ew.WHERE, [both(rows.counted, columns.counted), y, none], NoAttrs())


def _unique(op: Operation) -> list[Value]:
    """The different elements, where each is first, which of them each element is, and how often each is there."""
    x = op.value(0)
    if "axis" in op.attributes and x.type.rank != 1:
        axis = op.axis(op.whole("axis", 0), x.type.rank)
        _, first, *others = distinct(op, _order_of_rows(op, x, axis), bool(op.whole("sorted", 1)))
        values = op.emit(gather.GATHER, [x, first], gather.GatherAttrs(axis))
        return [values, *(op.cast(v, DType.INT64) for v in (first, *others))]
    flat = op.reshape(x, (x.type.size,))
    wide = {DType.FLOAT16: DType.FLOAT32, DType.INT8: DType.INT32}.get(x.type.dtype, x.type.dtype)
    values, *others = distinct(op, op.cast(flat, wide), bool(op.whole("sorted", 1)))
    return [op.cast(values, x.type.dtype), *(op.cast(v, DType.INT64) for v in others)]


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
