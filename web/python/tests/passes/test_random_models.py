"""Outputs of random models with and without the passes: which are read as well, which are one value, or an input."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.passes.random_models import STEP, Model

from webinfer.backends.reference.executor import build
from webinfer.graph.ir import Graph
from webinfer.graph.verify import verify
from webinfer.host.native import NativeHost
from webinfer.importers import read_model
from webinfer.passes.pipeline import PIPELINE, ROUNDING, optimize

SEEDS = 120


async def _outputs(graph: Graph, inputs: dict[str, memoryview]) -> dict[str, np.ndarray]:
    executor = await build(graph, NativeHost())
    return {name: tensor.numpy().copy() for name, tensor in (await executor.run(inputs)).items()}


async def _differing(seed: int) -> list[str]:
    """The outputs that the passes changed by more than rounding."""
    model, draw = Model(seed), np.random.default_rng(seed)
    plain, rewritten = (read_model(memoryview(model.data()), f"random {seed}") for _ in range(2))
    verify(plain)
    optimize(rewritten, ROUNDING if seed % 8 == 0 else PIPELINE)
    arrays = {name: draw.uniform(-1, 1, shape).astype(np.float32) for name, shape in model.inputs.items()}
    inputs = {name: memoryview(array.tobytes()) for name, array in arrays.items()}
    want, got = await _outputs(plain, inputs), await _outputs(rewritten, inputs)
    assert [*got] == model.outputs, seed
    rounded = any(node.op_type == "QuantizeLinear" for node in model.nodes)
    off = 4 * STEP if rounded else 1e-4
    return [
        f"seed {seed}: output {name}" for name, array in want.items()
        if not np.allclose(got[name], array, rtol=0, atol=off * max(1.0, np.abs(array).max()), equal_nan=True)
    ]  # fmt: skip


def test_passes_leave_every_output_what_it_is() -> None:
    found = list[str]()

    async def all_seeds() -> None:
        for seed in range(SEEDS):
            found.extend(await _differing(seed))

    asyncio.run(all_seeds())
    assert found == []
