"""Operators that write a pattern of positions: one-hot rows, triangles of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.expr.formula import equal, select
from webinfer.expr.kernel import Kernel, Kind, Tensor, axes, element, lengths, sizes
from webinfer.graph.ir import Case, Op, TensorType
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import EXACT, declare, move_cost, need

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class OneHotAttrs:
    """y is `on` where the new axis equals x, else `off`; an x outside 0..depth-1 gives only `off`."""

    depth: int
    axis: int  # of y
    on: float = 1.0
    off: float = 0.0
    dtype: DType = DType.FLOAT32


@dataclass(frozen=True, slots=True)
class TriangularAttrs:
    """Keeps elements with column - row >= diagonal (upper) or <= diagonal (lower), zeroes the rest."""

    upper: bool = True
    diagonal: int = 0


def _one_hot(inputs: Inputs, a: OneHotAttrs) -> tuple[TensorType, ...]:
    x = need("one_hot", "x", inputs[0])
    if x.dtype not in (DType.INT32, DType.INT64, DType.UINT8):
        raise ShapeError(f"one_hot: x is {x.dtype}, needs int32, int64 or uint8")
    if not 0 <= a.axis <= x.rank or a.depth < 0:
        raise ShapeError(f"one_hot: depth {a.depth} on axis {a.axis} does not fit {x.shape}")
    return (TensorType((*x.shape[: a.axis], a.depth, *x.shape[a.axis :]), a.dtype),)


def _triangular(inputs: Inputs, a: TriangularAttrs) -> tuple[TensorType, ...]:
    x = need("triangular", "x", inputs[0])
    if x.rank < 2:
        raise ShapeError(f"triangular: x {x.shape} needs two axes or more")
    return (TensorType(x.shape, x.dtype, x.quant),)


def _one_hot_kernel(inputs: Sequence[TensorType], outputs: Sequence[TensorType], a: OneHotAttrs) -> Kernel:
    outer, inner = lengths(inputs[0].shape, outer=a.axis, inner=inputs[0].rank)
    (depth,) = sizes(depth=a.depth)
    x = Tensor("x", (outer, inner), Kind.INDEX)
    o, d, i = axes(o=outer, d=depth, i=inner)
    value = select(equal(x[o, i], d), element("on", a.on), element("off", a.off))
    return Kernel("one_hot", (x,), (o, d, i), value)


def _triangular_kernel(inputs: Sequence[TensorType], outputs: Sequence[TensorType], a: TriangularAttrs) -> Kernel:
    *outer, height, width = inputs[0].shape
    # Beyond the corners a diagonal changes nothing; clamped, it fits int32.
    edge = max(-height - 1, min(width + 1, a.diagonal))
    matrices, rows, columns, diagonal, side = sizes(
        matrices=math.prod(outer), rows=height, columns=width, diagonal=edge, side=1 if a.upper else -1
    )
    x = Tensor("x", (matrices, rows, columns))
    n, r, c = axes(n=matrices, r=rows, c=columns)
    value = select((c - r - diagonal) * side >= 0, x[n, r, c], element("zero", 0))
    return Kernel("triangular", (x,), (n, r, c), value)


def _int(*shape: int) -> tuple[TensorType]:
    return (TensorType(shape, DType.INT32),)


ONE_HOT = declare(
    Op(
        "one_hot", OneHotAttrs, _one_hot, move_cost, EXACT,
        (
            Case("last axis", _int(3), OneHotAttrs(5, 1), values={0: (4, 0, 2)}),
            Case("first axis", _int(2, 2), OneHotAttrs(3, 0, 5.0, -1.0), values={0: (2, 0, 1, 1)}),
            Case("outside", _int(4), OneHotAttrs(3, 1), values={0: (3, -1, 1, 7)}),
            Case("int32 result", _int(3), OneHotAttrs(4, 1, 7, 2, DType.INT32), values={0: (3, 0, 9)}),
            Case("int64 result", _int(3), OneHotAttrs(4, 1, 2**40 + 7, -2, DType.INT64), values={0: (3, 0, 9)}),
        ),
        kernel=_one_hot_kernel,
    )
)  # fmt: skip
TRIANGULAR = declare(
    Op(
        "triangular", TriangularAttrs, _triangular, move_cost, EXACT,
        (
            Case("upper", (TensorType((4, 5)),), TriangularAttrs()),
            Case("lower", (TensorType((5, 4)),), TriangularAttrs(False)),
            Case("upper, raised", (TensorType((2, 3, 4)),), TriangularAttrs(True, 1)),
            Case("lower, beyond", (TensorType((3, 4)),), TriangularAttrs(False, -3)),
            Case("int32", (TensorType((3, 3), DType.INT32),), TriangularAttrs(True, -1)),
        ),
        kernel=_triangular_kernel,
    )
)  # fmt: skip
