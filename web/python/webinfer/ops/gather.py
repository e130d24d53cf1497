"""Reads and writes at positions that are tensors themselves.

Positions are int32, int64 or uint32. A negative position counts from the end; one that still lies
outside is moved to the nearest element, so no kernel reads or writes out of bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.expr.formula import Formula, equal, select
from webinfer.expr.kernel import Kernel, Kind, Table, Tensor, along, axes, largest, lengths, sizes, total, within
from webinfer.graph.ir import Case, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import EXACT, declare, move_cost, need
from webinfer.ops.strides import row_major

Inputs = Sequence[TensorType | None]
Types = Sequence[TensorType]
I32, I64 = DType.INT32, DType.INT64


@dataclass(frozen=True, slots=True)
class GatherAttrs:
    """gather: the first `batch_dims` axes of x and positions run together."""

    axis: int
    batch_dims: int = 0


@dataclass(frozen=True, slots=True)
class GatherNdAttrs:
    """gather_nd: the first `batch_dims` axes of x and positions run together."""

    batch_dims: int = 0


@dataclass(frozen=True, slots=True)
class ElementsAttrs:
    """gather_elements and scatter_elements: the axis of x that positions count along."""

    axis: int


@dataclass(frozen=True, slots=True)
class ScatterNdAttrs:
    """`add` sums updates of one position onto x; else the last in row-major order replaces x."""

    add: bool = False


def _positions(op: str, tensor: TensorType | None) -> TensorType:
    positions = need(op, "positions", tensor)
    if positions.dtype not in (I32, I64, DType.UINT32):
        raise ShapeError(f"{op}: positions are {positions.dtype}, need int32, int64 or uint32")
    return positions


def _not_empty(op: str, x: TensorType, positions: TensorType, axis: int) -> None:
    if x.shape[axis] == 0 and positions.size:
        raise ShapeError(f"{op}: axis {axis} of {x.shape} is empty, no position fits")


def _gather(inputs: Inputs, a: GatherAttrs) -> tuple[TensorType, ...]:
    """Shapes:  x [B.., O.., D, I..], positions [B.., P..] -> y [B.., O.., P.., I..]"""
    x, p = need("gather", "x", inputs[0]), _positions("gather", inputs[1])
    b = a.batch_dims
    if not 0 <= b <= a.axis < x.rank or b > p.rank or x.shape[:b] != p.shape[:b]:
        raise ShapeError(f"gather: axis {a.axis} with {b} batch axes does not fit x {x.shape}, positions {p.shape}")
    _not_empty("gather", x, p, a.axis)
    return (TensorType(x.shape[: a.axis] + p.shape[b:] + x.shape[a.axis + 1 :], x.dtype, x.quant),)


def _gather_elements(inputs: Inputs, a: ElementsAttrs) -> tuple[TensorType, ...]:
    """Shapes:  y and positions have one shape, equal to x's but along `axis`"""
    x, p = need("gather_elements", "x", inputs[0]), _positions("gather_elements", inputs[1])
    if not 0 <= a.axis < x.rank or p.rank != x.rank:
        raise ShapeError(f"gather_elements: axis {a.axis} does not fit x {x.shape}, positions {p.shape}")
    if any(m != n for i, (m, n) in enumerate(zip(x.shape, p.shape, strict=True)) if i != a.axis):
        raise ShapeError(f"gather_elements: x {x.shape} and positions {p.shape} differ beside axis {a.axis}")
    _not_empty("gather_elements", x, p, a.axis)
    return (TensorType(p.shape, x.dtype, x.quant),)


def _nd_depth(op: str, x: TensorType, p: TensorType, batch_dims: int) -> int:
    """How many axes of x one position names."""
    if p.rank < 1 or not 0 <= batch_dims < p.rank or x.shape[:batch_dims] != p.shape[:batch_dims]:
        raise ShapeError(f"{op}: {batch_dims} batch axes do not fit x {x.shape}, positions {p.shape}")
    depth = p.shape[-1]
    if depth < 1 or batch_dims + depth > x.rank:
        raise ShapeError(f"{op}: positions {p.shape} name {depth} axes, x {x.shape} has {x.rank - batch_dims}")
    for axis in range(batch_dims, batch_dims + depth):
        _not_empty(op, x, p, axis)
    return depth


def _gather_nd(inputs: Inputs, a: GatherNdAttrs) -> tuple[TensorType, ...]:
    """Shapes:  x [B.., D1..Dk, I..], positions [B.., P.., k] -> y [B.., P.., I..]"""
    x, p = need("gather_nd", "x", inputs[0]), _positions("gather_nd", inputs[1])
    depth = _nd_depth("gather_nd", x, p, a.batch_dims)
    return (TensorType(p.shape[:-1] + x.shape[a.batch_dims + depth :], x.dtype, x.quant),)


