"""Quantised tensors as kernels see them: float32 factors, zero points of the uint8 form, stored bounds.

Kernels handle bytes as uint8. An int8 tensor is one whose bytes are flipped by 0x80 on the way in and
out, which adds 128 to its zero point.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from webinfer.backends.wasm.builder import Builder
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, TensorType
from webinfer.ops.activation import Activation
from webinfer.plan.blocks import Ref

EIGHT_BIT = (DType.INT8, DType.UINT8)


def f32(x: float) -> float:
    """The nearest float32; arithmetic on results of f32, rounded again, is float32 arithmetic."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


def is_stored(type: TensorType) -> bool:
    """Whether integers stand for real numbers."""
    return type.quant is not None and not type.dtype.is_float


def is_quantized(node: Node) -> bool:
    """Whether the node computes on integers that stand for real numbers."""
    x = node.inputs[0] if node.inputs else None
    return x is not None and is_stored(x.type) and is_stored(node.outputs[0].type)


def scale_of(type: TensorType) -> float:
    """The only scale.

    Raises:  UnsupportedOpError if the type has none, one for each channel, or one that is not a positive number
    """
    if type.quant is None or len(type.quant.scales) != 1:
        raise UnsupportedOpError([f"{type} needs exactly one scale here"])
    scale = f32(type.quant.scales[0])
    if not 0 < scale < math.inf:
        raise UnsupportedOpError([f"{type} has the scale {scale}, needs a positive number"])
    return scale


def zero_of(type: TensorType) -> int:
    """The zero point that goes with `scale_of`."""
    return type.quant.zero_points[0] if type.quant and type.quant.zero_points else 0


def zeros_of(type: TensorType, count: int) -> tuple[int, ...]:
    """A zero point for each of `count` channels."""
    zeros = (type.quant.zero_points if type.quant else ()) or (0,)
    return zeros if len(zeros) == count else (zeros[0],) * count


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


def stored_bounds(type: TensorType, activation: Activation) -> tuple[int, int]:
    """Smallest and largest stored result: the element type's range, cut by a clamp."""
    low, high = type.dtype.range
    if activation.bounds is None:
        raise UnsupportedOpError([f"activation {activation} on quantised {type}; apply it as an operator of its own"])
    scale, zero = scale_of(type), zero_of(type)
    lowest, highest = activation.bounds
    if math.isfinite(lowest):
        low = max(low, zero + _steps(lowest, scale))
    if math.isfinite(highest):
        high = min(high, zero + _steps(highest, scale))
    return low, high


def _steps(x: float, scale: float) -> int:
    """How many steps of the scale a number is away from zero; far away is far enough."""
    return round(max(-(2.0**31), min(f32(f32(x) / scale), 2.0**31)))


@dataclass(frozen=True, slots=True)
class Stored:
    """How kernels store results (kernels_wasm/include/requantize.h)."""

    zero: int
    flip: int
    lo: float
    hi: float


def stored(type: TensorType, activation: Activation = Activation.NONE) -> Stored:
    """Zero point and flip of the uint8 form, bounds before the zero point is added."""
    low, high = stored_bounds(type, activation)
    zero = zero_of(type)
    return Stored(byte_zero(type), flip_of(type), float(low - zero), float(high - zero))


def floats(builder: Builder, numbers: Sequence[float]) -> Ref:
    """A constant table of float32."""
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    return builder.table(("f32", data), data)


def integers(builder: Builder, numbers: Sequence[int]) -> Ref:
    """A constant table of int32."""
    data = struct.pack(f"<{len(numbers)}i", *numbers)
    return builder.table(("i32", data), data)
