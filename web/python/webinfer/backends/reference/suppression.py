"""Lists of boxes without those that overlap a better one. In float32: what is kept hangs on single comparisons."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required
from webinfer.graph.ir import Node, Op
from webinfer.ops import suppression as ops

F = np.float32


def _overlap(box: Array, others: Array) -> Array:
    """Intersection over union of a box with each of others; 0 where one of them has no area."""
    sides = np.maximum(np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]), F(0))
    both = sides[:, 0] * sides[:, 1]
    own, areas = np.prod(box[2:] - box[:2]), np.prod(others[:, 2:] - others[:, :2], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((own > 0) & (areas > 0), both / (own + areas - both), F(0)).astype(F)


def non_max_suppression(inputs: Inputs, node: Node) -> list[Array]:
    """Boxes one after the other, the best left one next; soft scores sink for each kept box that came since."""
    corners, a = required(inputs[0]).astype(F).reshape(-1, 2, 2), node.attrs
    boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
    scores = required(inputs[1]).astype(F)
    lists = scores.reshape(node.outputs[2].type.size, len(boxes))
    results = [np.zeros((len(lists), v.type.size // max(len(lists), 1)), v.type.dtype.value) for v in node.outputs]
    for i, row in enumerate(lists):
        for result, found in zip(results, _kept(boxes, row.copy(), a), strict=True):
            result[i] = found
    return [result.reshape(v.type.shape) for result, v in zip(results, node.outputs, strict=True)]


def _kept(boxes: Array, scores: Array, a: ops.NonMaxSuppressionAttrs) -> tuple[Array, Array, Array]:
    """Positions, scores and count of one list."""
    left = {int(i): 0 for i in np.flatnonzero(scores > F(a.least))}
    kept: list[int] = []
    while left and len(kept) < a.limit:
        best = max(left, key=lambda i: (scores[i], -i))
        before, dropped = scores[best], False
        for j in reversed(range(left[best], len(kept))):
            both = _overlap(boxes[best], boxes[kept[j]][None])[0]
            dropped = bool(both >= F(a.overlap))
            if not dropped and a.sigma > 0:
                scores[best] *= np.exp(F(-0.5 / a.sigma) * both * both)
            if dropped or scores[best] <= F(a.least):
                break
        left[best] = len(kept)
        if not dropped and scores[best] == before:
            kept.append(best)
        if dropped or kept[-1:] == [best] or not scores[best] > F(a.least):  # a NaN neither sinks nor is kept
            del left[best]
    positions, values = np.zeros(a.limit, np.int32), np.zeros(a.limit, F)
    positions[: len(kept)], values[: len(kept)] = kept, scores[kept]
    return positions, values, np.array(len(kept), np.int32)


def _chosen(boxes: Array, scores: Array, limit: int, a: ops.DetectionPostprocessAttrs) -> list[int]:
    order = [int(i) for i in np.argsort(-scores, kind="stable") if scores[i] >= F(a.least)]
    kept: list[int] = []
    while order and len(kept) < limit:
        best, *rest = order
        kept.append(best)
        near = _overlap(boxes[best], boxes[rest]) > F(a.overlap)
        order = [i for i, is_near in zip(rest, near, strict=True) if not is_near]
    return kept


def _decoded(raw: Array, anchors: Array, scale: tuple[float, ...]) -> Array:
    part = raw[:, :4] / np.array(scale, F)
    centres = part[:, :2] * anchors[:, 2:] + anchors[:, :2]
    halves = F(0.5) * np.exp(part[:, 2:]) * anchors[:, 2:]
    return np.concatenate([centres - halves, centres + halves], axis=1).astype(F)


def detection_postprocess(inputs: Inputs, node: Node) -> list[Array]:
    """Boxes from anchors, suppressed over all classes or for each, the best ones listed."""
    raw, scores, anchors = (required(x).astype(F) for x in inputs)
    a = node.attrs
    boxes, scores = _decoded(raw[0], anchors, a.scale), scores[0, :, scores.shape[2] - a.classes :]
    found: list[tuple[int, int]] = []  # box and class
    listed, stride = (1, 1) if a.regular else (min(a.per_box, a.classes), a.per_box)  # of a box; places of a box
    if a.regular:
        for c in range(a.classes):
            chosen = _chosen(boxes, scores[:, c], min(a.per_class, a.limit), a)
            found = sorted([*((i, c) for i in chosen), *found], key=lambda pair: -scores[pair])[: a.limit]
    else:
        for i in _chosen(boxes, scores.max(axis=1), a.limit, a):
            found += [(i, int(c)) for c in np.argsort(-scores[i], kind="stable")[:listed]]
    count = a.limit * a.per_box
    results = [np.zeros((1, count, 4), F), np.zeros((1, count), F), np.zeros((1, count), F)]
    for k, (i, c) in enumerate(found):
        at = k // listed * stride + k % listed
        results[0][0, at], results[1][0, at], results[2][0, at] = boxes[i], c, scores[i, c]
    return [*results, np.array([len(found) // listed], F)]


LOWERINGS: dict[Op, Compute] = {
    ops.DETECTION_POSTPROCESS: detection_postprocess,
    ops.NON_MAX_SUPPRESSION: non_max_suppression,
}
