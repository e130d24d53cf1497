"""Operators that move elements: strided copies, fills, and padding by mirrors."""

from __future__ import annotations

import dataclasses
import math
import struct

from webinfer.backends.wasm.builder import COMPUTE, Builder, Lower, compute_itemsize
from webinfer.backends.wasm.lowerings.cast import copy
from webinfer.backends.wasm.lowerings.nest import nest
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Op
from webinfer.kernel_constants import VECTOR_LANES
from webinfer.ops import movement as ops
from webinfer.ops.strides import StridedCopy, row_major
from webinfer.plan.blocks import Arguments, Ref

# Elements of a row that is not worth its start: with 2, turning an axis of 2,000 took 6 times as long (EPYC,
# 2026-11-28).
SHORT_ROW = 8
# Of a row that is worth it where neighbours lie together: 16 took 0.9 to 1.27 times as long, 4 changed one graph of 146
# (EPYC, 2026-11-28).
SHORT_ROW_BYTES = 8
# Rows and columns of a plane that is worth the blocked transpose: 2 took 1.04 to 1.23 times as long, 8 up to 1.06
# (EPYC, 2026-11-28).
MIN_PLANE = 4


def strided_copy(builder: Builder, part: StridedCopy, source: Ref, target: Ref, itemsize: int) -> None:
    """One step for one copy of the plan in ops/strided.py."""
    count = math.prod(part.shape)
    from_ref, to_ref = source + part.source_offset * itemsize, target + part.target_offset * itemsize
    if itemsize == 4 and _is_transpose(part):
        _transpose(builder, part, from_ref, to_ref)
        return
    part = part if _copies_rows(part, itemsize) else _long_rows(part)
    table = nest(builder, part.shape, part.source_strides, part.target_strides)
    if from_ref != to_ref or table != nest(builder, (count,), (1,), (1,)):
        builder.step(f"b{8 * itemsize}_copy", x=from_ref, y=to_ref, nest=table, units=count)


def _copies_rows(part: StridedCopy, itemsize: int) -> bool:
    """Whether rows of the copy lie together in both tensors and are worth their starts."""
    together = part.shape and part.source_strides[-1] == part.target_strides[-1] == 1
    return bool(together) and part.shape[-1] * itemsize >= SHORT_ROW_BYTES


def _long_rows(part: StridedCopy) -> StridedCopy:
    """The copy walked along its longest axis where its rows are short: a row costs as much as some elements."""
    axis = max(range(len(part.shape)), key=part.shape.__getitem__, default=0)
    if not part.shape or part.shape[-1] >= SHORT_ROW or part.shape[axis] < SHORT_ROW:
        return part
    order = [*(i for i in range(len(part.shape)) if i != axis), axis]
    shape, source, target = (
        tuple(numbers[i] for i in order) for numbers in (part.shape, part.source_strides, part.target_strides)
    )
    return dataclasses.replace(part, shape=shape, source_strides=source, target_strides=target)


def _turned_axis(part: StridedCopy) -> int:
    """The axis, not the last, whose elements are neighbours in the source; -1 if there is none."""
    return max((i for i, s in enumerate(part.source_strides[:-1]) if s == 1 and part.shape[i] >= MIN_PLANE), default=-1)


def _is_transpose(part: StridedCopy) -> bool:
    """Whether rows of the target are columns of the source, in planes worth a blocked kernel."""
    if len(part.shape) < 2 or part.target_strides[-1] != 1 or part.shape[-1] < MIN_PLANE:
        return False
    return part.source_strides[-1] not in (0, 1) and _turned_axis(part) >= 0


