"""Softmax and its logarithm along one axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, Quantization, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import declare, eight_bit, moved_bytes, need, real_or_stored, result_alike

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class SoftmaxAttrs:
    """softmax: e^(beta*x) / sum e^(beta*x) along `axis`; log_softmax is its logarithm."""

    axis: int
    beta: float = 1.0
    out_type: tuple[DType, Quantization | None] | None = None


def _infer(name: str) -> Callable[[Inputs, SoftmaxAttrs], tuple[TensorType, ...]]:
    def infer(inputs: Inputs, a: SoftmaxAttrs) -> tuple[TensorType, ...]:
        x = need(name, "x", inputs[0])
        if not 0 <= a.axis < x.rank:
            raise ShapeError(f"{name}: axis {a.axis} is not an axis of {x.shape}")
        if not 0 <= a.beta < math.inf:
            raise ShapeError(f"{name}: beta is {a.beta}, needs a number that is not negative")
        return (TensorType(x.shape, *a.out_type) if a.out_type else TensorType(x.shape, x.dtype),)

    return infer


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: SoftmaxAttrs) -> Cost:
    """About five operations for each element."""
    return Cost(5 * outputs[0].size, moved_bytes(inputs, outputs))


def _cases(low: float, high: float) -> tuple[Case, ...]:
    def case(label: str, shape: tuple[int, ...], attrs: SoftmaxAttrs, low: float = low, high: float = high) -> Case:
        return Case(label, (TensorType(shape),), attrs, low=low, high=high)

    return (
        case("rows", (3, 8), SoftmaxAttrs(1)),
        case("odd rows", (5, 21), SoftmaxAttrs(1)),
        case("pairs", (1, 3, 7, 2), SoftmaxAttrs(3, 1.5), -9.0, 9.0),
        case("vector", (1001,), SoftmaxAttrs(0)),
        case("one element", (4, 1), SoftmaxAttrs(1)),
        case("first axis", (6, 5), SoftmaxAttrs(0)),
        case("middle axis", (2, 5, 3, 4), SoftmaxAttrs(1)),
        case("beta", (3, 8), SoftmaxAttrs(1, 0.5)),
        case("values whose exponential overflows", (2, 9), SoftmaxAttrs(1), 60.0, 200.0),
    )


def _eight_bit_cases(scale: float, zero: int) -> tuple[Case, ...]:
    def case(label: str, shape: tuple[int, ...], dtype: DType, step: float) -> Case:
        low, high = dtype.range
        y = eight_bit((), scale, zero, dtype).quant
        return Case(
            label,
            (eight_bit(shape, step, 3, dtype),),
            SoftmaxAttrs(len(shape) - 1, 1.0, (dtype, y)),
            low=low,
            high=high,
        )

    return (
        case("uint8, long row", (2, 1001), DType.UINT8, 0.117),
        case("uint8, odd rows", (5, 21), DType.UINT8, 0.047),
        case("int8", (3, 8), DType.INT8, 0.047),
        case("int8, steep", (4, 10), DType.INT8, 0.9),
    )


def _short_case(label: str, shape: tuple[int, ...], scale: float) -> Case:
    x, y = Quantization((scale,), (0,)), Quantization((2.0**-15,), (0,))
    attrs = SoftmaxAttrs(len(shape) - 1, 1.0, (DType.INT16, y))
    return Case(label, (TensorType(shape, DType.INT16, x),), attrs, low=-32768, high=32767)


_SHORT = (_short_case("int16", (3, 50), 0.001), _short_case("int16, flat", (2, 7), 0.00003))
_TOLERANCE = Tolerance(absolute=4e-6, relative=2e-5, reason="an exponential, a free sum and a quotient")
SOFTMAX = declare(
    Op(
        "softmax",
        SoftmaxAttrs,
        _infer("softmax"),
        cost,
        _TOLERANCE,
        _cases(-4.0, 4.0) + _eight_bit_cases(1 / 256, -128) + _SHORT,
        types=(real_or_stored, result_alike),
    )
)
LOG_SOFTMAX = declare(
    Op(
        "log_softmax",
        SoftmaxAttrs,
        _infer("log_softmax"),
        cost,
        _TOLERANCE,
        _cases(-4.0, 4.0) + _eight_bit_cases(16 / 256, 127),
        types=(real_or_stored, result_alike),
    )
)
