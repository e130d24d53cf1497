"""What operators give that read nothing: the sum of no products, the mean and the extremes of no numbers.

No kernel computes these: what they give is known when the model is read.
Source:  what ONNX Runtime, LiteRT and TensorFlow.js give, and NumPy where they agree with it
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from webinfer.graph.ir import Constant, Op, TensorType, Value
from webinfer.importers.core.steps import pack
from webinfer.ops.activation import Activation
from webinfer.ops.conv import CONV2D, CONV_TRANSPOSE2D
from webinfer.ops.elementwise import ADD, BinaryAttrs
from webinfer.ops.matmul import MATMUL
from webinfer.ops.reduce import (
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    reduced_shape,
)
from webinfer.ops.registry import broadcast

# What no numbers come to; of integers the least, 0 or the largest.
_NUMBERS = {
    REDUCE_LOG_SUM: -math.inf, REDUCE_LOG_SUM_EXP: -math.inf, REDUCE_MAX: -math.inf, REDUCE_MEAN: math.nan,
    REDUCE_MIN: math.inf,
}  # fmt: skip
Emit = Callable[[Op, Sequence[Value | None], Any], Value]


def of_nothing(op: Op, inputs: Sequence[Value | None], attrs: Any, emit: Emit) -> Value | None:
    """The result of an operator that reads an empty tensor, without that operator; None if it is no such one."""
    x = inputs[0]
    if x is None or x.type.size or x.type.quant is not None:
        return None
    if op is MATMUL:
        return _product(inputs, attrs, emit)
    if op in (CONV2D, CONV_TRANSPOSE2D):
        return _convolution(op, inputs, attrs, emit)
    if op not in _NUMBERS:
        return None
    kind = TensorType(reduced_shape(op.name, x.type.shape, attrs.axes, attrs.keep_dims), x.type.dtype)
    number = _NUMBERS[op]
    if not kind.dtype.is_float:
        low, high = kind.dtype.range
        number = 0 if math.isnan(number) else low if number < 0 else high
    return Value("nothing", kind, Constant(memoryview(pack([number], kind.dtype) * kind.size), kind.dtype))


def _convolution(op: Op, inputs: Sequence[Value | None], attrs: Any, emit: Emit) -> Value | None:
    """A convolution that reads padding alone, or no channels: zeros, or the bias."""
    _, w, *others = inputs
    (kind,) = op.result_types([None if value is None else value.type for value in inputs], attrs)
    bias, *more = [*others, None]
    if w is None or any(more) or attrs.out_type is not None or attrs.activation is not Activation.NONE:
        return None
    zeros = Value("zeros", kind, Constant(memoryview(bytes(kind.nbytes)), kind.dtype))
    return zeros if bias is None else emit(ADD, [zeros, bias], BinaryAttrs())


def _product(inputs: Sequence[Value | None], attrs: Any, emit: Emit) -> Value | None:
    """A product whose inner size is 0: zeros, or what is added to them."""
    a, b, *others = inputs
    added = [other for other in others if other is not None]
    plain = len(added) < 2 and attrs.out_type is None and attrs.activation is Activation.NONE
    if a is None or b is None or not plain or min(a.type.rank, b.type.rank) < 2 or not a.type.dtype.is_float:
        return None
    m, k = a.type.shape[:-3:-1] if attrs.transpose_a else a.type.shape[-2:]
    inner, n = b.type.shape[:-3:-1] if attrs.transpose_b else b.type.shape[-2:]
    if k or inner:
        return None
    kind = TensorType((*broadcast("matmul", a.type.shape[:-2], b.type.shape[:-2]), m, n), a.type.dtype)
    zeros = Value("zeros", kind, Constant(memoryview(bytes(kind.nbytes)), kind.dtype))
    return emit(ADD, [zeros, *added], BinaryAttrs()) if added else zeros
