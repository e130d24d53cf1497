"""Running sums along an axis, and the largest elements of a row."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import EXACT, declare, elementwise_cost, moved_bytes, need, numbers

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class CumulativeSumAttrs:
    """`exclusive` leaves the element itself out; `reversed` sums from the end."""

    axis: int
    exclusive: bool = False
    reversed: bool = False


@dataclass(frozen=True, slots=True)
class TopKAttrs:
    """top_k: how many of the largest elements are wanted."""

    k: int


def _cumulative_sum(inputs: Inputs, a: CumulativeSumAttrs) -> tuple[TensorType, ...]:
    x = need("cumulative_sum", "x", inputs[0])
    if not 0 <= a.axis < x.rank:
        raise ShapeError(f"cumulative_sum: axis {a.axis} is not an axis of {x.shape}")
    return (TensorType(x.shape, x.dtype),)


def _top_k(inputs: Inputs, a: TopKAttrs) -> tuple[TensorType, ...]:
    """Types of the values and of their int32 positions.

    Shapes:  x [..., D] -> values, positions [..., K], in falling order; the first of equals comes first, a NaN last
    """
    x = need("top_k", "x", inputs[0])
    if x.rank < 1 or not 0 <= a.k <= x.shape[-1]:
        raise ShapeError(f"top_k: {a.k} elements cannot be taken from the last axis of {x.shape}")
    shape = (*x.shape[:-1], a.k)
    return TensorType(shape, x.dtype, x.quant), TensorType(shape, DType.INT32)


def _top_k_cost(inputs: Inputs, outputs: Sequence[TensorType], a: TopKAttrs) -> Cost:
    return Cost(need("top_k", "x", inputs[0]).size * a.k, moved_bytes(inputs, outputs))


CUMULATIVE_SUM = declare(
    Op(
        "cumulative_sum", CumulativeSumAttrs, _cumulative_sum, elementwise_cost,
        Tolerance(2e-5, 1e-5, "the order of a float32 sum is free", summed=True),
        (
            Case("last axis", (TensorType((3, 8)),), CumulativeSumAttrs(1)),
            Case("first axis", (TensorType((5, 3)),), CumulativeSumAttrs(0)),
            Case("middle axis, exclusive", (TensorType((2, 5, 3)),), CumulativeSumAttrs(1, exclusive=True)),
            Case("reversed", (TensorType((3, 7)),), CumulativeSumAttrs(1, reversed=True)),
            Case("exclusive and reversed", (TensorType((3, 7)),), CumulativeSumAttrs(1, True, True)),
            Case("axis of one, exclusive", (TensorType((3, 1)),), CumulativeSumAttrs(1, exclusive=True)),
            Case("int32", (TensorType((3, 7), DType.INT32),), CumulativeSumAttrs(1), low=-9, high=9),
        ),
        types=(numbers,),
    )
)  # fmt: skip
_WITH_NAN = (math.nan, -1.0, 0.0, math.nan, -math.inf, -0.0, math.inf, 1e-42)  # the last is subnormal
TOP_K = declare(
    Op(
        "top_k", TopKAttrs, _top_k, _top_k_cost, EXACT,
        (
            Case("rows", (TensorType((3, 9)),), TopKAttrs(4)),
            Case("one", (TensorType((20,)),), TopKAttrs(1)),
            Case("all", (TensorType((2, 5)),), TopKAttrs(5)),
            Case("equals", (TensorType((6,)),), TopKAttrs(4), values={0: (1.0, 3.0, 3.0, 0.0, 1.0, 3.0)}),
            Case("a NaN comes last", (TensorType((8,)),), TopKAttrs(8), values={0: _WITH_NAN}),
            Case("some are NaN", (TensorType((2, 4)),), TopKAttrs(3), values={0: _WITH_NAN}),
            Case("int32", (TensorType((2, 9), DType.INT32),), TopKAttrs(3), low=-50, high=50),
            Case("many of long rows", (TensorType((2, 70_001)),), TopKAttrs(100)),
            Case("more than a part of a row", (TensorType((1, 5_003), DType.INT32),), TopKAttrs(700), low=-9, high=9),
        ),
    )
)  # fmt: skip
