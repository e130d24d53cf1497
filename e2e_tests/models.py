"""Models that tests make, and have compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from build_scripts.paths import ROOT


def classifier(height: int | str = 16, width: int | str = 16) -> bytes:
    """A small image classifier: on software adapters each shader of a larger model takes a second to compile.

    A side that is a name is an open size.
    """
    rng = np.random.default_rng(3)
    shapes = {"w": (4, 3, 3, 3), "v": (4, 4, 1, 1)}
    weights = [numpy_helper.from_array(rng.normal(size=size).astype(np.float32), n) for n, size in shapes.items()]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Conv", ["c", "v"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 3, height, width]), ("y", [1, 4]))
    ]
    graph = helper.make_graph(nodes, "small", ends[:1], ends[1:], weights)
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def compiled(model: str, task: str, to: Path, *more: str) -> None:
    """Has the command line compile a model."""
    arguments = ["compile", model, *(("--task", task) if task else ()), "-o", str(to), *more]
    engine = {**os.environ, "PYTHONPATH": str(ROOT / "web" / "python")}
    subprocess.run([sys.executable, "-m", "webinfer", *arguments], check=True, cwd=ROOT, env=engine)
