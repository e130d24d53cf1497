"""TFLite operators on stored numbers that no table of runs can hold: results whose size is data, steps of rounding."""

from __future__ import annotations

import numpy as np
import pytest
from tests.importers.tflite_writer import Array, single

import webinfer

BACKENDS = ("reference", "wasm")


def run(data: bytes, backend: str, **inputs: Array) -> Array:
    with webinfer.load_sync(data, backend=backend) as session:
        (result,) = session.run(inputs).values()
        return result.numpy().copy()


@pytest.mark.parametrize("backend", BACKENDS)
def test_positions_of_stored_numbers_that_are_not_zero(backend: str) -> None:
    x = np.array([[0, -3, 5], [5, 0, 0]], np.int8)
    data = single("WHERE", [(x.shape, "int8", (0.03, 5))], [((1, 2), "int64")])
    np.testing.assert_array_equal(run(data, backend, in0=x), np.argwhere(x))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
def test_updates_of_narrow_types_are_scattered(backend: str, dtype: str) -> None:
    x = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    rows, shape = np.array([[1], [3], [0]], np.int32), np.array([4, 2], np.int32)
    data = single("SCATTER_ND", [rows, (x.shape, dtype), shape], [((4, 2), dtype)])
    np.testing.assert_array_equal(run(data, backend, in1=x), x[[2, 0, 0, 1]] * [[1], [1], [0], [1]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_leaky_relu_of_16_bits(backend: str) -> None:
    x = np.arange(-32768, 32767, 257, np.int16)
    data = single("LEAKY_RELU", [(x.shape, "int16", (3e-4, 0))], [(x.shape, "int16", (4e-4, 0))], 2, alpha=0.25)
    want = np.where(x < 0, 0.25, 1.0) * x * 0.75
    assert np.abs(run(data, backend, in0=x) - want).max() <= 0.51


@pytest.mark.parametrize("backend", ["reference", "wasm", "webgpu"])
def test_halves_of_means_go_to_even_stored_numbers(backend: str) -> None:
    x = np.stack([np.arange(-60, 60), np.arange(-59, 61)]).astype(np.int8)
    data = single("MEAN", [(x.shape, "int8", (0.03, 5)), np.array([0], np.int32)], [((120,), "int8", (0.03, 5))], 2)
    np.testing.assert_array_equal(run(data, backend, in0=x), np.rint(x.mean(0)))
