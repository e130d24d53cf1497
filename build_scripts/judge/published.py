"""Decoders of vision models, plain and slow, each written from its publication: what the tasks' plans are held against.

None of it knows the engine. Maps and tables are NumPy arrays without a batch, coordinates pixels of the model's input.
"""

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
NAMES = ("nose", "leftEye", "rightEye", "leftEar", "rightEar", "leftShoulder", "rightShoulder", "leftElbow",
    "rightElbow", "leftWrist", "rightWrist", "leftHip", "rightHip", "leftKnee", "rightKnee", "leftAnkle",
    "rightAnkle")  # fmt: skip
CHAIN = ("nose leftEye", "leftEye leftEar", "nose rightEye", "rightEye rightEar", "nose leftShoulder",
    "leftShoulder leftElbow", "leftElbow leftWrist", "leftShoulder leftHip", "leftHip leftKnee", "leftKnee leftAnkle",
    "nose rightShoulder", "rightShoulder rightElbow", "rightElbow rightWrist", "rightShoulder rightHip",
    "rightHip rightKnee", "rightKnee rightAnkle")  # fmt: skip
EDGES = [tuple(NAMES.index(name) for name in pair.split()) for pair in CHAIN]
REFINEMENTS = 2


def sigmoid(x: Array) -> Array:
    """The logistic function."""
    return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))))


class PoseMaps:
    """PoseNet's four maps: scores [h, w, 17], offsets [h, w, 34], displacements [h, w, 32] to children and back.

    Source:  tensorflow/tfjs-models, posenet/README.md and src/multi_pose (decodeMultiplePoses)
    """

    def __init__(self, scores: Array, offsets: Array, forward: Array, backward: Array, stride: int) -> None:
        self.scores, self.offsets, self.forward, self.backward = scores, offsets, forward, backward
        self.stride = stride

    def poses(self, most: int, least: float, radius: float) -> list[tuple[float, Array, Array]]:
        """Score, points [17, 2] (y, x) and scores [17] of each pose, in the order of their best points."""
        found: list[tuple[float, Array, Array]] = []
        for score, y, x, part in sorted(self._peaks(least), key=lambda peak: -peak[0]):
            root = np.array([y, x]) * self.stride + self._offset(y, x, part)
            if len(found) == most or any(np.hypot(*(points[part] - root)) <= radius for _, points, _ in found):
                continue
            points, scores = self._grown(part, root, score)
            own = [all(np.hypot(*(p[k] - points[k])) > radius for _, p, _ in found) for k in range(len(NAMES))]
            found.append((float((scores * own).sum() / len(NAMES)), points, scores))
        return found

    def _peaks(self, least: float) -> list[tuple[float, int, int, int]]:
        peaks = []
        for y, x, part in np.argwhere(self.scores >= least):
            around = self.scores[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2, part]
            if self.scores[y, x, part] >= around.max():
                peaks.append((float(self.scores[y, x, part]), int(y), int(x), int(part)))
        return peaks

    def _offset(self, y: int, x: int, part: int) -> Array:
        return self.offsets[y, x, [part, part + len(NAMES)]]

    def _cell(self, point: Array) -> tuple[int, int]:
        h, w = self.scores.shape[:2]
        y, x = (math.floor(v / self.stride + 0.5) for v in point)
        return min(max(y, 0), h - 1), min(max(x, 0), w - 1)

    def _grown(self, root: int, at: Array, score: float) -> tuple[Array, Array]:
        points, scores, known = np.zeros((len(NAMES), 2)), np.zeros(len(NAMES)), {root}
        points[root], scores[root] = at, score
        ways = [(edge, child, parent, self.backward) for edge, (parent, child) in reversed(list(enumerate(EDGES)))]
        ways += [(edge, parent, child, self.forward) for edge, (parent, child) in enumerate(EDGES)]
        for edge, source, target, map in ways:
            if source not in known or target in known:
                continue
            y, x = self._cell(points[source])
            point = points[source] + map[y, x, [edge, edge + len(EDGES)]]
            for _ in range(REFINEMENTS):
                y, x = self._cell(point)
                point = np.array([y, x]) * self.stride + self._offset(y, x, target)
            points[target], scores[target] = point, self.scores[(*self._cell(point), target)]
            known.add(target)
        return points, scores


def enlarged(map: Array, size: tuple[int, int], rows: slice, columns: slice) -> Array:
    """A map stretched to (height, width) so that corners stay corners, between its cells bilinearly; a part of it.

    Source:  tensorflow/tfjs-models, body-pix/README.md (scaleAndCropToInputTensorShape)
    """
    (y, dy), (x, dx) = (
        _between(np.arange(side)[cut] * (cells - 1) / max(1, side - 1), cells)
        for side, cells, cut in zip(size, map.shape, (rows, columns), strict=True)
    )
    upper, lower = (map[row][:, x] * (1 - dx) + map[row][:, x + 1] * dx for row in (y, y + 1))
    return np.asarray(upper * (1 - dy)[:, None] + lower * dy[:, None])


def _between(places: Array, cells: int) -> tuple[Array, Array]:
    """The cell before each place, which has one behind it, and how far the place lies beyond it."""
    before = np.minimum(places.astype(int), cells - 2)
    return before, places - before


def overlap(a: Array, b: Array) -> float:
    """Intersection over union of two boxes (left, top, right, bottom)."""
    across, down = (max(0.0, min(a[i + 2], b[i + 2]) - max(a[i], b[i])) for i in (0, 1))
    both = sum((c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)) - across * down
    return float(across * down / both) if both > 0 else 0.0


def nanodet(scores: list[Array], distances: list[Array], side: int, least: float, most: float) -> list[Array]:
    """Rows (left, top, right, bottom, score, class) of NanoDet's levels, one box a class and place.

    `scores` are [cells, classes] and `distances` [cells, 4 * bins], for each level; a distance is the mean of its
    distribution, in cells. Of boxes of one class that overlap more than `most` the best stays.

    Source:  Li et al., Generalized Focal Loss (2020); RangiLyu/nanodet, README
    """
    rows = []
    for sure, raw in zip(scores, distances, strict=True):
        cells = math.isqrt(len(sure))
        for i, one in enumerate(sure):
            if one.max() < least:
                continue
            bins = np.exp(raw[i].astype(np.float64).reshape(4, -1))
            away = (bins * np.arange(bins.shape[1])).sum(1) / bins.sum(1) * side / cells
            centre = np.array([i % cells + 0.5, i // cells + 0.5]) * side / cells
            rows.append(np.array([*(centre - away[:2]), *(centre + away[2:]), one.max(), one.argmax()]))
    kept: list[Array] = []
    for row in sorted(rows, key=lambda r: -r[4]):
        if all(row[5] != other[5] or overlap(row, other) <= most for other in kept):
            kept.append(row)
    return kept
