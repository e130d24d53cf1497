"""PoseNet's decoder, in float32 and in one fixed order, so that a kernel can agree bit for bit.

Where libcoral leaves a choice to the C++ library (equal scores in its heap and its sorts), the
candidate that was found first wins. Poses beyond the count are zero.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required
from webinfer.graph.ir import Node, Op
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import pose as ops
from webinfer.ops.pose import EDGES, KEYPOINTS

F = np.float32
ONE = F(1.0)
REFINEMENTS, MASK_REFINEMENTS = 5, 2  # as f32_posenet_decode.c has them
_FORWARD = (
    (0, 1), (1, 3), (0, 2), (2, 4), (0, 5), (5, 7), (7, 9), (5, 11), (11, 13), (13, 15),
    (0, 6), (6, 8), (8, 10), (6, 12), (12, 14), (14, 16),
)  # fmt: skip
_EDGES = _FORWARD + tuple((child, parent) for parent, child in _FORWARD)
CHILDREN = [[(child, edge) for edge, (parent, child) in enumerate(_EDGES) if parent == k] for k in range(KEYPOINTS)]

Point = tuple[np.float32, np.float32]  # y, x in heat-map cells


@dataclass(frozen=True)
class Maps:
    """Three inputs of the decoder: scores (logits), offsets to the keypoint, offsets to the skeleton's neighbours.

    Shapes:  heat [H, W, 17], short [H, W, 34], middle [H, W, 64]
    Units:   offsets are heat-map cells
    """

    heat: Array
    short: Array
    middle: Array

    @property
    def size(self) -> tuple[int, int]:
        """(H, W)."""
        return self.heat.shape[0], self.heat.shape[1]


def _clamp(v: np.float32, size: int) -> np.float32:
    """A position inside a map; NaN becomes 0."""
    return F(min(v, F(size - 1))) if v > 0 else F(0.0)


def sample(map: Array, point: Point, channels: tuple[int, ...]) -> list[np.float32]:
    """Some channels of a map between its cells, bilinearly, at a point inside it."""
    h, w = map.shape[:2]
    (y, x), (top, left) = point, (math.floor(_clamp(point[0], h)), math.floor(_clamp(point[1], w)))
    bottom, right = math.ceil(_clamp(y, h)), math.ceil(_clamp(x, w))
    wy, wx = F(y - F(top)), F(x - F(left))
    return [
        F((ONE - wy) * ((ONE - wx) * map[top, left, c] + wx * map[top, right, c]))
        + F(wy * ((ONE - wx) * map[bottom, left, c] + wx * map[bottom, right, c]))
        for c in channels
    ]


def _moved(map: Array, point: Point, channels: tuple[int, int]) -> Point:
    dy, dx = sample(map, point, channels)
    return _clamp(point[0] + dy, map.shape[0]), _clamp(point[1] + dx, map.shape[1])


def _candidates(maps: Maps, least: np.float32) -> list[tuple[np.float32, int, Point, int]]:
    """(-score, order, point, keypoint) of every local maximum of 3x3 cells, as a heap."""
    h, w = maps.size
    padded = np.pad(maps.heat, ((1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    top = np.fmax.reduce([padded[dy : dy + h, dx : dx + w] for dy in range(3) for dx in range(3)])  # not NaN
    found = []
    for order, (y, x, k) in enumerate(np.argwhere((maps.heat >= least) & (maps.heat >= top))):
        dy, dx = maps.short[y, x, k], maps.short[y, x, KEYPOINTS + k]
        found.append((-maps.heat[y, x, k], order, (_clamp(F(y) + dy, h), _clamp(F(x) + dx, w)), int(k)))
    heapq.heapify(found)
    return found


def _decode(maps: Maps, root: Point, keypoint: int) -> tuple[Array, Array]:
    """Keypoints [17, 2] and their scores [17], found by walking the skeleton from the root."""
    points, scores = np.full((KEYPOINTS, 2), -1.0, F), np.full(KEYPOINTS, -1e5, F)
    done: set[int] = set()
    queue = [(sample(maps.heat, root, (keypoint,))[0], root, keypoint)]
    while queue:
        best = 0  # the first of equals, and of those that cannot be compared
        for i, reached in enumerate(queue):
            best = i if reached[0] > queue[best][0] else best
        score, point, k = queue.pop(best)
        if k in done:
            continue
        points[k], scores[k] = point, score
        done.add(k)
        for child, edge in CHILDREN[k]:
            if child in done:
                continue
            # Source: posenet_decoder.cc moves only edges above 16 by one block, edge 16 itself stays.
            channel = edge + EDGES if edge > EDGES else edge
            at = _moved(maps.middle, point, (channel, EDGES + channel))
            for _ in range(REFINEMENTS):
                at = _moved(maps.short, at, (child, KEYPOINTS + child))
            queue.append((sample(maps.heat, at, (child,))[0], at, child))
    return points, scores


def _near(a: Array, b: Array, squared: np.float32) -> Array:
    d = (b - a).astype(F)
    return np.asarray((d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1]) <= squared)


def _mean_score(scores: Array, hidden: Array) -> np.float32:
    total = F(0.0)
    for k in np.argsort(-scores, kind="stable"):
        if not hidden[k]:
            total = F(total + scores[k])
    return F(total / F(KEYPOINTS))


def _sigmoid(x: Array) -> Array:
    return np.asarray(ONE / (ONE + np.exp(-x.astype(F))), F)


def find_poses(maps: Maps, a: ops.PosenetDecoderAttrs) -> list[tuple[np.float32, Array, Array]]:
    """(score, points, keypoint scores) of every pose, best first.

    Units:  points are heat-map cells
    """
    threshold, radius = F(a.score_threshold), F(F(a.nms_radius) / F(a.stride))
    squared = F(radius * radius)
    chance = float(threshold) + 1e-6
    least = F(np.inf if threshold >= 1 else -math.log(1.0 / chance - 1.0) if chance > 0 else -np.inf)
    queue, poses = _candidates(maps, least), list[tuple[np.float32, Array, Array]]()
    while queue and len(poses) < a.max_detections:
        _, _, point, k = heapq.heappop(queue)
        if any(_near(np.array(point, F), points[k], squared) for _, points, _ in poses):
            continue
        points, logits = _decode(maps, point, k)
        scores = _sigmoid(logits)
        mean = _mean_score(scores, np.zeros(KEYPOINTS, bool))
        if mean >= threshold:
            poses.append((mean, points, scores))
    poses.sort(key=lambda pose: -pose[0])
    kept = []
    for i, (_, points, scores) in enumerate(poses):
        hidden = np.zeros(KEYPOINTS, bool)
        for _, earlier, _ in poses[:i]:
            hidden |= _near(points, earlier, squared)
        kept.append((_mean_score(scores, hidden), points, scores))
    kept.sort(key=lambda pose: -pose[0])
    return [pose for pose in kept if pose[0] >= threshold]


def _embedding(longs: Array, k: int, stride: int) -> Array:
    """Where each pixel's long offsets of one keypoint lead, in image pixels. Shapes:  -> [H, W, 2]"""
    h, w = longs.shape[:2]
    channels = longs[..., [k, KEYPOINTS + k]]
    y, x = (np.asarray(axis, F) for axis in np.mgrid[0:h, 0:w])
    for _ in range(MASK_REFINEMENTS + 1):  # `sample`, for all pixels at once
        top, left = np.floor(y).astype(int), np.floor(x).astype(int)
        bottom, right = np.ceil(y).astype(int), np.ceil(x).astype(int)
        wy, wx = (y - top.astype(F))[..., None], (x - left.astype(F))[..., None]
        upper = (ONE - wx) * channels[top, left] + wx * channels[top, right]
        lower = (ONE - wx) * channels[bottom, left] + wx * channels[bottom, right]
        step = (ONE - wy) * upper + wy * lower
        y, x = (
            np.where(moved > 0, np.minimum(moved, F(size - 1)), F(0))  # NaN becomes 0
            for moved, size in ((y + step[..., 0], h), (x + step[..., 1], w))
        )
    return np.stack([y, x], axis=-1) * F(stride)


