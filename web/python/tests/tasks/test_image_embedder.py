"""Vectors of pictures: what the last layer of a small classifier of random weights reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

import webinfer
from webinfer.errors import ModelFormatError
from webinfer.tasks import ImageEmbedder, ImageEmbedding

SIDE, WIDTH, CLASSES = 8, 5, 3
EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
RANDOM = np.random.default_rng(8)
WEIGHTS = RANDOM.normal(size=(WIDTH, 1, 1, 3)).astype(np.float32)
HEAD = RANDOM.normal(size=(WIDTH, CLASSES)).astype(np.float32)
PICTURE = RANDOM.integers(0, 256, (SIDE, SIDE, 3), np.uint8)


def classifier(spatial: bool = False, head: bool = True) -> webinfer.GraphBuilder:
    """A random convolution, the mean of its features, and random classes; `spatial`: classes first, then their mean."""
    builder = webinfer.GraphBuilder("classes")
    x = builder.input("picture", (1, SIDE, SIDE, 3))
    maps = builder.node("relu", builder.node("conv2d", x, builder.constant(WEIGHTS.ravel().tolist(), WEIGHTS.shape)))
    if not head:
        builder.output(maps, "maps")
        return builder
    mean = builder.node("reduce_mean", maps, axes=(1, 2), keep_dims=spatial)
    if spatial:
        kernel = builder.constant(HEAD.T.ravel().tolist(), (CLASSES, 1, 1, WIDTH))
        logits = builder.node("reshape", builder.node("conv2d", mean, kernel), shape=(1, CLASSES))
    else:
        logits = builder.node("matmul", mean, builder.constant(HEAD.ravel().tolist(), (WIDTH, CLASSES)))
    logits = builder.node("add", logits, builder.constant([0.1, 0.2, 0.3], (CLASSES,)))
    builder.output(builder.node("softmax", logits, axis=1), "scores")
    return builder


async def embedded(model: Any, target: Target, **options: Any) -> ImageEmbedding:
    with await ImageEmbedder.create(model, backend=target.backend, **options) as task:
        return await task.embed(PICTURE)


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_a_vector_is_what_the_last_layer_reads(target: Target) -> None:
    target.demand()
    features = np.maximum((PICTURE / 127.5 - 1) @ WEIGHTS[:, 0, 0].T, 0).mean((0, 1))
    wanted = features / np.linalg.norm(features)
    for model, options in ((classifier(), {}), (classifier(True), {}), (classifier(head=False), {"features": True})):
        found = run(embedded(model, target, **options))
        assert np.allclose(found.values, wanted, atol=1e-4)
        assert found.similarity(found) == pytest.approx(1, abs=1e-5)


def test_models_without_classes_are_refused() -> None:
    builder = webinfer.GraphBuilder("other")
    builder.output(builder.node("reduce_mean", builder.input("x", (1, SIDE, SIDE, 3)), axes=(1, 2)), "y")
    with pytest.raises(ModelFormatError, match="features=True for one that puts out features"):
        run(ImageEmbedder.create(builder, backend="wasm"))


def test_tasks_that_are_given_a_model_are_found_by_name() -> None:
    async def opened() -> str:
        with await webinfer.pipeline("image-embedder", classifier(), backend="wasm") as task:
            return type(task).__name__

    assert run(opened()) == "ImageEmbedder"
    assert webinfer.tasks.task_class("depth-estimation") is webinfer.tasks.DepthEstimator
    assert webinfer.tasks.ImageEmbedding is ImageEmbedding
