"""Small models of every format, to be damaged: as few bytes as hold every kind of structure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tests.importers import sample_models

from webinfer.importers.formats import FORMATS


def _onnx(nodes: list[object], inputs: dict[str, list[object]], constants: Mapping[str, object]) -> bytes:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "sample", values, outputs, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return bytes(model.SerializeToString())


def onnx_image() -> bytes:
    """A small image network with weights, a residual, a pool and a head."""
    rng = np.random.default_rng(4)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["d"], pads=[1, 1, 1, 1], group=4),
        helper.make_node("Add", ["r", "d"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["p"]),
        helper.make_node("Reshape", ["p", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "m"], ["g"], transB=1),
        helper.make_node("Softmax", ["g"], ["y"], axis=-1),
    ]
    constants = {
        "w": rng.normal(size=(4, 3, 3, 3)).astype(np.float32), "b": np.ones(4, np.float32),
        "v": rng.normal(size=(4, 1, 3, 3)).astype(np.float32), "shape": np.array([1, -1], np.int64),
        "m": rng.normal(size=(5, 4)).astype(np.float32),
    }  # fmt: skip
    return _onnx(nodes, {"x": [1, 3, 8, 8]}, constants)


def onnx_shapes() -> bytes:
    """Integers that decide on shapes and positions, with a dimension that has only a name."""
    nodes = [
        helper.make_node("Gather", ["x", "rows"], ["g"], axis=1),
        helper.make_node("Transpose", ["g"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Slice", ["t", "starts", "ends"], ["s"]),
        helper.make_node("Concat", ["s", "s"], ["c"], axis=-1),
        helper.make_node("ReduceMean", ["c"], ["y"], axes=[2], keepdims=0),
    ]
    constants = {
        "rows": np.array([2, 0, -1], np.int64), "starts": np.array([0, 1], np.int64),
        "ends": np.array([9, 5], np.int64),
    }  # fmt: skip
    return _onnx(nodes, {"x": [1, 4, 6]}, constants)


def webnn() -> bytes:
    """A convolution and a softmax as a WebNN description."""
    operands = {
        "x": {"descriptor": {"shape": [1, 2, 4, 4], "dataType": "float32"}},
        "w": {"descriptor": {"shape": [3, 2, 3, 3], "dataType": "float32"}, "constant": True, "data": 0.25},
    }
    operators = [
        {"name": "conv2d", "arguments": [{"input": "x"}, {"filter": "w"}, {"options": {"padding": [1, 1, 1, 1]}}],
            "outputs": "c"},
        {"name": "clamp", "arguments": [{"input": "c"}, {"options": {"minValue": 0.0, "maxValue": 6.0}}],
            "outputs": "r"},
        {"name": "reduceMean", "arguments": [{"input": "r"}, {"options": {"axes": [2, 3]}}], "outputs": "m"},
        {"name": "softmax", "arguments": [{"input": "m"}, {"axis": 1}], "outputs": "y"},
    ]  # fmt: skip
    return json.dumps({"inputs": operands, "operators": operators, "outputs": ["y"]}).encode()


# Every format by its name in FORMATS: its samples by theirs.
SAMPLES: dict[str, dict[str, Callable[[], bytes]]] = {
    "TensorFlow Lite": sample_models.SAMPLES,
    "ONNX": {"onnx_image": onnx_image, "onnx_shapes": onnx_shapes},
    "WebNN graphs": {"webnn": webnn},
}


def samples(wanted: str | None = None) -> dict[str, bytes]:
    """The samples of every format, or of the one whose name or suffix is `wanted`.

    Raises:  ValueError if there is none
    """
    rows = [row for row in FORMATS if not wanted or wanted == row.name or f".{wanted.lstrip('.')}" in row.suffixes]
    found = {name: make() for row in rows for name, make in SAMPLES.get(row.name, {}).items()}
    if not found:
        known = ", ".join(f"{row.name} ({row.suffixes[0]})" for row in FORMATS if row.name in SAMPLES)
        raise ValueError(f"no samples of {wanted!r}; there are {known}")
    return found
