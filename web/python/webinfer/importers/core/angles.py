"""Angles, of which operators of several formats are made."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import elementwise as ew
from webinfer.ops.registry import NoAttrs


def arctangent(op: BaseOperation, y: Value, x: Value) -> Value:
    """The angle of (x, y), in float32: that of the smaller over the larger size, turned into its octant.

    Signs are read from the bits, as IEEE 754 has the direction of zeros and of infinities.
    """
    sizes = op.unary(ew.ABS, x), op.unary(ew.ABS, y)
    larger, smaller = op.binary(ew.MAXIMUM, *sizes), op.binary(ew.MINIMUM, *sizes)
    ratio = op.binary(ew.DIV, smaller, larger)
    zero, one = op.scalar_of(0.0, x.type.dtype), op.scalar_of(1.0, x.type.dtype)
    for undefined, instead in ((op.binary(ew.EQUAL, larger, zero), zero), (op.unary(ew.IS_INFINITE, smaller), one)):
        ratio = op.emit(ew.WHERE, [undefined, instead, ratio], NoAttrs())
    angle = op.unary(ew.ATAN, ratio)
    turns = (op.binary(ew.LESS, *sizes), math.pi / 2), (_negative(op, x), math.pi)
    for turned, turn in turns:
        angle = op.emit(ew.WHERE, [turned, op.unary(ew.LINEAR, angle, -1.0, turn), angle], NoAttrs())
    return op.emit(ew.WHERE, [_negative(op, y), op.unary(ew.NEG, angle), angle], NoAttrs())


def _negative(op: BaseOperation, x: Value) -> Value:
    bits = op.emit(ew.BITCAST, [x], ew.CastAttrs(DType.INT32))
    return op.binary(ew.LESS, bits, op.scalar_of(0, DType.INT32))
