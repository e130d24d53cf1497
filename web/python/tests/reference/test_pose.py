"""PoseNet's decoder on heat maps that are painted, so that the poses are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from webinfer.backends.reference.executor import compute
from webinfer.backends.reference.pose import CHILDREN
from webinfer.graph.ir import TensorType, Value, apply
from webinfer.ops.pose import EDGES, KEYPOINTS, POSENET_DECODER, PosenetDecoderAttrs

Array = np.ndarray[Any, np.dtype[Any]]
H, W, STRIDE = 24, 30, 16
ATTRS = PosenetDecoderAttrs(5, 0.5, STRIDE, 20.0)
LOW, HIGH = -6.0, 4.0


class Scene:
    """Four maps without anybody in them; `paint` adds a person. Points are (y, x) in cells."""

    def __init__(self) -> None:
        self.heat = np.full((1, H, W, KEYPOINTS), LOW, np.float32)
        self.short = np.zeros((1, H, W, 2 * KEYPOINTS), np.float32)
        self.middle = np.zeros((1, H, W, 4 * EDGES), np.float32)
        self.long = np.zeros((1, H, W, 2 * KEYPOINTS), np.float32)

    def paint(self, points: Array, score: float = HIGH) -> None:
        near = np.rint(points).astype(int)
        for k in range(KEYPOINTS):
            y, x = near[k]
            self.heat[0, y - 1 : y + 2, x - 1 : x + 2, k] = score - 1
            self.heat[0, y, x, k] = score
            for cy in range(y - 3, y + 4):
                for cx in range(x - 3, x + 4):
                    self.short[0, cy, cx, [k, KEYPOINTS + k]] = (points[k] - (cy, cx)) * STRIDE
                    for child, edge in CHILDREN[k]:
                        channel = edge + EDGES if edge > EDGES else edge
                        self.middle[0, cy, cx, [channel, channel + EDGES]] = (points[child] - points[k]) * STRIDE

    def claim(self, rows: slice, columns: slice, points: Array) -> None:
        """Pixels whose long offsets lead straight to that person's keypoints, where they then stay."""
        for k in range(KEYPOINTS):
            for y in range(*rows.indices(H)):
                for x in range(*columns.indices(W)):
                    self.long[0, y, x, [k, KEYPOINTS + k]] = (points[k] - (y, x)) * STRIDE

    def decode(self, attrs: PosenetDecoderAttrs = ATTRS, masks: bool = False) -> list[Array]:
        maps = [self.heat, self.short, self.middle, *([self.long] if masks else [])]
        node = apply(POSENET_DECODER, [Value(f"m{i}", TensorType(m.shape)) for i, m in enumerate(maps)], attrs)
        return compute(node, list(maps))


def person(y: float, x: float) -> Array:
    """Seventeen points around a place, none nearer to another than five cells along an axis of the skeleton."""
    steps = np.array([(0, 0), (0, 1), (1, 0), (0, 2), (2, 0), (1, 1), (2, 1), (1, 2), (3, 0), (0, 3), (2, 2),
        (1, 3), (3, 1), (2, 3), (3, 2), (3, 3), (0, 4)])  # fmt: skip
    return (np.array((y, x)) + steps * (1.6, 1.6)).astype(np.float32)


def test_nobody_is_found_in_empty_maps() -> None:
    keypoints, scores, poses, count = Scene().decode()
    assert count.tolist() == [0]
    assert not keypoints.any()
    assert not scores.any()
    assert not poses.any()


def test_one_person_s_keypoints_are_found_to_a_fraction_of_a_pixel() -> None:
    scene, points = Scene(), person(5.25, 6.5)
    scene.paint(points)
    keypoints, scores, poses, count = scene.decode()
    assert count.tolist() == [1]
    # Edge 16 reads forward offsets, as the original does: the nose is left out where it matters.
    np.testing.assert_allclose(keypoints[0, 0, 1:], points[1:] * STRIDE, atol=STRIDE)
    assert (scores[0, 0] > 0.9).all()
    assert poses[0, 0] == pytest.approx(scores[0, 0].mean(), abs=1e-5)


def test_the_stronger_person_comes_first() -> None:
    scene = Scene()
    scene.paint(person(4, 4), score=2.0)
    scene.paint(person(14, 18), score=4.0)
    keypoints, _, poses, count = scene.decode()
    assert count.tolist() == [2]
    assert poses[0, 0] > poses[0, 1]
    assert keypoints[0, 0, :, 0].mean() > keypoints[0, 1, :, 0].mean()


def test_max_detections_cuts_the_list() -> None:
    scene = Scene()
    scene.paint(person(4, 4), score=2.0)
    scene.paint(person(14, 18), score=4.0)
    outputs = scene.decode(PosenetDecoderAttrs(1, 0.5, STRIDE, 20.0))
    assert outputs[3].tolist() == [1]
    assert outputs[0].shape == (1, 1, KEYPOINTS, 2)


def test_a_score_below_the_threshold_starts_no_pose() -> None:
    scene = Scene()
    scene.paint(person(4, 4), score=-1.0)
    assert scene.decode()[3].tolist() == [0]
    assert scene.decode(PosenetDecoderAttrs(5, 0.1, STRIDE, 20.0))[3].tolist() == [1]


def test_masks_follow_the_long_offsets() -> None:
    scene, left, right = Scene(), person(4, 3), person(14, 18)
    scene.paint(left, score=2.0)
    scene.paint(right, score=4.0)
    scene.claim(slice(0, H), slice(0, 12), left)
    scene.claim(slice(0, H), slice(12, W), right)
    for points in (left, right):  # at the keypoints the long offsets lead nowhere else
        for y, x in np.rint(points).astype(int):
            scene.long[0, y - 1 : y + 2, x - 1 : x + 2] = 0.0
    *_, count, masks = scene.decode(masks=True)
    assert count.tolist() == [2]
    assert masks.shape == (1, 5, H, W)
    assert set(np.unique(masks)) <= {0.0, 1.0}
    np.testing.assert_array_equal(masks[0, :2].sum(axis=0), 1.0)
    assert masks[0, 0, 20, 25] == 1.0  # the strong one stands right
    assert masks[0, 1, 20, 2] == 1.0
