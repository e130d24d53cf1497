"""ONNX's random numbers.

Source:  onnx v1.23, RandomNormal-22, RandomUniform-22, Bernoulli-22, Multinomial-22
"""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core import random as noise
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.tensors import dtype_of
from webinfer.ops import elementwise as ew

_FLOAT, _INT32 = 1, 6  # element types as ONNX numbers them


def _shape(op: Operation) -> tuple[int, ...]:
    """Of the input, or as an attribute says."""
    if op.name.endswith("Like"):
        return op.value(0).type.shape
    return noise.asked_shape(op, op.wholes("shape") or ())


def _as(op: Operation, y: Value, usual: DType) -> Value:
    """y in the type that an attribute names."""
    kind = op.whole("dtype", 0)
    dtype = dtype_of(kind, "dtype") if kind else usual
    return op.writer.typed(op.cast(y, dtype.inner), dtype)


def _real(op: Operation, y: Value) -> Value:
    usual = op.file_type(0) if op.name.endswith("Like") else DType.FLOAT32
    return _as(op, y, usual if usual.is_float else DType.FLOAT32)


def _normal(op: Operation) -> Value:
    mean, deviation = (op.finite(name, op.real(name, usual)) for name, usual in (("mean", 0.0), ("scale", 1.0)))
    return _real(op, noise.normal(op, _shape(op), mean, deviation))


def _uniform(op: Operation) -> Value:
    low, high = (op.finite(name, op.real(name, usual)) for name, usual in (("low", 0.0), ("high", 1.0)))
    return _real(op, noise.uniform(op, _shape(op), low, high))


def _bernoulli(op: Operation) -> Value:
    p = op.value(0)
    return _as(op, op.binary(ew.LESS, noise.uniform(op, p.type.shape), op.cast(p, DType.FLOAT32)), op.file_type(0))


def _multinomial(op: Operation) -> Value:
    dtype = dtype_of(op.whole("dtype", _INT32), "dtype")
    return noise.chosen(op, op.value(0), op.whole("sample_size", 1), dtype)


CONVERTERS: dict[str, Convert] = {
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
    "RandomNormal": _normal,
    "RandomNormalLike": _normal,
    "RandomUniform": _uniform,
    "RandomUniformLike": _uniform,
}
