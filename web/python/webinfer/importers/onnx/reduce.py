"""ONNX operators that combine elements along axes."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.onnx.layouts import Arranged
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops import reduce as red

REDUCTION = {
    "ReduceL1": red.REDUCE_L1, "ReduceL2": red.REDUCE_L2, "ReduceLogSum": red.REDUCE_LOG_SUM,
    "ReduceLogSumExp": red.REDUCE_LOG_SUM_EXP, "ReduceMax": red.REDUCE_MAX, "ReduceMean": red.REDUCE_MEAN,
    "ReduceMin": red.REDUCE_MIN, "ReduceProd": red.REDUCE_PRODUCT, "ReduceSum": red.REDUCE_SUM,
    "ReduceSumSquare": red.REDUCE_SUM_SQUARE,
}  # fmt: skip
TRUTH = {"ReduceMax": red.REDUCE_ANY, "ReduceMin": red.REDUCE_ALL}


def dropped(op: Operation, y: Value, x: Arranged, axes: tuple[int, ...], keep: bool) -> Value:
    """A result that has every axis of x (`axes` of size 1) as users know it, or without these axes."""
    if keep:
        return op.view(y, x.perm)
    kept = [x.perm[i] for i in range(len(x.perm)) if i not in axes]
    return op.view(y, [sum(q < p for q in kept) for p in kept])


def _reduction(op: Operation) -> Value:
    x = op.arranged(0)
    rank = len(x.perm)
    wanted = op.numbers_or(1, "axes")
    if not wanted:
        if op.whole("noop_with_empty_axes", 0):
            return _nothing(op, x)
        wanted = tuple(range(rank))
    axes = tuple(dict.fromkeys(op.axis(a, rank) for a in wanted))
    keep = bool(op.whole("keepdims", 1))
    kind = TRUTH.get(op.name) if x.value.type.dtype is DType.BOOL else REDUCTION[op.name]
    if kind is None:
        op.refuse(f"{op.name} of bool")
    if not x.value.type.size:
        whole = all(d for i, d in enumerate(x.shape) if i not in axes)
        if whole and op.name in TRUTH and x.value.type.dtype is DType.BOOL:
            op.fail(f"{op.name} of no booleans, shape {x.shape}, is not defined")
        if kind is red.REDUCE_MEAN:  # ONNX Runtime 1.31: 0, where NumPy and other formats have a NaN
            kind = red.REDUCE_SUM
    attrs = red.ReduceAttrs(tuple(sorted(x.perm[a] for a in axes)), keep)
    return dropped(op, op.emit(kind, [x.value], attrs), x, axes, keep)


def _nothing(op: Operation, x: Arranged) -> Value:
    """No axes: each element by itself."""
    alone = {"ReduceL1": ew.ABS, "ReduceL2": ew.ABS, "ReduceLogSum": ew.LOG, "ReduceSumSquare": ew.SQUARE}.get(op.name)
    return op.view(x.value if alone is None else op.unary(alone, x.value), x.perm)


def _arg(op: Operation) -> Value:
    x = op.arranged(0)
    axis, keep = op.axis(op.whole("axis", 0), len(x.perm)), bool(op.whole("keepdims", 1))
    kind = red.ARG_MAX if op.name == "ArgMax" else red.ARG_MIN
    value, at = x.value, x.perm[axis]
    last = bool(op.whole("select_last_index", 0))
    if last:
        value = op.emit(mv.REVERSE, [value], mv.ReverseAttrs((at,)))
    y = op.emit(kind, [value], red.ArgAttrs(at, keep, DType.INT64))
    if last:
        y = op.binary(ew.SUB, op.scalar_of(x.shape[axis] - 1, DType.INT64), y)
    return dropped(op, y, x, (axis,), keep)


def _hardmax(op: Operation) -> Value:
    """1 at the first largest element of each row, else 0. Before opset 13 all axes from `axis` on are one."""
    x = op.value(0)
    whole = x.type.shape
    axis = op.axis(op.whole("axis", -1 if op.opset >= 13 else 1), max(x.type.rank, 1))
    if op.opset < 13:
        x, axis = op.reshape(x, (math.prod(whole[:axis]), math.prod(whole[axis:]))), 1
    size = x.type.shape[axis]
    if not x.type.size:
        return op.reshape(x, whole)
    place = op.emit(red.ARG_MAX, [x], red.ArgAttrs(axis, True, DType.INT32))
    row = op.constant(range(size), DType.INT32, [size if i == axis else 1 for i in range(x.type.rank)])
    return op.reshape(op.cast(op.binary(ew.EQUAL, place, row), x.type.dtype), whole)


CONVERTERS: dict[str, Convert] = {
    **dict.fromkeys(REDUCTION, _reduction),
    "ArgMax": _arg,
    "ArgMin": _arg,
    "Hardmax": _hardmax,
}
