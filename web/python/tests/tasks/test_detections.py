"""Detections of every face detector's raw outputs, on every backend, against the reference."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

from webinfer.authoring.builder import GraphBuilder
from webinfer.backends.reference.detection import centres
from webinfer.backends.reference.executor import compute
from webinfer.graph.ir import Graph, Node, TensorType, Value, apply
from webinfer.host import current
from webinfer.models.layouts import BLAZEFACE_BACK, BLAZEFACE_FULL_RANGE, BLAZEFACE_SHORT_RANGE
from webinfer.ops.detection import SSD_DETECTIONS, SsdDetectionsAttrs
from webinfer.session.selection import LoadOptions, choose
from webinfer.tasks.ssd import attributes

Array = np.ndarray[Any, np.dtype[Any]]
Raw = tuple[Array, Array]  # boxes [1, A, 16], logits [1, A, 1]
COORDINATES = 16  # numbers a raw box of a face holds: centre, size, six keypoints
SHORT_RANGE, BACK, FULL_RANGE = map(attributes, (BLAZEFACE_SHORT_RANGE, BLAZEFACE_BACK, BLAZEFACE_FULL_RANGE))
VARIANTS = {"short range": SHORT_RANGE, "back": BACK, "full range": FULL_RANGE}
EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]


def quiet(a: SsdDetectionsAttrs, seed: int = 0) -> Raw:
    """Boxes around their anchors, none of which scores."""
    rng = np.random.default_rng(seed)
    boxes = rng.normal(0, a.size / 60, (1, a.anchors, COORDINATES)).astype(np.float32)
    boxes[..., 2:4] = rng.uniform(a.size / 8, a.size / 4, (1, a.anchors, 2))
    return boxes, rng.uniform(-9, -1, (1, a.anchors, 1)).astype(np.float32)


def one(a: SsdDetectionsAttrs) -> Raw:
    boxes, scores = quiet(a)
    scores[0, a.anchors // 3] = 3.5
    return boxes, scores


def clusters(a: SsdDetectionsAttrs) -> Raw:
    """Three faces that many anchors see, in every layer."""
    boxes, scores = quiet(a, 1)
    rng, centre = np.random.default_rng(2), centres(a)
    for place in ((0.3, 0.3), (0.7, 0.35), (0.5, 0.8)):
        near = np.hypot(*(centre - place).T) < 0.12
        boxes[0, near, :2] = (np.array(place) - centre[near]) * a.size + rng.normal(0, 1, (near.sum(), 2))
        scores[0, near, 0] = rng.uniform(-1, 6, near.sum())
    return boxes, scores


def tied(a: SsdDetectionsAttrs) -> Raw:
    """Equal scores everywhere, some of them beyond what is clipped."""
    boxes, scores = clusters(a)
    scores[...] = np.where(np.arange(a.anchors) % 3 == 0, 150.0, 120.0)[None, :, None]
    return boxes, scores.astype(np.float32)


def crowd(a: SsdDetectionsAttrs) -> Raw:
    """All anchors above the threshold, each a small box of its own: more than are kept."""
    boxes, scores = quiet(a, 3)
    boxes[..., :2], boxes[..., 2:4] = 0.0, 1.0
    boxes[..., 0] += np.arange(a.anchors) % 6  # anchors of one cell stay apart
    scores[...] = np.random.default_rng(4).permutation(np.linspace(0.1, 8, a.anchors))[None, :, None]
    return boxes, scores


def strange(a: SsdDetectionsAttrs) -> Raw:
    """A third of the scores are not numbers, or infinite."""
    boxes, scores = clusters(a)
    scores[0, ::6], scores[0, 3::12], scores[0, 9::12] = np.nan, -np.inf, np.inf
    return boxes, scores


SCENES = {f.__name__: f for f in (quiet, one, clusters, tied, crowd, strange)}
FOUND = {"quiet": 0, "one": 1, "crowd": 100}


def network(a: SsdDetectionsAttrs) -> tuple[Graph, Node]:
    shapes = {"boxes": (1, a.anchors, COORDINATES), "scores": (1, a.anchors, 1), "min_score": (1,)}
    inputs = [Value(name, TensorType(shape)) for name, shape in shapes.items()]
    node = apply(SSD_DETECTIONS, inputs, a, "detections")
    return Graph("detections", inputs, node.outputs, [node]), node


@cache
def executor(target: Target, variant: str) -> Any:
    options = LoadOptions(strict=True, tuning_ms=0)
    return run(choose(network(VARIANTS[variant])[0], current(), [target.backend], options)).executor


def found_by(target: Target, variant: str, raw: Raw, least: float) -> Array:
    arrays = (*raw, np.array([least], np.float32))
    feeds = {name: memoryview(a.tobytes()) for name, a in zip(("boxes", "scores", "min_score"), arrays, strict=True)}
    rows: Array = run(executor(target, variant).run(feeds))["detections"].numpy()[0]
    return rows


@lru_cache(maxsize=64)
def expected(variant: str, scene: str, least: float) -> Array:
    attrs = VARIANTS[variant]
    rows: Array = compute(network(attrs)[1], [*SCENES[scene](attrs), np.array([least], np.float32)])[0][0]
    return rows


@pytest.mark.parametrize("least", [0.0, 0.9, 2.0**-126])
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_detections_are_the_reference_s(target: Target, variant: str, scene: str, least: float) -> None:
    target.demand()
    want = expected(variant, scene, least)
    got = found_by(target, variant, SCENES[scene](VARIANTS[variant]), least)
    count = int((want[:, -1] > 0).sum())
    if least == 0.0:
        assert count == FOUND.get(scene, count)
        assert scene == "quiet" or count > 0
    assert int((got[:, -1] > 0).sum()) == count
    assert not got[count:].any()
    np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_boxes_that_are_no_numbers_neither_hang_nor_spread(target: Target, value: float) -> None:
    target.demand()
    boxes, scores = clusters(SHORT_RANGE)
    whole = found_by(target, "short range", (boxes, scores), 0.0)
    stray = int(np.argmin(scores))
    boxes[0, stray], scores[0, stray] = value, 9.0
    rows = found_by(target, "short range", (boxes, scores), 0.0)
    assert rows[0, -1] == pytest.approx(1 / (1 + np.exp(-9.0)), rel=1e-5)
    if not np.isposinf(value) and value < 1e38:
        np.testing.assert_array_equal(rows[1:], whole[:-1])
    boxes[0, ::2], scores[0] = value, 1.0
    assert len(found_by(target, "short range", (boxes, scores), 0.0)) == SHORT_RANGE.most
    np.testing.assert_array_equal(found_by(target, "short range", clusters(SHORT_RANGE), 0.0), whole)


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_a_graph_can_be_built_with_it(target: Target) -> None:
    target.demand()
    builder = GraphBuilder()
    attrs = SsdDetectionsAttrs(64, ((8, 2),), most=4)
    boxes, scores = builder.input("boxes", (1, attrs.anchors, 8)), builder.input("scores", (1, attrs.anchors, 1))
    builder.output(builder.node("ssd_detections", boxes, scores, [0.25], **asdict(attrs)), "y")
    assert builder.graph().outputs[0].type.shape == (1, 4, 9)
