"""Constants and conversions of the reference."""

from __future__ import annotations

import numpy as np
import pytest

from webinfer.backends.reference.arrays import constant_array, densified, saturated
from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Constant, Sparsity, TensorType, Value


def test_narrow_storage_is_widened() -> None:
    stored = np.array([1.5, -2.25], np.float16)
    value = Value("w", TensorType((2,)), Constant(memoryview(stored.tobytes()), DType.FLOAT16))
    got = constant_array(value)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, [1.5, -2.25])


def test_missing_bytes_are_an_error_that_names_the_constant() -> None:
    value = Value("short", TensorType((3,)), Constant(memoryview(bytes(8)), DType.FLOAT32))
    with pytest.raises(ShapeError, match=r"'short' holds 2 elements, its shape \(3,\) needs 3"):
        constant_array(value)


def test_rows_of_a_compressed_matrix_are_spread() -> None:
    # [[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 4, 0]]
    sparsity = Sparsity((0, 1), (), (("dense", 3), ("csr", (0, 2, 2, 4), (0, 3, 1, 2))))
    dense = densified(np.array([1.0, 2.0, 3.0, 4.0]), (3, 4), sparsity).reshape(3, 4)
    np.testing.assert_array_equal(dense, [[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 4, 0]])


def test_blocks_are_spread_as_blocks() -> None:
    # Blocks of 2x2: the upper left and the lower right of a 4x4 matrix.
    formats = (("dense", 2), ("csr", (0, 1, 2), (0, 1)), ("dense", 2), ("dense", 2))
    dense = densified(np.arange(1.0, 9.0), (4, 4), Sparsity((0, 1, 2, 3), (0, 1), formats)).reshape(4, 4)
    np.testing.assert_array_equal(dense, [[1, 2, 0, 0], [3, 4, 0, 0], [0, 0, 5, 6], [0, 0, 7, 8]])


def test_columns_first() -> None:
    # The same matrix, stored by columns.
    sparsity = Sparsity((1, 0), (), (("dense", 2), ("csr", (0, 1, 3), (1, 0, 1))))
    dense = densified(np.array([5.0, 6.0, 7.0]), (2, 2), sparsity).reshape(2, 2)
    np.testing.assert_array_equal(dense, [[0, 6], [5, 7]])


def test_floats_saturate_and_nan_is_zero() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1.9, -1.9, 300.0, -300.0, 1e30])
    assert saturated(x, DType.INT8).tolist() == [0, 127, -128, 1, -1, 127, -128, 127]
    assert saturated(x, DType.UINT8).tolist() == [0, 255, 0, 1, 0, 255, 0, 255]
    assert saturated(x, DType.INT64).tolist()[1:3] == [2**63 - 1, -(2**63)]
    assert saturated(x, DType.BOOL).tolist() == [True] * 8
