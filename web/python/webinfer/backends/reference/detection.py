"""Single-shot detections, in float32 and in one fixed order, as the kernels compute them."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required
from webinfer.graph.ir import Node, Op
from webinfer.ops import detection as ops

F = np.float32


def centres(a: ops.SsdDetectionsAttrs) -> Array:
    """The centres (x, y) of the anchors, as fractions of the input's size.

    Shapes:  -> [A, 2]
    """
    found = []
    for cells, count in a.grids:
        line = (np.arange(cells, dtype=F) + F(0.5)) / F(cells)
        y, x = np.meshgrid(line, line, indexing="ij")
        found.append(np.repeat(np.stack([x, y], axis=-1).reshape(-1, 2), count, axis=0))
    return np.concatenate(found)


def decoded(boxes: Array, a: ops.SsdDetectionsAttrs) -> Array:
    """Corners, then keypoints, as fractions of the input's size.

    Shapes:  boxes [A, 4 + 2 * K] -> the same
    """
    scaled, centre = boxes * F(1.0 / a.size), centres(a)
    middle, half = scaled[:, :2] + centre, scaled[:, 2:4] * F(0.5)
    points = scaled[:, 4:] + np.tile(centre, (boxes.shape[1] - 4) // 2)
    return np.concatenate([middle - half, middle + half, points], axis=1)


def overlaps(best: Array, others: Array) -> Array:
    """Intersection over union of one box and each of the others; 0 where there is no area."""
    sides = np.minimum(best[2:4], others[:, 2:4]) - np.maximum(best[:2], others[:, :2])
    both = sides[:, 0] * sides[:, 1]
    areas = [(box[..., 2] - box[..., 0]) * (box[..., 3] - box[..., 1]) for box in (best, others)]
    either = areas[0] + areas[1] - both
    real = ~((sides <= 0).any(axis=1)) & (either > 0)
    return np.where(real, both / np.where(real, either, F(1)), F(0))


def decode(inputs: Inputs, node: Node) -> list[Array]:
    """The detections, best first: each the mean of its overlapping boxes, weighted by score, and the best score.

    Rows behind the last detection are zero.

    Shapes:  boxes [1, A, 4 + 2 * K], scores [1, A, 1], threshold [1] -> [1, detections, 4 + 2 * K + 1]
    """
    a, asked = node.attrs, F(required(inputs[2])[0])
    least = asked if asked > 0 else F(a.min_score)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        logits = np.clip(required(inputs[1])[0, :, 0].astype(F), F(-a.score_clip), F(a.score_clip))
        e = np.exp(-np.abs(logits))
        scores = np.where(logits >= 0, F(1), e) / (e + F(1))
        all_rows = decoded(required(inputs[0])[0].astype(F), a)
        left = [i for i in range(a.anchors) if scores[i] >= least]
        result = np.zeros(node.output.type.shape, F)
        for out in result[0]:
            if not left:
                break
            best = left[int(np.argmax(scores[left]))]  # the first of equals
            near = overlaps(all_rows[best], all_rows[left]) > F(a.suppression)
            joined = [i for i, joins in zip(left, near, strict=True) if joins and i != best] + [best]
            total, mean = F(0), np.zeros(all_rows.shape[1], F)
            for i in joined:
                mean, total = mean + scores[i] * all_rows[i], total + scores[i]
            out[:-1] = mean / total if total > 0 else all_rows[best]
            out[-1] = scores[best]
            left = [i for i in left if i not in joined]
    return [result.astype(node.output.type.dtype.value)]


LOWERINGS: dict[Op, Compute] = {ops.SSD_DETECTIONS: decode}
