"""Angles, of which operators of several formats are made."""

from __future__ import annotations

import math

from webinfer.graph.ir import Value
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import elementwise as ew
from webinfer.ops.registry import NoAttrs


def arctangent(op: BaseOperation, y: Value, x: Value) -> Value:
    """The angle of (x, y): that of the smaller over the larger size, turned into its octant."""
    zero = op.scalar_of(0.0, x.type.dtype)
    sizes = op.unary(ew.ABS, x), op.unary(ew.ABS, y)
    larger = op.binary(ew.MAXIMUM, op.binary(ew.MAXIMUM, *sizes), op.scalar_of(1e-37, x.type.dtype))
    angle = op.unary(ew.ATAN, op.binary(ew.DIV, op.binary(ew.MINIMUM, *sizes), larger))
    turns = (sizes, math.pi / 2), ((x, zero), math.pi), ((y, zero), 0.0)
    for pair, turn in turns:
        turned = op.unary(ew.LINEAR, angle, -1.0, turn)
        angle = op.emit(ew.WHERE, [op.binary(ew.LESS, *pair), turned, angle], NoAttrs())
    return angle
