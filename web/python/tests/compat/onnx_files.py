"""Small ONNX models for tests of the stand-ins, as bytes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def model(nodes, inputs, outputs, constants=(), opset=17, **told) -> bytes:
    """A model; inputs and outputs are (name, type of TensorProto, shape)."""
    values = [[helper.make_tensor_value_info(*one) for one in part] for part in (inputs, outputs)]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(nodes, told.pop("graph", "main"), *values, tensors)
    properties = told.pop("properties", {})
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **told)
    helper.set_model_props(made, properties)
    return bytes(made.SerializeToString())


def product() -> bytes:
    """Y = X · [[1, 2], [3, 4], [5, 6]], both float32 (3, 2)."""
    weights = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    ends = [("X", TensorProto.FLOAT, [3, 2])], [("Y", TensorProto.FLOAT, [3, 2])]
    told = {"producer_name": "tests", "domain": "org.example", "model_version": 7, "doc_string": "a product"}
    properties = {"labels": "a\nb", "stride": "32"}
    node = helper.make_node("Mul", ["X", "W"], ["Y"])
    return model([node], *ends, [("W", weights)], graph="product", properties=properties, **told)


def sums() -> bytes:
    """S = A + B and D = A - B, of float32 (batch, 2)."""
    ends = [("A", TensorProto.FLOAT, ["batch", 2]), ("B", TensorProto.FLOAT, ["batch", 2])]
    outs = [("S", TensorProto.FLOAT, ["batch", 2]), ("D", TensorProto.FLOAT, ["batch", 2])]
    nodes = [helper.make_node("Add", ["A", "B"], ["S"]), helper.make_node("Sub", ["A", "B"], ["D"])]
    return model(nodes, ends, outs)


def same(kind: int, shape=(2,)) -> bytes:
    """Y = X of this type."""
    ends = [("X", kind, list(shape))], [("Y", kind, list(shape))]
    return model([helper.make_node("Identity", ["X"], ["Y"])], *ends)


def unknown_operator() -> bytes:
    """A model with an operator that nobody has."""
    ends = [("X", TensorProto.FLOAT, [2])], [("Y", TensorProto.FLOAT, [2])]
    return model([helper.make_node("NoSuchOperator", ["X"], ["Y"])], *ends)
