"""TFLite's random numbers."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core import noise
from webinfer.importers.tflite.operation import Operation, Row


def _multinomial(op: Operation) -> Value:
    dtype = op.declared().dtype
    if dtype not in (DType.INT32, DType.INT64):
        op.fail(f"classes as {dtype}")
    return noise.chosen(op, op.value(0), op.integer(1), dtype)


CONVERTERS: dict[str, Row] = {
    "MULTINOMIAL": (_multinomial, ""),
    "RANDOM_STANDARD_NORMAL": (lambda op: noise.normal(op, noise.asked_shape(op)), ""),
    "RANDOM_UNIFORM": (lambda op: noise.uniform(op, noise.asked_shape(op)), ""),
}
