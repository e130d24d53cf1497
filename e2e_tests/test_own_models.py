"""Pages whose task runs on a model of the user's: they say what they wait for, and run it, on each backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.tasks import zero_shot_models

from e2e_tests.pages import DemoPage
from e2e_tests.test_sources import well_made

Open = Callable[..., DemoPage]
SIDE = 32


Array = np.ndarray[Any, Any]
Inputs = dict[str, tuple[int, list[int]]]  # element type and shape by name


def saved(path: Path, nodes: Sequence[onnx.NodeProto], inputs: Inputs, output: list[int], **kept: Array) -> Path:
    """An ONNX file with these nodes, whose last output is "y"."""
    given = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    told = [helper.make_tensor_value_info("y", TensorProto.FLOAT, output)]
    constants = [numpy_helper.from_array(value, name) for name, value in kept.items()]
    graph = helper.make_graph(list(nodes), "small", given, told, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def depth_model(folder: Path) -> Path:
    """One whose depth is how bright a pixel is."""
    nodes = [helper.make_node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0)]
    return saved(folder / "depth.onnx", nodes, {"x": (TensorProto.FLOAT, [1, 3, SIDE, SIDE])}, [1, SIDE, SIDE])


def text_model(folder: Path) -> Path:
    """One of two classes: the second is the likelier one the more pieces a text has."""
    nodes = [
        helper.make_node("Mul", ["input_ids", "attention_mask"], ["kept"]),
        helper.make_node("Cast", ["kept"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Sign", ["numbers"], ["ones"]),
        helper.make_node("ReduceSum", ["ones", "axis"], ["count"], keepdims=1),
        helper.make_node("Sub", ["count", "usual"], ["more"]),
        helper.make_node("Neg", ["more"], ["less"]),
        helper.make_node("Concat", ["less", "more"], ["y"], axis=1),
    ]
    inputs = {name: (TensorProto.INT64, [1, 64]) for name in ("input_ids", "attention_mask")}
    kept: dict[str, Array] = {"axis": np.array([1], np.int64), "usual": np.array([[8.0]], np.float32)}
    return saved(folder / "text.onnx", nodes, inputs, [1, 2], **kept)


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_a_depth_model_of_the_user_s_runs(demo: Open, tmp_path: Path, backend: str) -> None:
    page = demo(f"?backend={backend}", path="/depth-estimation")
    page.wait_for("model", lambda: page.text("#backend") == "No model is open.")
    assert page.result is None
    assert page.page.evaluate("document.documentElement.dataset.state") == "ready"
    page.page.get_by_role("button", name="a cup of coffee").wait_for()  # examples do not wait for a model
    page.page.get_by_text("Developer tools").click()
    page.page.get_by_text("The plan, step by step").click()
    page.page.set_input_files("[data-file=model]", depth_model(tmp_path))
    result = page.wait_for_result()
    assert page.wait_for("the plan", lambda: page.page.locator("#plan tbody tr").count())
    assert result["backend"] == backend
    (depth,) = result["depths"]
    assert (depth["width"], depth["height"]) == (result["image"]["width"], result["image"]["height"])
    assert depth["low"] < depth["high"]
    well_made(page)


def test_a_file_of_another_kind_is_refused_and_the_next_one_taken(demo: Open, tmp_path: Path) -> None:
    page = demo("?backend=wasm", path="/depth-estimation")
    page.wait_for("model", lambda: page.text("#backend") == "No model is open.")
    page.page.set_input_files("[data-file=model]", text_model(tmp_path))
    assert "does not estimate depth" in page.wait_for("refusal", lambda: page.error)["message"]
    page.page.set_input_files("[data-file=model]", depth_model(tmp_path))
    page.wait_for("the end of the refusal", lambda: not page.error)
    assert page.wait_for_result()["depths"]


def test_a_text_classifier_of_the_user_s_runs_with_names_of_its_classes(demo: Open, tmp_path: Path) -> None:
    page = demo("?backend=wasm", path="/text-classification")
    page.wait_for("model", lambda: page.text("#backend") == "No model is open.")
    drawn = """(canvas) => canvas.width > 0 &&
      canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value)"""
    page.wait_for("the text, drawn", lambda: page.page.locator("#overlay").evaluate(drawn))
    page.page.get_by_label("Class names").fill("short, long")
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "film"]))
    page.page.set_input_files("[data-file=vocabulary]", vocabulary)
    page.page.set_input_files("[data-file=model]", text_model(tmp_path))
    result = page.wait_for_result()
    assert [row["label"] for row in result["categories"]] == ["long", "short"]
    page.page.locator("#sentence").fill("a film")
    result = page.wait_for_result(after=result["count"])
    while result["categories"][0]["label"] != "short":  # of what was typed before
        result = page.wait_for_result(after=result["count"])
    assert result["categories"][0]["score"] > 0.9
    well_made(page)


def test_labels_of_the_user_s_are_compared_with_a_picture(demo: Open, tmp_path: Path) -> None:
    page = demo("?backend=wasm", path="/zero-shot-image-classification")
    page.wait_for("model", lambda: page.text("#backend") == "No model is open.")
    files = {"model": zero_shot_models.clip(), "tokenizer": zero_shot_models.TOKENIZER}  # in any order
    page.page.get_by_label("Labels, separated by commas").fill("red, blue, green")
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        page.page.set_input_files(f"[data-file={name}]", tmp_path / name)
    result = page.wait_for_result()
    assert {row["label"] for row in result["categories"]} == {"red", "green", "blue"}
    assert sum(row["score"] for row in result["categories"]) == pytest.approx(1, abs=1e-4)
    well_made(page)


def test_labels_of_the_user_s_are_compared_with_a_text(demo: Open, tmp_path: Path) -> None:
    page = demo("?backend=wasm", path="/zero-shot-classification")
    page.wait_for("model", lambda: page.text("#backend") == "No model is open.")
    files = {"tokenizer": zero_shot_models.TOKENIZER, "model": zero_shot_models.entails()}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        page.page.set_input_files(f"[data-file={name}]", tmp_path / name)
    result = page.wait_for_result()
    assert {row["label"] for row in result["categories"]} == {"travel", "cooking", "politics"}
    page.page.get_by_label("Labels, separated by commas").fill("red, blue")
    page.page.get_by_label("Labels, separated by commas").blur()
    while {row["label"] for row in result["categories"]} != {"red", "blue"}:
        result = page.wait_for_result(after=result["count"])
    assert result["categories"][0]["label"] == "blue"  # the vector of blue has the most of the last class
    well_made(page)
