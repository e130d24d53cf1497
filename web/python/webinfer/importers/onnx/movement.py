"""ONNX operators that move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.graph.ir import Value
from webinfer.importers.core.spans import Span, span_of
from webinfer.importers.onnx.layouts import Arranged
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import movement as mv

PAD_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect"}


def _moved(x: Arranged) -> bool:
    """Whether the order of elements differs from the one that users know; axes of size 1 do not count."""
    order = [p for p in x.perm if x.value.type.shape[p] != 1]
    return order != sorted(order)


def reshaped(op: Operation, key: int, shape: Sequence[int]) -> Value:
    """An input with another shape; if its elements lie in order already, nothing moves."""
    x = op.arranged(key)
    return op.reshape(op.value(key) if _moved(x) else x.value, shape)


def _reshape(op: Operation) -> Value:
    wanted, shape = list(op.integers(1)), op.arranged(0).shape
    if not op.whole("allowzero", 0):
        if any(d == 0 and i >= len(shape) for i, d in enumerate(wanted)):
            op.fail(f"shape {wanted} keeps axes that {shape} lacks")
        wanted = [shape[i] if d == 0 else d for i, d in enumerate(wanted)]
    if wanted.count(-1) > 1 or any(d < -1 for d in wanted):
        op.fail(f"{wanted} is not a shape")
    if -1 in wanted:
        rest, size = -math.prod(wanted), math.prod(shape)
        if rest < 1 or size % rest:
            op.fail(f"{shape} does not fit {wanted}")
        wanted[wanted.index(-1)] = size // rest
    return reshaped(op, 0, wanted)


def _flatten(op: Operation) -> Value:
    shape = op.arranged(0).shape
    axis = op.whole("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    if not 0 <= axis <= len(shape):
        op.fail(f"axis {axis} does not cut {shape}")
    return reshaped(op, 0, (math.prod(shape[:axis]), math.prod(shape[axis:])))


def _squeeze(op: Operation) -> Value:
    x = op.arranged(0)
    rank = len(x.perm)
    wanted = op.numbers_or(1, "axes")
    axes = [op.axis(a, rank) for a in wanted or ()] or [i for i, d in enumerate(x.shape) if d == 1]
    if any(x.shape[axis] != 1 for axis in axes):
        op.fail(f"axes {axes} of {x.shape} are not all of size 1")
    gone = {x.perm[axis] for axis in axes}
    value = op.reshape(x.value, [d for p, d in enumerate(x.value.type.shape) if p not in gone])
    kept = [x.perm[i] for i in range(rank) if i not in axes]
    return op.view(value, [sum(q < p for q in kept) for p in kept])


def _unsqueeze(op: Operation) -> Value:
    """New axes come first in what is computed, wherever users know them."""
    x = op.arranged(0)
    wanted = op.numbers_or(1, "axes")
    if wanted is None:
        op.fail("axes are missing")
    rank = len(x.perm) + len(wanted)
    axes = [op.axis(a, rank) for a in wanted]
    if len(set(axes)) != len(axes):
        op.fail(f"axes {wanted} name one axis twice")
    if x.perm == tuple(range(len(x.perm))):
        rest = iter(x.value.type.shape)
        return op.reshape(x.value, [1 if i in axes else next(rest) for i in range(rank)])
    fresh, old = iter(range(len(axes))), iter(p + len(axes) for p in x.perm)
    value = op.reshape(x.value, (1,) * len(axes) + x.value.type.shape)
    return op.view(value, [next(fresh) if i in axes else next(old) for i in range(rank)])


def _expand_dims(op: Operation) -> Value:
    x = op.value(0)
    axis = op.axis(op.integer(1), x.type.rank + 1)
    return op.reshape(x, (*x.type.shape[:axis], 1, *x.type.shape[axis:]))


def _transpose(op: Operation) -> Value:
    x = op.arranged(0)
    rank = len(x.perm)
    perm = op.wholes("perm", range(rank)[::-1])
    if sorted(perm or ()) != list(range(rank)):
        op.fail(f"{perm} is not an order of the {rank} axes of {x.shape}")
    return op.view(x.value, [x.perm[p] for p in perm or ()])


def _concat(op: Operation) -> Value:
    parts = [op.arranged(i) for i in range(len(op.inputs))]
    if not parts:
        op.fail("nothing to join")
    rank = len(parts[0].perm)
    if any(len(part.perm) != rank for part in parts):
        op.fail("the parts differ in rank")
    axis = op.axis(op.whole("axis", 1 if op.opset < 4 else 0), rank)
    if len(parts) == 1:
        return op.view(parts[0].value, parts[0].perm)
    if _continues_an_input(op, parts):
        return op.concat([op.value(i) for i in range(len(parts))], axis)
    values, perm = op.aligned(parts)
    return op.view(op.concat(values, perm[axis]), perm)


def _continues_an_input(op: Operation, parts: Sequence[Arranged]) -> bool:
    """Whether an input with something behind it is given out: a cache, which is long, and lies as the file says.

    Of both, layers with a window may take the last rows only.
    """
    past, written = parts[0].value, op.writer.graph
    if op.outputs[0] not in op.context.given_out:
        return False
    if past in written.inputs:
        return True
    cut = next((node for node in reversed(written.nodes) if past in node.outputs), None)
    return cut is not None and cut.op is mv.SLICE and cut.inputs[0] in written.inputs


def _slice(op: Operation) -> Value:
    x = op.arranged(0)
    rank = len(x.perm)
    starts, ends = op.numbers_or(1, "starts"), op.numbers_or(2, "ends")
    if starts is None or ends is None:
        op.fail("starts or ends are missing")
    axes = op.numbers_or(3, "axes", range(len(starts))) or ()
    steps = op.integers(4) if op.optional(4) is not None else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        op.fail(f"starts {starts}, ends {ends}, axes {axes}, steps {steps} do not belong together")
    ranges = [Span(0, size) for size in x.shape]
    for axis, start, end, step in zip((op.axis(a, rank) for a in axes), starts, ends, steps, strict=True):
        ranges[axis] = span_of(start, end, step, x.shape[axis])
    return op.view(_cut(op, x, ranges), x.perm)


def _cut(op: Operation, x: Arranged, ranges: Sequence[Span]) -> Value:
    """The positions of each axis, as users know axes."""
    if all(r.count == d and r.step == 1 for r, d in zip(ranges, x.shape, strict=True)):
        return x.value
    if any(r.count == 0 for r in ranges):  # nothing is moved, be the other axes read backwards
        ranges = [Span(0, r.count) for r in ranges]
    return op.emit(
        mv.SLICE,
        [x.value],
        mv.SliceAttrs(
            x.reordered([r.start for r in ranges]),
            x.reordered([r.count for r in ranges]),
            x.reordered([r.step for r in ranges]),
        ),
    )


def _split(op: Operation) -> list[Value]:
    x = op.arranged(0)
    axis = op.axis(op.whole("axis", 0), len(x.perm))
    size, count = x.shape[axis], len(op.info.outputs)
    parts = op.numbers_or(1, "split")
    if parts is None:
        count = op.whole("num_outputs", count)
        each = -(-size // count) if count > 0 else 0
        parts = tuple(max(0, min(each, size - i * each)) for i in range(count))
        if count < 1 or (op.opset < 18 and size % count):
            op.fail(f"{size} elements do not split into {count} parts")
    if sum(parts) != size or any(part < 0 for part in parts):
        op.fail(f"parts {parts} do not add up to {size}")
    results, start = [], 0
    for part in parts:
        ranges = [Span(0, d) for d in x.shape]
        ranges[axis] = Span(start, part)
        results.append(op.view(_cut(op, x, ranges), x.perm))
        start += part
    return results


def _expand(op: Operation) -> Value:
    wanted = op.integers(1)
    x = op.arranged(0)
    missing = len(wanted) - len(x.perm)
    if missing > 0 and x.perm != tuple(range(len(x.perm))):
        x = Arranged(op.value(0), tuple(range(len(x.perm))))
    shape = (1,) * max(missing, 0) + x.shape
    full = (1,) * max(-missing, 0) + tuple(wanted)
    if any(d != w and 1 not in (d, w) for d, w in zip(shape, full, strict=True)):
        op.fail(f"{x.shape} does not broadcast to {wanted}")
    target = [w if d == 1 else d for d, w in zip(shape, full, strict=True)]
    if missing > 0:
        return op.expand(x.value, target)
    return op.view(op.expand(x.value, x.reordered(target)), x.perm)


def _tile(op: Operation) -> Value:
    x, repeats = op.arranged(0), op.integers(1)
    if len(repeats) != len(x.perm):
        op.fail(f"repeats {repeats} do not fit {x.shape}")
    return op.view(op.emit(mv.TILE, [x.value], mv.TileAttrs(x.reordered(repeats))), x.perm)


def _pad(op: Operation) -> Value:
    x = op.arranged(0)
    rank = len(x.perm)
    pads = op.numbers_or(1, "pads")
    axes = [op.axis(a, rank) for a in op.integers(3)] if op.optional(3) is not None else list(range(rank))
    if pads is None or len(pads) != 2 * len(axes):
        op.fail(f"pads {pads} do not fit axes {axes} of {x.shape}")
    mode = op.chosen("mode", (*PAD_MODES, "wrap"), "constant")
    fill = op.scalar(2) if op.optional(2) is not None else op.real("value", 0.0)
    before, after = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[i + len(axes)]
    cut = [(max(-p, 0), max(-q, 0)) for p, q in zip(before, after, strict=True)]
    ranges = [Span(first, max(d - first - last, 0)) for (first, last), d in zip(cut, x.shape, strict=True)]
    value = _cut(op, x, ranges)  # negative pads cut off
    grown = [[max(n, 0) for n in side] for side in (before, after)]
    if mode == "wrap":
        return op.view(_wrapped(op, value, x.reordered(grown[0]), x.reordered(grown[1])), x.perm)
    if not any(grown[0]) and not any(grown[1]):
        return op.view(value, x.perm)
    attrs = mv.PadAttrs(x.reordered(grown[0]), x.reordered(grown[1]), fill, PAD_MODES[mode])
    return op.view(op.emit(mv.PAD, [value], attrs), x.perm)


def _wrapped(op: Operation, x: Value, before: Sequence[int], after: Sequence[int]) -> Value:
    """x with its own other end on each side."""
    for axis, (p, q) in enumerate(zip(before, after, strict=True)):
        size = x.type.shape[axis]
        if max(p, q) > size:
            op.refuse("wrapping around more than once")
        parts = [op.cut(x, axis, size - p, p)] if p else []
        parts += [x, *([op.cut(x, axis, 0, q)] if q else [])]
        x = op.concat(parts, axis) if len(parts) > 1 else x
    return x


def _depth_to_space(op: Operation) -> Value:
    """Channels become pixels; in mode CRD channels count first, in DCR the block does."""
    block = op.whole("blocksize", 0)
    x = op.channels_last()
    n, h, w, c = x.type.shape
    if block < 1 or c % (block * block):
        op.fail(f"{c} channels do not split into blocks of {block}x{block}")
    if op.chosen("mode", ("DCR", "CRD"), "DCR") == "CRD" and c > block * block:
        parts = op.reshape(x, (n, h, w, c // block**2, block, block))
        x = op.reshape(op.transpose(parts, (0, 1, 2, 4, 5, 3)), (n, h, w, c))
    return op.channels_first(op.emit(mv.DEPTH_TO_SPACE, [x], mv.BlockAttrs(block)))


def _space_to_depth(op: Operation) -> Value:
    """Pixels become channels; in mode CRD channels count first, in DCR the block does."""
    x, block = op.channels_last(), op.whole("blocksize", 0)
    if op.chosen("mode", ("DCR", "CRD"), "DCR") == "CRD" and x.type.shape[3] > 1:
        y = op.emit(mv.SPACE_TO_DEPTH, [x], mv.BlockAttrs(block))
        n, h, w, c = y.type.shape
        parts = op.reshape(y, (n, h, w, block * block, c // block**2))
        return op.channels_first(op.reshape(op.transpose(parts, (0, 1, 2, 4, 3)), (n, h, w, c)))
    return op.channels_first(op.emit(mv.SPACE_TO_DEPTH, [x], mv.BlockAttrs(op.whole("blocksize", 0))))


def _reverse_sequence(op: Operation) -> Value:
    """The first elements of each row backwards; how many is a constant for each row."""
    x, lengths = op.value(0), op.integers(1)
    batch, time = op.whole("batch_axis", 1), op.whole("time_axis", 0)
    if {batch, time} != {0, 1} or x.type.rank < 2 or len(lengths) != x.type.shape[batch]:
        op.fail(f"batch axis {batch}, time axis {time} and {len(lengths)} lengths do not fit {x.type.shape}")
    rows = []
    for i, length in enumerate(lengths):
        row, size = op.cut(x, batch, i, 1), x.type.shape[time]
        if not 0 <= length <= size:
            op.fail(f"length {length} does not fit {size} elements")
        if length > 1:
            front = op.emit(mv.REVERSE, [op.cut(row, time, 0, length)], mv.ReverseAttrs((time,)))
            row = front if length == size else op.concat([front, op.cut(row, time, length, size - length)], time)
        rows.append(row)
    return op.concat(rows, batch) if len(rows) > 1 else rows[0] if rows else x


def _center_crop_pad(op: Operation) -> Value:
    x = op.value(0)
    shape = op.integers(1)
    axes = [op.axis(a, x.type.rank) for a in op.wholes("axes", range(x.type.rank)) or ()]
    if len(axes) != len(shape):
        op.fail(f"shape {shape} does not fit axes {axes}")
    before, after = [0] * x.type.rank, [0] * x.type.rank
    for axis, size in zip(axes, shape, strict=True):
        have = x.type.shape[axis]
        if size < have:
            x = op.cut(x, axis, (have - size) // 2, size)
        else:
            before[axis], after[axis] = (size - have) // 2, size - have - (size - have) // 2
    if any(before) or any(after):
        x = op.emit(mv.PAD, [x], mv.PadAttrs(tuple(before), tuple(after)))
    return x


CONVERTERS: dict[str, Convert] = {
    "CenterCropPad": _center_crop_pad,
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Flatten": _flatten,
    "Pad": _pad,
    "com.microsoft.ExpandDims": _expand_dims,
    "com.microsoft.Pad": _pad,
    "Reshape": _reshape,
    "ReverseSequence": _reverse_sequence,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
