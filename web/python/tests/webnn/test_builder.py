"""The builder behind `navigator.ml`: what its limits promise it builds and compiles, and what it refuses says why."""

import json
from typing import Any

import pytest

from webinfer.backends.wasm.executor import lower_graph
from webinfer.errors import InputError
from webinfer.passes.pipeline import optimize
from webinfer.webnn.bindings import WebnnBindings
from webinfer.webnn.builder import Builder, nbytes_of
from webinfer.webnn.limits import limits
from webinfer.webnn.signatures import ANY, METHODS, signature, table

IMAGE = [1, 4, 6, 6]
# Shapes of operands and other arguments where the first operand is not simply a matrix.
CALLS: dict[str, tuple[dict[str, list[int]], dict[str, Any]]] = {
    "argMax": ({}, {"axis": 1}),
    "argMin": ({}, {"axis": 1}),
    "batchNormalization": ({"input": IMAGE, "mean": [4], "variance": [4]}, {}),
    "cast": ({}, {"type": "int32"}),
    "concat": ({}, {"axis": 1}),
    "conv2d": ({"input": IMAGE, "filter": [2, 4, 3, 3]}, {"padding": [1, 1, 1, 1]}),
    "convTranspose2d": ({"input": IMAGE, "filter": [4, 2, 3, 3]}, {"strides": [2, 2]}),
    "cumulativeSum": ({}, {"axis": 0}),
    "dequantizeLinear": ({"scale": [1, 3], "zeroPoint": [1, 3]}, {}),
    "quantizeLinear": ({"scale": [1, 3], "zeroPoint": [1, 3]}, {}),
    "expand": ({"input": [1, 3]}, {"newShape": [2, 3]}),
    "gather": ({"indices": [2]}, {}),
    "gatherElements": ({"indices": [1, 3]}, {}),
    "gatherND": ({"indices": [2, 1]}, {}),
    "gemm": ({"b": [3, 2]}, {"alpha": 0.5}),
    "gru": ({"input": [2, 1, 3], "weight": [1, 12, 3], "recurrentWeight": [1, 12, 4]}, {"steps": 2, "hiddenSize": 4}),
    "gruCell": (
        {"input": [1, 3], "weight": [12, 3], "recurrentWeight": [12, 4], "hiddenState": [1, 4]},
        {"hiddenSize": 4},
    ),
    "lstm": ({"input": [2, 1, 3], "weight": [1, 16, 3], "recurrentWeight": [1, 16, 4]}, {"steps": 2, "hiddenSize": 4}),
    "lstmCell": (
        {"input": [1, 3], "weight": [16, 3], "recurrentWeight": [16, 4], "hiddenState": [1, 4], "cellState": [1, 4]},
        {"hiddenSize": 4},
    ),
    "instanceNormalization": ({"input": IMAGE}, {}),
    "matmul": ({"b": [3, 2]}, {}),
    "pad": ({}, {"beginningPadding": [0, 1], "endingPadding": [1, 0]}),
    **{name: ({"input": IMAGE}, {"windowDimensions": [2, 2]}) for name in ("averagePool2d", "l2Pool2d", "maxPool2d")},
    "resample2d": ({"input": IMAGE}, {"sizes": [12, 12]}),
    "reshape": ({}, {"newShape": [3, 2]}),
    "scatterElements": ({"indices": [1, 3], "updates": [1, 3]}, {}),
    "scatterND": ({"indices": [2, 1], "updates": [2, 3]}, {}),
    "slice": ({}, {"starts": [0, 1], "sizes": [2, 2]}),
    "softmax": ({}, {"axis": 1}),
    "split": ({}, {"splits": 3, "axis": 1}),
    "tile": ({}, {"repetitions": [1, 2]}),
}


def built(name: str, dtype: str) -> Builder:
    """A builder whose graph calls one method on inputs, of which the first has this type."""
    builder, own = Builder(), signature(name)
    shapes, more = CALLS.get(name, ({}, {}))
    arguments: dict[str, Any] = dict(more)
    types: dict[str, str] = {}
    for operand in own.operands:
        if not operand.required:
            continue
        kind = types[operand.name] = types[operand.like] if operand.like else operand.types[0]
        if operand is own.operands[0]:
            kind = types[operand.name] = dtype
        shape = shapes.get(operand.name, [2, 3])
        if kind in ANY:
            key = builder.input(operand.name, kind, shape)[0]
        else:
            key = builder.constant(kind, shape, bytes(nbytes_of(kind, shape)))[0]
        arguments[operand.name] = [key, key] if operand.listed else key
    results = builder.call(name, arguments)
    keys = {f"y{i}": result[0] for i, result in enumerate(results) if result[1] in ANY}
    graph = builder.graph(keys)
    optimize(graph)
    lower_graph(graph, "simd128", {})
    return builder


