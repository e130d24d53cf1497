"""TensorFlow nodes on pictures and boxes: resampling, crops, non-maximum suppression."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.limits import MAX_READ, within
from webinfer.importers.core.nonzero import counted, not_zero
from webinfer.importers.tfjs.elementwise import real
from webinfer.importers.tfjs.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, resize, suppression
from webinfer.ops.registry import NoAttrs


def _resize(target: Op) -> Convert:
    def convert(op: Operation) -> Value:
        size = op.integers(1)
        if len(size) != 2:
            op.fail(f"size is {size}, must be two numbers")
        attrs = resize.ResizeAttrs((size[0], size[1]), op.flag("align_corners"), op.flag("half_pixel_centers"))
        x = op.value(0) if target is resize.RESIZE_NEAREST else real(op)
        return op.emit(target, [x], attrs)

    return convert


def _lines(op: Operation, first: Value, last: Value, size: int, count: int) -> Value:
    """Where `count` lines of each crop lie along an axis. Shapes:  first, last [N, 1] -> [N, count]"""
    if count == 1:
        return op.unary(ew.LINEAR, op.binary(ew.ADD, first, last), 0.5 * (size - 1))
    step = op.unary(ew.LINEAR, op.binary(ew.SUB, last, first), (size - 1) / (count - 1))
    counted = op.constant(range(count), DType.FLOAT32, (1, count))
    return op.binary(ew.ADD, op.unary(ew.LINEAR, first, float(size - 1)), op.binary(ew.MUL, step, counted))


def _sampled(op: Operation, x: Value, at: Value, axis: int, nearest: bool) -> Value:
    """x at positions along an axis, its own for each crop. Shapes:  x [N, ...], at [N, count]"""
    attrs = gather.GatherAttrs(axis, 1)
    if nearest:
        rounded = op.unary(ew.FLOOR, op.unary(ew.LINEAR, at, 1.0, 0.5))
        return op.emit(gather.GATHER, [x, op.cast(rounded, DType.INT32)], attrs)
    low = op.unary(ew.FLOOR, at)
    part = op.binary(ew.SUB, at, low)
    shape = [part.type.shape[0] if i == 0 else part.type.shape[1] if i == axis else 1 for i in range(x.type.rank)]
    ends = [op.cast(n, DType.INT32) for n in (low, op.unary(ew.CEIL, at))]
    a, b = (op.emit(gather.GATHER, [x, _inside(op, end, x.type.shape[axis])], attrs) for end in ends)
    return op.binary(ew.ADD, a, op.binary(ew.MUL, op.binary(ew.SUB, b, a), op.reshape(part, shape)))


def _inside(op: Operation, at: Value, size: int) -> Value:
    return op.binary(
        ew.MAXIMUM, op.binary(ew.MINIMUM, at, op.scalar_of(size - 1, DType.INT32)), op.scalar_of(0, DType.INT32)
    )


def _held(op: Operation, at: Value, size: int) -> Value:
    """Whether positions lie in the picture."""
    ends = (op.scalar_of(end, DType.FLOAT32) for end in (0.0, float(size - 1)))
    return op.binary(
        ew.LOGICAL_AND, op.binary(ew.GREATER_EQUAL, at, next(ends)), op.binary(ew.LESS_EQUAL, at, next(ends))
    )


def _crop_and_resize(op: Operation) -> Value:
    """Crops of pictures [N, H, W, C] by boxes [M, 4] from 0 to 1, all in one size.

    Source:  tfjs-backend-cpu 4.22.0, kernels/CropAndResize
    """
    x, boxes, size = real(op), real(op, 1), op.integers(3)
    count = boxes.type.shape[0] if boxes.type.rank == 2 and boxes.type.shape[1] == 4 else 0
    if x.type.rank != 4 or len(size) != 2 or min(size) < 1 or not count:
        op.fail(f"x {x.type.shape}, boxes {boxes.type.shape} and size {size} do not fit")
    within(f"{op.what}: lines of a crop", max(size), MAX_READ)
    nearest = op.chosen("method", ("bilinear", "nearest"), "bilinear") == "nearest"
    top, left, bottom, right = (op.cut(boxes, 1, i, 1) for i in range(4))
    high, wide = x.type.shape[1:3]
    rows, columns = _lines(op, top, bottom, high, size[0]), _lines(op, left, right, wide, size[1])
    pictures = op.emit(gather.GATHER, [x, op.cast(op.value(2), DType.INT32)], gather.GatherAttrs(0))
    y = _sampled(op, _sampled(op, pictures, rows, 1, nearest), columns, 2, nearest)
    held = op.binary(
        ew.LOGICAL_AND,
        op.reshape(_held(op, rows, high), (count, size[0], 1, 1)),
        op.reshape(_held(op, columns, wide), (count, 1, size[1], 1)),
    )
    return op.emit(ew.WHERE, [held, y, op.scalar_of(op.real("extrapolation_value"), DType.FLOAT32)], NoAttrs())


def _suppression(op: Operation) -> list[Value]:
    """Positions, and for newer operators scores or how many there are; padded to the limit, or as many as there are.

    Source:  tfjs-core 4.22.0, backends/non_max_suppression_impl
    """
    version, limit = int(op.name[-1]), min(op.integer(2), max(op.value(1).type.size, 1))
    within(f"{op.what}: boxes to keep", limit, MAX_READ, "ask for fewer")
    overlap = op.finite("overlap", float(op.scalar(3))) if op.optional(3) is not None else 0.5
    least = float(op.scalar(4)) if op.optional(4) is not None else -math.inf
    sigma = op.finite("sigma", float(op.scalar(5))) if version == 5 and op.optional(5) is not None else 0.0
    attrs = suppression.NonMaxSuppressionAttrs(limit, overlap, least, sigma)
    boxes, judged = real(op, 0), real(op, 1)
    if judged.type.rank != 1:
        op.fail(f"scores {judged.type.shape} must have one axis")
    positions, scores, count = op.emit_all(suppression.NON_MAX_SUPPRESSION, [boxes, judged], attrs)
    if version == 4 and op.flag("pad_to_max_output_size"):
        return [positions, count]
    found = counted(op, count)
    positions, scores = (op.cut(x, 0, 0, min(found, x.type.shape[0])) for x in (positions, scores))
    return [positions, scores if version == 5 else count, count]


def _where(op: Operation) -> Value:
    """The positions of all elements that are true, one row each, in order."""
    return not_zero(op, op.cast(op.value(0), DType.BOOL), 1, DType.INT32)


CONVERTERS: dict[str, Convert] = {
    "CropAndResize": _crop_and_resize,
    **{f"NonMaxSuppressionV{version}": _suppression for version in (2, 3, 4, 5)},
    "ResizeBilinear": _resize(resize.RESIZE_BILINEAR),
    "ResizeNearestNeighbor": _resize(resize.RESIZE_NEAREST),
    "Where": _where,
}
