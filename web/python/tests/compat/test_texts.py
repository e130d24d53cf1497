"""Models with texts and maps give ONNX Runtime's answers: labels, categories, constants, ZipMap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import TensorProto, helper

from webinfer.compat import onnxruntime as stand_in
from webinfer.compat.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, NotImplemented

ML, FLOAT, STRING, INT64 = "ai.onnx.ml", TensorProto.FLOAT, TensorProto.STRING, TensorProto.INT64
LABELS = ["rouge", "bleu", "青"]
ROWS = np.random.default_rng(0).uniform(-1, 1, (7, 3)).astype(np.float32)
WORDS = np.array([["rouge", "x"], ["青", "y"], ["vert", ""]])


def _model(nodes: list[Any], inputs: list[Any], outputs: list[Any], **initializers: Any) -> bytes:
    ends = [[helper.make_tensor_value_info(*one) if isinstance(one, tuple) else one for one in part]
            for part in (inputs, outputs)]  # fmt: skip
    held = [helper.make_tensor(name, *given) for name, given in initializers.items()]
    graph = helper.make_graph(nodes, "texts", *ends, held)
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def _classifier(rows: Any, names: dict[str, Any], **more: Any) -> bytes:
    kind = TensorProto.STRING if "classlabels_strings" in names else INT64
    key = helper.make_tensor_type_proto(FLOAT, [])
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(kind, key))
    line = {"coefficients": [0.5, -1, 2, 1, 0.25, -0.5, 0, 1, 1], "intercepts": [0.1, 0, -0.1]}
    own = {name.replace("int64s", "ints"): value for name, value in names.items()}
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain=ML, **line, **own, **more),
        helper.make_node("ZipMap", ["scores"], ["maps"], domain=ML, **names),
    ]
    return _model(nodes, [("x", FLOAT, [rows, 3])], [("label", kind, [rows]), helper.make_value_info("maps", maps)])


def _encoder(**attributes: Any) -> bytes:
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, **attributes)
    kind = INT64 if "values_int64s" in attributes else STRING
    return _model([node], [("x", STRING, [None, 2])], [("y", kind, [None, 2])])


def _body_without_texts() -> bytes:
    body = helper.make_graph(
        [helper.make_node("Neg", ["row"], ["negative"])], "row",
        [helper.make_tensor_value_info("row", FLOAT, [3])], [helper.make_tensor_value_info("negative", FLOAT, [3])],
    )  # fmt: skip
    nodes = [
        helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1),
        helper.make_node("ArgMax", ["y"], ["place"], axis=1, keepdims=0),
        helper.make_node("ArrayFeatureExtractor", ["names", "place"], ["found"], domain=ML),
        helper.make_node("Reshape", ["found", "flat"], ["label"]),
    ]
    given = {"names": (STRING, [1, 3], [one.encode() for one in LABELS]), "flat": (INT64, [1], [-1])}
    return _model(nodes, [("x", FLOAT, [7, 3])], [("label", STRING, [7])], **given)


CASES: dict[str, tuple[bytes, Any]] = {
    "labels and maps of texts": (_classifier("n", {"classlabels_strings": LABELS}), ROWS),
    "labels and maps of numbers": (_classifier("n", {"classlabels_int64s": [4, -2, 9]}), ROWS),
    "fixed sizes": (_classifier(7, {"classlabels_strings": LABELS}, post_transform="SOFTMAX"), ROWS),
    "categories": (
        _model([helper.make_node("OneHotEncoder", ["x"], ["y"], domain=ML, cats_strings=LABELS, zeros=1)],
               [("x", STRING, [None, 2])], [("y", FLOAT, [None, 2, 3])]), WORDS),
    "texts for texts": (_encoder(keys_strings=LABELS, values_strings=["a", "b", "c"]), WORDS),
    "texts for texts, another default": (
        _encoder(keys_strings=LABELS, values_strings=["a", "b", "c"], default_string="none"), WORDS),
    "numbers for texts": (
        _encoder(keys_strings=LABELS, values_int64s=[7, 8, 9], default_int64=-5), WORDS.astype(object)),
    "equal texts, and moves": (
        _model([helper.make_node("Constant", [], ["one"], value_strings=["vert", "x"]),
                helper.make_node("Equal", ["x", "one"], ["same"]),
                helper.make_node("Concat", ["x", "two"], ["both"], axis=0),
                helper.make_node("Cast", ["both"], ["cast"], to=STRING),
                helper.make_node("Transpose", ["cast"], ["y"])],
               [("x", STRING, [3, 2])], [("same", TensorProto.BOOL, [3, 2]), ("y", STRING, [2, 5])],
               two=(STRING, [2, 2], [b"x", b"new", b"", b"x"])), WORDS),
    "a body beside texts": (_body_without_texts(), ROWS),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_texts_and_maps_are_those_of_onnx_runtime(name: str) -> None:
    data, x = CASES[name]
    wanted, found = (one.InferenceSession(data, providers=["CPUExecutionProvider"]) for one in (onnxruntime, stand_in))
    for ours, theirs in ((found.get_inputs(), wanted.get_inputs()), (found.get_outputs(), wanted.get_outputs())):
        assert [(a.name, a.type, a.shape) for a in ours] == [(a.name, a.type, a.shape) for a in theirs]
    for ours, theirs in zip(found.run(None, {"x": x}), wanted.run(None, {"x": x}), strict=True):
        if isinstance(theirs, list):
            assert [list(row) for row in ours] == [list(row) for row in theirs]
            assert [list(row.values()) for row in ours] == [pytest.approx(list(row.values()), 1e-5) for row in theirs]
        else:
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


def test_what_reads_characters_and_what_is_no_text_is_refused() -> None:
    ends = [("x", STRING, [2])], [("y", STRING, [2])]
    lower = helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="LOWER")
    with pytest.raises(NotImplemented, match="string"):
        stand_in.InferenceSession(_model([lower], *ends))
    session = stand_in.InferenceSession(_model([helper.make_node("Identity", ["x"], ["y"])], *ends))
    with pytest.raises(InvalidArgument, match=r"Actual: \(tensor\(float\)\) , expected: \(tensor\(string\)\)"):
        session.run(None, {"x": np.zeros(2, np.float32)})
