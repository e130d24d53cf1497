"""ONNX files: real ones beside their runtime's numbers, and files of a few lines for rules, limits and refusals."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import webinfer  # noqa: E402
from webinfer.errors import LimitError, ModelFormatError, ShapeError, UnsupportedOpError  # noqa: E402
from webinfer.graph.ir import Graph  # noqa: E402
from webinfer.importers import read_model  # noqa: E402
from webinfer.importers.onnx.tensors import files_beside  # noqa: E402
from webinfer.passes.pipeline import optimize  # noqa: E402

MODELS = Path(__file__).parents[4].parent / "shared" / "onnx"


def _model(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], opset: int = 17, **more: Any) -> bytes:
    """A model as bytes; inputs and outputs map names to shapes, or to (type, shape)."""

    def infos(ends: dict[str, Any]) -> list[Any]:
        typed = {n: s if isinstance(s, tuple) else (TensorProto.FLOAT, s) for n, s in ends.items()}
        return [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in typed.items()]

    tensors = [numpy_helper.from_array(a, n) for n, a in more.pop("constants", {}).items()]
    graph = helper.make_graph(nodes, "g", infos(inputs), infos(outputs), tensors)
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=domains, ir_version=9, **more).SerializeToString())


def _read(data: bytes, **shapes: tuple[int, ...]) -> Graph:
    return read_model(data, "m", shapes)


async def _run(data: bytes, backend: str = "reference", **inputs: Any) -> dict[str, Any]:
    shapes = {name: array.shape for name, array in inputs.items() if array.shape}
    with await webinfer.load(data, backend=backend, shapes=shapes) as session:
        return {name: tensor.numpy().copy() for name, tensor in (await session.run(inputs)).items()}


def test_an_image_network_keeps_no_transpose_but_at_its_ends() -> None:
    weights = {name: np.ones((4, 4, 3, 3), np.float32) for name in ("w1", "w2")}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["a", "c"], ["d"]),
        helper.make_node("Concat", ["d", "b"], ["e"], axis=1),
        helper.make_node("MaxPool", ["e"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    graph = _read(_model(nodes, {"x": [1, 4, 8, 8]}, {"y": [1, 8, 4, 4]}, constants=weights))
    optimize(graph)
    moves = [node for node in graph.nodes if node.op.name == "transpose" and not node.required_input(0).is_constant]
    assert [node.required_input(0).name for node in moves] == ["x", "y/max_pool2d"]
    assert [(v.name, v.type.shape) for v in graph.outputs] == [("y", (1, 8, 4, 4))]


def test_sizes_that_a_model_computes_are_folded() -> None:
    constants = {"one": np.array([1]), "rest": np.array([-1]), "zero": np.array(0)}
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    constants["axes"] = np.array([0])
    graph = _read(_model(nodes, {"x": ["n", 3, 4]}, {"y": ["n", 12]}, constants=constants), x=(5, 3, 4))
    assert [node.op.name for node in graph.nodes] == ["reshape"]
    assert graph.outputs[0].type.shape == (5, 12)


def test_open_sizes_are_named_and_one_name_has_one_size() -> None:
    data = _model([helper.make_node("Add", ["a", "b"], ["y"])], {"a": ["n", 2], "b": ["n", 2]}, {"y": ["n", 2]})
    with pytest.raises(ShapeError, match=r"a \(n, 2\), b \(n, 2\); bind them with `shapes`"):
        _read(data)
    assert _read(data, a=(3, 2)).inputs[1].type.shape == (3, 2)
    with pytest.raises(ShapeError, match="bound to 3 and, by 'b', to 4"):
        _read(data, a=(3, 2), b=(4, 2))
    with pytest.raises(ShapeError, match="cannot have shape"):
        _read(data, a=(3, 5))


def test_everything_that_is_not_supported_is_in_one_error() -> None:
    nodes = [
        helper.make_node("Unheard", ["x"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Strange", ["b"], ["y"], domain="com.example"),
    ]
    with pytest.raises(UnsupportedOpError) as found:
        _read(_model(nodes, {"x": [2]}, {"y": [2]}))
    assert found.value.problems == [
        "Unheard: not supported (operator 0)",
        "com.example.Strange: not supported (operator 2)",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.graph.node[0].input.__setitem__(0, "y"), "computed by no operator before it"),
        (lambda m: m.graph.node.append(m.graph.node[0]), "two values are called y"),
        (lambda m: m.graph.initializer.append(m.graph.initializer[0]), "two initializers are called w"),
        (lambda m: m.graph.initializer[0].dims.__setitem__(0, 3), "needs 12"),
        (lambda m: m.graph.initializer[0].dims.__setitem__(0, -2), "sizes are 0 or more"),
        (lambda m: m.graph.ClearField("output"), "no outputs"),
    ],
)  # fmt: skip
def test_files_that_break_a_rule_are_refused(change: Any, message: str) -> None:
    data = _model(
        [helper.make_node("Add", ["x", "w"], ["y"])], {"x": [2]}, {"y": [2]}, constants={"w": np.ones(2, np.float32)}
    )
    model = onnx.load_from_string(data)
    change(model)
    with pytest.raises(ModelFormatError, match=message):
        _read(model.SerializeToString())


def test_huge_sizes_and_deep_graphs_are_limited() -> None:
    with pytest.raises(LimitError, match="bytes of shape"):
        _read(_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [2**31, 2**31]}, {"y": [1]}))
    body = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "body", [], [])
    for depth in range(12):
        node = helper.make_node("If", ["c"], [f"o{depth}"], then_branch=body, else_branch=body)
        body = helper.make_graph([node], "body", [], [])
    with pytest.raises(LimitError, match="depth"):
        _read(_model(list(body.node), {"x": [2], "c": (TensorProto.BOOL, [])}, {"y": [2]}))


@pytest.mark.parametrize("cut", [b"\x0a\xff", b"\x3a\xff\xff\xff\xff\x0f", b"\x3a\x02\x0b\x01", b"\x80" * 11])
def test_bytes_that_are_no_protobuf_are_refused(cut: bytes) -> None:
    with pytest.raises(ModelFormatError, match="damaged"):
        _read(b"\x08\x08\x12\x02ab" + cut)


def test_functions_of_a_file_are_written_where_they_are_called() -> None:
    scaled = helper.make_function(
        "local", "Scaled", ["a"], ["b"],
        [helper.make_node("LeakyRelu", ["a"], ["t"]), helper.make_node("Add", ["t", "a"], ["b"])],
        [helper.make_opsetid("", 17)], ["alpha"],
    )  # fmt: skip
    alpha = scaled.node[0].attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="alpha")
    assert alpha.ref_attr_name == "alpha"
    data = _model(
        [helper.make_node("Scaled", ["x"], ["y"], domain="local", alpha=0.5)],
        {"x": [3]},
        {"y": [3]},
        functions=[scaled],
    )
    x = np.array([-2.0, 0.0, 4.0], np.float32)
    assert asyncio.run(_run(data, x=x))["y"].tolist() == [-3.0, 0.0, 8.0]


def _external(location: str) -> bytes:
    """A model whose only weights lie in a file beside it, behind four other bytes."""
    data = _model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [2]}, {"y": [2]})
    model = onnx.load_from_string(data)
    tensor = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[2])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "4"), ("length", "8")):
        tensor.external_data.add(key=key, value=value)
    return bytes(model.SerializeToString())


async def _loaded(path: Path) -> list[float]:
    with await webinfer.load(path, backend="reference") as session:
        outputs = await session.run(np.array([1, 2], np.float32))
        found: list[float] = outputs["y"].numpy().tolist()
        return found


def test_weights_in_a_file_beside_the_model_are_read(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "weights.bin").write_bytes(bytes(4) + np.array([10, 20], np.float32).tobytes())
    (tmp_path / "m.onnx").write_bytes(_external("deep/weights.bin"))
    assert asyncio.run(_loaded(tmp_path / "m.onnx")) == [11.0, 22.0]
    with pytest.raises(ModelFormatError, match="was not given"):
        _read(_external("deep/weights.bin"))
    (tmp_path / "deep" / "weights.bin").write_bytes(bytes(11))
    with pytest.raises(ModelFormatError, match="8 bytes from byte 4 leave"):
        asyncio.run(_loaded(tmp_path / "m.onnx"))


@pytest.mark.parametrize("place", ["../w.bin", "/etc/passwd", "a/../../w.bin", "..", "", "C:\\w.bin", "?x"])
def test_weights_outside_of_the_folder_are_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(12))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "m.onnx").write_bytes(_external(place))
    with pytest.raises(ModelFormatError, match="outside its folder"):
        asyncio.run(_loaded(tmp_path / "in" / "m.onnx"))


def test_a_link_does_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(12))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "w.bin").symlink_to(tmp_path / "w.bin")
    (tmp_path / "in" / "m.onnx").write_bytes(_external("w.bin"))
    with pytest.raises(ModelFormatError, match="is not a file in the folder"):
        asyncio.run(_loaded(tmp_path / "in" / "m.onnx"))


def test_a_constant_product_beyond_float32_is_left_to_the_kernels() -> None:
    nodes = [helper.make_node("Mul", ["far", "ten"], ["most"]), helper.make_node("Add", ["x", "most"], ["y"])]
    constants = {"far": np.array([-3.4e38], np.float32), "ten": np.array([10], np.float32)}
    data = _model(nodes, {"x": [3]}, {"y": [3]}, constants=constants)
    with np.errstate(over="ignore"):
        got = asyncio.run(_run(data, x=np.zeros(3, np.float32)))["y"]
    np.testing.assert_array_equal(got, np.full(3, -np.inf, np.float32))


def test_files_of_tensors_in_functions_are_found() -> None:
    def outside(place: str) -> TensorProto:
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=place)
        return tensor

    weights = helper.make_node("Constant", [], ["w"], value=outside("inside.bin"))
    function = helper.make_function("own", "Plus", ["x"], ["y"], [weights, helper.make_node("Add", ["x", "w"], ["y"])],
        [helper.make_opsetid("", 17)])  # fmt: skip
    function.attribute_proto.append(helper.make_attribute("usual", outside("default.bin")))
    model = onnx.load_from_string(
        _model([helper.make_node("Plus", ["x"], ["y"], domain="own")], {"x": [2]}, {"y": [2]})
    )
    model.functions.append(function)
    found = files_beside(memoryview(model.SerializeToString()), "m")
    assert sorted(found) == ["default.bin", "inside.bin"]


def _n(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(op, ["" if name == "-" else name for name in inputs.split()], outputs.split(), **attributes)


def test_sequences_between_operators_are_lists_of_values() -> None:
    """Parts of a tensor taken, put elsewhere and joined, some of it in a loop; nothing of it is left in the graph."""
    runtime = pytest.importorskip("onnxruntime", reason="needs pip onnxruntime")
    body = helper.make_graph(
        [_n("SequenceAt", "parts i", "part"), _n("Neg", "part", "turned"),
         _n("SequenceInsert", "held turned zero", "more"), _n("Identity", "on", "goes")],
        "body",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("on", 9, []),
         helper.make_tensor_sequence_value_info("held", 1, None)],
        [helper.make_tensor_value_info("goes", 9, []), helper.make_tensor_sequence_value_info("more", 1, None)],
    )  # fmt: skip
    nodes = [
        _n("SplitToSequence", "x two", "parts", axis=1),
        _n("SequenceEmpty", "", "empty"),
        _n("Loop", "count - empty", "turned", body=body),
        _n("SequenceErase", "turned first", "rest"),
        _n("SequenceLength", "rest", "n"),
        _n("ConcatFromSequence", "rest", "y", axis=1),
        _n("SplitToSequence", "x", "rows", axis=0, keepdims=0),
        _n("ConcatFromSequence", "rows", "z", axis=-1, new_axis=1),
        _n("SequenceConstruct", "y z", "both"),
        _n("SequenceAt", "both last", "w"),
    ]
    numbers = {"two": 2, "count": 3, "first": 0, "last": -1, "zero": 0}
    ends = {"n": (TensorProto.INT64, []), "y": ["a", "b"], "z": ["c", "d"], "w": ["c", "d"]}
    data = _model(nodes, {"x": [3, 5]}, ends, constants={n: np.array(v, np.int64) for n, v in numbers.items()})
    assert not {n.op.name for n in _read(data).nodes} - {"slice", "neg", "concat", "reshape", "identity", "transpose"}
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    want = runtime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    got = asyncio.run(_run(data, x=x))
    for name, expected in zip(ends, want, strict=True):
        np.testing.assert_array_equal(got[name], expected)


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ([_n("SequenceConstruct", "x x", "y")], "output y: a sequence"),
        ([_n("SequenceConstruct", "x", "s"), _n("Add", "s x", "y")], "input 0 is a sequence, needs a tensor"),
        ([_n("SequenceAt", "x i", "y")], "input 0 is not a sequence"),
        ([_n("SequenceConstruct", "x", "s"), _n("SequenceAt", "s i", "y")], "position 7 is not one of 1"),
        ([_n("SplitToSequence", "x i", "s"), _n("SequenceInsert", "s s", "y")], "a sequence holds tensors"),
    ],
)
def test_a_sequence_in_a_wrong_place_is_a_typed_error(nodes: list[Any], text: str) -> None:
    data = _model(nodes, {"x": [2, 3]}, {"y": None}, constants={"i": np.array(7, np.int64)})
    with pytest.raises((ModelFormatError, UnsupportedOpError), match=text):
        _read(data)
