"""ONNX's pooling, over windows of images and rows, and over whole images."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core import volumes
from webinfer.importers.core.limits import check_bytes, within
from webinfer.importers.onnx.conv import flat, four, pair, unflat, window
from webinfer.importers.onnx.layouts import arranged
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, pool
from webinfer.ops import movement as mv
from webinfer.ops import reduce as red

_MOST_POSITIONS = 2**22


def _windows(op: Operation, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Kernel, strides, dilations, pads before, pads after: those reach as far as the last window does."""
    kernel = op.wholes("kernel_shape")
    if kernel is None:
        op.fail("kernel_shape is missing")
    kernel, strides, dilations, pads = window(op, sizes, kernel)
    up = bool(op.whole("ceil_mode", 0))
    ends = []
    for size, k, t, d, (before, after) in zip(sizes, kernel, strides, dilations, pads, strict=True):
        reach, whole = (k - 1) * d + 1, size + before + after
        left = whole - reach  # below 0 by less than a stride: one window that reaches beyond the end, as ONNX Runtime
        count = (-(-left // t) if up or left < 0 else left // t) + 1
        if up and (count - 1) * t >= size + before:  # a window may not start in the padding at the end
            count -= 1
        ends.append((count - 1) * t + reach - size - before)
    return kernel, strides, dilations, tuple(p for p, _ in pads), tuple(ends)


def _check_image(op: Operation) -> None:
    shape = op.value(0).type.shape
    if 0 in shape[1:] and shape[0]:
        op.fail(f"{shape} has an empty axis; only a batch may be empty")


def _shortened(op: Operation, x: Value, ends: Sequence[int]) -> tuple[Value, tuple[int, ...]]:
    """x without what no window reads, and the pads at the end from 0 up."""
    for i, end in enumerate(ends):
        if end < 0:
            x = op.cut(x, i + 1, 0, x.type.shape[i + 1] + end)
    return x, tuple(max(end, 0) for end in ends)


def _attrs(
    kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: Sequence[tuple[int, int]]
) -> pool.Pool2dAttrs:
    return pool.Pool2dAttrs(pair(kernel), pair(strides), four(pads), pair(dilations))


def _pooled(op: Operation, kind: Op, x: Value, *geometry: Any) -> Value:
    """The pooling of an image of one to three axes."""
    kernel, strides, dilations, pads = ([*numbers] for numbers in geometry)
    _check_image(op)
    if len(kernel) < 3:
        return unflat(op, op.emit(kind, [flat(op, x)], _attrs(kernel, strides, dilations, pads)), x.type.rank)
    if len(kernel) > 3:
        op.refuse(f"windows over {len(kernel)} axes")
    return op.channels_first(volumes.pooled(op, kind, x, kernel, strides, pads, dilations))


def _nhwc_max_pool(op: Operation) -> Value:
    """Images of bytes whose channels come last, as they do in what is computed."""
    x = op.value(0)
    kernel, strides, dilations, before, ends = _windows(op, x.type.shape[1:-1])
    x, after = _shortened(op, x, ends)
    pads = list(zip(before, after, strict=True))
    return arranged(_pooled(op, pool.MAX_POOL2D, x, kernel, strides, dilations, pads)).value


def _max_pool(op: Operation) -> Value | list[Value]:
    x = op.channels_last()
    sizes = x.type.shape[1:-1]
    kernel, strides, dilations, before, ends = _windows(op, sizes)
    x, after = _shortened(op, x, ends)
    pads = list(zip(before, after, strict=True))
    if len([o for o in op.info.outputs if o]) > 1:
        return _with_positions(op, x, sizes, _attrs(kernel, strides, dilations, pads))
    if x.type.dtype not in (DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.UINT8):
        op.refuse(f"pooling of {x.type.dtype}")
    return _pooled(op, pool.MAX_POOL2D, x, kernel, strides, dilations, pads)


def _with_positions(op: Operation, x: Value, sizes: tuple[int, ...], attrs: pool.Pool2dAttrs) -> list[Value]:
    """The largest elements, and where each lies in the whole tensor as the file has it, counted through."""
    if len(sizes) != 2 or attrs.dilation != (1, 1) or x.type.dtype is not DType.FLOAT32:
        op.refuse("positions of the largest elements in rows, blocks, dilated windows or integers")
    y, taps = op.emit_all(pool.MAX_POOL_WITH_ARGMAX2D, [x], attrs)
    n, high, wide, c = y.type.shape
    within(f"{op.what}: positions", high * wide + n * c, _MOST_POSITIONS, "use smaller images")
    steps = (1, sizes[0]) if op.whole("storage_order", 0) else (sizes[1], 1)
    tap, width = op.cast(taps, DType.INT32), op.constant([attrs.window[1]], DType.INT32)
    parts = [op.binary(ew.FLOOR_DIV, tap, width), op.binary(ew.FLOOR_MOD, tap, width)]
    first = [
        sum((at * t - pad) * step for at, t, pad, step in zip(place, attrs.stride, attrs.pads[::2], steps, strict=True))
        for place in itertools.product(range(high), range(wide))
    ]
    found = op.constant(first, DType.INT32, (1, high, wide, 1))
    for part, step in zip(parts, steps, strict=True):
        found = op.binary(ew.ADD, found, op.binary(ew.MUL, part, op.scalar_of(step, DType.INT32)))
    images = op.constant([i * math.prod(sizes) for i in range(n * c)], DType.INT32, (n, 1, 1, c))
    whole = op.cast(op.binary(ew.ADD, found, images), DType.INT64)
    return [op.channels_first(y), op.channels_first(whole)]


def _max_unpool(op: Operation) -> Value:
    """Elements put back where a pooling found them, zeros elsewhere; a larger result has more zeros at its ends."""
    x, places = op.value(0), op.value(1)
    if x.type.shape != places.type.shape or x.type.rank < 3:
        op.fail(f"positions {places.type} do not fit {x.type}")
    count = x.type.rank - 2
    kernel, zeros = op.wholes("kernel_shape") or (), (0,) * (2 * count)
    strides, pads = op.wholes("strides", (1,) * count) or (), op.wholes("pads", zeros) or ()
    if not len(kernel) == len(strides) == count or len(pads) != 2 * count:
        op.fail(f"kernel {kernel}, strides {strides}, pads {pads} do not fit {count} axes")
    sides = zip(x.type.shape[2:], kernel, strides, pads[:count], pads[count:], strict=True)
    shape = (*x.type.shape[:2], *((d - 1) * t + k - before - after for d, k, t, before, after in sides))
    check_bytes(shape, x.type.dtype, op.what)
    wanted = op.integers(2) if op.optional(2) is not None else shape
    if len(wanted) != len(shape) or any(d < 1 for d in shape) or any(a < b for a, b in zip(wanted, shape, strict=True)):
        op.refuse(f"a result of {wanted} for {shape}")
    flat = [op.reshape(v, (x.type.size,)) for v in (places, x)]
    blank = op.expand(op.scalar_of(0, x.type.dtype), (math.prod(shape),))
    y = op.reshape(op.emit(gather.SCATTER_ELEMENTS, [blank, *flat], gather.ElementsAttrs(0)), shape)
    after = tuple(a - b for a, b in zip(wanted, shape, strict=True))
    return op.emit(mv.PAD, [y], mv.PadAttrs((0,) * len(shape), after)) if any(after) else y


def _average_pool(op: Operation) -> Value:
    """Means of windows. What a window reaches beyond the padding does not count.

    Before opset 19, ONNX Runtime counts it where sizes are rounded down and the one window is larger than the image.
    """
    return _means(op, beyond=op.opset < 19 and not op.whole("ceil_mode", 0))


def average_of_whole_windows(op: Operation) -> Value:
    """Means of windows as ONNX Runtime's own operators compute them: if padding counts, all of a window does."""
    return _means(op, beyond=True)


def _means(op: Operation, beyond: bool) -> Value:
    """Means of windows. Padding that counts is added before, and with `beyond` what lies behind it."""
    x = op.channels_last()
    kernel, strides, dilations, before, ends = _windows(op, x.type.shape[1:-1])
    given = window(op, x.type.shape[1:-1], kernel)[3]
    x, after = _shortened(op, x, ends)
    pads = list(zip(before, after, strict=True))
    if op.whole("count_include_pad", 0):
        counted = after if beyond else tuple(min(q, a) for (_, q), a in zip(given, after, strict=True))
        if any(before) or any(counted):
            x = op.emit(mv.PAD, [x], mv.PadAttrs((0, *before, 0), (0, *counted, 0)))
        pads = [(0, a - c) for a, c in zip(after, counted, strict=True)]
    return _pooled(op, pool.AVERAGE_POOL2D, x, kernel, strides, dilations, pads)


def _lp_pool(op: Operation) -> Value:
    """The root of the sum of powers; a mean times the number of taps where no node sums such powers."""
    p, x = op.whole("p", 2), op.channels_last()
    if p < 1:
        op.fail(f"p is {p}")
    kernel, strides, dilations, before, ends = _windows(op, x.type.shape[1:-1])
    x, after = _shortened(op, x, ends)
    if p == 2 and len(kernel) < 3:
        return _pooled(op, pool.L2_POOL2D, x, kernel, strides, dilations, list(zip(before, after, strict=True)))
    perm: Sequence[int] = ()

    def rooted(x: Value) -> Value:
        nonlocal perm
        power = op.binary(ew.POW, op.unary(ew.ABS, x), op.scalar_of(p, x.type.dtype))
        wide = op.emit(mv.PAD, [power], mv.PadAttrs((0, *before, 0), (0, *after, 0)))
        means = arranged(_pooled(op, pool.AVERAGE_POOL2D, wide, kernel, strides, dilations, [(0, 0)] * len(kernel)))
        perm = means.perm
        total = op.unary(ew.LINEAR, means.value, float(math.prod(kernel)))
        return op.binary(ew.POW, total, op.scalar_of(1 / p, x.type.dtype))

    y = op.in_float32(x, rooted)
    return op.view(y, perm)


def _whole_image(kind: Op) -> Convert:
    def convert(op: Operation) -> Value:
        x = op.arranged(0)
        if len(x.perm) < 3:
            op.fail(f"{x.shape} is not an image")
        _check_image(op)
        axes = tuple(sorted(x.perm[2:]))
        return op.view(op.emit(kind, [x.value], red.ReduceAttrs(axes, keep_dims=True)), x.perm)

    return convert


def _global_lp(op: Operation) -> Value:
    """The root of the sum of powers of a whole image."""
    x, p = op.arranged(0), op.whole("p", 2)
    if len(x.perm) < 3 or p < 1:
        op.fail(f"{x.shape} is not an image, or {p} is not a power")
    _check_image(op)
    attrs = red.ReduceAttrs(tuple(sorted(x.perm[2:])), keep_dims=True)
    if p < 3:
        return op.view(op.emit(red.REDUCE_L1 if p == 1 else red.REDUCE_L2, [x.value], attrs), x.perm)

    def rooted(v: Value) -> Value:
        power = op.binary(ew.POW, op.unary(ew.ABS, v), op.scalar_of(p, v.type.dtype))
        return op.binary(ew.POW, op.emit(red.REDUCE_SUM, [power], attrs), op.scalar_of(1 / p, v.type.dtype))

    return op.view(op.in_float32(x.value, rooted), x.perm)


def _lrn(op: Operation) -> Value:
    """x / (bias + alpha/size * sum of squares of neighbouring channels)^beta"""
    size, alpha = op.whole("size", 0), op.real("alpha", 1e-4)
    x = op.arranged(0)
    axis, value = x.perm[1], x.value
    if size < 1:
        op.fail(f"size is {size}")
    before = (size - 1) // 2
    pads = [0] * value.type.rank
    first, last = list(pads), list(pads)
    first[axis], last[axis] = before, size - 1 - before
    if size > 64:
        op.refuse(f"{size} neighbours")

    def divided(v: Value) -> Value:
        square = op.emit(mv.PAD, [op.unary(ew.SQUARE, v)], mv.PadAttrs(tuple(first), tuple(last)))
        total = op.cut(square, axis, 0, v.type.shape[axis])
        for i in range(1, size):
            total = op.binary(ew.ADD, total, op.cut(square, axis, i, v.type.shape[axis]))
        base = op.unary(ew.LINEAR, total, alpha / size, op.real("bias", 1.0))
        return op.binary(ew.DIV, v, op.binary(ew.POW, base, op.scalar_of(op.real("beta", 0.75), base.type.dtype)))

    return op.view(op.in_float32(value, divided), x.perm)


CONVERTERS: dict[str, Convert] = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _whole_image(red.REDUCE_MEAN),
    "GlobalLpPool": _global_lp,
    "GlobalMaxPool": _whole_image(red.REDUCE_MAX),
    "LRN": _lrn,
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "com.microsoft.NhwcMaxPool": _nhwc_max_pool,
    "MaxUnpool": _max_unpool,
}
