"""Classes and masks of pictures, with models that the tests write."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

import webinfer
from webinfer.dtypes import DType
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Quantization, TensorType
from webinfer.models.registry import MODELS, KnownModel
from webinfer.tasks import ImageClassifier, SelfieSegmenter

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
COLOURS = ("red", "green", "blue")


def colours(dtype: DType, quant: Quantization | None) -> webinfer.GraphBuilder:
    """A model whose classes are the mean red, green and blue of its picture."""
    builder = webinfer.GraphBuilder("colours")
    pixels = builder.input("pixels", TensorType((1, 8, 6, 3), dtype, quant))
    if quant is not None:
        pixels = builder.node("dequantize", pixels, dtype=DType.FLOAT32)
    builder.output(builder.node("reduce_mean", pixels, axes=(1, 2)), "scores")
    return builder


def flat_colour(*rgb: int) -> np.ndarray[Any, Any]:
    return np.full((30, 40, 3), rgb, np.uint8)


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
@pytest.mark.parametrize(
    ("dtype", "quant", "options", "want"),
    [
        (DType.FLOAT32, None, {}, (1 - 2 * 0 / 255, 2 * 102 / 255 - 1, -1)),
        (DType.FLOAT32, None, {"values": (0, 1)}, (1, 102 / 255, 0)),
        (DType.UINT8, Quantization((1 / 128,), (127,)), {}, (1, -25 / 128, -127 / 128)),
        (DType.INT8, Quantization((1 / 255,), (-128,)), {}, (1, 102 / 255, 0)),
    ],
)
def test_a_classifier_names_the_best_classes_first(
    target: Target, dtype: DType, quant: Quantization | None, options: dict[str, Any], want: tuple[float, ...]
) -> None:
    target.demand()
    model = colours(dtype, quant)
    with run(ImageClassifier.create(model, labels=COLOURS[:2], most=9, backend=target.backend, **options)) as task:
        found = run(task.classify(flat_colour(255, 102, 0)))
    assert [(c.index, c.label) for c in found] == [(0, "red"), (1, "green"), (2, "")]
    assert [c.score for c in found] == pytest.approx(want, abs=1e-5)


def test_a_known_classifier_has_the_names_of_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = pytest.importorskip("onnx")
    ends = (("x", (1, 3, 8, 6)), ("y", (1, 3)))
    given, told = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in ends)
    node = onnx.helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3], keepdims=0)
    graph = onnx.helper.make_graph([node], "colours", [given], [told])
    version = onnx.helper.make_opsetid("", 17)
    model = onnx.helper.make_model(graph, opset_imports=[version], ir_version=9).SerializeToString()
    files = {"own.onnx": bytes(model), "names.txt": "\n".join(COLOURS).encode()}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    hashes = [hashlib.sha256(data).hexdigest() for data in files.values()]
    row = KnownModel("own", "own.onnx", "classification", "a test", hashes[0], beside=(("names.txt", hashes[1]),))
    monkeypatch.setenv("WEBINFER_MODELS", str(tmp_path))
    monkeypatch.setitem(MODELS, "own", row)
    for labels, wanted in (((), ["green", "blue"]), (("a", "b"), ["b", ""])):
        with run(ImageClassifier.create("own", labels=labels, most=2, values=(0, 1), backend="wasm")) as task:
            assert [one.label for one in run(task.classify(flat_colour(0, 255, 51)))] == wanted


def test_a_classifier_refuses_options_and_models_that_are_none_of_its_kind() -> None:
    model = colours(DType.FLOAT32, None)
    with pytest.raises(InputError, match="most"):
        run(ImageClassifier.create(model, most=0))
    with pytest.raises(InputError, match="values"):
        run(ImageClassifier.create(model, values=(0.0, float("inf"))))
    flat = webinfer.GraphBuilder("flat")
    flat.output(flat.node("relu", flat.input("x", (1, 12))), "y")
    with pytest.raises(ModelFormatError, match="one tensor of scores"):
        run(ImageClassifier.create(flat, backend="wasm"))
    with pytest.raises(ModelFormatError, match="not a selfie segmentation model"):
        run(SelfieSegmenter.create(model, backend="wasm"))


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_a_mask_is_as_large_as_its_picture_and_lies_where_its_model_saw_it(target: Target) -> None:
    target.demand()
    builder = webinfer.GraphBuilder("reds")
    x = builder.input("x", (1, 144, 256, 3))
    builder.output(builder.node("slice", x, starts=(0, 0, 0, 0), sizes=(1, 144, 256, 1), steps=(1, 1, 1, 1)), "mask")
    picture = np.zeros((60, 100, 3), np.uint8)
    picture[:, 50:, 0] = 255
    with run(SelfieSegmenter.create(builder, backend=target.backend)) as task:
        mask = run(task.segment(picture))
        wide = run(task.segment(np.zeros((20, 300, 3), np.uint8)))
    assert (mask.width, mask.height, wide.width, wide.height) == (100, 60, 300, 20)
    values = np.array(mask.values).reshape(60, 100)
    assert values[:, :48].max() == 0
    assert values[:, 52:].min() == 1
    assert not np.array(wide.values).any()
