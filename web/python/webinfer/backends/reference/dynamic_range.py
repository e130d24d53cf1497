"""Activations rounded to what eight bits hold."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded
from webinfer.graph.ir import Node, Op
from webinfer.ops import dynamic_range as ops

F = np.float32


def round_rows(inputs: Inputs, node: Node) -> list[Array]:
    """Each element, rounded to the nearest level of its row; in float32, as levels are chosen by what is rounded."""
    rows = required(inputs[0]).reshape(ops.rows_of(node.output.type, node.attrs))
    return [rounded(nearest_levels(rows, node.attrs.symmetric), node.output.type)]


def nearest_levels(rows: Array, symmetric: bool) -> Array:
    """The rows with each element at the nearest level of its row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return (_symmetric if symmetric else _asymmetric)(rows.astype(F))


def _symmetric(x: Array) -> Array:
    most = np.abs(x).max(axis=1, keepdims=True, initial=F(0))
    scale = np.where(most > 0, most / F(127), F(1)).astype(F)
    per = np.where(most > 0, F(127) / most, F(1)).astype(F)
    scaled = (x * per).astype(F)
    return np.asarray(np.clip(np.trunc(scaled + np.copysign(F(0.5), scaled)), -127, 127) * scale)


def _asymmetric(x: Array) -> Array:
    low, high = x.min(axis=1, keepdims=True, initial=F(0)), x.max(axis=1, keepdims=True, initial=F(0))
    per = np.where(high > low, F(255) / (high - low), F(1)).astype(F)
    below, above = F(-128) + low * per, F(127) + high * per
    zero = np.where(below + above > 0, F(-128) - low * per, F(127) - high * per)
    zero = np.rint(np.clip(zero, F(-128), F(127))).astype(F)
    return np.asarray(np.clip(np.rint(x * per), F(-128) - zero, F(127) - zero) * (F(1) / per).astype(F))


LOWERINGS: dict[Op, Compute] = {ops.ROUND_ROWS: round_rows}