def _scatter_elements(inputs: Inputs, a: ElementsAttrs) -> tuple[TensorType, ...]:
    """Shapes:  positions and updates have one shape, equal to x's but along `axis` -> y like x"""
    name = "scatter_elements"
    x, p, u = need(name, "x", inputs[0]), _positions(name, inputs[1]), need(name, "updates", inputs[2])
    _gather_elements((x, p), a)
    if u.shape != p.shape or u.dtype is not x.dtype:
        raise ShapeError(f"{name}: updates {u} do not fit positions {p.shape} and x {x}")
    return (TensorType(x.shape, x.dtype, x.quant),)


def _scatter_nd(inputs: Inputs, a: ScatterNdAttrs) -> tuple[TensorType, ...]:
    """Shapes:  x [D1..Dk, I..], positions [P.., k], updates [P.., I..] -> y like x"""
    name = "scatter_nd"
    x, p, u = need(name, "x", inputs[0]), _positions(name, inputs[1]), need(name, "updates", inputs[2])
    depth = _nd_depth(name, x, p, 0)
    if u.shape != p.shape[:-1] + x.shape[depth:] or u.dtype is not x.dtype:
        raise ShapeError(f"{name}: updates {u} do not fit positions {p.shape} and x {x}")
    return (TensorType(x.shape, x.dtype, x.quant),)


def _gather_kernel(inputs: Types, outputs: Types, a: GatherAttrs) -> Kernel:
    (x, p), b = inputs, a.batch_dims
    batch, outer, depth, inner = lengths(x.shape, batch=b, outer=a.axis, depth=a.axis + 1, inner=x.rank)
    (picks,) = sizes(picks=math.prod(p.shape[b:]))
    data, positions = Tensor("x", (batch, outer, depth, inner)), Tensor("positions", (batch, picks), Kind.INDEX)
    n, o, k, i = axes(n=batch, o=outer, k=picks, i=inner)
    return Kernel("gather", (data, positions), (n, o, k, i), data[n, o, within(positions[n, k], depth), i])


def _gather_elements_kernel(inputs: Types, outputs: Types, a: ElementsAttrs) -> Kernel:
    x, p = inputs
    outer, depth, inner = lengths(x.shape, outer=a.axis, depth=a.axis + 1, inner=x.rank)
    (picks,) = sizes(picks=p.shape[a.axis])
    data, positions = Tensor("x", (outer, depth, inner)), Tensor("positions", (outer, picks, inner), Kind.INDEX)
    o, k, i = axes(o=outer, k=picks, i=inner)
    place = data[o, within(positions[o, k, i], depth), i]
    return Kernel("gather_elements", (data, positions), (o, k, i), place)


def _named_axes(shape: Sequence[int], depth: int) -> tuple[Table, Table]:
    """The axes that one position of several numbers names: their lengths, and their strides in rows."""
    return Table("length", tuple(shape[:depth])), Table("stride", row_major(shape[:depth]))


def _row(positions: Tensor, at: Sequence[Formula], tables: tuple[Table, Table]) -> Formula:
    """The row that the position at these indices names."""
    (length, stride), d = tables, along("d", positions.shape[-1])
    return total(d, within(positions[*at, d], length[d]) * stride[d], kind=Kind.INDEX)


def _gather_nd_kernel(inputs: Types, outputs: Types, a: GatherNdAttrs) -> Kernel:
    (x, p), b = inputs, a.batch_dims
    batch, rows, inner = lengths(x.shape, batch=b, rows=b + p.shape[-1], inner=x.rank)
    picks, depth = sizes(picks=math.prod(p.shape[b:-1]), depth=p.shape[-1])
    data, positions = Tensor("x", (batch, rows, inner)), Tensor("positions", (batch, picks, depth), Kind.INDEX)
    n, k, i = axes(n=batch, k=picks, i=inner)
    tables = _named_axes(x.shape[b:], p.shape[-1])
    return Kernel("gather_nd", (data, positions), (n, k, i), data[n, _row(positions, (n, k), tables), i], tables=tables)


def _scatter_elements_kernel(inputs: Types, outputs: Types, a: ElementsAttrs) -> Kernel:
    x, p, _ = inputs
    outer, depth, inner = lengths(x.shape, outer=a.axis, depth=a.axis + 1, inner=x.rank)
    (picks,) = sizes(picks=p.shape[a.axis])
    data, updates = Tensor("x", (outer, depth, inner)), Tensor("updates", (outer, picks, inner))
    positions = Tensor("positions", (outer, picks, inner), Kind.INDEX)
    (o, d, i), k = axes(o=outer, d=depth, i=inner), along("k", picks)
    last = largest(k, k, -1, where=equal(within(positions[o, k, i], depth), d))
    value = select(last >= 0, updates[o, last, i], data[o, d, i])
    return Kernel("scatter_elements", (data, positions, updates), (o, d, i), value)


