"""TensorFlow's windows that no operator of graphs has: said as one slice for each of their taps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.geometry import image_pads
from webinfer.importers.core.limits import within
from webinfer.importers.tfjs.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops import pool
from webinfer.ops.conv import window_size
from webinfer.ops.registry import NoAttrs

Pads = tuple[int, int, int, int]
_MOST_TAPS = 1024
_SMALLEST = -9007199254740991.0  # what TensorFlow.js begins with


def without_windows(
    op: Operation, x: Value, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int] = (),
    channels: int = 0,
) -> Value | None:  # fmt: skip
    """The empty result of VALID windows that do not fit into x by up to a stride; None in all other cases.

    Source:  tfjs-core 4.22.0, ops/conv_util, computeOutputShape2D
    """
    if op.word("padding", "VALID") != "VALID":
        return None
    reaches = [(k - 1) * d + 1 for k, d in zip(window, dilation or (1,) * len(window), strict=True)]
    beyond = [size - reach for size, reach in zip(x.type.shape[1:-1], reaches, strict=True)]
    if all(more >= 0 for more in beyond) or any(more < -step for more, step in zip(beyond, stride, strict=True)):
        return None
    counts = [more // step + 1 for more, step in zip(beyond, stride, strict=True)]
    return op.empty((x.type.shape[0], *counts, channels or x.type.shape[-1]), x.type.dtype)


def pads_of(
    op: Operation, x: Value, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int] = (1, 1)
) -> Pads:
    """Padding above, below, left and right of x."""
    if op.chosen("padding", ("SAME", "VALID", "EXPLICIT"), "VALID") == "SAME":
        return image_pads(x.type.shape, window, stride, dilation)
    return _explicit(op) if op.word("padding") == "EXPLICIT" else (0, 0, 0, 0)


def _explicit(op: Operation) -> Pads:
    listed = op.vector("explicit_paddings")
    if len(listed) != 8 or any(listed[:2]) or any(listed[6:]) or min(listed) < 0:
        op.fail(f"explicit_paddings {listed} are not those of an image")
    return listed[2], listed[3], listed[4], listed[5]


def volume(op: Operation, x: Value, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> tuple[
    Value, list[tuple[int, int]]
]:  # fmt: skip
    """x and what is padded before and after each axis.

    Where strides are longer than windows TensorFlow.js begins behind the start of a volume: that part is cut away.

    Source:  tfjs-core 4.22.0, ops/conv_util, getPadAndOutInfo3D
    """
    if op.chosen("padding", ("SAME", "VALID"), "VALID") == "VALID":
        return x, [(0, 0)] * 3
    pads = []
    for axis, (k, step, d) in enumerate(zip(window, stride, dilation, strict=True), 1):
        size = x.type.shape[axis]
        total = (-(-size // step) - 1) * step + (k - 1) * d + 1 - size
        if total < 0:
            x, total = op.cut(x, axis, -(total // 2), size + total // 2), 0
        pads.append((total // 2, total - total // 2))
    return x, pads


def _taps(
    op: Operation, x: Value, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int], pads: Pads
) -> Iterator[tuple[int, int, Value]]:
    """Row and column of each tap in its window, and what all windows have there; padding is the smallest number.

    Shapes:  x [N, H, W, C] -> [N, OH, OW, C]
    """
    within(f"{op.what}: taps of a window", math.prod(window), _MOST_TAPS, "use smaller ones")
    sizes = zip(x.type.shape[1:3], (pads[:2], pads[2:]), window, dilation, stride, strict=True)
    high, wide = (window_size(op.name, size, *edges, k, d, step) for size, edges, k, d, step in sizes)
    if any(pads):
        lowest = -math.inf if x.type.dtype is DType.FLOAT32 else x.type.dtype.range[0]
        x = op.emit(mv.PAD, [x], mv.PadAttrs((0, pads[0], pads[2], 0), (0, pads[1], pads[3], 0), lowest))
    n, _, _, channels = x.type.shape
    for row in range(window[0]):
        for column in range(window[1]):
            starts = (0, row * dilation[0], column * dilation[1], 0)
            yield row, column, op.sliced(x, starts, (n, high, wide, channels), (1, *stride, 1))


def _dilation(op: Operation) -> Value:
    """The largest sum of a pixel and its tap's weight, channel by channel. Weights [KH, KW, C]

    Source:  tfjs-backend-cpu 4.22.0, kernels/Dilation2D
    """
    x, w = op.alike(op.values()[:2])
    if x.type.rank != 4 or w.type.rank != 3 or w.type.shape[2] != x.type.shape[3]:
        op.fail(f"weights {w.type.shape} do not fit x {x.type.shape}")
    window, stride = w.type.shape[:2], op.window("strides")
    dilation = op.window("dilations" if op.vector("dilations") else "rates")
    if (nothing := without_windows(op, x, window, stride, dilation)) is not None:
        return nothing
    pads, y = pads_of(op, x, window, stride, dilation), None
    for row, column, part in _taps(op, x, window, stride, dilation, pads):
        weights = op.reshape(op.sliced(w, (row, column, 0), (1, 1, w.type.shape[2])), (w.type.shape[2],))
        part = op.binary(ew.ADD, part, weights)
        y = part if y is None else op.binary(ew.MAXIMUM, y, part)
    assert y is not None
    return op.binary(ew.MAXIMUM, y, op.scalar_of(_SMALLEST, DType.FLOAT32)) if y.type.dtype is DType.FLOAT32 else y


def _with_positions(op: Operation) -> list[Value]:
    """The largest elements, and where they are: numbers of elements of x, or of its picture.

    Source:  tfjs-backend-cpu 4.22.0, kernels/MaxPoolWithArgmax
    """
    x, window, stride = op.cast(op.value(0), DType.FLOAT32), op.window("ksize"), op.window("strides")
    if x.type.rank != 4:
        op.fail(f"x has shape {x.type.shape}, needs rank 4")
    if (nothing := without_windows(op, x, window, stride)) is not None:
        return [nothing, op.empty(nothing.type.shape, DType.INT32)]
    pads = pads_of(op, x, window, stride)
    y = op.emit(pool.MAX_POOL2D, [x], pool.Pool2dAttrs(window, stride, pads))
    _, height, width, channels = x.type.shape
    images, high, wide, _ = y.type.shape
    within(f"{op.what}: positions", high * wide * channels, 2**24, "use smaller pictures")
    best: Value = op.scalar_of(0, DType.INT32)
    for row, column, part in reversed(list(_taps(op, x, window, stride, (1, 1), pads))):
        place = op.scalar_of((row * width + column) * channels, DType.INT32)
        best = op.emit(ew.WHERE, [op.binary(ew.EQUAL, part, y), place, best], NoAttrs())
    corners = [
        ((i * stride[0] - pads[0]) * width + j * stride[1] - pads[2]) * channels + c
        for i in range(high) for j in range(wide) for c in range(channels)
    ]  # fmt: skip
    best = op.binary(ew.ADD, best, op.constant(corners, DType.INT32, (1, high, wide, channels)))
    if op.flag("include_batch_in_index") and images > 1:
        firsts = op.constant([i * height * width * channels for i in range(images)], DType.INT32, (images, 1, 1, 1))
        best = op.binary(ew.ADD, best, firsts)
    return [y, best]


CONVERTERS: dict[str, Convert] = {"Dilation2D": _dilation, "MaxPoolWithArgmax": _with_positions}
