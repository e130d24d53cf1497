"""The list of what ONNX Runtime's own tests of its Python interface check, and what several of them need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from onnx import TensorProto, helper
from tests.compat.onnx_files import model

STAND_IN, ORIGINAL = "webinfer.compat.onnxruntime", "onnxruntime"
CPU = ["CPUExecutionProvider"]
FLOAT = TensorProto.FLOAT
X = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
ABSENT = {
    "custom operator libraries": "native code cannot run in a browser",
}

Check = Callable[[Any, Any], None]
CHECKS: dict[str, tuple[Check, str]] = {}


def check(absent: str = "") -> Callable[[Check], Check]:
    """Puts a check on the list; `absent`: why the stand-in fails it, a key of ABSENT."""

    def added(function: Check) -> Check:
        CHECKS[function.__name__] = function, absent
        return function

    return added


def feed(ort, data: bytes, inputs: dict[str, Any], options: Any = None, run_options: Any = None) -> list[Any]:
    session = ort.InferenceSession(data, sess_options=options, providers=CPU)
    return session.run(None, inputs, run_options=run_options)


def matmul(rows: Any = 3) -> bytes:
    ends = [("X", FLOAT, [rows, 2])], [("Y", FLOAT, [rows, 1])]
    return model(
        [helper.make_node("MatMul", ["X", "W"], ["Y"])], *ends, [("W", np.array([[1], [2]], np.float32))]
    )  # fmt: skip


def conjunction() -> bytes:
    ends = [("input1:0", TensorProto.BOOL, [2, 2]), ("input:0", TensorProto.BOOL, [2, 2])]
    node = helper.make_node("And", ["input1:0", "input:0"], ["output:0"])
    return model([node], ends, [("output:0", TensorProto.BOOL, [2, 2])])


A, B = np.array([[True, True], [False, False]]), np.array([[True, False], [True, False]])
