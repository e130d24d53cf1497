"""The model table: its comparison, its inputs, its verdicts on real models."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.wasm import guards

from build_scripts.judge import zoo
from build_scripts.judge.zoo_judge import Verdict, compare, model_inputs
from webinfer.dtypes import DType


@dataclass
class Info:
    name: str
    shape: tuple[int, ...]
    dtype: DType


def _verdict(got: list[float], want: list[float], dtype: str = "float32") -> Verdict:
    verdict = Verdict()
    compare(np.array(got, dtype), np.array(want, dtype), verdict)
    return verdict


def test_floats_are_compared_to_the_range_of_the_output() -> None:
    assert _verdict([0.0, 100.05], [0.0, 100.0]).problem() == ""
    assert "of the range" in _verdict([0.0, 100.2], [0.0, 100.0]).problem()


def test_a_nan_is_out_of_bounds_unless_both_have_it() -> None:
    assert _verdict([np.nan, 1.0], [np.nan, 1.0]).problem() == ""
    assert _verdict([np.nan, 1.0], [0.5, 1.0]).problem()


def test_integers_may_be_off_by_one_but_rarely() -> None:
    want = list(range(1000))
    few, many, far = (
        [n + (i in wrong) * step for i, n in enumerate(want)]
        for wrong, step in ((range(5), 1), (range(6), 1), (range(1), 2))
    )
    assert _verdict(few, want, "int32").problem() == ""
    assert _verdict(many, want, "int32").problem()
    assert _verdict(far, want, "int32").problem()


def test_another_shape_is_wrong() -> None:
    assert "must be float32[2]" in _verdict([1.0], [1.0, 2.0]).problem()


def test_inputs_are_photos_for_images_and_random_numbers_for_all(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (9, 7), (255, 0, 128)).save(tmp_path / "photo.png")
    photo, random_one = model_inputs([Info("image", (1, 4, 6, 3), DType.INT8)], tmp_path)
    assert photo["image"].reshape(-1, 3)[0].tolist() == [127, -128, 0]
    assert random_one["image"].shape == (1, 4, 6, 3)
    assert random_one["image"].min() < -100
    (only,) = model_inputs([Info("ids", (1, 5), DType.INT32)], tmp_path)
    assert only["ids"].dtype == np.int32


def test_a_file_that_is_no_model_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "page.tflite").write_text("<!doctype html><title>not found</title>")
    table = tmp_path / "table.json"
    assert zoo.run(["--models", str(tmp_path), "--backend", "wasm", "--json", str(table)]) == 0
    (row,) = json.loads(table.read_text())["rows"]
    assert (row["status"], row["judge"]) == ("refused", "reference")
    assert row["error"].startswith("ModelFormatError")


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert zoo.run(["--models", str(tmp_path)]) == 2
    assert "no model in" in capsys.readouterr().out


def test_a_model_of_another_format_is_judged_by_its_own_runtime(tmp_path: Path) -> None:
    from onnx import TensorProto, helper, save

    sizes = ["batch", 2, "w"]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name in ("x", "y")]
    node = helper.make_node("Sigmoid", ["x"], ["y"])
    graph = helper.make_graph([node], "one", ends[:1], ends[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "one.onnx")
    table = tmp_path / "table.json"
    assert zoo.run(["--models", str(tmp_path), "--backend", "wasm", "--json", str(table)]) == 0
    (row,) = json.loads(table.read_text())["rows"]
    assert (row["format"], row["judge"], row["status"]) == ("onnx", "onnxruntime", "right"), row
    assert zoo.run(["--models", str(tmp_path), "--guards", "--json", str(table)]) == 0
    rows = json.loads(table.read_text())["rows"]
    assert [(row["backend"], row["status"]) for row in rows] == [(isa, "right") for isa in guards.BUILDS]


QUICK = ("blazeface_front", "blazeface_short", "selfie_segmentation_landscape", "v1_025", "attention")  # in software


def test_real_models_are_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, table = zoo.SHARED / "models", tmp_path / "table.json"
    if not folder.is_dir():
        pytest.skip(f"the models are not here: {folder}")
    zoo.run(["--backend", "wasm", "--json", str(table)])
    rows = json.loads(table.read_text())["rows"]
    zoo.run(["--backend", "webgpu", *(word for name in QUICK for word in ("--only", name)), "--json", str(table)])
    rows += json.loads(table.read_text())["rows"]
    if os.environ.get("WEBINFER_CI") != "1":  # a machine without a GPU driver still judges the other backend
        rows = [row for row in rows if not row["error"].startswith("BackendUnavailableError")]
    assert rows
    assert all(row["status"] == "right" for row in rows), capsys.readouterr().out
