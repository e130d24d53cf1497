"""TensorFlow's random numbers."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core import random as noise
from webinfer.importers.tfjs.operation import Convert, Operation
from webinfer.ops import elementwise as ew


def _whole(op: Operation) -> Value:
    low, high = op.integer(1), op.integer(2)
    if not 0 < high - low <= 2**24:
        op.refuse(f"random numbers from {low} to {high}")
    y = op.unary(ew.FLOOR, noise.uniform(op, noise.asked_shape(op, op.integers(0)), 0, high - low))
    return op.binary(ew.ADD, op.cast(y, DType.INT32), op.scalar_of(low, DType.INT32))


CONVERTERS: dict[str, Convert] = {
    "Multinomial": lambda op: noise.chosen(op, op.value(0), op.integer(1), DType.INT32),
    "RandomStandardNormal": lambda op: noise.normal(op, noise.asked_shape(op, op.integers(0))),
    "RandomUniform": lambda op: noise.uniform(op, noise.asked_shape(op, op.integers(0))),
    "RandomUniformInt": _whole,
    "TruncatedNormal": lambda op: noise.cut_normal(op, noise.asked_shape(op, op.integers(0))),
}
