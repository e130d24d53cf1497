"""Models for the tests of scale: small, in files, with open and with fixed first axes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import webinfer
from webinfer.package import compile_model

WIDTH = 6


@pytest.fixture(scope="session")
def doubling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = 2 x for one row of 6 numbers: the first axis is 1."""
    builder = webinfer.GraphBuilder("doubling")
    builder.output(builder.node("linear", builder.input("x", (1, WIDTH)), a=2.0, b=0.0), "y")
    path = tmp_path_factory.mktemp("models") / "doubling.webinfer"
    path.write_bytes(bytes(webinfer.run_sync(compile_model(builder, backend="wasm", threads=False))))
    return path


@pytest.fixture(scope="session")
def summing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ONNX model whose first axis is open: z = x + y for rows of any length."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    h, f = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [h.make_node("Add", ["x", "y"], ["z"])]
    inputs = [h.make_tensor_value_info(name, f, ["rows", "width"]) for name in "xy"]
    graph = h.make_graph(nodes, "summing", inputs, [h.make_tensor_value_info("z", f, ["rows", "width"])])
    path = tmp_path_factory.mktemp("models") / "summing.onnx"
    path.write_bytes(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9).SerializeToString())
    return path


@pytest.fixture
def numbers() -> np.ndarray:
    """37 rows of 6 numbers."""
    return np.arange(37 * WIDTH, dtype=np.float32).reshape(37, WIDTH) / 7
