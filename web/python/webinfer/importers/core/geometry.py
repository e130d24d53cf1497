"""Where elements lie: windows and their pads, strided slices, blocks moved between space and batch.

All of it is said with simpler moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field

from webinfer.graph.ir import Value
from webinfer.importers.core.limits import MAX_STRIDE
from webinfer.importers.core.operation import BaseOperation
from webinfer.importers.core.spans import Span, span_of
from webinfer.importers.core.steps import QUANTIZED
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import movement as mv


def same_pads(size: int, window: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """Padding before and after one axis so that ceil(size / stride) windows fit."""
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + (window - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def image_pads(
    shape: Sequence[int], window: Sequence[int], stride: Sequence[int], dilation: Sequence[int] = (1, 1)
) -> tuple[int, int, int, int]:
    """Padding above, below, left and right of images so that they have SAME sizes. Shapes:  shape [N, H, W, C]"""
    top, bottom = same_pads(shape[1], window[0], stride[0], dilation[0])
    left, right = same_pads(shape[2], window[1], stride[1], dilation[1])
    return top, bottom, left, right


def volume_pads(
    shape: Sequence[int], window: Sequence[int], stride: Sequence[int], dilation: Sequence[int] = (1, 1, 1)
) -> list[tuple[int, int]]:
    """Padding before and after each axis of volumes so that they have SAME sizes. Shapes:  shape [N, D, H, W, C]"""
    return [same_pads(*each) for each in zip(shape[1:4], window, stride, dilation, strict=True)]


def check_window(op: BaseOperation, numbers: dict[str, int]) -> tuple[int, ...]:
    """Strides, dilations or window sizes, by option; each at least 1 and small enough for 32-bit arithmetic."""
    for name, number in numbers.items():
        if not 1 <= number <= MAX_STRIDE:
            op.fail(f"{name} is {number}, allowed are 1 to {MAX_STRIDE}")
    return tuple(numbers.values())


def transposed_pads(
    op: BaseOperation, same: bool, size: int, outputs: int, window: int, stride: int
) -> tuple[int, int, int]:
    """What to cut before and after one axis of a full transposed convolution, and what to add after it.

    Source:  tensorflow v2.18, lite/kernels/padding.h: the padding of the convolution from y to x
    Raises:  ModelFormatError if that convolution would not make x's size
    """
    windows = -(-outputs // stride) if same else (outputs + stride - window) // stride
    if windows != size:
        op.fail(f"a result of {outputs} along an axis belongs to an x of {windows}, not {size}")
    before = max((windows - 1) * stride + window - outputs, 0) // 2
    after = (size - 1) * stride + window - before - outputs
    return before, max(after, 0), max(-after, 0)


def transposed_volume_pads(
    op: BaseOperation, same: bool, shape: Sequence[int], outputs: Sequence[int], window: Sequence[int],
    stride: Sequence[int],
) -> tuple[list[tuple[int, int]], list[int]]:  # fmt: skip
    """`transposed_pads` of each axis of volumes: what to cut before and after it, and what to add.

    Shapes:  shape [N, D, H, W, C]; outputs [D, H, W]
    """
    each = zip(shape[1:4], outputs, window, stride, strict=True)
    found = [transposed_pads(op, same, *sizes) for sizes in each]
    return [(before, after) for before, after, _ in found], [more for _, _, more in found]


@dataclass(slots=True)
class _Cut:
    """The slice of each axis of x, and the shape that is left when axes are dropped or added."""

    starts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)

    def whole(self, size: int) -> None:
        """Keeps an axis as it is."""
        self.span(Span(0, size))

    def span(self, positions: Span) -> None:
        """Keeps these positions of an axis."""
        self.add(positions.start, positions.count, positions.step)
        self.shape.append(positions.count)

    def add(self, start: int, size: int, step: int) -> None:
        """Notes the slice of the next axis of x."""
        self.starts.append(start if size else 0)
        self.sizes.append(size)
        self.steps.append(step)


def strided_slice(
    op: BaseOperation, x: Value, positions: Sequence[Sequence[int]], mask: Callable[[str], int], offset: bool = False,
    masks_dropped: bool = True,
) -> Value:  # fmt: skip
    """x[begin:end:step, ...], where `positions` are begin, end and steps; `mask` gives a mask by its name.

    With `offset` the ends count from the beginnings. `masks_dropped`: begin_mask counts for an axis that the result
    drops too, as in TensorFlow Lite; TensorFlow and TensorFlow.js take the position that is named there.

    Source:  tensorflow v2.18, lite/kernels/internal/strided_slice_logic.h, core/util/strided_slice_op.cc
    """
    begin, end, steps = positions
    if not len(begin) == len(end) == len(steps) or 0 in steps:
        op.fail(f"begin {begin}, end {end}, strides {steps} do not belong together")
    ellipsis, new_axis = mask("ellipsis_mask"), mask("new_axis_mask")
    if ellipsis.bit_count() > 1:
        op.fail(f"ellipsis_mask {ellipsis:#x} names more than one position")
    named = sum(1 for i in range(len(begin)) if not (new_axis | ellipsis) >> i & 1)
    if named > x.type.rank:
        op.fail(f"{named} positions for the {x.type.rank} axes of {x.type.shape}")
    cut, axis = _Cut(), 0
    for i, (first, last, step) in enumerate(zip(begin, end, steps, strict=True)):
        if ellipsis >> i & 1:
            for size in x.type.shape[axis : axis + x.type.rank - named]:
                cut.whole(size)
            axis += x.type.rank - named
        elif new_axis >> i & 1:
            cut.shape.append(1)
        else:
            begin_masked, end_masked, dropped = (mask(f"{n}_mask") >> i & 1 for n in ("begin", "end", "shrink_axis"))
            start = None if begin_masked and (masks_dropped or not dropped) else first
            stop = None if end_masked else last + first if offset else last
            if dropped:
                _drop_axis(op, cut, x.type.shape[axis], first, start, step)
            else:
                cut.span(span_of(start, stop, step, x.type.shape[axis]))
            axis += 1
    for size in x.type.shape[axis:]:
        cut.whole(size)
    return op.reshape(op.sliced(x, cut.starts, cut.sizes, cut.steps), cut.shape)


def _drop_axis(op: BaseOperation, cut: _Cut, size: int, named: int, start: int | None, step: int) -> None:
    """One position of an axis, which the result lacks."""
    start = 0 if start is None else start + size if start < 0 else start
    if not 0 <= start < size or step < 0:
        op.fail(f"position {named} with step {step} is not on an axis of {size}")
    cut.add(start, 1, 1)


def _block_options(op: BaseOperation, x: Value) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Block sizes, and what is padded or cropped before and after each blocked axis."""
    blocks, edges = op.integers(1), op.integers(2)
    count = len(blocks)
    if x.type.rank < count + 1 or op.value(2).type.shape != (count, 2) or min((*blocks, 1)) < 1 or min((*edges, 0)) < 0:
        op.fail(f"blocks {blocks} with edges {edges} do not fit {x.type.shape}")
    return tuple(blocks), tuple(edges[0::2]), tuple(edges[1::2])


