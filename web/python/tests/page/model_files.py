"""Small models for the page that looks into them: one of each format, one with open sizes, one that cannot run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from tests.importers.format_samples import onnx_image
from tests.importers.tfjs_writer import model, node, placeholder
from tests.importers.tflite_writer import Writer


def tflite(op: str = "RELU") -> bytes:
    """A convolution without activation, an operator, a reshape."""
    w = Writer()
    x = w.input("image", (1, 4, 4, 2))
    kernel = w.constant("kernel", np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 2, 2, 2))
    bias = w.constant("bias", np.zeros(3, np.float32))
    convolved, active, flat = (w.tensor(n, s) for n, s in (("c", (1, 4, 4, 3)), ("r", (1, 4, 4, 3)), ("y", (1, 48))))
    w.node("CONV_2D", [x, kernel, bias], [convolved], padding=0, stride_w=1, stride_h=1)
    w.node(op, [convolved], [active])
    w.node("RESHAPE", [active, w.constant("shape", np.int32([1, 48]))], [flat])
    return w.finish(flat)


def image() -> np.ndarray[Any, Any]:
    """An input of that model."""
    return np.random.default_rng(1).normal(size=(1, 4, 4, 2)).astype(np.float32)


def unsupported() -> bytes:
    """The same model with an operator that no version of the engine has."""
    return tflite("LSH_PROJECTION")


def damaged() -> bytes:
    """The beginning of a model."""
    return tflite()[:200]


def onnx() -> bytes:
    """A small network for pictures."""
    return onnx_image()


def open_onnx() -> bytes:
    """A product whose number of rows is open."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"], name="first"), helper.make_node("Softmax", ["r"], ["y"], axis=-1)],
        "g", [value("x", TensorProto.FLOAT, ["rows", 3])], [value("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="a test")
    return bytes(made.SerializeToString())


def tfjs() -> dict[str, bytes]:
    """A graph model and the files of its weights, by name."""
    nodes = [placeholder("x", [1, 4]), node("m", "MatMul", "x", "w"), node("y", "Relu", "m")]
    files = model(nodes, {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)}, cuts=(20,))
    assert "model.json" in files
    assert len(json.loads(files["model.json"])["weightsManifest"][0]["paths"]) == 2
    return files
