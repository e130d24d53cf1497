"""Reductions over axes, and the position of the largest or smallest element.

An empty `axes` reduces nothing and still applies the formula to every element (|x| for reduce_l1).
Positions are those of the first extreme element; a NaN counts as the extreme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.expr.formula import X, log, sqrt
from webinfer.expr.reduction import COUNT, Join, ReductionRow
from webinfer.graph.ir import Case, Cost, Op, Quantization, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import EXACT, declare, eight_bit, moved_bytes, need, result_alike, same_elements

Inputs = Sequence[TensorType | None]
F32, I32, U8, I8, BOOL = DType.FLOAT32, DType.INT32, DType.UINT8, DType.INT8, DType.BOOL
# Every reduction and its row; None where kernels are written by hand: truths, and pairs that log_sum_exp joins.
REDUCTIONS: dict[Op, ReductionRow | None] = {}
SUM = Tolerance(2e-5, 1e-5, "the order of a float32 sum is free", summed=True)


@dataclass(frozen=True, slots=True)
class ReduceAttrs:
    """`out_type` overrides the result's type for quantised tensors."""

    axes: tuple[int, ...]  # distinct, not negative
    keep_dims: bool = False
    out_type: tuple[DType, Quantization | None] | None = None


@dataclass(frozen=True, slots=True)
class ArgAttrs:
    """arg_max and arg_min: the axis that positions count along, and the type of the positions."""

    axis: int
    keep_dims: bool = False
    dtype: DType = DType.INT32  # of the positions


def reduced_shape(op: str, shape: tuple[int, ...], axes: tuple[int, ...], keep_dims: bool) -> tuple[int, ...]:
    """Shape after the axes are reduced.

    Raises:  ShapeError if an axis is repeated or does not exist.
    """
    if len(set(axes)) != len(axes) or any(not 0 <= axis < len(shape) for axis in axes):
        raise ShapeError(f"{op}: axes {axes} are not distinct axes of {shape}")
    if keep_dims:
        return tuple(1 if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes)


def _infer(name: str, is_bool: bool) -> Callable[[Inputs, ReduceAttrs], tuple[TensorType, ...]]:
    def infer(inputs: Inputs, a: ReduceAttrs) -> tuple[TensorType, ...]:
        x = need(name, "x", inputs[0])
        if is_bool and x.dtype is not BOOL:
            raise ShapeError(f"{name}: x is {x.dtype}, needs bool")
        shape = reduced_shape(name, x.shape, a.axes, a.keep_dims)
        if x.size == 0 and name in ("reduce_max", "reduce_min", "reduce_mean"):
            raise ShapeError(f"{name}: x has shape {x.shape}; an empty tensor has no minimum, maximum or mean")
        return (TensorType(shape, *a.out_type) if a.out_type else TensorType(shape, x.dtype, x.quant),)

    return infer


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: object) -> Cost:
    """One operation an input element."""
    return Cost(need("reduce", "x", inputs[0]).size, moved_bytes(inputs, outputs))


_SHAPES: tuple[tuple[str, tuple[int, ...], ReduceAttrs], ...] = (
    ("last axis", (3, 4, 8), ReduceAttrs((2,))),
    ("odd last axis, kept", (2, 3, 7), ReduceAttrs((2,), True)),
    ("first axis", (5, 3, 4), ReduceAttrs((0,))),
    ("image", (2, 5, 3, 8), ReduceAttrs((1, 2))),
    ("image, odd channels, kept", (1, 5, 3, 7), ReduceAttrs((1, 2), True)),
    ("outer and inner", (3, 4, 5), ReduceAttrs((0, 2))),
    ("all", (2, 3, 5), ReduceAttrs((0, 1, 2))),
    ("none", (2, 5), ReduceAttrs(())),
    ("axis of one", (3, 1, 4), ReduceAttrs((1,))),
    ("long row", (1, 301), ReduceAttrs((1,))),
    ("outer and inner, long", (9, 2, 8, 4), ReduceAttrs((0, 2))),
)


def _eight_bit_cases(scale: float) -> tuple[Case, ...]:
    def case(label: str, shape: tuple[int, ...], dtype: DType, axes: tuple[int, ...], keep: bool) -> Case:
        y = eight_bit((), scale, 5, dtype).quant
        low, high = (0, 60) if label.endswith("all") else dtype.range  # the mean of all is far from zero
        attrs = ReduceAttrs(axes, keep, (dtype, y))
        return Case(label, (eight_bit(shape, 0.0473, -9, dtype),), attrs, low=low, high=high)

    return (
        case("uint8, image", (2, 7, 5, 8), U8, (1, 2), True),
        case("int8, odd last axis", (4, 9), I8, (1,), False),
        case("int8, all", (3, 5), I8, (0, 1), False),
    )


def _reduce(
    name: str, tolerance: Tolerance, low: float = -3.0, high: float = 3.0, dtypes: tuple[DType, ...] = (F32,),
    quantized: tuple[Case, ...] = (), row: ReductionRow | None = None,
) -> Op:  # fmt: skip
    """A reduction; its `row` gives the kernels."""
    cases = tuple(
        Case(f"{label} {dtype}", (TensorType(shape, dtype),), attrs, low=low, high=high)
        for dtype in dtypes
        for label, shape, attrs in _SHAPES[: None if dtype is dtypes[0] else 5]
    )
    infer = _infer(name, BOOL in dtypes)
    rules = (result_alike, *((same_elements,) if name in ("reduce_max", "reduce_min") else ()))
    op = declare(Op(name, ReduceAttrs, infer, cost, tolerance, cases + quantized, types=rules))
    REDUCTIONS[op] = row
    return op