def space_to_batch(op: BaseOperation) -> Value:
    """[N, H, W, ...] → [BH*BW*N, H/BH, W/BW, ...] after padding."""
    x = op.value(0)
    blocks, before, after = _block_options(op, x)
    rest = x.type.rank - 1 - len(blocks)
    zero = float(x.type.quant.zero_points[0]) if x.type.quant is not None and x.type.dtype in QUANTIZED else 0.0
    pads = mv.PadAttrs((0, *before, *(0,) * rest), (0, *after, *(0,) * rest), zero)
    x = op.emit(mv.PAD, [x], pads) if any(before) or any(after) else x
    n, *space = x.type.shape[: len(blocks) + 1]
    inner = x.type.shape[len(blocks) + 1 :]
    if any(size % block for size, block in zip(space, blocks, strict=True)):
        op.fail(f"blocks {blocks} do not divide the padded {x.type.shape}")
    outer = [size // block for size, block in zip(space, blocks, strict=True)]
    pairs = [part for size, block in zip(outer, blocks, strict=True) for part in (size, block)]
    x = op.reshape(x, (n, *pairs, *inner))
    perm = (
        *range(2, 2 * len(blocks) + 1, 2),
        0,
        *range(1, 2 * len(blocks), 2),
        *range(2 * len(blocks) + 1, x.type.rank),
    )
    x = op.emit(mv.TRANSPOSE, [x], mv.TransposeAttrs(perm))
    return op.reshape(x, (n * math.prod(blocks), *outer, *inner))


def batch_to_space(op: BaseOperation) -> Value:
    """[BH*BW*N, H, W, ...] → [N, H*BH, W*BW, ...], then cropped."""
    x = op.value(0)
    blocks, before, after = _block_options(op, x)
    total, *space = x.type.shape[: len(blocks) + 1]
    inner, count = x.type.shape[len(blocks) + 1 :], len(blocks)
    if total % math.prod(blocks):
        op.fail(f"blocks {blocks} do not divide the batch of {x.type.shape}")
    n = total // math.prod(blocks)
    x = op.reshape(x, (*blocks, n, *space, *inner))
    pairs = [axis for i in range(count) for axis in (count + 1 + i, i)]
    x = op.emit(mv.TRANSPOSE, [x], mv.TransposeAttrs((count, *pairs, *range(2 * count + 1, x.type.rank))))
    full = [size * block for size, block in zip(space, blocks, strict=True)]
    x = op.reshape(x, (n, *full, *inner))
    sizes = [size - p - q for size, p, q in zip(full, before, after, strict=True)]
    if any(size < 0 for size in sizes):
        op.fail(f"crops {before}, {after} are larger than {full}")
    starts = (0, *before, *(0,) * len(inner))
    attrs = mv.SliceAttrs(starts if x.type.size else (0,) * x.type.rank, (n, *sizes, *inner), (1,) * x.type.rank)
    return op.emit(mv.SLICE, [x], attrs) if any(before) or any(after) else x


def dynamic_update_slice(op: BaseOperation) -> Value:
    """x with the block at `starts` replaced; starts that lie too far out are moved in."""
    x, part, starts = op.value(0), op.value(1), op.integers(2)
    small, large = part.type.shape, x.type.shape
    if len(small) != len(large) or len(starts) != len(large) or any(s > d for s, d in zip(small, large, strict=True)):
        op.fail(f"a part of {small} at {starts} does not fit {large}")
    if not part.type.size:
        return x
    first = [min(max(s, 0), d - p) for s, d, p in zip(starts, large, small, strict=True)]
    for axis in reversed(range(len(large))):  # grow the part axis by axis to the size of x
        end = first[axis] + small[axis]
        ranges = [*zip(first[:axis], small[:axis], strict=True)]
        before = _region(op, x, [*ranges, (0, first[axis])])
        after = _region(op, x, [*ranges, (end, large[axis] - end)])
        parts = [v for v in (before, part, after) if v.type.shape[axis]]
        part = op.concat(parts, axis) if len(parts) > 1 else parts[0]
    return part


def _region(op: BaseOperation, x: Value, ranges: Sequence[tuple[int, int]]) -> Value:
    """x cut to (start, size) along its first axes."""
    starts = [start for start, _ in ranges] + [0] * (x.type.rank - len(ranges))
    sizes = [size for _, size in ranges] + list(x.type.shape[len(ranges) :])
    if 0 in sizes:
        starts = [0] * len(starts)
    return op.emit(mv.SLICE, [x], mv.SliceAttrs(tuple(starts), tuple(sizes), (1,) * x.type.rank))
