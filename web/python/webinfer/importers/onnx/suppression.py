"""ONNX's non-maximum suppression: each class of each batch by itself; how many boxes are kept is data."""

from __future__ import annotations

import math
import struct

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import MAX_TIME_STEPS, within
from webinfer.importers.core.nonzero import coordinates, places
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, suppression


def _suppression(op: Operation) -> Value:
    boxes, scores = op.value(0), op.value(1)
    if boxes.type.rank != 3 or scores.type.rank != 3:
        op.fail(f"boxes {boxes.type.shape} and scores {scores.type.shape} must have three axes")
    batches, classes, count = scores.type.shape
    within("classes of all batches", batches * classes, MAX_TIME_STEPS, "use a smaller batch")
    limit = min(op.integer(2) if op.optional(2) is not None else 0, count)
    if limit <= 0 or not scores.type.size:
        return op.zeros((0, 3), DType.INT64)
    overlap = float(op.scalar(3)) if op.optional(3) is not None else 0.0
    least = float(op.scalar(4)) if op.optional(4) is not None else -math.inf
    attrs = suppression.NonMaxSuppressionAttrs(limit, _above(op.finite("overlap", overlap)), least)
    if op.whole("center_point_box", 0):
        boxes = _corners(op, boxes)
    kept, counts = [], []
    for batch in range(batches):
        own = op.reshape(op.cut(boxes, 0, batch, 1), (count, 4))
        lists = op.reshape(op.cut(scores, 0, batch, 1), (classes, count))
        found, _, total = op.emit_all(suppression.NON_MAX_SUPPRESSION, [own, lists], attrs)
        kept.append(op.reshape(found, (classes * limit,)))
        counts.append(total)
    shape = (batches * classes, limit)
    places_left = op.reshape(op.constant(range(limit), DType.INT32), (1, limit))
    filled = op.reshape(op.concat(counts, 0), (shape[0], 1))
    valid = op.reshape(op.binary(ew.LESS, places_left, filled), (shape[0] * limit,))
    chosen = places(op, valid)
    if not chosen.type.size:
        return op.zeros((0, 3), DType.INT64)
    batch_of, class_of, _ = coordinates(op, chosen, (batches, classes, limit))
    box_of = op.emit(gather.GATHER, [op.concat(kept, 0), chosen], gather.GatherAttrs(0))
    return op.cast(op.stack([batch_of, class_of, box_of], 1), DType.INT64)


def _above(number: float) -> float:
    """The float32 after a number: a box is dropped that overlaps by more than it."""
    (bits,) = struct.unpack("<i", struct.pack("<f", max(number, 0.0)))
    return float(struct.unpack("<f", struct.pack("<i", bits + 1))[0])


def _corners(op: Operation, boxes: Value) -> Value:
    """Two opposite corners (y, x) of boxes that are given by centre x, y, width and height."""
    x, y, width, height = (op.cut(boxes, 2, i, 1) for i in range(4))
    half_height, half_width = (op.unary(ew.LINEAR, v, 0.5) for v in (height, width))
    ends = [op.binary(f, at, half) for f in (ew.SUB, ew.ADD) for at, half in ((y, half_height), (x, half_width))]
    return op.concat(ends, 2)


CONVERTERS: dict[str, Convert] = {"NonMaxSuppression": _suppression}