def _scatter_nd_kernel(inputs: Types, outputs: Types, a: ScatterNdAttrs) -> Kernel:
    x, p, _ = inputs
    rows, inner = lengths(x.shape, rows=p.shape[-1], inner=x.rank)
    picks, depth = sizes(picks=math.prod(p.shape[:-1]), depth=p.shape[-1])
    kind = Kind.NUMBER if a.add else Kind.BITS
    data, updates = Tensor("x", (rows, inner), kind), Tensor("updates", (picks, inner), kind)
    positions, tables = Tensor("positions", (picks, depth), Kind.INDEX), _named_axes(x.shape, p.shape[-1])
    (r, i), k = axes(r=rows, i=inner), along("k", picks)
    hit = equal(_row(positions, (k,), tables), r)
    last = largest(k, k, -1, where=hit)
    value = total(k, updates[k, i], data[r, i], where=hit) if a.add else select(last >= 0, updates[last, i], data[r, i])
    name = "scatter_nd_add" if a.add else "scatter_nd"
    return Kernel(name, (data, positions, updates), (r, i), value, kind, tables)


def _case(label: str, shapes: Sequence[TensorType], positions: Sequence[int], attrs: Any) -> Case:
    return Case(label, tuple(shapes), attrs, values={1: positions})


def _t(*shape: int) -> TensorType:
    return TensorType(shape)


def _p(*shape: int, dtype: DType = I32) -> TensorType:
    return TensorType(shape, dtype)


def _op(
    name: str, attrs: type, infer: Callable[[Inputs, Any], tuple[TensorType, ...]],
    kernel: Callable[[Types, Types, Any], Kernel], cases: tuple[Case, ...], tolerance: Tolerance = EXACT,
) -> Op:  # fmt: skip
    return declare(Op(name, attrs, infer, move_cost, tolerance, cases, kernel=kernel))


GATHER = _op(
    "gather", GatherAttrs, _gather, _gather_kernel,
    (
        _case("rows", (_t(5, 8), _p(3)), (4, 0, 2), GatherAttrs(0)),
        _case("odd columns", (_t(3, 7), _p(2, 2)), (6, 0, 3, 3), GatherAttrs(1)),
        _case("middle axis", (_t(2, 5, 3), _p(4)), (1, 4, 0, 1), GatherAttrs(1)),
        _case("from the end and outside", (_t(4, 3), _p(4)), (-1, -4, 9, -9), GatherAttrs(0)),
        _case("scalar position", (_t(4, 3), _p()), (2,), GatherAttrs(0)),
        _case("batch", (_t(2, 5, 3), _p(2, 2)), (1, 4, 0, 3), GatherAttrs(1, 1)),
        _case("int64 positions", (_t(5, 2), _p(2, dtype=I64)), (4, -2), GatherAttrs(0)),
        _case("int32 data", (TensorType((5, 2), I32), _p(2)), (1, 3), GatherAttrs(0)),
        _case("int8 data", (TensorType((5, 3), DType.INT8), _p(2)), (1, 3), GatherAttrs(0)),
    ),
)  # fmt: skip
GATHER_ELEMENTS = _op(
    "gather_elements", ElementsAttrs, _gather_elements, _gather_elements_kernel,
    (
        _case("rows", (_t(3, 3), _p(2, 3)), (1, 2, 0, 2, 0, 0), ElementsAttrs(0)),
        _case("columns, outside", (_t(2, 5), _p(2, 2)), (4, -1, 7, -8), ElementsAttrs(1)),
        _case("rank 3", (_t(2, 3, 2), _p(2, 1, 2)), (2, 0, 1, 2), ElementsAttrs(1)),
    ),
)  # fmt: skip
GATHER_ND = _op(
    "gather_nd", GatherNdAttrs, _gather_nd, _gather_nd_kernel,
    (
        _case("elements", (_t(3, 4), _p(3, 2)), (0, 3, 2, 0, 1, 1), GatherNdAttrs()),
        _case("rows", (_t(3, 4, 2), _p(2, 2, 1)), (2, 0, -1, 1), GatherNdAttrs()),
        _case("rows of a plane, outside", (_t(3, 4, 5), _p(2, 2)), (2, 3, 9, -9), GatherNdAttrs()),
        _case("batch", (_t(2, 3, 4), _p(2, 1)), (1, 2), GatherNdAttrs(1)),
    ),
)  # fmt: skip
SCATTER_ELEMENTS = _op(
    "scatter_elements", ElementsAttrs, _scatter_elements, _scatter_elements_kernel,
    (
        _case("rows", (_t(3, 3), _p(2, 3), _t(2, 3)), (1, 0, 2, 0, 2, 1), ElementsAttrs(0)),
        _case("columns, from the end", (_t(2, 5), _p(2, 2), _t(2, 2)), (4, -4, -1, 0), ElementsAttrs(1)),
    ),
)  # fmt: skip
SCATTER_ND = _op(
    "scatter_nd", ScatterNdAttrs, _scatter_nd, _scatter_nd_kernel,
    (
        _case("elements", (_t(3, 4), _p(3, 2), _t(3)), (0, 3, 2, 0, 1, 1), ScatterNdAttrs()),
        _case("rows", (_t(4, 5), _p(2, 1), _t(2, 5)), (-1, 1), ScatterNdAttrs()),
        _case("added twice", (_t(4, 3), _p(3, 1), _t(3, 3)), (2, 0, 2), ScatterNdAttrs(add=True)),
    ),
    Tolerance(1e-6, 1e-6, "`add` sums in any order"),
)  # fmt: skip
