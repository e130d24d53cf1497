"""NumPy arrays of values: constants as the file stores them, types that formulas compute in, and rounding.

No operator is here; every file of this room builds on this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Node, Sparsity, TensorType, Value

LARGEST = float(np.finfo(np.float32).max)
Array = np.ndarray[Any, np.dtype[Any]]
Inputs = list[Array | None]
Compute = Callable[[Inputs, Node], list[Array]]


def required(array: Array | None) -> Array:
    """The input, which shape inference has already demanded."""
    assert array is not None
    return array


def wide(x: Array) -> Array:
    """The array in the type that sums and products are computed in: float64 for every float, integers as they are."""
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def single(x: Array) -> Array:
    """The array with what no float32 holds made infinite, as a product on the way to a sum is."""
    return np.where(np.abs(x) > LARGEST, np.copysign(np.inf, x), x)


def rounded(x: Array, type: TensorType) -> Array:
    """The array in a result's type and shape: floats rounded once, integers wrapped around."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(np.asarray(x).astype(type.dtype.value)).reshape(type.shape)


def saturated(x: Array, dtype: DType) -> Array:
    """The array in another element type: floats truncated towards zero and clamped to its range; NaN becomes 0."""
    if dtype.is_float or dtype is DType.BOOL or x.dtype.kind != "f":
        with np.errstate(over="ignore", invalid="ignore"):
            return x.astype(dtype.value)
    low, high = dtype.range
    inside = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=2.0**70, neginf=-(2.0**70)))
    # float64 cannot hold 2**63 - 1: values from there on are set, not converted.
    result = np.where((inside > low) & (inside < high), inside, 0.0).astype(dtype.value)
    result = np.where(inside >= high, np.array(high, dtype.value), result)
    return np.where(inside <= low, np.array(low, dtype.value), result)


def constant_array(value: Value) -> Array:
    """A constant's elements in the value's own type: widened, dense.

    Raises:  ShapeError if the bytes do not fill the shape.
    """
    constant = value.constant
    assert constant is not None
    flat = np.frombuffer(constant.data, dtype=constant.stored.value)
    if constant.sparsity is not None:
        flat = densified(flat, value.type.shape, constant.sparsity)
    if flat.size != value.type.size:
        raise ShapeError(
            f"constant {value.name!r} holds {flat.size} elements, its shape {value.type.shape} needs {value.type.size}"
        )
    return flat.astype(value.type.dtype.value, copy=False).reshape(value.type.shape)


def densified(flat: Array, shape: tuple[int, ...], sparsity: Sparsity) -> Array:
    """The dense elements, in row-major order, of TFLite's sparse storage of a tensor of this shape.

    Source:  tensorflow/lite/schema/schema.fbs, SparsityParameters
    """
    rank = len(shape)
    blocks = {axis: rank + i for i, axis in enumerate(sparsity.block_map)}  # original axis -> its block dimension
    sizes: dict[int, int] = {}
    coordinates = np.zeros((1, 0), np.int64)  # one row a stored prefix, one column a traversed dimension
    rows = np.zeros(1, np.int64)  # position of each prefix in the level above
    for dimension, format in zip(sparsity.traversal_order, sparsity.formats, strict=True):
        if format[0] == "dense":
            size = int(format[1])
            sizes[dimension] = size
            index = np.tile(np.arange(size), len(rows))
            parents = np.repeat(np.arange(len(rows)), size)
            rows = np.repeat(rows, size) * size + index
        else:
            segments, indices = np.asarray(format[1], np.int64), np.asarray(format[2], np.int64)
            counts = segments[rows + 1] - segments[rows]
            parents = np.repeat(np.arange(len(rows)), counts)
            first = np.repeat(segments[rows] - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
            rows = np.arange(len(parents)) + first
            index = indices[rows]
        coordinates = np.concatenate([coordinates[parents], index[:, None]], axis=1)
    columns = {dimension: coordinates[:, i] for i, dimension in enumerate(sparsity.traversal_order)}
    place = [
        columns[axis] * sizes[blocks[axis]] + columns[blocks[axis]] if axis in blocks else columns[axis]
        for axis in range(rank)
    ]
    dense = np.zeros(shape, flat.dtype)
    dense[tuple(place)] = flat[: len(rows)]
    return dense.reshape(-1)
