"""A load's cost grows with the number of nodes and no faster, counted in calls of functions: clocks would be noisy."""

from __future__ import annotations

import asyncio
import cProfile
import pstats

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import webinfer

SMALL, LARGE = 96, 960  # nodes
# Calls a node of the large model over those of the small one: 0.91 and 0.82 were measured for the two kinds on wasm
# (2026-11-26); a walk over all nodes for each node would make them ten times as many.
MOST = 1.2


def _model(kind: str, count: int) -> bytes:
    """Blocks as exporters write them: a residual block with SiLU, or a projection that moves axes for its softmax."""
    rng, nodes, tensors, at = np.random.default_rng(0), list[object](), list[object](), "x"

    def constant(name: str, data: object) -> str:
        tensors.append(numpy_helper.from_array(np.asarray(data), name))
        return name

    while len(nodes) < count:
        i = len(nodes)
        if kind == "pictures":
            w = constant(f"w{i}", rng.normal(0, 0.1, (8, 8, 3, 3)).astype(np.float32))
            nodes += [
                helper.make_node("Conv", [at, w], [f"c{i}"], pads=[1] * 4),
                helper.make_node("Sigmoid", [f"c{i}"], [f"s{i}"]),
                helper.make_node("Mul", [f"c{i}", f"s{i}"], [f"m{i}"]),
                helper.make_node("Add", [f"m{i}", at], [f"a{i}"]),
            ]
        else:
            w = constant(f"w{i}", rng.normal(0, 0.1, (16, 16)).astype(np.float32))
            there, back = constant(f"r{i}", [1, 8, 4, 4]), constant(f"q{i}", [1, 8, 16])
            nodes += [
                helper.make_node("MatMul", [at, w], [f"c{i}"]),
                helper.make_node("Reshape", [f"c{i}", there], [f"e{i}"]),
                helper.make_node("Transpose", [f"e{i}"], [f"f{i}"], perm=[0, 2, 1, 3]),
                helper.make_node("Softmax", [f"f{i}"], [f"g{i}"], axis=-1),
                helper.make_node("Transpose", [f"g{i}"], [f"h{i}"], perm=[0, 2, 1, 3]),
                helper.make_node("Reshape", [f"h{i}", back], [f"a{i}"]),
            ]
        at = f"a{i}"
    shape = [1, 8, 8, 8] if kind == "pictures" else [1, 8, 16]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", at)]
    graph = helper.make_graph(nodes, "m", ends[:1], ends[1:], tensors)
    data: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    ).SerializeToString()
    return data


def _calls(model: bytes) -> int:
    """Calls of Python's functions while the model is loaded."""

    async def load() -> None:
        (await webinfer.load(model, backend="wasm", tuning_ms=0, threads=1)).close()

    profile = cProfile.Profile()
    profile.runcall(asyncio.run, load())
    total: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]  # its stub lacks it
    return total


@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_a_load_costs_no_more_a_node_in_a_large_model(kind: str) -> None:
    _calls(_model(kind, SMALL))  # modules are imported
    small, large = _calls(_model(kind, SMALL)) / SMALL, _calls(_model(kind, LARGE)) / LARGE
    assert large <= MOST * small
