"""Blocks moved between space and batch, parts of a tensor replaced, rows reversed: said with simpler moves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Value
from webinfer.importers.tflite.movement import cut
from webinfer.importers.tflite.operation import QUANTIZED, Operation, Row
from webinfer.ops import movement as mv


def _block_options(op: Operation, x: Value) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Block sizes, and what is padded or cropped before and after each blocked axis."""
    blocks, edges = op.integers(1), op.integers(2)
    count = len(blocks)
    if x.type.rank < count + 1 or op.value(2).type.shape != (count, 2) or min((*blocks, 1)) < 1 or min((*edges, 0)) < 0:
        raise ModelFormatError(f"{op.info}: blocks {blocks} with edges {edges} do not fit {x.type.shape}")
    return tuple(blocks), tuple(edges[0::2]), tuple(edges[1::2])


def _space_to_batch(op: Operation) -> Value:
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
        raise ModelFormatError(f"{op.info}: blocks {blocks} do not divide the padded {x.type.shape}")
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


def _batch_to_space(op: Operation) -> Value:
    """[BH*BW*N, H, W, ...] → [N, H*BH, W*BW, ...], then cropped."""
    x = op.value(0)
    blocks, before, after = _block_options(op, x)
    total, *space = x.type.shape[: len(blocks) + 1]
    inner, count = x.type.shape[len(blocks) + 1 :], len(blocks)
    if total % math.prod(blocks):
        raise ModelFormatError(f"{op.info}: blocks {blocks} do not divide the batch of {x.type.shape}")
    n = total // math.prod(blocks)
    x = op.reshape(x, (*blocks, n, *space, *inner))
    pairs = [axis for i in range(count) for axis in (count + 1 + i, i)]
    x = op.emit(mv.TRANSPOSE, [x], mv.TransposeAttrs((count, *pairs, *range(2 * count + 1, x.type.rank))))
    full = [size * block for size, block in zip(space, blocks, strict=True)]
    x = op.reshape(x, (n, *full, *inner))
    sizes = [size - p - q for size, p, q in zip(full, before, after, strict=True)]
    if min((*sizes, 0)) < 0:
        raise ModelFormatError(f"{op.info}: crops {before}, {after} are larger than {full}")
    starts = (0, *before, *(0,) * len(inner))
    attrs = mv.SliceAttrs(starts if x.type.size else (0,) * x.type.rank, (n, *sizes, *inner), (1,) * x.type.rank)
    return op.emit(mv.SLICE, [x], attrs) if any(before) or any(after) else x


def _dynamic_update_slice(op: Operation) -> Value:
    """x with the block at `starts` replaced; starts that lie too far out are moved in."""
    x, part, starts = op.value(0), op.value(1), op.integers(2)
    small, large = part.type.shape, x.type.shape
    if len(small) != len(large) or len(starts) != len(large) or any(s > d for s, d in zip(small, large, strict=True)):
        raise ModelFormatError(f"{op.info}: a part of {small} at {starts} does not fit {large}")
    first = [min(max(s, 0), d - p) for s, d, p in zip(starts, large, small, strict=True)]
    for axis in reversed(range(len(large))):  # grow the part axis by axis to the size of x
        end = first[axis] + small[axis]
        ranges = [*zip(first[:axis], small[:axis], strict=True)]
        before = _region(op, x, [*ranges, (0, first[axis])])
        after = _region(op, x, [*ranges, (end, large[axis] - end)])
        parts = [v for v in (before, part, after) if v.type.shape[axis]]
        part = op.emit(mv.CONCAT, parts, mv.ConcatAttrs(axis)) if len(parts) > 1 else parts[0]
    return part


def _region(op: Operation, x: Value, ranges: Sequence[tuple[int, int]]) -> Value:
    """x cut to (start, size) along its first axes."""
    starts = [start for start, _ in ranges] + [0] * (x.type.rank - len(ranges))
    sizes = [size for _, size in ranges] + list(x.type.shape[len(ranges) :])
    if 0 in sizes:
        starts = [0] * len(starts)
    return op.emit(mv.SLICE, [x], mv.SliceAttrs(tuple(starts), tuple(sizes), (1,) * x.type.rank))


def _reverse_sequence(op: Operation) -> Value:
    """Each batch row with its first `length` elements reversed."""
    x, lengths = op.value(0), op.integers(1)
    along, batch = op.axis(op.number("seq_dim"), x.type.rank), op.axis(op.number("batch_dim"), x.type.rank)
    size = x.type.shape[along]
    if len(lengths) != x.type.shape[batch] or along == batch or any(not 0 <= n <= size for n in lengths):
        raise ModelFormatError(f"{op.info}: lengths {lengths} do not fit axes {batch} and {along} of {x.type.shape}")
    if len(lengths) > 256:
        op.refuse(f"a batch of {len(lengths)}")
    rows = []
    for i, length in enumerate(lengths):
        row = cut(op, x, batch, i, 1)
        head = op.emit(mv.REVERSE, [cut(op, row, along, 0, length)], mv.ReverseAttrs((along,)))
        rows.append(op.emit(mv.CONCAT, [head, cut(op, row, along, length, size - length)], mv.ConcatAttrs(along)))
    return op.emit(mv.CONCAT, rows, mv.ConcatAttrs(batch))


CONVERTERS: dict[str, Row] = {
    "BATCH_TO_SPACE_ND": (_batch_to_space, ""),
    "DYNAMIC_UPDATE_SLICE": (_dynamic_update_slice, ""),
    "REVERSE_SEQUENCE": (_reverse_sequence, "ReverseSequenceOptions"),
    "SPACE_TO_BATCH_ND": (_space_to_batch, ""),
}
