"""Element types that no kernel knows: read, computed in another type, and given back as the file says."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import webinfer
from webinfer.dtypes import DType
from webinfer.errors import InputError
from webinfer.packing import SMALL_FLOATS, file_bytes, from_inner, spread, to_inner

onnx = pytest.importorskip("onnx")
ml_dtypes = pytest.importorskip("ml_dtypes")
OUTER = [d for d in DType if d.inner is not d]
_KINDS = {"float64": 11, "bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19,
          "float8_e5m2fnuz": 20, "uint4": 21, "int4": 22, "float4_e2m1fn": 23, "float8_e8m0fnu": 24, "uint2": 25,
          "int2": 26, "float32": 1, "int64": 7}  # fmt: skip


def _numpy(dtype: DType) -> np.dtype[Any]:
    return np.dtype(np.float64 if dtype is DType.FLOAT64 else getattr(ml_dtypes, dtype.value))


@pytest.mark.parametrize("dtype", [d for d in OUTER if d is not DType.FLOAT64])
def test_every_number_of_a_type_comes_in_and_goes_out(dtype: DType) -> None:
    codes = np.arange(1 << dtype.bits, dtype=np.uint16 if dtype.bits == 16 else np.uint8)
    want = codes.view(_numpy(dtype)).astype(np.float64)
    inner = to_inner(memoryview(codes.tobytes()), dtype)
    got = np.frombuffer(inner, dtype.inner.value).astype(np.float64)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[got == got]), np.signbit(want[want == want]))
    back = np.frombuffer(from_inner(inner, dtype), codes.dtype).view(_numpy(dtype))
    np.testing.assert_array_equal(back.astype(np.float64), want)


def test_float64_is_rounded_on_the_way_in_and_overflows_to_infinity() -> None:
    given = np.array([1 / 3, -1e300, np.nan, 2.5])
    inner = np.frombuffer(to_inner(memoryview(given.tobytes()), DType.FLOAT64), np.float32)
    np.testing.assert_array_equal(inner, np.array([1 / 3, -np.inf, np.nan, 2.5], np.float32))


@pytest.mark.parametrize("dtype", [DType.INT4, DType.UINT2])
def test_elements_that_a_file_packs_are_spread(dtype: DType) -> None:
    numbers = np.arange(7) % (1 << dtype.bits)
    packed = bytearray(file_bytes(dtype, 7))
    for i, n in enumerate(numbers):
        packed[i * dtype.bits // 8] |= int(n) << (i * dtype.bits % 8)
    assert list(spread(memoryview(packed), dtype, 7)) == list(numbers)


def _model(nodes: list[Any], inputs: dict[str, tuple[str, list[int]]], outputs: dict[str, tuple[str, list[int]]],
           constants: list[Any] | None = None) -> bytes:  # fmt: skip
    def infos(ends: dict[str, tuple[str, list[int]]]) -> list[Any]:
        return [onnx.helper.make_tensor_value_info(n, _KINDS[kind], shape) for n, (kind, shape) in ends.items()]

    graph = onnx.helper.make_graph(nodes, "g", infos(inputs), infos(outputs), constants or [])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 25)])
    return bytes(model.SerializeToString())


def _run(data: bytes, inputs: dict[str, Any], backend: str = "wasm") -> tuple[Any, dict[str, Any]]:
    async def run() -> tuple[Any, dict[str, Any]]:
        session = await webinfer.load(data, backend=backend)
        return session, await session.run(inputs)

    return asyncio.run(run())


def test_a_session_takes_and_gives_the_types_of_the_file() -> None:
    node = onnx.helper.make_node("Add", ["x", "y"], ["z"])
    data = _model([node], {"x": ("float64", [3]), "y": ("float64", [3])}, {"z": ("float64", [3])})
    given = {"x": np.array([1.0, 2.0, 3.0]), "y": np.array([0.5, 0.25, -1.0])}
    session, results = _run(data, given)
    assert [i.dtype for i in (*session.inputs, *session.outputs)] == [DType.FLOAT64] * 3
    assert results["z"].dtype is DType.FLOAT64
    assert results["z"].tolist() == [1.5, 2.25, 2.0]
    np.testing.assert_array_equal(results["z"].numpy(), given["x"] + given["y"])
    assert "computed in float32: z, x, y of type float64" in str(session.plan())
    assert len(asyncio.run(session.profile(rounds=1)).rows) == 1
    narrow = asyncio.run(session.run({"x": given["x"].astype(np.float32), "y": given["y"]}))
    assert narrow["z"].tolist() == [1.5, 2.25, 2.0]
    with pytest.raises(InputError, match="type int64, needs float64"):
        asyncio.run(session.run({"x": given["x"].astype(np.int64), "y": given["y"]}))


def test_results_in_bfloat16_are_rounded_to_it() -> None:
    node = onnx.helper.make_node("Mul", ["x", "x"], ["z"])
    data = _model([node], {"x": ("bfloat16", [3])}, {"z": ("bfloat16", [3])})
    given = np.array([1.0078125, -3.140625, 0.1], ml_dtypes.bfloat16)
    _, results = _run(data, {"x": given})
    want = (given.astype(np.float32) ** 2).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(results["z"].numpy().astype(np.float32), want.astype(np.float32))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", [d for d, kind in SMALL_FLOATS.items() if kind.is_signed], ids=str)
def test_a_cast_rounds_to_the_nearest(dtype: DType, saturate: int) -> None:
    node = onnx.helper.make_node("Cast", ["x"], ["z"], to=_KINDS[dtype.value], saturate=saturate)
    every = np.arange(256, dtype=np.uint8)[: 1 << dtype.bits].view(_numpy(dtype)).astype(np.float32)
    every = np.unique(every[np.isfinite(every)])
    middles = (every[1:] + every[:-1]) / 2
    near = np.concatenate(
        [every, middles, np.nextafter(middles, np.float32(9e9)), np.nextafter(middles, -np.float32(9e9))]
    )
    data = _model([node], {"x": ("float32", [near.size])}, {"z": (dtype.value, [near.size])})
    _, results = _run(data, {"x": near})
    want = near.astype(_numpy(dtype)).astype(np.float32)
    np.testing.assert_array_equal(results["z"].numpy().astype(np.float32), want)


@pytest.mark.parametrize("dtype", [DType.INT4, DType.UINT4, DType.INT2, DType.UINT2], ids=str)
def test_packed_weights_become_real_numbers(dtype: DType) -> None:
    low, high = dtype.range
    numbers = np.resize(np.arange(low, high + 1), 15).reshape(5, 3)
    weights = onnx.helper.make_tensor("w", _KINDS[dtype.value], [5, 3], numbers.reshape(-1).tolist())
    scale = onnx.helper.make_tensor("s", 1, [], [0.5])
    node = onnx.helper.make_node("DequantizeLinear", ["w", "s"], ["z"])
    plus = onnx.helper.make_node("Add", ["z", "x"], ["y"])
    data = _model([node, plus], {"x": ("float32", [5, 3])}, {"y": ("float32", [5, 3])}, [weights, scale])
    _, results = _run(data, {"x": np.ones((5, 3), np.float32)})
    np.testing.assert_array_equal(results["y"].numpy(), 0.5 * numbers.astype(np.float32) + 1.0)
