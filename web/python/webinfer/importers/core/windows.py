"""Windows over any axes, said as slices that are put together."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.graph.ir import Op, Value
from webinfer.importers.core.geometry import check_window
from webinfer.importers.core.limits import check_bytes, within
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import movement as mv
from webinfer.ops.conv import window_size

_MOST_TAPS = 1024  # of all axes, added up


def spread(op: BaseOperation, x: Value, between: Sequence[int], value: float) -> Value:
    """x with so many elements of a value between two of its own, along each axis."""
    for axis, count in enumerate(between):
        if count < 0:
            op.fail(f"{tuple(between)} elements between others")
        shape = x.type.shape
        if not count or shape[axis] < 2:
            continue
        wide = (*shape[:axis], shape[axis] * (count + 1), *shape[axis + 1 :])
        check_bytes(wide, x.type.dtype, op.what)
        none = (0,) * (x.type.rank + 1)
        after = (*none[: axis + 1], count, *none[axis + 2 :])
        y = op.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
        y = op.reshape(op.emit(mv.PAD, [y], mv.PadAttrs(none, after, value)), wide)
        x = op.cut(y, axis, 0, (shape[axis] - 1) * (count + 1) + 1)
    return x


def padded(op: BaseOperation, x: Value, before: Sequence[int], after: Sequence[int], value: float) -> Value:
    """x with so many elements of a value around it; of less than none, with as many cut away."""
    added = [tuple(max(n, 0) for n in edge) for edge in (before, after)]
    if any(map(any, added)):
        x = op.emit(mv.PAD, [x], mv.PadAttrs(added[0], added[1], value))
    for axis, (first, last) in enumerate(zip(before, after, strict=True)):
        size = x.type.shape[axis] + min(first, 0) + min(last, 0)
        if size < 0:
            op.fail(f"pads {tuple(before)}, {tuple(after)} leave nothing of axis {axis}")
        x = op.cut(x, axis, max(-first, 0), size) if min(first, last) < 0 else x
    return x


def reduced(
    op: BaseOperation, target: Op, x: Value, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> Value:
    """What an operator of two operands makes of each window. Axes are taken one by one."""
    if not len(window) == len(stride) == len(dilation) == x.type.rank:
        op.fail(f"window {window}, strides {stride}, dilations {dilation} do not fit {x.type}")
    for name, numbers in (("window", window), ("stride", stride), ("dilation", dilation)):
        check_window(op, {f"{name} {i}": n for i, n in enumerate(numbers)})
    within("elements of a window", sum(window), _MOST_TAPS)
    for axis, (size, step, apart) in enumerate(zip(window, stride, dilation, strict=True)):
        count = window_size(op.name, x.type.shape[axis], 0, 0, size, apart, step)
        whole, y = x, None
        for i in range(size if (size, step) != (1, 1) else 0):
            starts, sizes, steps = [0] * x.type.rank, [*x.type.shape], [1] * x.type.rank
            starts[axis], sizes[axis], steps[axis] = i * apart, count, step
            part = op.emit(mv.SLICE, [whole], mv.SliceAttrs(tuple(starts), tuple(sizes), tuple(steps)))
            y = part if y is None else op.binary(target, y, part)
        x = whole if y is None else y
    return x
