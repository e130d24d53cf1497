"""Strided copies: what most data movement comes down to.

A copy reads `source[offset + sum(index*stride)]` and writes `target[offset + sum(index*stride)]` for
every index of `shape`. Offsets and strides are in elements; a stride may be zero or negative.
Backends need one kernel for all of transpose, slice, expand, tile, reverse, concat and their kin.
"""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StridedCopy:
    """One copy: which input it reads, over which index, from where and to where."""

    source: int  # which input
    shape: tuple[int, ...]
    source_offset: int
    source_strides: tuple[int, ...]
    target_offset: int
    target_strides: tuple[int, ...]


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a dense tensor, in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def moved_axes(
    axes: Sequence[tuple[int, int]], shape: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, int], ...] | None:
    """Axes (size, step) of a dense tensor of this shape, as they lie where its own axes have these strides.

    None if one of them runs along several of its axes. The step of an axis of size 1 is 0.
    """
    dense, moved = row_major(shape), []
    for size, step in axes:
        if size == 1:
            moved.append((size, 0))
            continue
        places = [
            i for i, stride in enumerate(dense)
            if shape[i] > 1 and not step % stride and (size - 1) * (step // stride) < shape[i]
        ]  # fmt: skip
        if not places:
            return None
        at = places[-1] if len(places) == 1 else max(places, key=lambda i: dense[i])
        moved.append((size, step // dense[at] * strides[at]))
    return tuple(moved)


def coalesce(copy: StridedCopy) -> StridedCopy:
    """The same copy with size-1 dimensions dropped and mergeable neighbours merged."""
    dims: list[list[int]] = []
    for size, s, t in zip(copy.shape, copy.source_strides, copy.target_strides, strict=True):
        if size == 1:
            continue
        if dims and dims[-1][1] == size * s and dims[-1][2] == size * t:
            dims[-1] = [dims[-1][0] * size, s, t]
        else:
            dims.append([size, s, t])
    shape, sources, targets = zip(*dims, strict=True) if dims else ((), (), ())
    return StridedCopy(
        copy.source, tuple(shape), copy.source_offset, tuple(sources), copy.target_offset, tuple(targets)
    )
