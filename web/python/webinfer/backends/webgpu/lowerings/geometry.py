"""Shapes as kernels see them: neighbouring dimensions merged, axes split into outer, depth and inner."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.codegen.prelude import DIMS
from webinfer.errors import UnsupportedOpError
from webinfer.ops.strides import row_major


def merged(shape: Sequence[int], *inputs: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """Sizes of y's dimensions and each input's strides there in elements; neighbours are merged where all inputs allow.

    `shape` is y's, `inputs` are shapes that broadcast to it: a stride is 0 where an input is repeated.

    Raises:  UnsupportedOpError if more than 8 dimensions remain
    """
    rank = len(shape)
    strides = []
    for dims in inputs:
        padded = (1,) * (rank - len(dims)) + tuple(dims)
        strides.append([0 if d == 1 else s for d, s in zip(padded, row_major(padded), strict=True)])
    sizes: list[int] = []
    out: list[list[int]] = [[] for _ in inputs]
    for d in range(rank):
        if shape[d] == 1:
            continue
        if sizes and all(o[-1] == s[d] * shape[d] for o, s in zip(out, strides, strict=True)):
            sizes[-1] *= shape[d]
            for o, s in zip(out, strides, strict=True):
                o[-1] = s[d]
        else:
            sizes.append(shape[d])
            for o, s in zip(out, strides, strict=True):
                o.append(s[d])
    if len(sizes) > DIMS:
        raise UnsupportedOpError([f"broadcast over {len(sizes)} dimensions; webgpu has at most {DIMS}"])
    return sizes or [1], [o or [1] for o in out]


def split_at(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """(outer, depth, inner): elements before an axis, along it and behind it, multiplied."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def merged_strides(sizes: Sequence[int], strides: Sequence[int]) -> tuple[list[int], list[int]]:
    """The same walk over fewer dimensions: size-1 ones dropped, contiguous neighbours merged.

    Raises:  UnsupportedOpError if more than 8 dimensions remain
    """
    out: list[tuple[int, int]] = []
    for size, stride in zip(sizes, strides, strict=True):
        if size == 1:
            continue
        if out and out[-1][1] == size * stride:
            out[-1] = (out[-1][0] * size, stride)
        else:
            out.append((size, stride))
    if len(out) > DIMS:
        raise UnsupportedOpError([f"a walk over {len(out)} dimensions; webgpu has at most {DIMS}"])
    return [s for s, _ in out] or [1], [t for _, t in out] or [1]