@pytest.mark.parametrize("name", sorted(METHODS))
def test_what_the_limits_promise_is_compiled(name: str) -> None:
    for dtype in signature(name).operands[0].types:
        built(name, dtype)


def test_limits_are_the_declarations() -> None:
    found = limits("cpu")
    assert found["conv2d"]["filter"] == {"dataTypes": ["float32", "float16"], "rankRange": {"min": 4, "max": 4}}
    assert found["equal"]["output"]["dataTypes"] == ["uint8"]
    assert found["split"].keys() == {"input", "outputs"}
    assert set(table()) == set(METHODS)


def test_a_refusal_names_the_call_by_its_label() -> None:
    builder = Builder()
    a, b = (builder.input(name, "float32", shape)[0] for name, shape in (("a", [2, 3]), ("b", [4])))
    with pytest.raises(InputError, match=r"^\[mine\] add: .*\(2, 3\)"):
        builder.call("add", {"a": a, "b": b, "label": "mine"})
    other = Builder().input("x", "float32", [2, 3])[0]
    with pytest.raises(InputError, match="another builder"):
        builder.call("add", {"a": a, "b": other})


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("clamp", {"minValue": 2, "maxValue": 1}, "minValue 2 is above"),
        ("averagePool2d", {"strides": [0, 1]}, "strides"),
        ("layerNormalization", {"axes": [9]}, "not distinct axes"),
        ("tile", {"repetitions": [1]}, "repetitions"),
        ("slice", {"starts": [0, 0, 0, 5], "sizes": [1, 4, 6, 2]}, "not within 6"),
        ("resample2d", {"scales": [1.0]}, "scales has 1 numbers"),
    ],
)
def test_the_interface_own_rules_hold(name: str, arguments: dict[str, Any], problem: str) -> None:
    builder = Builder()
    x = builder.input("x", "float32", IMAGE)[0]
    with pytest.raises(InputError, match=problem):
        builder.call(name, {"input": x, **arguments})


def test_a_graph_holds_what_its_outputs_need() -> None:
    builder = Builder()
    a, b = (builder.input(name, "float32", [2])[0] for name in ("a", "b"))
    used = builder.call("relu", {"input": a})[0][0]
    builder.call("relu", {"input": b})
    for outputs in ({}, {"y": a}, {"": used}):
        with pytest.raises(InputError):
            builder.graph(outputs)
    graph = builder.graph({"y": used})
    assert [value.name for value in graph.inputs] == ["a"]
    assert len(graph.nodes) == 1


def test_two_inputs_of_one_name_make_no_graph() -> None:
    builder = Builder()
    a, b = (builder.input("a", "float32", [2])[0] for _ in range(2))
    total = builder.call("add", {"a": a, "b": b})[0][0]
    with pytest.raises(InputError, match="the same name"):
        builder.graph({"y": total})


def test_answers_are_json_and_so_are_refusals() -> None:
    bindings = WebnnBindings(None)  # type: ignore[arg-type]  # what builders ask needs no host
    number = bindings.builder()
    key, dtype, shape = json.loads(bindings.input(number, "x", "float32", "[2]"))
    assert (dtype, shape) == ("float32", [2])
    many, result = json.loads(bindings.call(number, "clamp", json.dumps({"input": key, "maxValue": "Infinity"})))
    assert not many
    assert result[1:] == ["float32", [2]]
    assert "size of 0" in json.loads(bindings.input(number, "z", "float32", "[0]"))["error"]
    assert json.loads(bindings.tensor_bytes("int64", "[3]", False)) == 24
    assert "constants" in json.loads(bindings.tensor_bytes("int4", "[3]", False))["error"]
    assert json.loads(bindings.tensor_bytes("int4", "[3]", True)) == 2
    place, inputs, outputs = json.loads(bindings.finish(number, json.dumps({"y": result[0]})))
    assert inputs == {"x": ["float32", [2]]}
    assert outputs == {"y": ["float32", [2]]}
    assert place
