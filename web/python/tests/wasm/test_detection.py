"""Decoding of a single-shot detector and suppression by weighted averages, against plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.ops.targets import BUILDS, Target
from tests.wasm.memory import Array, Memory

LAYERS = ((8, 2), (16, 6))  # stride in pixels, anchors a cell
SIZE, KEYPOINTS, CLIP, DEFAULT = 24, 3, 100.0, 0.5
RAW = 4 + 2 * KEYPOINTS


def anchors() -> list[tuple[float, float]]:
    """Centres in 0..1, in the order of the detector's outputs."""
    centres = []
    for stride, count in LAYERS:
        cells = math.ceil(SIZE / stride)
        for y in range(cells):
            for x in range(cells):
                centres += [((x + 0.5) / cells, (y + 0.5) / cells)] * count
    return centres


def decode(isa: str, boxes: Array, scores: Array, least: float) -> Array:
    """The candidates that the kernel keeps; `least` is DEFAULT where it is not above 0."""
    memory, most = Memory(isa), len(scores)
    room, count = memory.room(4 * (RAW + 1) * most), memory.room(4)
    grids = np.array([(math.ceil(SIZE / stride), anchors) for stride, anchors in LAYERS], np.int32)
    given = [memory.put(a) for a in (boxes, scores, grids, np.array([least], np.float32))]
    memory.kernels.call("f32_ssd_decode", *given, room, count, len(LAYERS), SIZE, KEYPOINTS, most, CLIP, DEFAULT)
    found = int(memory.get(count, np.empty(1, np.int32))[0])
    return memory.get(room, np.empty((most, RAW + 1), np.float32))[:found]


def expected_candidate(raw: Array, centre: tuple[float, float], score: float) -> list[float]:
    x, y = raw[0] / SIZE + centre[0], raw[1] / SIZE + centre[1]
    w, h = raw[2] / SIZE, raw[3] / SIZE
    points = [raw[4 + i] / SIZE + centre[i % 2] for i in range(2 * KEYPOINTS)]
    return [x - w / 2, y - h / 2, x + w / 2, y + h / 2, *points, score]


@pytest.mark.parametrize("asked", [0.5, 0.0, -1.0, 0.75])
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_candidates_are_boxes_around_their_anchors(target: Target, asked: float) -> None:
    target.demand()
    rng, centres = np.random.default_rng(5), anchors()
    boxes = rng.normal(0, 8, (len(centres), RAW)).astype(np.float32)
    logits = rng.normal(0, 2, len(centres)).astype(np.float32)
    logits[:4] = (1e9, -1e9, np.nan, np.inf)
    got = decode(str(dict(target.options)["isa"]), boxes, logits, asked)
    scores = [1 / (1 + math.exp(-max(-CLIP, min(CLIP, float(v))))) if v == v else 0.0 for v in logits]
    kept = [i for i, s in enumerate(scores) if s >= (asked if asked > 0 else DEFAULT)]
    assert 0 < len(kept) < len(centres), "the scores must reach both sides of the threshold"
    want = [expected_candidate(boxes[i], centres[i], scores[i]) for i in kept]
    np.testing.assert_allclose(got, np.array(want), rtol=1e-5, atol=1e-6)


def suppress(isa: str, candidates: Array, limit: int, most: float) -> Array:
    """What the kernel keeps."""
    memory, width = Memory(isa), candidates.shape[1]
    kept, count = memory.room(4 * width * limit), memory.put(np.array([len(candidates)], np.int32))
    memory.kernels.call("f32_weighted_nms", memory.put(candidates), count, kept, width, len(candidates), limit, most)
    rows = memory.get(kept, np.empty((limit, width), np.float32))
    found = int((rows[:, -1] > 0).sum())
    assert not rows[found:].any()
    return rows[:found]


def overlap(a: Array, b: Array) -> float:
    """Intersection over union."""
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = w * h if w > 0 and h > 0 else 0.0
    either = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both
    return float(both / either) if both > 0 else 0.0


def expected_kept(candidates: Array, limit: int, most: float) -> list[Array]:
    """MediaPipe's weighted suppression, step by step."""
    left, kept = sorted(candidates.astype(np.float64), key=lambda c: -c[-1]), []
    while left and len(kept) < limit:
        best = left[0]
        joined = [c for c in left if c is best or overlap(best, c) > most]
        weights = np.array([c[-1] for c in joined])
        mean = (np.array([c[:-1] for c in joined]) * weights[:, None]).sum(0) / weights.sum()
        kept.append(np.append(mean, best[-1]))
        left = [c for c in left if not any(c is j for j in joined)]
    return kept


def scattered(count: int) -> Array:
    """Boxes in clusters, so that some overlap and some do not."""
    rng = np.random.default_rng(11)
    centres = rng.choice(np.array([[0.2, 0.3], [0.7, 0.6], [0.5, 0.1]]), count) + rng.normal(0, 0.04, (count, 2))
    half = rng.uniform(0.05, 0.12, (count, 2))
    points = rng.uniform(0, 1, (count, 2 * KEYPOINTS))
    scores = rng.uniform(0.5, 1.0, (count, 1))
    return np.hstack([centres - half, centres + half, points, scores]).astype(np.float32)


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize(("count", "limit", "most"), [(40, 40, 0.3), (40, 2, 0.3), (25, 25, 0.05), (1, 5, 0.3)])
def test_overlapping_candidates_become_their_weighted_mean(count: int, limit: int, most: float, target: Target) -> None:
    target.demand()
    candidates = scattered(count)
    want = expected_kept(candidates, limit, most)
    assert count == 1 or len(want) < count, "some candidates must overlap"
    got = suppress(str(dict(target.options)["isa"]), candidates, limit, most)
    np.testing.assert_allclose(got, np.array(want), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_nothing_is_kept_of_nothing(target: Target) -> None:
    target.demand()
    assert len(suppress(str(dict(target.options)["isa"]), np.empty((0, RAW + 1), np.float32), 4, 0.3)) == 0


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_boxes_without_area_stay_apart(target: Target) -> None:
    target.demand()
    flat = np.tile(np.array([0.5, 0.5, 0.5, 0.5, *[0.1] * (2 * KEYPOINTS), 0.9], np.float32), (3, 1))
    assert len(suppress(str(dict(target.options)["isa"]), flat, 5, 0.3)) == 3
