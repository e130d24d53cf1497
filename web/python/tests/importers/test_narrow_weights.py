"""Weights of 4 and 2 bits in TFLite files, beside LiteRT."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from tests.importers.test_file_rules import refused
from tests.importers.tflite_writer import Writer

import webinfer

_RNG = np.random.default_rng(4)
S1 = {"stride_h": 1, "stride_w": 1, "padding": 0}


def _narrow(w: Writer, shape: tuple[int, ...], bits: int, axis: int) -> int:
    """Constant weights of so many bits with a scale for each part of an axis."""
    half, per_byte = 1 << bits - 1, 8 // bits
    numbers = _RNG.integers(-half, half, shape).reshape(-1) & (2 * half - 1)
    groups = np.pad(numbers, (0, -len(numbers) % per_byte)).reshape(-1, per_byte)
    data = (groups << np.arange(per_byte) * bits).sum(axis=1).astype(np.uint8)
    scales = _RNG.uniform(0.05, 0.1, shape[axis])
    index = w.tensor("w", shape, f"int{bits}", (scales, np.zeros(len(scales)), axis))
    w.graph.tensors[index].buffer = w.buffer(data.tobytes())
    return index


def _model(op: str, bits: int, stored: bool) -> tuple[bytes, tuple[int, ...]]:
    w = Writer()
    shape = (3, 24) if op == "FULLY_CONNECTED" else (1, 5, 6, 8)
    result = (3, 7) if op == "FULLY_CONNECTED" else (1, 5, 6, 7)
    x = w.input("x", shape, "int8", (0.02, 3)) if stored else w.input("x", shape)
    y = w.tensor("y", result, "int8", (0.05, -4)) if stored else w.tensor("y", result)
    weights = _narrow(w, (7, 24) if op == "FULLY_CONNECTED" else (7, 3, 3, 8), bits, 0)
    bias = w.constant("b", np.zeros(7, np.int32 if stored else np.float32), (0.001, 0) if stored else None)
    w.node(op, [x, weights, bias], [y], 8, **({} if op == "FULLY_CONNECTED" else S1))
    return w.finish(y), shape


def _judged(data: bytes, x: Any) -> Any:
    judge = Interpreter(model_content=data)
    judge.allocate_tensors()
    judge.set_tensor(judge.get_input_details()[0]["index"], x)
    judge.invoke()
    return judge.get_tensor(judge.get_output_details()[0]["index"])


async def _run(data: bytes, x: Any, **options: Any) -> Any:
    session = await webinfer.load(data, backend="reference", **options)
    return np.asarray(next(iter((await session.run({"x": x})).values())))


@pytest.mark.parametrize("stored", [True, False], ids=["int8", "float32"])
@pytest.mark.parametrize(("op", "bits"), [("FULLY_CONNECTED", 4), ("CONV_2D", 4), ("FULLY_CONNECTED", 2)])
def test_narrow_weights_are_litert_s(op: str, bits: int, stored: bool) -> None:
    data, shape = _model(op, bits, stored)
    if stored:
        x: Any = _RNG.integers(-128, 128, shape).astype(np.int8)
        steps = np.abs(asyncio.run(_run(data, x)).astype(int) - _judged(data, x).astype(int))
        assert steps.max() <= 1
        assert (steps > 0).mean() <= 0.05
    else:
        x = _RNG.uniform(-1, 1, shape).astype(np.float32)
        got, want = asyncio.run(_run(data, x, dynamic_range="int8")), _judged(data, x)
        assert np.abs(got - want).max() <= 0.02 * np.ptp(want)


def _blockwise(n: int, k: int, block: int) -> bytes:
    w = Writer()
    x, y = w.input("x", (3, k)), w.tensor("y", (3, n))
    weights = _narrow(w, (n, k), 4, 0)
    details = schema.BlockwiseQuantizationT()
    scales = (_RNG.integers(64, 128, (n, k // block)) / 1024).astype(np.float16)
    details.scales, details.blockSize = w.constant("scales", scales), block
    details.zeroPoints = w.constant("zeros", np.zeros((n, k // block), np.int32))
    quant = schema.QuantizationParametersT()
    quant.detailsType, quant.details = schema.QuantizationDetails.BlockwiseQuantization, details
    w.graph.tensors[weights].quantization = quant
    bias = w.constant("b", _RNG.uniform(-1, 1, n).astype(np.float32))
    w.node("FULLY_CONNECTED", [x, weights, bias], [y], 13)
    return w.finish(y)


def test_blocks_of_four_bits_are_litert_s() -> None:
    data = _blockwise(8, 64, 32)
    x = _RNG.uniform(-1, 1, (3, 64)).astype(np.float32)
    got, want = asyncio.run(_run(data, x, dynamic_range="int8")), _judged(data, x)
    assert np.abs(got - want).max() <= 0.01 * np.ptp(want)


def test_rows_of_four_bits_are_looked_up() -> None:
    w = Writer()
    x, y = w.input("x", (5,), "int32"), w.tensor("y", (5, 10))
    w.node("EMBEDDING_LOOKUP", [x, _narrow(w, (6, 10), 4, 0)], [y], 4)
    rows = np.int32([0, 5, 2, 2, 3])
    data = w.finish(y)
    assert np.allclose(asyncio.run(_run(data, rows)), _judged(data, rows))


def test_bytes_that_are_too_few_are_refused() -> None:
    w = Writer()
    x, y = w.input("x", (1, 5)), w.tensor("y", (1, 3))
    weights = w.tensor("w", (3, 5), "int4", (0.5, 0))
    w.graph.tensors[weights].buffer = w.buffer(bytes(7))
    w.node("FULLY_CONNECTED", [x, weights, -1], [y], 8)
    assert "INT4 of shape (3, 5) needs 8 bytes, its buffer has 7" in refused(w.finish(y))


def test_parts_whose_scales_lie_far_apart_are_joined() -> None:
    w = Writer()
    x, z = w.input("x", (4,), "uint8", (3e38, 5)), w.input("z", (4,), "uint8", (1.0, 0))
    w.node("CONCATENATION", [x, z], [y := w.tensor("y", (8,), "uint8", (1e-38, 7))], axis=0)

    async def run() -> list[int]:
        session = await webinfer.load(w.finish(y), backend="reference")
        found = await session.run({"x": np.uint8([0, 4, 6, 9]), "z": np.uint8([0, 0, 1, 255])})
        return list(next(iter(found.values())).tolist())

    assert asyncio.run(run()) == [0, 0, 255, 255, 7, 7, 255, 255]
