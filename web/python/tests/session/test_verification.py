"""What `verify` compares: the outputs beside the graph as imported, and what it says it cannot judge."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run

import webinfer
from webinfer.cli import main
from webinfer.graph.ir import Graph
from webinfer.passes import pipeline


def _builder() -> webinfer.GraphBuilder:
    g = webinfer.GraphBuilder("two")
    x = g.input("x", (2, 3))
    doubled = g.node("mul", x, 2.0, name="doubled")
    g.output(g.node("abs", doubled, name="a"), "a")
    g.output(g.node("neg", doubled, name="b"), "b")
    return g


@pytest.mark.parametrize("against", ["reference", "wasm"])
def test_outputs_are_compared_with_the_graph_as_imported(against: str) -> None:
    with run(webinfer.load(_builder(), backend="reference")) as session:
        report = run(session.verify(against))
    assert report.ok
    assert report.notes == []
    assert [(each.value, each.max_abs) for each in report.outputs] == [("a", 0.0), ("b", 0.0)]
    assert f"reference and {against} agree; beside the graph as imported, all outputs are the same" in str(report)


def _with_a_wrong_pass(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    monkeypatch.setattr(pipeline, "PIPELINE", (*pipeline.PIPELINE, change))


def test_a_pass_that_exchanges_outputs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step of both backends is the same then."""

    def exchange(graph: Graph) -> int:
        a, b = graph.outputs
        a.name, b.name = b.name, a.name
        return 1

    _with_a_wrong_pass(monkeypatch, exchange)
    with run(webinfer.load(_builder(), backend="wasm")) as session:
        report = run(session.verify())
    assert not report.ok
    assert all(each.within for each in report.differences)
    assert report.first is not None
    assert (report.first.op, report.first.value) == ("output", "a")
    assert "differ from the graph as imported at output a" in str(report)
    assert "beside the graph as imported, 2 of 2 outputs differ" in str(report)


def test_a_pass_that_changes_what_is_computed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_something_else(graph: Graph) -> int:
        graph.nodes[-1].inputs = [graph.inputs[0]]
        return 1

    _with_a_wrong_pass(monkeypatch, read_something_else)
    with run(webinfer.load(_builder(), backend="wasm")) as session:
        report = run(session.verify())
    assert [each.within for each in report.outputs] == [True, False]


def test_what_is_not_finite_is_not_judged() -> None:
    x = np.array([[1, np.nan, np.inf], [0, -np.inf, 2]], np.float32)
    with run(webinfer.load(_builder(), backend="wasm")) as session:
        report = run(session.verify(inputs={"x": x}))
    assert report.ok
    assert [each.nonfinite for each in report.outputs] == [3, 3]
    note = "a: 3 elements are infinite or NaN on reference: not judged"
    assert report.notes == [note, note.replace("a:", "b:")]
    assert note in str(report)


def test_a_nan_beside_a_number_differs() -> None:
    g = webinfer.GraphBuilder("nan")
    value = g.input("x", (3,))
    g.output(g.node("abs", value), "y")
    x = np.array([1, np.nan, 2], np.float32)
    with run(webinfer.load(g, backend="wasm")) as session:
        executor: Any = session.executor
        original, at = executor._call, executor.layout.outputs[0].address

        def spoiled(kernels: Any, first: int, count: int) -> None:
            original(kernels, first, count)
            kernels.write(at, np.float32([1, 5, 2]).tobytes())

        executor._call = spoiled
        report = run(session.verify(inputs={"x": x}))
    assert not report.ok


def test_open_sizes_are_those_of_the_last_run() -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node("Relu", ["x"], ["y"])
    ends = [[helper.make_tensor_value_info(name, kind, ["n", 2])] for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "g", *ends), opset_imports=[helper.make_opsetid("", 17)])
    with run(webinfer.load(model.SerializeToString(), backend="wasm")) as session:
        for n in (3, 5):
            report = run(session.verify(inputs={"x": np.ones((n, 2), np.float32)}))
            assert report.ok
            assert [each.value for each in report.outputs] == ["y"]


def test_the_command_says_what_was_not_judged(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node("Sqrt", ["x"], ["y"])  # of noise, of which half is negative
    ends = [[helper.make_tensor_value_info(name, kind, [16])] for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "g", *ends), opset_imports=[helper.make_opsetid("", 17)])
    path = tmp_path / "roots.onnx"
    path.write_bytes(model.SerializeToString())
    assert main(["verify", str(path), "--backend", "wasm"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"]
    assert "infinite or NaN on reference: not judged" in told["notes"][0]


def test_models_in_parts_say_that_their_outputs_were_not_compared() -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("Cast", ["at"], ["y"], to=kind.FLOAT)]
    ends = [
        [helper.make_tensor_value_info("x", kind.FLOAT, [4])],
        [helper.make_tensor_value_info("y", kind.FLOAT, None)],
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", *ends), opset_imports=[helper.make_opsetid("", 17)])
    with run(webinfer.load(model.SerializeToString(), backend="wasm")) as session:
        run(session.run({"x": np.float32([1, 0, 2, 0])}))
        report = run(session.verify(inputs={"x": np.float32([1, 0, 2, 0])}))
    assert report.outputs == []
    assert "outputs were not compared with the graph as imported" in str(report)