def _transpose(builder: Builder, part: StridedCopy, source: Ref, target: Ref) -> None:
    """A step that turns planes; the axes beside the two of a plane are walked."""
    axis = _turned_axis(part)
    outer = [i for i in range(len(part.shape) - 1) if i != axis]
    shape = [part.shape[i] for i in outer]
    strides = [tuple(s[i] for i in outer) for s in (part.source_strides, part.target_strides)]
    rows, columns = part.shape[axis], part.shape[-1]
    table = nest(builder, shape, *strides)
    builder.step(
        "b32_transpose",
        x=source, y=target, nest=table, rows=rows, columns=columns,
        x_step=part.source_strides[-1], y_step=part.target_strides[axis],
        units=math.prod(shape) * -(-rows // VECTOR_LANES),
    )  # fmt: skip


def fill_words(dtype: DType, value: float) -> Arguments:
    """One element as the kernels hold it: its low and its high 32 bits.

    Raises:  UnsupportedOpError if the type cannot hold the value
    """
    compute = COMPUTE.get(dtype, dtype)
    try:
        number = float(value) if compute.is_float else bool(value) if compute is DType.BOOL else int(value)
        low, high = struct.unpack("<ii", struct.pack(f"<{compute.letter}", number).ljust(8, b"\0"))
    except (OverflowError, ValueError, struct.error):
        raise UnsupportedOpError([f"the value {value} does not fit {dtype}"]) from None
    return {"low": low, "high": high}


def fill(builder: Builder, target: Ref, dtype: DType, value: float, count: int) -> None:
    """Sets elements to one value, given in stored units."""
    builder.step(f"b{8 * compute_itemsize(dtype)}_fill", fill_words(dtype, value), y=target, units=count)


def moved(node: Node, builder: Builder) -> None:
    """Any operator that ops/movement.py says as strided copies."""
    inputs, y = [node.required_input(i) for i in range(len(node.inputs))], node.output
    parts = ops.strided_copies(node.op, [v.type for v in inputs], y.type, node.attrs)
    assert parts is not None
    itemsize = compute_itemsize(y.type.dtype)
    for part in parts:
        strided_copy(builder, part, builder.ref(inputs[part.source]), builder.ref(y), itemsize)


def concat(node: Node, builder: Builder) -> None:
    """Copies; of rows that are appended to what lies there already, those alone."""
    cache = builder.appended.get(node.output)
    if cache is None:
        moved(node, builder)
        return
    past, new = map(node.required_input, range(2))
    strides = row_major(builder.placed_shape(node, node.output))
    first = past.type.shape[cache.axis] * strides[cache.axis]
    part = StridedCopy(1, new.type.shape, 0, row_major(new.type.shape), first, strides)
    strided_copy(builder, part, builder.ref(new), builder.ref(node.output), compute_itemsize(new.type.dtype))


def reshape(node: Node, builder: Builder) -> None:
    """A copy of the bytes, or nothing where the result lies in the same place."""
    y = node.output
    copy(builder, builder.ref(node.required_input(0)), builder.ref(y), y.type.size * compute_itemsize(y.type.dtype))


def pad(node: Node, builder: Builder) -> None:
    """A fill and a copy; mirrored edges are copied one axis after the other."""
    x, y, a = node.required_input(0), node.output, node.attrs
    if a.mode == "constant":
        if any(a.before) or any(a.after):
            fill(builder, builder.ref(y), y.type.dtype, a.value, y.type.size)
        moved(node, builder)
        return
    # The image goes to its place, then each axis in turn mirrors what the axes before it have completed.
    itemsize, strides = compute_itemsize(y.type.dtype), row_major(y.type.shape)
    corner = sum(p * s for p, s in zip(a.before, strides, strict=True))
    inner = StridedCopy(0, x.type.shape, 0, row_major(x.type.shape), corner, strides)
    strided_copy(builder, inner, builder.ref(x), builder.ref(y), itemsize)
    for axis in range(x.type.rank):
        for part in _mirrors(node, axis):
            strided_copy(builder, part, builder.ref(y), builder.ref(y), itemsize)


def _mirrors(node: Node, axis: int) -> list[StridedCopy]:
    """Copies inside y that fill both ends of one axis."""
    x, y, a = node.required_input(0).type, node.output.type, node.attrs
    strides, step = row_major(y.shape), row_major(y.shape)[axis]
    # Axes before this one are whole, axes behind it only where the image lies.
    shape = [y.shape[i] if i < axis else x.shape[i] for i in range(x.rank)]
    corner = sum(a.before[i] * strides[i] for i in range(axis + 1, x.rank))
    first, last = a.before[axis], a.before[axis] + x.shape[axis] - 1
    skip = 1 if a.mode == "reflect" else 0
    source = tuple((0 if a.mode == "edge" else -s) if i == axis else s for i, s in enumerate(strides))
    parts = []
    for count, target, start in (
        (a.before[axis], 0, first if a.mode == "edge" else first + skip + a.before[axis] - 1),
        (a.after[axis], last + 1, last if a.mode == "edge" else last - skip),
    ):
        if count:
            shape[axis] = count
            parts.append(StridedCopy(0, tuple(shape), corner + start * step, source, corner + target * step, strides))
    return parts


LOWERINGS: dict[Op, Lower] = {
    ops.CONCAT: concat,
    ops.DEPTH_TO_SPACE: moved,
    ops.EXPAND: moved,
    ops.PAD: pad,
    ops.RESHAPE: reshape,
    ops.REVERSE: moved,
    ops.SLICE: moved,
    ops.SPACE_TO_DEPTH: moved,
    ops.TILE: moved,
    ops.TRANSPOSE: moved,
}
