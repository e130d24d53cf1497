"""The model table: its comparison, its inputs, its verdicts on real models."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.wasm import guards

from build_scripts.judge import runtimes, zoo
from build_scripts.judge.answers import Answers, spread_of
from build_scripts.judge.comparison import Comparison, compared, silent_outputs
from build_scripts.judge.model_inputs import model_inputs, photos_in
from build_scripts.judge.zoo_judge import nudged
from webinfer.dtypes import DType


@dataclass
class Info:
    name: str
    shape: tuple[int, ...]
    dtype: DType


def _compared(got: object, want: object, dtype: str = "float32") -> Comparison:
    return compared([[np.array(got, dtype)]], [[np.array(want, dtype)]])


def test_floats_are_compared_to_the_range_of_the_output() -> None:
    assert _compared([0.0, 100.05], [0.0, 100.0]).problem() == ""
    assert "of the range" in _compared([0.0, 100.2], [0.0, 100.0]).problem()


def _detections(scores_last: bool) -> np.ndarray:
    """Boxes of 300 pixels beside scores of 3 classes for 40 places: a channel each, along the last axis or axis 1."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.uniform(0, 300, (4, 40)), rng.uniform(0, 1, (3, 40))])[np.newaxis]
    return rows.transpose(0, 2, 1) if scores_last else rows


@pytest.mark.parametrize("scores_last", [True, False])
def test_scores_are_compared_to_their_own_range_beside_large_boxes(scores_last: bool) -> None:
    want = _detections(scores_last)
    moved = _detections(scores_last)
    moved[(..., slice(4, 7)) if scores_last else (slice(None), slice(4, 7))] += 0.3
    problem = _compared(moved, want).problem()
    assert ("last axis" if scores_last else "axis 1") in problem, problem
    assert _compared(want + 1e-4, want).problem() == ""  # rounding of boxes, less than a thousandth of the scores
    own = _compared(want + np.where(want > 1, 3.0, 0.0), want)  # a judge whose own boxes move excuses boxes only
    assert _compared(moved, want).problem(own, 2) != ""
    assert _compared(want + np.where(want > 1, 3.0, 0.0), want).problem(own, 2) == ""


def test_a_channel_of_rounding_errors_is_no_difference_and_few_values_make_no_channel() -> None:
    zeros = np.stack([np.linspace(-100, 100, 50), np.zeros(50)], -1)
    assert _compared(zeros + 5e-5, zeros).problem() == ""
    classes = np.linspace(1e-6, 1, 1000)[np.newaxis]
    assert _compared(classes + 1e-4, classes).problem() == ""


def test_a_nan_is_out_of_bounds_unless_both_have_it_and_alone_it_is_no_evidence() -> None:
    both = _compared([np.nan, 1.0], [np.nan, 1.0])
    assert both.problem() == ""
    assert _compared([np.nan, 1.0], [0.5, 1.0]).problem()
    assert _compared([0.5, 1.0], [np.nan, 1.0]).problem()


def test_what_other_kernels_of_the_judge_compute_is_allowed_in_the_same_channel() -> None:
    class Shaky:
        """A judge whose other kernels are off by 0.01 in the first of two channels."""

        def run(self, model: Path, inputs: Sequence[dict[str, np.ndarray]]) -> list[list[np.ndarray]]:
            return [[want] for _ in inputs]

        def other(self, model: Path, inputs: Sequence[dict[str, np.ndarray]]) -> list[list[np.ndarray]]:
            return [[want + np.array([0.01, 0.0])] for _ in inputs]

    want = np.linspace(0, 1, 60).reshape(30, 2)
    answers = Answers("shaky", [{"x": np.ones(3)}], [[want]], {})
    spread = spread_of(Shaky(), Path("model.onnx"), answers)  # type: ignore[arg-type]
    assert _compared(want + np.array([0.015, 0.0]), want, "float64").problem(spread, 2) == ""
    assert "channel 1" in _compared(want + np.array([0.0, 0.015]), want, "float64").problem(spread, 2)
    assert spread_of(Shaky(), Path("model.onnx"), answers, other=False).float_diff == 0  # type: ignore[arg-type]


def test_a_rounding_of_inputs_is_the_same_share_or_one_of_each_value() -> None:
    values = {"x": np.linspace(1, 2, 5, dtype=np.float64), "ids": np.arange(3)}
    (more,), (mixed,) = nudged([values], 1e-3), nudged([values], -1e-3)
    assert more["x"] / values["x"] == pytest.approx(1.001)
    shares = mixed["x"] / values["x"] - 1
    assert 0 < np.abs(shares).max() <= 1e-3
    assert len(set(np.sign(shares))) == 2
    assert mixed["ids"].tolist() == [0, 1, 2]


