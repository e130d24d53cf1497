"""How TFLite stores tensors: quantisation parameters and sparse layouts, checked.

A sparse tensor of rank r with b block dimensions is stored as a tree over r + b dimensions, in the traversal
order; each level is dense (a size) or CSR (segments and indices).
"""

from __future__ import annotations

import math
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Quantization, Sparsity
from webinfer.importers.core.limits import within
from webinfer.importers.readers.flatbuffer import Table
from webinfer.importers.tflite.schema import DENSE, INDEX_VECTORS, SPARSE_CSR

MAX_SCALES = 1_000_000
MAX_LEVELS = 16  # of a sparse tensor
MAX_STORED = 2**31  # elements of a sparse tensor


def read_quantization(
    table: Table | None, shape: tuple[int, ...], dtype: DType | None, what: object
) -> Quantization | None:
    """The scales of an integer tensor, or None if it has none. Float tensors keep none.

    Raises:  ModelFormatError for a scale that is not finite and positive, a zero point outside the
             type, counts or an axis that do not fit.
    """
    if table is None or dtype is None or dtype.is_float or dtype is DType.BOOL or not table.count("scale"):
        return None
    count, axis = table.count("scale"), table.number("quantized_dimension")
    if table.count("zero_point") != count:
        raise ModelFormatError(f"{what}: {count} scales but {table.count('zero_point')} zero points")
    if count > MAX_SCALES:
        within(f"{what}: scales", count, MAX_SCALES)
    if count > 1 and (not 0 <= axis < len(shape) or shape[axis] != count):
        raise ModelFormatError(f"{what}: {count} scales along axis {axis} do not fit shape {shape}")
    scales, zero_points = table.reals("scale"), table.numbers("zero_point")
    low, high = dtype.range
    if dtype in (DType.INT32, DType.INT64) and not all(s > 0 for s in scales):
        return None  # of a bias: it follows from data and weights, and some writers leave it out
    if not all(math.isfinite(s) and s > 0 for s in scales):
        bad = next(s for s in scales if not (math.isfinite(s) and s > 0))
        raise ModelFormatError(f"{what}: scale {bad} is not a positive number")
    if min(zero_points) < low or max(zero_points) > high:
        raise ModelFormatError(f"{what}: a zero point of {min(zero_points)} to {max(zero_points)} is outside {dtype}")
    return Quantization(scales, zero_points, axis if count > 1 else None)


def read_sparsity(table: Table, shape: tuple[int, ...], what: str) -> Sparsity:
    """The storage of a constant of this dense shape.

    Raises:  ModelFormatError if an order is not a permutation, a block does not divide its dimension, or
             segments and indices do not fit.
    """
    rank = len(shape)
    for name in ("traversal_order", "block_map", "dim_metadata"):
        within(f"{what}: sparse {name}", table.count(name), MAX_LEVELS, "use a simpler sparse format")
    order, blocks = table.numbers("traversal_order"), table.numbers("block_map")
    levels = rank + len(blocks)
    metadata = table.tables("dim_metadata")
    if sorted(order) != list(range(levels)) or len(metadata) != levels:
        raise ModelFormatError(
            f"{what}: sparse traversal order {order} with {len(metadata)} levels, needs {levels} in all"
        )
    if any(not 0 <= b < rank for b in blocks) or len(set(blocks)) != len(blocks):
        raise ModelFormatError(f"{what}: sparse block map {blocks} does not name different axes of {shape}")
    sizes = _level_sizes(order, blocks, shape, metadata, what)
    formats: list[tuple[Any, ...]] = []
    parents = 1
    for level, entry in zip(order, metadata, strict=True):
        if entry.number("format") == DENSE:
            formats.append(("dense", sizes[level]))
            parents *= sizes[level]
        elif entry.number("format") == SPARSE_CSR:
            segments = _indices(entry, "array_segments", what)
            indices = _indices(entry, "array_indices", what)
            _check_csr(segments, indices, parents, sizes[level], what)
            formats.append(("csr", segments, indices))
            parents = len(indices)
        else:
            raise ModelFormatError(f"{what}: sparse format {entry.number('format')} is neither dense nor CSR")
        within(f"{what}: stored elements", parents, MAX_STORED)
    return Sparsity(order, blocks, tuple(formats))


def stored_elements(layout: Sparsity) -> int:
    """Elements that the sparse buffer holds."""
    count = 1
    for entry in layout.formats:
        count = count * entry[1] if entry[0] == "dense" else len(entry[2])
    return count


def _level_sizes(
    order: tuple[int, ...], blocks: tuple[int, ...], shape: tuple[int, ...], metadata: list[Table], what: str
) -> list[int]:
    """Size of every level: the blocks' own sizes stand in the file, the outer ones follow from them."""
    sizes = [*shape, *(0 for _ in blocks)]
    for level, entry in zip(order, metadata, strict=True):
        if level < len(shape):
            continue
        axis, block = blocks[level - len(shape)], entry.number("dense_size")
        if entry.number("format") != DENSE or block < 1 or shape[axis] % block:
            raise ModelFormatError(f"{what}: a sparse block of {block} does not divide axis {axis} of {shape}")
        sizes[level] = block
        sizes[axis] = shape[axis] // block
    for level, entry in zip(order, metadata, strict=True):
        if entry.number("format") == DENSE and entry.number("dense_size") != sizes[level]:
            raise ModelFormatError(
                f"{what}: sparse level {level} has size {entry.number('dense_size')}, needs {sizes[level]}"
            )
    return sizes


def _indices(entry: Table, name: str, what: str) -> memoryview:
    kind = INDEX_VECTORS.get(entry.number(f"{name}_type"))
    table = entry.table(name, kind) if kind else None
    if table is None:
        raise ModelFormatError(f"{what}: a sparse level lacks its {name}")
    found = table.view("values")
    table.reader.spend(found.nbytes, table.at, f"{what}: {name}")
    return found


def _check_csr(segments: memoryview, indices: memoryview, parents: int, size: int, what: str) -> None:
    bounds = segments.tolist()
    if len(bounds) != parents + 1 or bounds[0] != 0 or bounds[-1] != len(indices) or sorted(bounds) != bounds:
        raise ModelFormatError(
            f"{what}: {len(bounds)} sparse segments do not divide {len(indices)} indices among {parents}"
        )
    if len(indices) and not (min(indices) >= 0 and max(indices) < size):
        raise ModelFormatError(f"{what}: a sparse index of {min(indices)} to {max(indices)} leaves a level of {size}")
