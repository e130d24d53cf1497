"""ONNX's convolutions: images and filters with channels first, of one or two axes."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.graph.ir import Value
from webinfer.importers.core import volumes
from webinfer.importers.core.geometry import check_window, same_pads
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import conv

Window = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], list[tuple[int, int]]]


def window(op: Operation, sizes: Sequence[int], kernel: Sequence[int]) -> Window:
    """Kernel, strides, dilations and pads (before and after) for each axis of the image."""
    count = len(sizes)
    strides, dilations = (op.wholes(name, (1,) * count) or () for name in ("strides", "dilations"))
    if not len(kernel) == len(strides) == len(dilations) == count:
        op.fail(f"kernel {kernel}, strides {strides}, dilations {dilations} do not fit {count} axes")
    for name, numbers in (("kernel", kernel), ("stride", strides), ("dilation", dilations)):
        check_window(op, {f"{name} {i}": n for i, n in enumerate(numbers)})
    return tuple(kernel), tuple(strides), tuple(dilations), pads_of(op, sizes, kernel, strides, dilations)


def pads_of(
    op: Operation, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """Pads before and after each axis of the image."""
    mode, count = op.word("auto_pad", "NOTSET"), len(sizes)
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        same = [same_pads(s, k, t, d) for s, k, t, d in zip(sizes, kernel, strides, dilations, strict=True)]
        return same if mode == "SAME_UPPER" else [(after, before) for before, after in same]
    if mode not in ("NOTSET", "VALID", ""):
        op.fail(f"auto_pad {mode!r} is not known")
    pads = op.wholes("pads", (0,) * (2 * count)) or ()
    if mode == "VALID":
        return [(0, 0)] * count
    if len(pads) != 2 * count or min((*pads, 0)) < 0:
        op.fail(f"pads {pads} do not fit {count} axes")
    return list(zip(pads[:count], pads[count:], strict=True))


def flat(op: Operation, x: Value) -> Value:
    """A row [N, W, C] as an image [N, 1, W, C]; images as they are."""
    if x.type.rank == 4:
        return x
    if x.type.rank != 3:
        op.refuse(f"windows over {x.type.rank - 2} axes")
    n, w, c = x.type.shape
    return op.reshape(x, (n, 1, w, c))


def unflat(op: Operation, y: Value, rank: int) -> Value:
    """The result with as many axes as the input had, channels first for users."""
    if rank == 3:
        n, _, w, c = y.type.shape
        y = op.reshape(y, (n, w, c))
    return op.channels_first(y)


def pair(numbers: Sequence[int]) -> tuple[int, int]:
    """The numbers for rows and columns; a row has one row."""
    return (1, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])


def four(pads: Sequence[tuple[int, int]]) -> tuple[int, int, int, int]:
    """Pads above, below, left and right."""
    return (0, 0, *pads[0]) if len(pads) == 1 else (*pads[0], *pads[1])


def _filter(op: Operation, w: Value, order: tuple[int, int, int, int]) -> Value:
    if w.type.rank == 3:
        o, i, k = w.type.shape
        w = op.reshape(w, (o, i, 1, k))
    return op.transpose(w, order)


def _conv(op: Operation) -> Value:
    x, w = op.channels_last(), op.value(1)
    rank = x.type.rank
    if w.type.rank != rank:
        op.fail(f"weights {w.type.shape} do not fit an image of {rank} axes")
    kernel = op.wholes("kernel_shape", w.type.shape[2:]) or ()
    if kernel != w.type.shape[2:]:
        op.fail(f"kernel_shape {kernel} is not that of the weights {w.type.shape}")
    geometry, groups = window(op, x.type.shape[1:-1], kernel), op.whole("group", 1)
    if rank == 5:
        _, strides, dilations, pads = geometry
        wide = op.transpose(w, (0, 2, 3, 4, 1))
        return op.channels_first(
            volumes.convolve(op, x, wide, op.optional(2), strides, pads, dilations, check_groups(op, x, groups))
        )
    return unflat(op, convolve(op, flat(op, x), w, op.optional(2), geometry, groups), rank)


def convolve(
    op: Operation, x: Value, w: Value, bias: Value | None, geometry: Window, groups: int, exact: bool = False
) -> Value:
    """The convolution of an image [N, H, W, C] with weights [CO, CI, KH, KW]; `exact`: as in `Conv2dAttrs`."""
    _, strides, dilations, pads = geometry
    stride, dilation = pair(strides), pair(dilations)
    if groups > 1 and groups == x.type.shape[3] and w.type.shape[1] == 1:
        attrs = conv.Conv2dAttrs(stride, four(pads), dilation, exact=exact)
        return op.emit(conv.DEPTHWISE_CONV2D, [x, _filter(op, w, (1, 2, 3, 0)), bias], attrs)
    attrs = conv.Conv2dAttrs(stride, four(pads), dilation, groups, exact=exact)
    return op.emit(conv.CONV2D, [x, _filter(op, w, (0, 2, 3, 1)), bias], attrs)


def check_groups(op: Operation, x: Value, groups: int) -> int:
    """The groups themselves, which must divide the channels."""
    if groups < 1 or x.type.shape[-1] % groups:
        op.fail(f"{groups} groups do not divide the channels of {x.type}")
    return groups


def _conv_transpose(op: Operation) -> Value:
    x, w = op.channels_last(), op.value(1)
    rank, count = x.type.rank, x.type.rank - 2
    if w.type.rank != rank:
        op.fail(f"weights {w.type.shape} do not fit an image of {rank} axes")
    groups = op.whole("group", 1)
    kernel = w.type.shape[2:]
    zeros, ones = (0,) * count, (1,) * count
    strides, dilations = op.wholes("strides", ones) or (), op.wholes("dilations", ones) or ()
    extra = op.wholes("output_padding", zeros) or ()
    if not len(strides) == len(dilations) == len(extra) == count or min((*extra, 0)) < 0:
        op.fail(f"strides {strides}, dilations {dilations}, output_padding {extra} do not fit {count} axes")
    for name, numbers in (("stride", strides), ("dilation", dilations)):
        check_window(op, {f"{name} {i}": n for i, n in enumerate(numbers)})
    pads = _transposed_pads(op, x.type.shape[1:-1], kernel, strides, dilations, extra)
    after = [0] * count
    for i, (_, end) in enumerate(pads):  # what is cut less than nothing is added
        after[i] = max(-end, 0)
    cut = [(max(p, 0), max(q, 0)) for p, q in pads]
    more = tuple(e + a for e, a in zip(extra, after, strict=True))
    if rank == 5:
        wide = op.transpose(w, (1, 2, 3, 4, 0))
        groups = check_groups(op, x, groups)
        return op.channels_first(
            volumes.convolve_transposed(op, x, wide, op.optional(2), strides, cut, more, dilations, groups)
        )
    attrs = conv.ConvTranspose2dAttrs(
        pair(strides), four(cut), pair(dilations), groups, (0, more[0]) if count == 1 else (more[0], more[1])
    )
    y = op.emit(conv.CONV_TRANSPOSE2D, [flat(op, x), _filter(op, w, (1, 2, 3, 0)), op.optional(2)], attrs)
    return unflat(op, y, rank)


def _transposed_pads(
    op: Operation, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
    extra: Sequence[int],
) -> list[tuple[int, int]]:  # fmt: skip
    """What is cut before and after each axis of the full result."""
    mode, wanted = op.word("auto_pad", "NOTSET"), op.wholes("output_shape")
    if wanted is None and mode not in ("SAME_UPPER", "SAME_LOWER"):
        return pads_of(op, sizes, kernel, strides, dilations)
    if wanted is None:
        wanted = tuple(s * t for s, t in zip(sizes, strides, strict=True))
    wanted = wanted[-len(sizes) :]
    pads = []
    for size, k, t, d, e, out in zip(sizes, kernel, strides, dilations, extra, wanted, strict=True):
        total = t * (size - 1) + e + (k - 1) * d + 1 - out
        half = max(total, 0) // 2
        if total < 0:  # more is asked for than there is: zeros behind
            pads.append((0, total))
        else:
            pads.append((half, total - half) if mode == "SAME_UPPER" else (total - half, half))
    return pads


CONVERTERS: dict[str, Convert] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
}
