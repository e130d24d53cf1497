"""Inputs that are bound when a model is loaded: what they alone decide is decided, and the model can be compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import webinfer  # noqa: E402
from webinfer.cli import main  # noqa: E402
from webinfer.errors import InputError, UnsupportedOpError  # noqa: E402
from webinfer.package import compile_model  # noqa: E402

X = np.array([1, -2, 3], np.float32)


def branch(name: str, factor: int) -> Any:
    """A branch that repeats x, which lies outside of it, so often: the branches give other shapes."""
    node = helper.make_node("Concat", ["x"] * factor, [name], axis=0)
    return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, 1, None)])


def model(condition: str = "rate") -> bytes:
    """x twice at a rate of 16000, else three times; and the rate plus one."""
    value, kind = helper.make_tensor_value_info, TensorProto.INT64
    nodes = [
        helper.make_node("Equal", [condition, "wanted"], ["same"]),
        helper.make_node("If", ["same"], ["y"], then_branch=branch("t", 2), else_branch=branch("e", 3)),
        helper.make_node("Add", ["rate", "one"], ["more"]),
    ]
    constants = [numpy_helper.from_array(np.array(n, np.int64), name) for name, n in (("wanted", 16000), ("one", 1))]
    inputs = [value("x", 1, ["n"]), value("rate", kind, []), *([value("other", kind, [])] * (condition != "rate"))]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", 1, None), value("more", kind, [])], constants)
    made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(("rate", "factor"), [(16000, 2), (8000, 3)])
def test_a_bound_input_decides_and_is_no_input_any_more(rate: Any, factor: int) -> None:
    for given in (rate, [rate], np.array(rate)):
        with webinfer.load_sync(model(), backend="reference", shapes={"x": (3,)}, values={"rate": given}) as session:
            assert [info.name for info in session.inputs] == ["x"]
            found = session.run({"x": X})
            assert found["y"].tolist() == X.tolist() * factor
            assert found["more"].tolist() == [rate + 1]


def test_such_a_model_can_be_compiled_and_the_shell_says_how(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, made = tmp_path / "m.onnx", tmp_path / "m.webinfer"
    file.write_bytes(model())
    command = ["compile", str(file), "-o", str(made), "--backend", "wasm", "--build", "simd128"]
    assert main(command) != 0
    assert "--shape INPUT=1x16" in capsys.readouterr().err
    assert main([*command, "--shape", "x=3"]) != 0
    assert "bind that with `values`, in a shell with --value INPUT=NUMBER" in capsys.readouterr().err
    assert main([*command, "--shape", "x=3", "--value", "rate=16000"]) == 0
    with webinfer.load_sync(made, backend="wasm") as session:
        assert session.run({"x": X})["y"].tolist() == X.tolist() * 2
    assert main([*command, "--value", "rate=x"]) != 0
    assert "is not an input and its numbers" in capsys.readouterr().err


def test_what_cannot_be_bound_is_named() -> None:
    def loaded(**options: Any) -> None:
        webinfer.load_sync(model("other"), backend="reference", shapes={"x": (3,)}, **options).close()

    with pytest.raises(InputError, match="the values of 'rate' do not determine the control flow alone; 'other' also"):
        loaded(values={"rate": 1})
    with pytest.raises(InputError, match="has no input 'nothing'; it has 'x', 'rate', 'other'"):
        loaded(values={"other": 1, "nothing": 2})
    with pytest.raises(InputError, match="2 numbers for 'other', which takes 1"):
        loaded(values={"other": [1, 2]})
    for wrong in (5, {"rate": "x"}, {"rate": float("nan")}, {1: 2}):
        with pytest.raises(InputError, match="values"):
            loaded(values=wrong)
    with pytest.raises(UnsupportedOpError, match="depends on data"):
        webinfer.run_sync(compile_model(model(), backend="wasm", builds=["simd128"], shapes={"x": (3,)}))
