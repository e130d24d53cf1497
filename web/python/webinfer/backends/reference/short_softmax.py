"""Softmax of rows of 16-bit integers, in integers."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array
from webinfer.graph.ir import TensorType
from webinfer.lowering.short_softmax import distance_factor, tables


def _on_line(table: tuple[int, ...], value: Array) -> Array:
    ends, i = np.array(table, np.int64), 256 + (value >> 7)
    return np.asarray(ends[i] + (((ends[i + 1] - ends[i]) * (value & 127) + 64) >> 7))


def _scaled(distance: Array, factor: int, shift: int) -> Array:
    wide = (distance << max(shift, 0)) * factor
    nudged = np.where(wide >= 0, wide + (1 << 30), -wide + (1 << 30) - 1)
    value = np.maximum((nudged >> 31) * np.where(wide >= 0, 1, -1), -(2**31))
    right = max(-shift, 0)
    mask = (1 << right) - 1
    return np.asarray((value >> right) + ((value & mask) > (mask >> 1) + (value < 0)))


def softmax(x: Array, type: TensorType, beta: float) -> Array:
    """Softmax along the last axis; 32768 stands for 1."""
    exponentials, reciprocals = tables()
    x = x.astype(np.int64)
    distances = _scaled(x - x.max(axis=-1, keepdims=True), *distance_factor(type, beta))
    powers = _on_line(exponentials, np.clip(distances, -65535, 0) + 32767)
    total = powers.sum(axis=-1, keepdims=True)
    headroom = 32 - np.vectorize(int.bit_length)(total.astype(object)).astype(np.int64)
    rest = ((total << (headroom - 1)) + (1 << 13) >> 14) - (1 << 15) - (1 << 16)
    reciprocal, last = _on_line(reciprocals, np.clip(rest, -32768, 32767)), 31 - headroom
    y = (powers * reciprocal + (1 << (last - 1))) >> last
    return np.asarray(np.clip(y, 0, 32767), np.int16)
