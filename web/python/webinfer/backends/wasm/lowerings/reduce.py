"""Reductions over axes and positions of extremes."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from itertools import groupby

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.cast import F32, compute_dtype, convert, converted
from webinfer.backends.wasm.lowerings.elementwise import BOOL, I32, I64, SHORT, U64, WIDENED, refuse
from webinfer.backends.wasm.lowerings.movement import strided_copy
from webinfer.backends.wasm.lowerings.nest import nest
from webinfer.dtypes import DType
from webinfer.graph.ir import Node, Op
from webinfer.ops import reduce as ops
from webinfer.ops.strides import StridedCopy, coalesce, row_major
from webinfer.plan.blocks import Arguments, Ref

Lines = tuple[int, int, int]  # outer, r, inner
_INTEGER = {
    ops.REDUCE_L1: ("abs", "sum"), ops.REDUCE_MAX: ("", "max"), ops.REDUCE_MEAN: ("", "sum"),
    ops.REDUCE_MIN: ("", "min"), ops.REDUCE_PRODUCT: ("", "product"),
    ops.REDUCE_SUM: ("", "sum"), ops.REDUCE_SUM_SQUARE: ("square", "sum"),
}  # fmt: skip


def lines_of(shape: Sequence[int], axis: int) -> Lines:
    """The shape as (outer, r, inner) around one axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def gathered_axes(
    builder: Builder, source: Ref, shape: Sequence[int], axes: Sequence[int], itemsize: int
) -> tuple[Ref, Lines]:
    """The tensor as lines along the axes: where it lies already if they are neighbours, else transposed."""
    kinds = [(i in axes, n) for i, n in enumerate(shape) if n != 1]
    groups = [(kind, math.prod(n for _, n in group)) for kind, group in groupby(kinds, key=lambda k: k[0])]
    middle = [i for i, (reduced, _) in enumerate(groups) if reduced]
    if not middle:
        return source, (math.prod(shape), 1, 1)
    if len(middle) == 1:
        at = middle[0]
        return source, (math.prod(n for _, n in groups[:at]), groups[at][1], math.prod(n for _, n in groups[at + 1 :]))
    order = [i for i in range(len(shape)) if i not in axes] + sorted(axes)
    turned, strides = [shape[i] for i in order], row_major(shape)
    target = builder.scratch(math.prod(shape) * itemsize)
    part = StridedCopy(0, tuple(turned), 0, tuple(strides[i] for i in order), 0, row_major(turned))
    strided_copy(builder, coalesce(part), source, target, itemsize)
    r = math.prod(shape[i] for i in axes)
    return target, (math.prod(shape) // max(r, 1), r, 1)


def reduce(node: Node, builder: Builder) -> None:
    """The reduced axes are brought together, then one step; integers have kernels of their own."""
    x, y, a = node.required_input(0), node.output, node.attrs
    dtype = compute_dtype(x)
    if dtype is not F32 and dtype is not BOOL:
        _reduce_integers(node, builder, dtype)
        return
    source, (_, r, inner) = gathered_axes(builder, builder.ref(x), x.type.shape, a.axes, dtype.itemsize)
    target, units = builder.ref(y), y.type.size
    if dtype is BOOL and node.op not in (ops.REDUCE_ALL, ops.REDUCE_ANY):
        raise refuse(node.op, dtype)
    if dtype is BOOL:
        builder.step(f"b8_{node.op.name}", x=source, y=target, r=r, inner=inner, units=units)
    else:
        factor: Arguments = {"beta": 1.0} if node.op is ops.REDUCE_LOG_SUM_EXP else {"count": r}
        builder.step(f"f32_{node.op.name}", factor, x=source, y=target, r=r, inner=inner, units=units)


def _reduce_integers(node: Node, builder: Builder, dtype: DType) -> None:
    x, y = node.required_input(0), node.output
    if node.op not in _INTEGER or dtype is U64:
        raise refuse(node.op, dtype)
    before, kernel = _INTEGER[node.op]
    mean = node.op is ops.REDUCE_MEAN
    wide = I64 if mean else WIDENED.get(dtype, dtype)  # the sum of a mean must not wrap
    source = converted(builder, x, wide)
    if before:
        taken = builder.scratch(x.type.size * wide.itemsize)
        builder.step(f"{SHORT[wide]}_{before}", x=source, y=taken, units=x.type.size)
        source = taken
    source, (_, r, inner) = gathered_axes(builder, source, x.type.shape, node.attrs.axes, wide.itemsize)
    n = y.type.size
    target = builder.ref(y) if wide is dtype else builder.scratch(n * wide.itemsize)
    builder.step(f"{SHORT[wide]}_reduce_{kernel}", x=source, y=target, r=r, inner=inner, units=n)
    if mean:
        count = builder.table(("i64", r), struct.pack("<q", r))
        table = nest(builder, (n,), (1,), (0,))
        builder.step("i64_div", a=target, b=count, y=target, nest=table, units=n)
    if wide is not dtype:
        convert(builder, target, wide, builder.ref(y), dtype, n)


def arg(node: Node, builder: Builder) -> None:
    """One step that finds int32 positions, converted where others are wanted."""
    x, y = node.required_input(0), node.output
    dtype = compute_dtype(x)
    wide = WIDENED.get(dtype, dtype)
    if wide is U64:
        raise refuse(node.op, dtype)
    _, r, inner = lines_of(x.type.shape, node.attrs.axis)
    n = y.type.size
    target = builder.ref(y) if y.type.dtype is I32 else builder.scratch(4 * n)
    source = converted(builder, x, wide)
    builder.step(f"{SHORT[wide]}_{node.op.name}", x=source, y=target, r=r, inner=inner, units=n)
    if y.type.dtype is not I32:
        convert(builder, target, I32, builder.ref(y), y.type.dtype, n)


LOWERINGS: dict[Op, Lower] = {
    **dict.fromkeys(ops.REDUCTIONS, reduce),
    ops.ARG_MAX: arg,
    ops.ARG_MIN: arg,
}
