"""Quantised tensors as these kernels take them, and constant tables of numbers.

Kernels handle bytes as uint8. An int8 tensor is one whose bytes are flipped by 0x80 on the way in and
out, which adds 128 to its zero point.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from webinfer.backends.wasm.builder import Builder
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import TensorType
from webinfer.lowering.affine import stored_bounds, zero_of
from webinfer.ops.activation import Activation
from webinfer.plan.blocks import Arguments, Ref

EIGHT_BIT = (DType.INT8, DType.UINT8)


def flip_of(type: TensorType) -> int:
    """What turns the stored bytes into uint8.

    Raises:  UnsupportedOpError for types wider than a byte
    """
    if type.dtype not in EIGHT_BIT:
        raise UnsupportedOpError([f"no integer kernel for {type}; 8-bit tensors only"])
    return 0x80 if type.dtype is DType.INT8 else 0


def byte_zero(type: TensorType) -> int:
    """The zero point of the uint8 form."""
    return zero_of(type) + flip_of(type)


def result_args(type: TensorType, activation: Activation = Activation.NONE) -> Arguments:
    """How kernels store results (include/requantize.h): zero point and flip of the uint8 form, and the bounds before
    the zero point is added."""
    low, high = stored_bounds(type, activation)
    zero = zero_of(type)
    return {"y_zero": byte_zero(type), "y_flip": flip_of(type), "lo": float(low - zero), "hi": float(high - zero)}


def floats(builder: Builder, numbers: Sequence[float]) -> Ref:
    """A constant table of float32."""
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    return builder.table(("f32", data), data)


def integers(builder: Builder, numbers: Sequence[int]) -> Ref:
    """A constant table of int32."""
    return builder.words("i32", numbers)
