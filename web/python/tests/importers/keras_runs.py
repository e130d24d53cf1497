"""Small layers models run by the reference: what tests of layers are written with."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from tests.importers.tfjs_writer import Array, functional, layer, layers_model

import webinfer

F32 = np.float32


def f(*shape: int, low: float = -1.0, high: float = 1.0) -> Array:
    return np.random.default_rng(math.prod(shape) + len(shape)).uniform(low, high, shape).astype(F32)


def run(files: Mapping[str, bytes], *inputs: Mapping[str, Array], **options: Any) -> list[dict[str, Array]]:
    """What the reference computes, run after run."""

    async def loaded() -> list[dict[str, Array]]:
        with await webinfer.load(files, backend="reference", **options) as session:
            return [{k: t.numpy().copy() for k, t in (await session.run(dict(named))).items()} for named in inputs]

    return asyncio.run(loaded())


def of(kind: str, *inputs: Array, weights: Mapping[str, Array] | None = None, **config: Any) -> list[Array]:
    """The results of one layer called "layer"."""
    names = [f"x{i}" for i in range(len(inputs))]
    kinds = {"float32": "float32", "int32": "int32"}
    holders = [
        layer("InputLayer", n, batch_input_shape=[None, *x.shape[1:]], dtype=kinds[str(x.dtype)])
        for n, x in zip(names, inputs, strict=True)
    ]
    count = config.pop("results", 1)
    described = functional(
        [*holders, layer(kind, "layer", names, **config)], names, [["layer", 0, i] for i in range(count)]
    )
    held = {f"layer/{name}": array for name, array in (weights or {}).items()}
    shapes = {n: x.shape for n, x in zip(names, inputs, strict=True)}
    (got,) = run(layers_model(described, held), dict(zip(names, inputs, strict=True)), shapes=shapes)
    return list(got.values())


def near(got: Array, want: Array) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def gru(x: Array, w: Array, r: Array, bias: Array, after: bool) -> Array:
    """All states, as Keras defines them."""
    size, h, found = r.shape[0], np.zeros((len(x), r.shape[0])), []
    for t in range(x.shape[1]):
        sums = x[:, t] @ w + (bias[0] if after else bias)
        past = h @ r + (bias[1] if after else 0)
        z, g = (sigmoid(sums[:, i * size : (i + 1) * size] + past[:, i * size : (i + 1) * size]) for i in (0, 1))
        last = g * past[:, 2 * size :] if after else (g * h) @ r[:, 2 * size :]
        h = z * h + (1 - z) * np.tanh(sums[:, 2 * size :] + last)
        found.append(h)
    return np.stack(found, 1)


SEQUENCE = f(2, 5, 4)
CELL = {"units": 3, "activation": "tanh", "recurrent_activation": "sigmoid", "return_sequences": True}
