"""Two models side by side: what the page is told of operators and weights that differ."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.page.model_files import onnx, tfjs, tflite

from webinfer.errors import InputError
from webinfer.page.model_controller import ModelController

Nodes = list[tuple[str, list[str], dict[str, Any]]]


def chain(ops: Nodes, weights: dict[str, Any], prefix: str = "") -> dict[str, memoryview]:
    """A model of operators one after the other, each named by its place behind `prefix`."""
    value = helper.make_tensor_value_info
    nodes, last = [], "x"
    for i, (op, more, attributes) in enumerate(ops):
        nodes.append(helper.make_node(op, [last, *more], [f"{prefix}{i}"], name=f"{prefix}{op}_{i}", **attributes))
        last = f"{prefix}{i}"
    tensors = [numpy_helper.from_array(np.float32(array), name) for name, array in weights.items()]
    ends = [value("x", TensorProto.FLOAT, [1, 3])], [value(last, TensorProto.FLOAT, None)]
    made = helper.make_model(helper.make_graph(nodes, "g", *ends, tensors), opset_imports=[helper.make_opsetid("", 17)])
    return {"net.onnx": memoryview(made.SerializeToString())}


def compared(one: dict[str, memoryview], other: dict[str, memoryview]) -> tuple[dict[str, Any], list[memoryview]]:
    """What the page is told of two models."""
    controller = ModelController(lambda event: None)

    async def ask() -> Any:
        await controller.open(one)
        return await controller.answer("compare", {"files": other})

    found: tuple[dict[str, Any], list[memoryview]] = asyncio.run(ask())
    return found


PLAIN: Nodes = [("Mul", ["a"], {}), ("Relu", [], {}), ("Add", ["b"], {}), ("Softmax", [], {"axis": -1})]
WEIGHTS = {"a": [1, 2, 3], "b": [0, 0, 1]}


def test_the_same_model_has_no_difference() -> None:
    for files in ({"net.onnx": onnx()}, {"net.tflite": tflite()}, tfjs()):
        views = {name: memoryview(data) for name, data in files.items()}
        told, buffers = compared(views, views)
        assert (told["nodes"]["added"], told["nodes"]["removed"], told["nodes"]["changed"]) == ([], [], [])
        assert told["nodes"]["same"] == len(told["outline"]["nodes"]) > 0
        assert (told["weights"]["differ"], told["weights"]["added"], told["weights"]["removed"]) == ([], [], [])
        assert told["weights"]["same"] > 0
        assert told["weights"]["unread"] == 0
        assert buffers == []


@pytest.mark.parametrize("prefix", ["", "other/"])
def test_added_removed_and_changed_operators_are_told_whatever_they_are_called(prefix: str) -> None:
    other: Nodes = [("Mul", ["a"], {}), ("Clip", [], {}), ("Relu", [], {}), ("Softmax", [], {"axis": 0})]
    told, _ = compared(chain(PLAIN, WEIGHTS), chain(other, {"a": [1, 2, 3]}, prefix))
    nodes = told["nodes"]
    assert [told["outline"]["nodes"][i]["op"] for i in nodes["added"]] == ["Clip"]
    assert nodes["removed"] == [2]  # Add
    changed = {
        row["node"]: {change["kind"]: (change["was"], change["now"]) for change in row["changes"]}
        for row in nodes["changed"]
    }
    assert changed[3]["attribute"] == ("-1", "0")
    assert changed[1]["input"] == ("Mul_0", f"{prefix}Clip_1")
    assert told["weights"]["removed"] == ["b"]
    assert nodes["same"] == 1


def test_weights_that_differ_come_with_their_numbers() -> None:
    told, buffers = compared(chain(PLAIN, WEIGHTS), chain(PLAIN, {**WEIGHTS, "b": [0, 0.5, 1]}))
    assert told["nodes"]["changed"] == []
    assert told["weights"]["same"] == 1
    (row,) = told["weights"]["differ"]
    assert (row["name"], row["dtypes"]) == ("b", ["float32", "float32"])
    assert [np.frombuffer(each, np.float32).tolist() for each in buffers] == [[0, 0, 1], [0, 0.5, 1]]


def test_weights_that_are_not_there_leave_the_graphs_compared() -> None:
    files = {name: memoryview(data) for name, data in tfjs().items()}
    told, _ = compared(files, {"model.json": files["model.json"]})
    assert told["nodes"]["same"] > 0
    assert told["weights"]["error"]["code"] == "model-format"


def test_files_beside_are_named_and_a_comparison_needs_a_model() -> None:
    controller = ModelController(lambda event: None)
    description = memoryview(tfjs()["model.json"])
    told, _ = asyncio.run(controller.answer("beside", {"files": {"model.json": description}}))
    assert sorted(told["names"]) == sorted(name for name in tfjs() if name != "model.json")
    with pytest.raises(InputError, match="open one first"):
        asyncio.run(controller.answer("compare", {"files": {"net.tflite": memoryview(tflite())}}))
