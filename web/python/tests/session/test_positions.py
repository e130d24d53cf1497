"""Positions along an axis: what a run gives is checked, but for graphs that clamp; arrays of the page are, too."""

from __future__ import annotations

import asyncio
import json
from array import array
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.importers.test_onnx import _model, _n

import webinfer
from webinfer.dtypes import DType
from webinfer.errors import InputError
from webinfer.graph.positions import Axis
from webinfer.host.interface import PageArray
from webinfer.session.inputs import TensorInfo, hold_positions

X = np.arange(12, dtype="f4").reshape(4, 3)


def _gathered(model: Any, positions: Any) -> Any:
    async def run() -> Any:
        with await webinfer.load(model, backend="wasm") as session:
            return next(iter((await session.run({"x": X, "i": positions})).values())).numpy().copy()

    return asyncio.run(run())


def test_a_webnn_graph_clamps_positions_that_a_run_gives_and_others_refuse_them() -> None:
    positions = np.array([-9, 1, 7], "i4")
    operands = {"x": ("float32", [4, 3]), "i": ("int32", [3])}
    inputs = {name: {"descriptor": {"dataType": kind, "shape": shape}} for name, (kind, shape) in operands.items()}
    call = {"name": "gather", "arguments": [{"input": "x"}, {"indices": "i"}, {"options": {}}], "outputs": "y"}
    described = json.dumps({"inputs": inputs, "operators": [call], "outputs": ["y"]}).encode()
    np.testing.assert_array_equal(_gathered(described, positions), X[[0, 1, 3]])
    model = _model([_n("Gather", "x i", "y")], {"x": [4, 3], "i": (6, [3])}, {"y": None})
    with pytest.raises(InputError, match=r"holds -9, which .* reads as a position along an axis of 4"):
        _gathered(model, positions)


@pytest.mark.parametrize(("letter", "numbers", "outside"), [
    ("i", [0, -4, 3], None), ("i", [0, 4, -5], 4), ("q", [-1, 2, -5], -5), ("I", [1, 2**32 - 1], 2**32 - 1),
    ("i", [], None),
])  # fmt: skip
def test_the_first_number_outside_is_found(letter: str, numbers: list[int], outside: int | None) -> None:
    assert Axis(4, "y").outside(memoryview(array(letter, numbers)), letter) == outside


@pytest.mark.parametrize(("dtype", "numbers", "fits"), [
    ("int32", [0, -4], True), ("int32", [0, 4], False), ("uint32", [0, 1], False), ("int32", [0, 1, 2], False),
])  # fmt: skip
def test_the_page_s_arrays_are_checked_where_they_lie(dtype: str, numbers: list[int], fits: bool) -> None:
    data = memoryview(array("i" if dtype == "int32" else "I", numbers))
    infos = [TensorInfo("i", DType.INT32, (2,), None), TensorInfo("x", DType.FLOAT32, (9,), None)]
    far = PageArray(SimpleNamespace(to_memoryview=lambda: data), dtype, data.nbytes)
    for page in (far, data):
        host: Any = SimpleNamespace(page_array=lambda _, page=page: page)
        assert hold_positions({"i": page, "x": None}, infos, {"i": Axis(4, "y")}, host) == fits