REDUCE_ALL = _reduce("reduce_all", EXACT, dtypes=(BOOL,))
REDUCE_ANY = _reduce("reduce_any", EXACT, dtypes=(BOOL,))
REDUCE_L1 = _reduce("reduce_l1", SUM, row=ReductionRow(abs(X)))
REDUCE_L2 = _reduce("reduce_l2", SUM, row=ReductionRow(X * X, end=sqrt(X)))
REDUCE_LOG_SUM = _reduce("reduce_log_sum", SUM, 0.1, 3.0, row=ReductionRow(end=log(X)))
REDUCE_LOG_SUM_EXP = _reduce("reduce_log_sum_exp", SUM)  # log(sum e^x)
_INF = float("inf")


def _all_infinite(number: float) -> tuple[Case, ...]:
    """A row in which no element is nearer than infinity."""
    return (Case("infinite", (TensorType((2, 4)),), ReduceAttrs((1,)), values={0: (number,) * 4 + (1, number, 2, 3)}),)


REDUCE_MAX = _reduce(
    "reduce_max", EXACT, -9, -1, dtypes=(F32, I32, I8), quantized=_all_infinite(-_INF),
    row=ReductionRow(join=Join.LARGEST),
)  # fmt: skip


def _wide_means() -> tuple[Case, ...]:
    """Means of int32 whose sums leave 32 bits."""

    def case(label: str, shape: tuple[int, ...], axis: int) -> Case:
        numbers = [2**31 - 1 - i * 7919 % 2**27 if i % 3 else -(2**31) + i * 31 for i in range(math.prod(shape))]
        return Case(label, (TensorType(shape, I32),), ReduceAttrs((axis,)), values={0: numbers})

    return case("int32, long rows", (3, 512), 1), case("int32, columns", (2, 96, 8), 1), case("int32, few", (7, 5), 0)


def _mean_cases() -> tuple[Case, ...]:
    return (*_eight_bit_cases(0.0317), *_wide_means())


REDUCE_MEAN = _reduce(
    "reduce_mean", SUM, dtypes=(F32, I32), quantized=_mean_cases(), row=ReductionRow(end=X / COUNT)
)  # fmt: skip
REDUCE_MIN = _reduce(
    "reduce_min", EXACT, 1, 9, dtypes=(F32, I32, U8), quantized=_all_infinite(_INF),
    row=ReductionRow(join=Join.SMALLEST),
)  # fmt: skip
REDUCE_PRODUCT = _reduce(
    "reduce_product",
    Tolerance(1e-6, 1e-4, "a rounding for each of some hundred factors", summed=True),
    0.97,
    1.04,
    row=ReductionRow(join=Join.PRODUCT),
)
REDUCE_SUM = _reduce("reduce_sum", SUM, dtypes=(F32, I32), quantized=_eight_bit_cases(0.713), row=ReductionRow())
REDUCE_SUM_SQUARE = _reduce("reduce_sum_square", SUM, row=ReductionRow(X * X))


def _arg_infer(name: str) -> Callable[[Inputs, ArgAttrs], tuple[TensorType, ...]]:
    def infer(inputs: Inputs, a: ArgAttrs) -> tuple[TensorType, ...]:
        x = need(name, "x", inputs[0])
        shape = reduced_shape(name, x.shape, (a.axis,), a.keep_dims)
        if x.shape[a.axis] == 0 and 0 not in shape:
            raise ShapeError(f"{name}: axis {a.axis} of {x.shape} is empty")
        return (TensorType(shape, a.dtype),)

    return infer


def _arg(name: str) -> Op:
    ties = (1.0, 3.0, 3.0, -2.0, 1.0, -2.0, -2.0, -2.0)
    cases = (
        Case("last axis", (TensorType((3, 4, 8)),), ArgAttrs(2)),
        Case("odd last axis, kept", (TensorType((2, 3, 7)),), ArgAttrs(2, True)),
        Case("first axis", (TensorType((5, 3, 4)),), ArgAttrs(0)),
        Case("middle axis", (TensorType((2, 7, 3)),), ArgAttrs(1)),
        Case("axis of one", (TensorType((3, 1)),), ArgAttrs(1)),
        Case("the first of equals wins", (TensorType((2, 4)),), ArgAttrs(1), values={0: ties}),
        Case("int32", (TensorType((4, 9), I32),), ArgAttrs(1), low=-50, high=50),
        Case("uint8", (TensorType((4, 9), U8),), ArgAttrs(0), low=0, high=255),
        Case("int64 positions", (TensorType((4, 9)),), ArgAttrs(1, False, DType.INT64)),
    )
    return declare(Op(name, ArgAttrs, _arg_infer(name), cost, EXACT, cases))


ARG_MAX = _arg("arg_max")
ARG_MIN = _arg("arg_min")
