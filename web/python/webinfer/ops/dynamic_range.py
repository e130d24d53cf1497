"""Activations rounded to what eight bits hold, beside weights that are stored in eight bits: dynamic-range models."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import all_real, declare, moved_bytes, need

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class RoundRowsAttrs:
    """round_rows: the first `axes` axes number the rows; `symmetric` levels lie around zero, 127 on each side."""

    axes: int
    symmetric: bool = False


def infer(inputs: Inputs, a: RoundRowsAttrs) -> tuple[TensorType, ...]:
    """Type of y: each element of x, rounded to the nearest of 256 levels that its row has.

    Levels are evenly spaced and one of them is zero. They reach from the row's least to its greatest element, or as
    far below zero as above where they are symmetric. A row of zeros stays as it is.

    Raises:  ShapeError if x has fewer axes
    Source:  XNNPACK, xnn_f32_qd8_asymmetric_quantization_params; tensorflow v2.18.0, SymmetricQuantizeFloats
    """
    x = need("round_rows", "x", inputs[0])
    if not 0 <= a.axes <= x.rank:
        raise ShapeError(f"round_rows: {a.axes} axes cannot number the rows of {x.shape}")
    return (TensorType(x.shape, x.dtype),)


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: RoundRowsAttrs) -> Cost:
    """About six operations for each element."""
    return Cost(6 * outputs[0].size, moved_bytes(inputs, outputs))


def rows_of(type: TensorType, a: RoundRowsAttrs) -> tuple[int, int]:
    """(rows, elements of a row)."""
    return math.prod(type.shape[: a.axes]), math.prod(type.shape[a.axes :])


_ZEROS_BETWEEN = (0.0, 0.0, 0.0, 0.5, -1.0, 3.25)
_LONG = tuple((i * 7919 % 1009) / 64 - (3.0 if i < 33_000 else 5.0) for i in range(66_000))
ROUND_ROWS = declare(
    Op(
        "round_rows", RoundRowsAttrs, infer, cost,
        Tolerance(2e-6, 2e-6, "two float32 roundings; no element of a case lies near the middle of two levels"),
        (
            Case("rows", (TensorType((3, 40)),), RoundRowsAttrs(1)),
            Case("rows, symmetric", (TensorType((3, 40)),), RoundRowsAttrs(1, True)),
            Case("images", (TensorType((2, 5, 3, 3)),), RoundRowsAttrs(1), low=-1.0, high=4.0),
            Case("positive", (TensorType((4, 9)),), RoundRowsAttrs(1), low=0.25, high=3.0),
            Case("negative, symmetric", (TensorType((1, 300)),), RoundRowsAttrs(1, True), low=-3.0, high=-0.5),
            Case("a row of zeros", (TensorType((2, 3)),), RoundRowsAttrs(1), values={0: _ZEROS_BETWEEN}),
            Case("zeros, symmetric", (TensorType((2, 3)),), RoundRowsAttrs(1, True), values={0: _ZEROS_BETWEEN}),
            Case("all one row", (TensorType((7, 3)),), RoundRowsAttrs(0)),
            Case("long rows", (TensorType((2, 33_000)),), RoundRowsAttrs(1), values={0: _LONG}),
        ),
        types=(all_real,),
    )
)  # fmt: skip
