"""The fuzzer: a ring of random graphs of each format, and what it does with wrong numbers, hangs and crashes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ops.targets import Target

from build_scripts.errors import BuildError
from build_scripts.judge.fuzz.batches import Batches
from build_scripts.judge.fuzz.compare import wrong
from build_scripts.judge.fuzz.drawing import drawn
from build_scripts.judge.fuzz.graphs import FuzzGraph, FuzzNode, smaller, trimmed
from build_scripts.judge.fuzz.rules import Difference, explained
from build_scripts.judge.fuzz.survey import _with_rows, survey
from build_scripts.judge.fuzz.tally import Task
from build_scripts.judge.fuzz.tfjs.install import MODULES
from build_scripts.judge.fuzz.verdicts import DIFFERENT, RIGHT, UNTYPED, judged
from build_scripts.judge.fuzz.worker import format_of

GRAPHS = {
    "onnx": 500,
    "tflite": 500,
    "tfjs": 500,
}  # with fixed seeds; thousands with others by `fuzz --graphs 20000 --seed N`
OPEN = 150  # of them with open sizes
ON_GPU = 30  # of them on webgpu, where a graph takes ten times as long
LEAST_RIGHT_ON_GPU = 0.6
LEAST_RIGHT = 0.8  # of the graphs: the rest is refused, or rounding and rules explain it


@pytest.mark.parametrize("format", GRAPHS)
def test_random_graphs_give_the_runtime_s_numbers(format: str, tmp_path: Path) -> None:
    if format == "tfjs" and not MODULES.is_dir():
        pytest.skip("TensorFlow.js is not installed: python3 -m build_scripts judge fuzz --format tfjs installs it")
    tally = survey(Task(format, 1, 0, GRAPHS[format], ("wasm",), tmp_path))
    assert not tally.findings, "\n".join(map(str, tally.findings))
    assert tally.graphs >= GRAPHS[format] - len(tally.crashes)
    assert tally.verdicts["wasm", RIGHT] >= LEAST_RIGHT * GRAPHS[format]


@pytest.mark.parametrize("format", GRAPHS)
def test_sizes_that_files_leave_open_are_bound_from_0_to_9(format: str, tmp_path: Path) -> None:
    if format == "tfjs" and not MODULES.is_dir():
        pytest.skip("TensorFlow.js is not installed: python3 -m build_scripts judge fuzz --format tfjs installs it")
    tally = survey(Task(format, 2, 0, OPEN, ("wasm",), tmp_path, session_share=1.0, open_sizes=True))
    assert not tally.findings, "\n".join(map(str, tally.findings))
    assert tally.verdicts["wasm", RIGHT] >= LEAST_RIGHT * OPEN


@pytest.mark.parametrize("format", ["onnx", "tflite"])
def test_random_graphs_give_the_runtime_s_numbers_on_a_gpu(format: str, tmp_path: Path) -> None:
    Target("webgpu").demand()
    tally = survey(Task(format, 1, 0, ON_GPU, ("webgpu",), tmp_path))
    assert not tally.findings, "\n".join(map(str, tally.findings))
    assert tally.verdicts["webgpu", RIGHT] >= LEAST_RIGHT_ON_GPU * ON_GPU


@pytest.mark.parametrize("op", ["Reciprocal", "Log"])
@pytest.mark.parametrize(("made_by", "read"), [("BlackmanWindow", 3), ("DFT", [50.0, 40.0])])
def test_what_is_0_but_for_rounding_has_an_open_reciprocal_and_logarithm(op: str, made_by: str, read: Any) -> None:
    nodes = FuzzNode(made_by, ("n",), ("w",)), FuzzNode(op, ("w",), ("y",))
    for first, reason in ((-1.5e-8, "but for rounding"), (0.08, "")):
        values = {"n": np.array(read), "w": np.array([first, 0.63], "float32"), "y": np.ones(2, "float32")}
        difference = Difference(FuzzGraph(17, nodes, {}, {}, ("y",)), [values["y"]], [values["y"]], values)
        assert reason in explained("onnx", difference)
        assert bool(reason) == bool(explained("onnx", difference))


def test_resizing_with_antialias_is_the_runtime_s_own_where_signed_bytes_are_negative() -> None:
    for antialias, low, reason in ((1, -5, "antialias"), (1, 5, ""), (0, -5, "")):
        node = FuzzNode("Resize", ("x", "", "", ""), ("y",), {"mode": "linear", "antialias": antialias})
        values = {"x": np.array([[[[low, 90]]]], "int8"), "y": np.array([[[[0]]]], "int8")}
        difference = Difference(FuzzGraph(18, (node,), values, {}, ("y",)), [values["y"] - 5], [values["y"]], values)
        assert reason in explained("onnx", difference)
        assert bool(reason) == bool(explained("onnx", difference))


def test_squares_of_differences_are_open_in_tensorflow_js_where_float32_rounds_them() -> None:
    node = FuzzNode("SquaredDifference", ("a", "b"), ("y",))
    for a, reason in ((31168, "float32"), (4096, "")):
        values = {"a": np.array([a], "int32"), "b": np.array([1], "int32"), "y": np.array([(a - 1) ** 2], "int32")}
        difference = Difference(FuzzGraph(1, (node,), values, {}, ("y",)), [values["y"]], [values["y"]], values)
        assert reason in explained("tfjs", difference)
        assert bool(reason) == bool(explained("tfjs", difference))


def _relu(x: list[float]) -> FuzzGraph:
    node = FuzzNode("Relu", ("x",), ("y",))
    return FuzzGraph(17, (node,), {"x": np.array(x, "float32")}, {}, ("y",))


def test_a_wrong_number_is_a_finding_and_rounding_is_none() -> None:
    format = format_of("onnx")
    graph = _relu([1.0, 2.0])
    want = format.whole(graph)
    assert judged(format, graph, want, {"y": np.array([1, 2], "float32")}).kind == RIGHT
    assert judged(format, graph, want, {"y": np.array([1, 2.0000005], "float32")}).kind == RIGHT
    assert judged(format, graph, want, {"y": np.array([1, 2.01], "float32")}).kind == DIFFERENT
    assert judged(format, graph, want, {"y": np.array([1, 2], "float64")}).kind == DIFFERENT
    assert judged(format, graph, want, ValueError("no type of ours")).kind == UNTYPED


def test_a_channel_is_judged_by_its_own_scale() -> None:
    want = np.stack([np.full((4, 4), 300.0), np.full((4, 4), 0.5)])[None].astype("float32")  # boxes beside scores
    got = want.copy()
    got[0, 1] += 1e-4
    assert wrong(got, want)[0, 1].all()


def test_an_infinity_is_no_other_number() -> None:
    want = np.array([np.inf, -np.inf, np.nan, 1.0], "float32")
    assert not wrong(want, want).any()
    assert wrong(np.array([3e38, np.inf, 0.0, np.inf], "float32"), want).all()


def test_a_graph_loses_what_no_output_needs() -> None:
    graph = FuzzGraph(
        17, (FuzzNode("Relu", ("x",), ("a",)), FuzzNode("Neg", ("a",), ("b",)), FuzzNode("Abs", ("z",), ("c",))),
        {"x": np.ones(2, "float32"), "z": np.ones(3, "float32")}, {}, ("b", "c"),
        {"a": np.ones(2, "float32"), "b": -np.ones(2, "float32"), "c": np.ones(3, "float32")},
    )  # fmt: skip
    cut = trimmed(FuzzGraph(17, graph.nodes, graph.inputs, {}, ("c",)))
    assert [node.op for node in cut.nodes] == ["Abs"]
    assert list(cut.inputs) == ["z"]
    found = [([node.op for node in one.nodes], sorted(one.inputs)) for one in smaller(graph)]
    assert (["Neg", "Abs"], ["a", "z"]) in found  # what Relu made is fed instead


def test_a_seed_draws_the_same_graph_again() -> None:
    format = format_of("onnx")
    assert drawn(format, (7, 3)).graph.described() == drawn(format, (7, 3)).graph.described()


def test_a_finding_is_made_small_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Batches(Task("onnx", 1, 0, 8, ("wasm",), tmp_path, session_share=1.0), format_of("onnx"), lambda *_: None)
    session = batches._ours.session

    def off(format: Any, graph: FuzzGraph, backend: str) -> Any:
        found: Any = session(format, graph, backend)
        if isinstance(found, dict) and any(node.op == "Relu" for node in graph.nodes):
            found = {name: a + 1 if a.dtype.kind == "f" else a for name, a in found.items()}
        return found

    monkeypatch.setattr(batches._ours, "session", off)
    found = [f for first in range(0, 48, 8) for f in batches.run(range(first, first + 8)).findings]
    assert found
    assert all("Relu(" in one.described for one in found)
    assert all(one.described.count(" -> ") == 1 for one in found)  # one node is left
    assert all(Path(one.file).is_file() for one in found)


def test_a_row_that_no_format_has_is_named_with_the_closest_ones() -> None:
    assert _with_rows(["onnx", "tflite"], ["Relu"]) == ["onnx"]
    with pytest.raises(BuildError, match="did you mean Relu"):
        _with_rows(["onnx", "tflite"], ["Relux"])