def test_outputs_that_say_nothing_are_told_with_the_reason() -> None:
    ramp = np.linspace(0, 1, 9, dtype=np.float32)
    runs = [
        [
            np.full(3, np.nan),
            ramp,
            np.full(9, 1e-20),
            np.eye(3),
            np.zeros(4, np.int8),
            np.array([k]),
            np.zeros((0, 4)),
            np.array([10.0]),
        ]
        for k in (1.0, 2.0)
    ]
    reasons = silent_outputs(runs)
    assert sorted(reasons) == [0, 2, 3, 4, 6]  # not what varies within a run or between two, nor a count
    assert reasons[0] == "has no finite value"
    assert "everywhere" in reasons[2]
    assert "saturated" in reasons[3]
    assert reasons[6] == "is empty"


def test_integers_may_be_off_by_one_but_rarely() -> None:
    want = list(range(1000))
    few, many, far = (
        [n + (i in wrong) * step for i, n in enumerate(want)]
        for wrong, step in ((range(5), 1), (range(6), 1), (range(1), 2))
    )
    assert _compared(few, want, "int32").problem() == ""
    assert _compared(many, want, "int32").problem()
    assert _compared(far, want, "int32").problem()


def test_another_shape_is_wrong() -> None:
    assert "must be float32[2]" in _compared([1.0], [1.0, 2.0]).problem()


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A photo of one colour."""
    Image.new("RGB", (9, 7), (255, 0, 128)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_inputs_are_photos_for_images_and_random_numbers_for_all(photo: Path) -> None:
    assert photos_in(photo.parent / "missing", photo.parent) == [photo]
    shown, random_one = model_inputs([Info("image", (1, 4, 6, 3), DType.INT8)], [photo])
    assert shown["image"].reshape(-1, 3)[0].tolist() == [127, -128, 0]
    assert random_one["image"].shape == (1, 4, 6, 3)
    assert random_one["image"].min() < -100
    (only,) = model_inputs([Info("ids", (1, 5), DType.INT32)], [photo])
    assert only["ids"].dtype == np.int32
    both, _ = model_inputs(
        [Info("image", (1, 3, 4, 6), DType.FLOAT32), Info("score_threshold", (), DType.FLOAT32)], [photo]
    )
    assert both["image"][0, :, 0, 0].tolist() == pytest.approx([1, -1, 0], abs=0.01)
    assert both["score_threshold"] == np.float32(0.3)


def test_inputs_hold_what_their_names_mean() -> None:
    kinds = {
        "input_ids": ((1, 8), DType.INT64), "attention_mask": ((1, 8), DType.INT64), "sr": ((), DType.INT64),
        "tokenTypeIds:0": ((1, 8), DType.INT32), "position_ids": ((1, 8), DType.INT64), "lens": ((1,), DType.INT64),
        "audio": ((1, 4000), DType.FLOAT32), "pad_mask": ((2, 4), DType.BOOL), "unmasked": ((3,), DType.FLOAT32),
    }  # fmt: skip
    infos = [Info(name, *kind) for name, kind in kinds.items()]
    noise, waves = model_inputs(infos, [], ids=100)
    assert noise["attention_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 0, 0]]
    assert noise["tokenTypeIds:0"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1]]
    assert noise["position_ids"].tolist() == [list(range(8))]
    assert (noise["sr"], noise["lens"].tolist()) == (16_000, [4])
    assert noise["pad_mask"].tolist() == [[True, True, True, False]] * 2
    assert 8 < noise["input_ids"].max() <= 100
    assert noise["input_ids"].min() >= 0
    assert (np.abs(np.diff(waves["audio"])).max() < 0.1) < np.abs(np.diff(noise["audio"])).max()
    assert len(set(noise["unmasked"].tolist())) == 3


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


def _onnx(path: Path, nodes: list, inputs: dict, outputs: dict, **constants: np.ndarray) -> None:
    """Writes a model; inputs and outputs are (type, sizes) by name."""
    from onnx import TensorProto, helper, numpy_helper, save

    ends = [
        [helper.make_tensor_value_info(name, getattr(TensorProto, kind), sizes) for name, (kind, sizes) in side.items()]
        for side in (inputs, outputs)
    ]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, path.stem, *ends, tensors)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def _rows(folder: Path, *options: str) -> tuple[int, list[dict]]:
    table = folder / "table.json"
    status = zoo.run(["--models", str(folder), "--json", str(table), *options])
    return status, json.loads(table.read_text())["rows"]


def test_a_model_of_another_format_is_judged_by_its_own_runtime(tmp_path: Path) -> None:
    from onnx import helper

    end = ("FLOAT", ["batch", 2, "w"])
    _onnx(tmp_path / "one.onnx", [helper.make_node("Sigmoid", ["x"], ["y"])], {"x": end}, {"y": end})
    status, (row,) = _rows(tmp_path, "--backend", "wasm")
    assert (status, row["format"], row["judge"], row["status"]) == (0, "onnx", "onnxruntime", "right"), row
    status, rows = _rows(tmp_path, "--guards")
    assert status == 0
    assert [(row["backend"], row["status"]) for row in rows] == [(isa, "right") for isa in guards.BUILDS]


def test_what_agreement_cannot_decide_is_not_judged(tmp_path: Path) -> None:
    """A net of NaN alone; a gate that opens for loud inputs only; a table of 5 rows; a table that no index suits."""
    from onnx import helper

    node, end = helper.make_node, {"x": ("FLOAT", [1, 20])}
    result = {"y": ("FLOAT", [1, 20])}
    _onnx(tmp_path / "nan.onnx", [node("Add", ["x", "c"], ["y"])], end, result, c=np.full((1, 20), np.nan, np.float32))
    gate = [node("Sub", ["x", "c"], ["d"]), node("Relu", ["d"], ["y"])]
    _onnx(tmp_path / "gate.onnx", gate, end, result, c=np.float32([[50]]))
    ids, rows, rows_5 = {"i": ("INT64", [6])}, {"y": ("FLOAT", [6, 2])}, np.arange(10, dtype=np.float32).reshape(5, 2)
    _onnx(tmp_path / "table.onnx", [node("Gather", ["c", "i"], ["y"])], ids, rows, c=rows_5)
    beyond = [node("Add", ["i", "k"], ["j"]), node("Gather", ["c", "j"], ["y"])]
    _onnx(tmp_path / "beyond.onnx", beyond, ids, rows, c=rows_5, k=np.int64([5]))
    status, found = _rows(tmp_path, "--backend", "wasm")
    by_name = {row["model"]: (row["status"], row["error"]) for row in found}
    assert by_name["nan"] == ("not judged", "output 0 has no finite value")
    assert by_name["gate"] == ("right", "")
    assert by_name["table"] == ("right", "")
    assert by_name["beyond"][0] == "not judged"
    assert "onnxruntime takes none of the inputs" in by_name["beyond"][1]
    assert status == 1  # more than one in fifty


def test_images_are_not_judged_without_photos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from onnx import helper

    end = ("FLOAT", [1, 3, 8, 8])
    _onnx(tmp_path / "image.onnx", [helper.make_node("Relu", ["x"], ["y"])], {"x": end}, {"y": end})
    monkeypatch.setattr(zoo, "IMAGES", tmp_path / "missing")
    _, (row,) = _rows(tmp_path, "--backend", "wasm", "--images", str(tmp_path / "missing"))
    assert (row["status"], row["error"]) == ("not judged", "it takes photos, and there are none")
    assert "no photos in" in capsys.readouterr().out


def test_open_sizes_of_a_tfjs_model_are_the_first_that_its_runtime_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(model: Path, inputs: Sequence[dict[str, np.ndarray]]) -> list:
        if inputs[0]["x"].shape[1] % 3:
            raise RuntimeError("it cannot be cut into thirds")
        return [[inputs[0]["x"]]]

    def write(*sizes: int) -> Path:
        shape = {"shape": {"dim": [{"size": str(size)} for size in sizes]}}
        nodes = [
            {"name": "x", "op": "Placeholder", "attr": {"dtype": {"type": "DT_FLOAT"}, "shape": shape}},
            {"name": "y", "op": "Sigmoid", "input": ["x"], "attr": {"T": {"type": "DT_FLOAT"}}},
        ]
        described = {"format": "graph-model", "modelTopology": {"node": nodes}, "weightsManifest": []}
        (tmp_path / "model.json").write_text(json.dumps(described))
        return tmp_path / "model.json"

    monkeypatch.setattr(runtimes, "tfjs_run", run)
    assert runtimes.tfjs_shapes(write(-1, -1, 4)) == {"x": (1, 576, 4)}
    assert runtimes.tfjs_shapes(write(-1, 5, 4)) == {}
    (tmp_path / "model.json").write_text("{}")
    assert runtimes.tfjs_shapes(tmp_path / "model.json") == {}  # which our importer refuses with a reason


SMALL = ("blazeface", "face_mesh", "mobilenet", "pose_detector", "selfie_segmentation")  # others take a minute
QUICK = ("blazeface_front", "blazeface_short", "selfie_segmentation_landscape", "v1_025", "attention")  # in software


def test_real_models_are_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, table = zoo.SHARED / "models", tmp_path / "table.json"
    if not folder.is_dir():
        pytest.skip(f"the models are not here: {folder}")
    zoo.run(["--backend", "wasm", *(word for name in SMALL for word in ("--only", name)), "--json", str(table)])
    rows = json.loads(table.read_text())["rows"]
    zoo.run(["--backend", "webgpu", *(word for name in QUICK for word in ("--only", name)), "--json", str(table)])
    rows += json.loads(table.read_text())["rows"]
    if os.environ.get("WEBINFER_CI") != "1":  # a machine without a GPU driver still judges the other backend
        rows = [row for row in rows if not row["error"].startswith("BackendUnavailableError")]
    assert rows
    assert len(rows) >= len(SMALL) + len(QUICK)
    assert all(row["status"] == "right" for row in rows), capsys.readouterr().out
