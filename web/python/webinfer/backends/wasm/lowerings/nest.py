"""Loop nests: what kernels walk when operands are strided or broadcast (kernels_wasm/include/walk.h)."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.backends.wasm.builder import Builder
from webinfer.errors import UnsupportedOpError
from webinfer.kernel_constants import WALK_MAX_RANK
from webinfer.ops.strides import row_major
from webinfer.plan.blocks import Ref

Strides = tuple[int, ...]


def broadcast_strides(shape: Sequence[int], target: Sequence[int]) -> Strides:
    """Strides of a dense tensor that is stretched to `target`."""
    padded = (1,) * (len(target) - len(shape)) + tuple(shape)
    return tuple(0 if size == 1 else step for size, step in zip(padded, row_major(padded), strict=True))


def coalesced(shape: Sequence[int], strides: Sequence[Strides]) -> tuple[list[int], list[list[int]]]:
    """The same nest with size-1 dimensions dropped and mergeable neighbours merged; never empty."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        own = [s[axis] for s in strides]
        if sizes and all(kept[-1] == size * step for kept, step in zip(steps, own, strict=True)):
            sizes[-1] *= size
            for kept, step in zip(steps, own, strict=True):
                kept[-1] = step
        else:
            sizes.append(size)
            for kept, step in zip(steps, own, strict=True):
                kept.append(step)
    return (sizes, steps) if sizes else ([1], [[1] for _ in strides])


def nest(builder: Builder, shape: Sequence[int], *strides: Strides) -> Ref:
    """The table of a loop nest over operands with these strides, in elements.

    Raises:  UnsupportedOpError if it is too deep for the kernels
    """
    sizes, steps = coalesced(shape, strides)
    if len(sizes) > WALK_MAX_RANK:
        raise UnsupportedOpError([f"a loop nest of {len(sizes)} dimensions; at most {WALK_MAX_RANK} are possible"])
    words = [len(sizes), *sizes, *(step for operand in steps for step in operand)]
    return builder.words("nest", words)


def broadcast_nest(builder: Builder, target: Sequence[int], *shapes: Sequence[int]) -> Ref:
    """The nest of dense operands that broadcast to `target`."""
    return nest(builder, target, *(broadcast_strides(shape, target) for shape in shapes))
