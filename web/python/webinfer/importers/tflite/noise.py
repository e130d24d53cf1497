"""TFLite's random numbers."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core import noise
from webinfer.importers.core.limits import check_bytes
from webinfer.importers.tflite.operation import Operation, Row


def _shape(op: Operation) -> tuple[int, ...]:
    shape = op.integers(0)
    if min(shape, default=0) < 0:
        op.fail(f"shape {shape} has a negative size")
    check_bytes(shape, DType.FLOAT32, op.what)
    return shape


def _multinomial(op: Operation) -> Value:
    dtype = op.declared().dtype
    if dtype not in (DType.INT32, DType.INT64):
        op.fail(f"classes as {dtype}")
    return noise.chosen(op, op.value(0), op.integer(1), dtype)


CONVERTERS: dict[str, Row] = {
    "MULTINOMIAL": (_multinomial, ""),
    "RANDOM_STANDARD_NORMAL": (lambda op: noise.normal(op, _shape(op)), ""),
    "RANDOM_UNIFORM": (lambda op: noise.uniform(op, _shape(op)), ""),
}
