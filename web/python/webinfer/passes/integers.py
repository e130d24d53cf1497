"""Integers that stand for real numbers: what `sink_dequantize` and `compute_integers`, which leave them so, share."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Quantization, TensorType, Value
from webinfer.ops import elementwise as ew

BYTES = (DType.INT8, DType.UINT8)


def one_scale(type: TensorType) -> bool:
    """Whether these are 8-bit integers that stand for real numbers by one scale."""
    return type.quant is not None and type.dtype in BYTES and len(type.quant.scales) == 1


def dense(value: Value | None) -> memoryview | None:
    """The bytes of a constant that lies as it is computed with."""
    constant = value.constant if value is not None else None
    if value is None or constant is None or constant.sparsity is not None or constant.stored is not value.type.dtype:
        return None
    return constant.data


def constant_of(
    name: str, shape: tuple[int, ...], numbers: Sequence[float], dtype: DType = DType.FLOAT32,
    quant: Quantization | None = None,
) -> Value:  # fmt: skip
    """A constant of these numbers."""
    data = memoryview(struct.pack(f"<{len(numbers)}{dtype.letter}", *numbers))
    return Value(name, TensorType(shape, dtype, quant), Constant(data, dtype))


def rescaling(y: TensorType) -> ew.UnaryAttrs:
    """Attributes of LINEAR that make it the same real numbers in another scale, by a table."""
    return ew.UnaryAttrs(1.0, 0.0, (y.dtype, y.quant))
