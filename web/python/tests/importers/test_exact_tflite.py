"""Quantised operators of TFLite on full-range operands and many channels: LiteRT's integers, every one.

LiteRT runs them by its default delegate where a bias has its scale, as all of these have.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.importers.litert import judged
from tests.importers.tflite_writer import Writer
from tests.ops.targets import Target

import webinfer

_RNG = np.random.default_rng(23)
_X, _SAME = (0.02, -3), {"padding": 0, "stride_h": 1, "stride_w": 1}


class Model:
    """A file of several operators side by side, each on an input of its own."""

    def __init__(self) -> None:
        self.writer, self.arrays = Writer(), dict[str, Any]()
        self.results: list[int] = []
        self.labels: list[str] = []

    def given(self, shape: tuple[int, ...], kind: str = "int8", quant: Any = _X) -> int:
        """An input, with operands of the whole range."""
        name, ends = f"x{len(self.arrays)}", np.iinfo(kind)
        self.arrays[name] = _RNG.integers(ends.min, ends.max, shape, kind, endpoint=True)
        return self.writer.input(name, shape, kind, quant)

    def node(
        self, op: str, inputs: list[int], shape: tuple[int, ...], quant: Any, kind: str = "int8", **more: Any
    ) -> None:
        y = self.writer.tensor(f"y{len(self.results)}", shape, kind, quant)
        self.writer.node(op, inputs, [y], **more)
        self.results.append(y)
        self.labels.append(f"{op} {shape}")

    def product(
        self, op: str, x: tuple[int, ...], w: tuple[int, ...], axis: int, y: tuple[int, ...], scale: float, **more: Any
    ) -> None:
        """A product with a scale for each channel, and a bias in the scales of the products."""
        count = w[axis]
        scales = _RNG.uniform(0.0005, 0.002, count).astype(np.float32)
        quants: list[Any] = [(scales, 0, axis), (np.float32(_X[0]) * scales, 0, 0)]
        weights = self.writer.constant("w", _RNG.integers(-127, 128, w).astype(np.int8), quants[0])
        whole = _RNG.integers(-20000, 20000, count).astype(np.int32)
        bias = self.writer.constant("b", whole, quants[1])
        self.node(op, [self.given(x), weights, bias], y, (scale, 5), **more)


@cache
def _model() -> tuple[bytes, dict[str, Any], list[Any], list[str]]:
    m = Model()
    m.product("CONV_2D", (1, 9, 8, 512), (16, 3, 3, 512), 0, (1, 9, 8, 16), 0.9, version=3, **_SAME)
    m.product("CONV_2D", (1, 12, 12, 64), (32, 3, 3, 64), 0, (1, 12, 12, 32), 0.3, version=3, **_SAME)
    m.product("CONV_2D", (1, 6, 6, 2048), (24, 1, 1, 2048), 0, (1, 6, 6, 24), 0.5, version=3, **_SAME)
    m.product("DEPTHWISE_CONV_2D", (1, 9, 8, 256), (1, 5, 5, 256), 3, (1, 9, 8, 256), 0.05, version=3,
              depth_multiplier=1, **_SAME)  # fmt: skip
    m.product("FULLY_CONNECTED", (9, 4096), (40, 4096), 0, (9, 40), 0.6, version=4)
    for op, scale in (("ADD", 0.035), ("SUB", 0.035), ("MUL", 0.02)):
        m.node(op, [m.given((3, 700)), m.given((3, 700), quant=(0.013, 9))], (3, 700), (scale, 5), version=2)
    m.node("MEAN", [m.given((1, 64, 64, 8)), m.writer.constant("axes", [1, 2])], (1, 8), (0.001, 5), version=2)
    for op in ("ADD", "SUB"):
        short = [m.given((3, 700), "int16", (0.0002, 0)), m.given((3, 700), "int16", (0.00013, 0))]
        m.node(op, short, (3, 700), (0.00035, 0), "int16", version=3)
    for op in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "LESS", "EQUAL"):
        pair = [m.given((5, 90), "int32", None) for _ in range(2)]
        m.node(op, pair, (5, 90), None, "bool" if op in ("LESS", "EQUAL") else "int32")
    for op in ("SUM", "REDUCE_MAX", "REDUCE_MIN", "MEAN"):
        m.node(op, [m.given((5, 300), "int32", None), m.writer.constant("axis", [1])], (5,), None, "int32")
    data = m.writer.finish(*m.results)
    return data, m.arrays, judged(data, list(m.arrays.values())), m.labels


@pytest.mark.parametrize("backend", ["reference", "wasm", "webgpu"])
def test_every_integer_is_litert_s(backend: str) -> None:
    if backend != "reference":
        Target(backend, (("isa", "relaxed"),) if backend == "wasm" else ()).demand()
    data, arrays, wanted, labels = _model()
    with webinfer.load_sync(data, backend=[backend]) as session:
        found = session.run(arrays)
        for i, (array, label) in enumerate(zip(wanted, labels, strict=True)):
            np.testing.assert_array_equal(found[f"y{i}"].numpy(), array, f"{label} on {backend}")
