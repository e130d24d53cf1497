"""Control flow of TensorFlow graphs, of both generations, and lists of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.importers.test_tfjs_operators import f, run
from tests.importers.tfjs_writer import calls, function, model, node, placeholder

from webinfer.errors import LimitError, ModelFormatError
from webinfer.importers import read_model

X = f(3)


def turns(*body: dict[str, Any]) -> list[dict[str, Any]]:
    """A loop of the first generation that turns "limit" times; the body makes "next" from "x_now" and "i_now"."""
    nodes = [placeholder("x", [3])]
    for name in ("i", "x"):
        start = "zero" if name == "i" else "x"
        nodes += [
            node(f"{name}_enter", "Enter", start, frame_name="loop"),
            node(f"{name}_merge", "Merge", f"{name}_enter", f"{name}_next"),
            node(f"{name}_switch", "Switch", f"{name}_merge", "goes_on"),
            node(f"{name}_now", "Identity", f"{name}_switch:1"),
            node(f"{name}_exit", "Exit", f"{name}_switch"),
        ]
    nodes += [
        node("limit_enter", "Enter", "limit", frame_name="loop", is_constant=True),
        node("less", "Less", "i_merge", "limit_enter"),
        node("goes_on", "LoopCond", "less"),
        node("more", "AddV2", "i_now", "one"),
        node("i_next", "NextIteration", "more"),
        node("x_next", "NextIteration", "next"),
        *body,
        node("y", "Identity", "x_exit"),
    ]
    return nodes


def loop(count: int, *body: dict[str, Any]) -> dict[str, bytes]:
    weights = {"zero": np.int32(0), "limit": np.int32(count), "one": np.int32(1), "half": np.float32(0.5)}
    return model(turns(*body), weights)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_loop_of_the_first_generation_is_unrolled(count: int) -> None:
    files = loop(count, node("next", "Mul", "x_now", "half"))
    np.testing.assert_allclose(run(files, {"x": X})["y"], X * 0.5**count)


def test_a_loop_in_a_loop() -> None:
    inner = [
        node("j_enter", "Enter", "zero", frame_name="inner"),
        node("z_enter", "Enter", "x_now", frame_name="inner"),
        node("j_merge", "Merge", "j_enter", "j_next"),
        node("z_merge", "Merge", "z_enter", "z_next"),
        node("stop", "Enter", "i_now", frame_name="inner"),
        node("j_less", "Less", "j_merge", "stop"),
        node("j_goes", "LoopCond", "j_less"),
        node("j_switch", "Switch", "j_merge", "j_goes"),
        node("z_switch", "Switch", "z_merge", "j_goes"),
        node("j_more", "AddV2", "j_switch:1", "one"),
        node("z_more", "AddV2", "z_switch:1", "half"),
        node("j_next", "NextIteration", "j_more"),
        node("z_next", "NextIteration", "z_more"),
        node("next", "Exit", "z_switch"),
    ]
    np.testing.assert_allclose(run(loop(4, *inner), {"x": X})["y"], X + 0.5 * (0 + 1 + 2 + 3))


def test_a_loop_whose_end_depends_on_data_turns_as_often_as_data_says() -> None:
    body = [node("next", "Mul", "x_now", "half")]
    nodes = [n for n in turns(*body) if n["name"] != "less"]
    nodes += [node("most", "Max", "x_merge", "zero"), node("less", "Less", "half_enter", "most")]
    nodes += [node("half_enter", "Enter", "half", frame_name="loop")]
    weights = {"zero": np.int32(0), "one": np.int32(1), "half": np.float32(0.5), "limit": np.int32(1)}
    for x, times in ((np.array([0.1, 3, 1], np.float32), 3), (np.array([0.1, -9, 0.5], np.float32), 0)):
        np.testing.assert_allclose(run(model(nodes, weights), {"x": x})["y"], x * 0.5**times)


def condition(known: bool) -> dict[str, bytes]:
    """x + 1 where the condition holds, else x * x; a constant joins on one side."""
    nodes = [
        placeholder("x", [3]),
        *([] if known else [node("sum", "Sum", "x", "zero"), node("yes", "Greater", "sum", "floor")]),
        node("switch", "Switch", "x", "yes"),
        node("pivot", "Switch", "yes", "yes"),
        node("pivot_yes", "Identity", "pivot:1"),
        node("added", "AddV2", "switch:1", "one"),
        node("squared", "Square", "switch"),
        node("merge", "Merge", "squared", "added"),
        node("y", "Neg", "merge"),
        node("seven", "Identity", "pi", "^pivot_yes"),
        node("other", "Sum", "squared", "zero"),
        node("mixed", "Merge", "other", "seven"),
        node("z", "Identity", "mixed"),
    ]
    weights = {"zero": np.int32(0), "one": np.float32(1), "floor": np.float32(0), "pi": np.float32(7)}
    return model(nodes, weights | ({"yes": np.bool_(True)} if known else {}))


@pytest.mark.parametrize("known", [True, False])
def test_conditions_of_the_first_generation(known: bool) -> None:
    for x in (np.abs(X), -np.abs(X)):
        got = run(condition(known), {"x": x})
        yes = known or x.sum() > 0
        np.testing.assert_allclose(got["y"], -(x + 1) if yes else -(x * x), 1e-6)
        np.testing.assert_allclose(got["z"], 7 if yes else (x * x).sum(), 1e-6)


FUNCTIONS = [
    function("low", ["i", "x"], [node("less", "Less", "i", "four"), node("four", "Const")], {"yes": "less:z:0"}),
    function(
        "step",
        ["i", "x"],
        [node("one", "Const"), node("i1", "AddV2", "i", "one"), node("x1", "Square", "x")],
        {"i_out": "i1:z:0", "x_out": "x1:y:0"},
    ),
    function("twice", ["x"], [node("s", "AddV2", "x", "x")], {"out": "s:z:0"}),
    function("second", ["x"], [node("k", "Const"), node("t", "TopKV2", "x", "k")], {"out": "t:indices:0"}),
    function(
        "same",
        ["x"],
        [node("k", "Const"), node("t", "TopKV2", "x", "k"), node("c", "Cast", "t:values:0", DstT="DT_INT32")],
        {"out": "c:y:0"},
    ),
]
WEIGHTS = {"zero": np.int32(0), "one": np.int32(1), "four": np.int32(4), "k": np.int32(2)}


def test_functions_loop_branch_and_are_called() -> None:
    nodes = [
        placeholder("x", [3]),
        node("while", "StatelessWhile", "zero", "x", cond=calls("low"), body=calls("step")),
        node("called", "PartitionedCall", "while:1", f=calls("twice")),
        node("some", "Any", "bits", "zero"),
        node("bits", "Greater", "x", "half"),
        node("if", "StatelessIf", "some", "x", then_branch=calls("second"), else_branch=calls("same")),
        node("y", "Identity", "called"),
        node("z", "Identity", "if"),
    ]
    files = model(nodes, WEIGHTS | {"half": np.float32(0.5)}, functions=FUNCTIONS)
    for x in (np.array([0.9, 0.1, 0.5], np.float32), np.array([0.2, 0.3, 0.1], np.float32)):
        got = run(files, {"x": x})
        np.testing.assert_allclose(got["y"], 2 * x**16, 1e-5)
        order = np.argsort(-x)[:2]
        np.testing.assert_array_equal(got["z"], order if x.max() > 0.5 else x[order].astype(np.int32))


def test_a_function_that_calls_itself_is_too_deep() -> None:
    again = function("again", ["x"], [node("c", "PartitionedCall", "x", f=calls("again"))], {"out": "c:output:0"})
    nodes = [placeholder("x", [3]), node("y", "PartitionedCall", "x", f=calls("again"))]
    with pytest.raises(LimitError, match="depth"):
        run(model(nodes, functions=[again]), {"x": X})


def test_lists_of_tensors() -> None:
    nodes = [
        placeholder("x", [3, 2]),
        node("list", "TensorListFromTensor", "x", "any", element_dtype="DT_FLOAT"),
        node("first", "TensorListGetItem", "list", "zero", "any", element_dtype="DT_FLOAT"),
        node("set", "TensorListSetItem", "list", "one", "first"),
        node("long", "TensorListPushBack", "set", "first"),
        node("stack", "TensorListStack", "long", "any", element_dtype="DT_FLOAT"),
        node("pop", "TensorListPopBack", "list", "any", element_dtype="DT_FLOAT"),
        node("rest", "TensorListConcatV2", "pop", "any", "zero", element_dtype="DT_FLOAT"),
        node("length", "TensorListLength", "pop"),
        node("new", "TensorListReserve", "two", "four", element_dtype="DT_FLOAT"),
        node("put", "TensorListSetItem", "new", "one", "pop:1"),
        node("holes", "TensorListStack", "put", "any", element_dtype="DT_FLOAT"),
        node("spread", "TensorListScatterV2", "x", "places", "any", "four"),
        node("some", "TensorListGather", "spread", "wanted", "any", element_dtype="DT_FLOAT"),
    ]
    weights = {
        "any": np.int32(-1),
        "zero": np.int32(0),
        "one": np.int32(1),
        "four": np.int32(4),
        "two": np.array([2], np.int32),
        "places": np.array([2, 0, 1], np.int32),
        "wanted": np.array([0, 3], np.int32),
    }
    x = f(3, 2)
    got = run(model(nodes, weights), {"x": x})
    np.testing.assert_array_equal(got["stack"], x[[0, 0, 2, 0]])
    np.testing.assert_array_equal(got["rest"], x[:2].ravel())
    assert got["length"] == 2
    np.testing.assert_array_equal(got["holes"], np.stack([0 * x[0], x[2], 0 * x[0], 0 * x[0]]))
    np.testing.assert_array_equal(got["some"], np.stack([x[1], 0 * x[0]]))


def test_arrays_of_tensors_in_a_loop() -> None:
    nodes = loop_with_array()
    weights = {"zero": np.int32(0), "limit": np.int32(3), "one": np.int32(1), "half": np.float32(0.5),
               "all": np.arange(3, dtype=np.int32)}  # fmt: skip
    got = run(model(nodes, weights), {"x": X})
    np.testing.assert_allclose(got["gathered"], np.stack([X, X * 0.5, X * 0.25]))
    assert got["size"] == 3


def loop_with_array() -> list[dict[str, Any]]:
    return [
        *turns(node("next", "Mul", "x_now", "half")),
        node("array", "TensorArrayV3", "limit", dtype="DT_FLOAT", element_shape=(3,)),
        node("handle", "Enter", "array", frame_name="loop", is_constant=True),
        node("flow_enter", "Enter", "array:1", frame_name="loop"),
        node("flow_merge", "Merge", "flow_enter", "flow_next"),
        node("flow_switch", "Switch", "flow_merge", "goes_on"),
        node("write", "TensorArrayWriteV3", "handle", "i_now", "x_now", "flow_switch:1"),
        node("flow_next", "NextIteration", "write"),
        node("flow_exit", "Exit", "flow_switch"),
        node("gathered", "TensorArrayGatherV3", "array", "all", "flow_exit", dtype="DT_FLOAT"),
        node("size", "TensorArraySizeV3", "array", "flow_exit"),
    ]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("a", "Neg", "b"), node("b", "Neg", "a"), node("y", "Identity", "a")], "needs its own result"),
        ([placeholder("x", [2]), node("y", "Exit", "x")], "leaves no loop"),
        ([node("y", "Neg", "nobody")], "nobody is not a result of any node"),
        ([placeholder("x", [2]), node("y", "Neg", "x:70000")], "is not a result of any node|results of node"),
        ([placeholder("x", [2]), node("y", "TensorListStack", "x", "x")], "is not a list of tensors"),
    ],
)
def test_graphs_that_make_no_sense_are_typed_errors(nodes: list[dict[str, Any]], words: str) -> None:
    files = {name: memoryview(data) for name, data in model(nodes).items()}
    with pytest.raises((ModelFormatError, LimitError), match=words):
        read_model(files["model.json"], files=files)
