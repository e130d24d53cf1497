"""Random numbers: their distributions, the same on every backend, others in each run, the first again after a reset."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
from onnx import helper
from tests.importers.tfjs_writer import model as tfjs_model
from tests.importers.tfjs_writer import node
from tests.importers.tflite_writer import Writer
from tests.session.test_open_sizes import saved

import webinfer
from webinfer.errors import ModelFormatError

N = 8_000
NODES = [
    helper.make_node("RandomNormalLike", ["x"], ["normal"], mean=3.0, scale=2.0),
    helper.make_node("RandomUniform", [], ["uniform"], shape=[N], low=-1.0, high=3.0),
    helper.make_node("Bernoulli", ["x"], ["yes"]),
    helper.make_node("Multinomial", ["logits"], ["classes"], sample_size=N, dtype=7),
]
ONNX = saved(NODES, {"x": [2, N // 2], "logits": [1, 3]}, ["normal", "uniform", "yes", "classes"])
GIVEN = {"x": np.full((2, N // 2), 0.25, "f4"), "logits": np.log(np.array([[1, 3, 4]], "f4"))}


async def _runs(data: Any, backend: str, count: int, given: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    with await webinfer.load(data, backend=backend) as session:
        found = []
        for turn in range(count):
            if turn == count - 1:
                session.reset()
            found.append({k: v.numpy().copy() for k, v in (await session.run(given or {})).items()})
        return found


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_random_numbers_have_their_distributions_on_every_backend(backend: str) -> None:
    first, second, again = asyncio.run(_runs(ONNX, backend, 3, GIVEN))
    (other,) = asyncio.run(_runs(ONNX, "reference", 1, GIVEN))
    near = 4 / np.sqrt(N)
    for name, got in first.items():
        np.testing.assert_allclose(got, other[name], atol=1e-4)
        np.testing.assert_array_equal(got, again[name])
        assert abs(np.corrcoef(got.ravel(), second[name].ravel())[0, 1]) < near
        assert abs(np.corrcoef(got.ravel()[1:], got.ravel()[:-1])[0, 1]) < near
    normal, uniform = (first["normal"] - 3) / 2, (first["uniform"] + 1) / 4
    for power, wanted in ((1, 0), (2, 1), (3, 0), (4, 3)):
        assert abs((normal**power).mean() - wanted) < 10 * near
    assert (uniform >= 0).all()
    assert (uniform <= 1).all()
    assert abs(np.histogram(uniform, 20, (0, 1))[0] / N - 0.05).max() < near / 2
    assert abs(first["yes"].mean() - 0.25) < near
    assert first["classes"].dtype == np.int64
    np.testing.assert_allclose(np.bincount(first["classes"][0]) / N, [0.125, 0.375, 0.5], atol=near)


def test_a_size_that_depends_on_random_numbers_is_that_of_the_same_run() -> None:
    nodes = [
        helper.make_node("RandomUniformLike", ["x"], ["u"]),
        helper.make_node("Less", ["u", "half"], ["low"]),
        helper.make_node("NonZero", ["low"], ["places"]),
        helper.make_node("Cast", ["places"], ["y"], to=1),
    ]
    data = saved(nodes, {"x": [64]}, ["u", "y"], half=np.float32(0.5))
    counts = set()
    for found in asyncio.run(_runs(data, "wasm", 4, {"x": np.zeros(64, "f4")})):
        np.testing.assert_array_equal(found["y"][0], np.nonzero(found["u"] < 0.5)[0])
        counts.add(found["y"].size)
    assert len(counts) > 1


def test_files_of_tensorflow_have_them_too() -> None:
    names = ("RandomStandardNormal", "RandomUniform", "TruncatedNormal")
    nodes = [*(node(name, name, "shape") for name in names), node("whole", "RandomUniformInt", "shape", "low", "high")]
    weights = {"shape": np.array([4, N // 4], np.int32), "low": np.int32(-2), "high": np.int32(3)}
    found = asyncio.run(_runs(tfjs_model(nodes, weights), "wasm", 1))[0]
    cut = found["TruncatedNormal"]
    assert abs(cut).max() < 2.0001
    assert abs(cut.std() - 0.8796) < 0.02
    assert abs(found["RandomStandardNormal"].std() - 1) < 0.03
    assert abs(found["RandomUniform"].mean() - 0.5) < 0.01
    np.testing.assert_allclose(np.bincount(found["whole"].ravel() + 2) / N, [0.2] * 5, atol=0.02)

    w = Writer()
    shape, y = w.constant("shape", [N]), w.tensor("y", (N,))
    w.node("RANDOM_STANDARD_NORMAL", [shape], [y])
    (out,) = asyncio.run(_runs(w.finish(y), "wasm", 1))[0].values()
    assert abs(out.std() - 1) < 0.03


def test_a_shape_with_a_negative_size_is_a_typed_error() -> None:
    data = saved([helper.make_node("RandomNormal", [], ["y"], shape=[4, -1])], {}, ["y"])
    with pytest.raises(ModelFormatError, match="negative"):
        asyncio.run(_runs(data, "wasm", 1))