def _masks(longs: Array, keypoints: Array, a: ops.PosenetDecoderAttrs) -> Array:
    """1 where the pixel's long offsets lead to that pose: squared distances, summed in keypoint order.

    Shapes:  longs [H, W, 34], keypoints [P, 17, 2] in image pixels -> [P, H, W]
    """
    distance = np.zeros((len(keypoints), *longs.shape[:2]), F)
    for k in range(KEYPOINTS):
        d = keypoints[:, k, None, None] - _embedding(longs, k, a.stride)
        distance += d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1]
    return np.asarray(distance.argmin(axis=0) == np.arange(len(keypoints))[:, None, None], F)


def decode(inputs: Inputs, node: Node) -> list[Array]:
    """Keypoints, keypoint scores, pose scores, the number of poses and, with long offsets, masks.

    Poses beyond that number are zero.

    Shapes:  heat [1, H, W, 17], short [1, H, W, 34], middle [1, H, W, 64], long [1, H, W, 34] ->
             keypoints [1, P, 17, 2], scores [1, P, 17], pose scores [1, P], number [1], masks [1, P, H, W]
    Units:   offsets and keypoints are image pixels
    Source:  libcoral's posenet_decoder.cc
    """
    a, cell = node.attrs, F(1.0 / node.attrs.stride)
    maps = Maps(required(inputs[0])[0], required(inputs[1])[0] * cell, required(inputs[2])[0] * cell)
    outputs = [np.zeros(value.type.shape, F) for value in node.outputs]
    poses = find_poses(maps, a)
    for i, (score, points, scores) in enumerate(poses):
        outputs[0][0, i], outputs[1][0, i], outputs[2][0, i] = points * F(a.stride), scores, score
    outputs[3][0] = len(poses)
    if len(outputs) > 4 and poses:
        outputs[4][0, : len(poses)] = _masks(required(inputs[3])[0] * cell, outputs[0][0, : len(poses)], a)
    return outputs


LOWERINGS: dict[Op, Compute] = {ops.POSENET_DECODER: decode}
