"""What tests of custom operators share: graphs of one node, and a run on a backend."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.ops.case_graphs import run
from tests.ops.targets import Target

import webinfer

Array = np.ndarray[Any, np.dtype[Any]]


def one_node(op: str, *shapes: tuple[int, ...], dtype: str = "float32", **attrs: Any) -> webinfer.GraphBuilder:
    """A graph of one node with inputs x0, x1, … and outputs y0, y1, …"""
    g = webinfer.GraphBuilder("one")
    inputs = [g.input(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)]
    found = g.node(op, *inputs, **attrs)
    for i, value in enumerate(found if isinstance(found, list) else [found]):
        g.output(value, f"y{i}")
    return g


def results(graph: webinfer.GraphBuilder, backend: str, *inputs: Array) -> list[Array]:
    """The outputs on one backend alone; skips the test where there is no GPU."""
    if backend == "webgpu":
        Target("webgpu").demand()
    with run(webinfer.load(graph, backend=backend, strict=True)) as session:
        outputs = run(session.run({f"x{i}": array for i, array in enumerate(inputs)}))
        return [outputs[info.name].numpy().copy() for info in session.outputs]


def noise(*shape: int, seed: int = 0) -> Array:
    """Seeded float32 values around 0."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)
