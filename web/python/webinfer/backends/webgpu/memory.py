"""Blocks of GPU memory and the buffers that they share over time.

Every block lies at the start of a buffer of its own or of one that is free by then: a buffer is never
read and written by one dispatch. (An arena of one buffer would be.)
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from webinfer.lazy_dataclass import dataclass
from webinfer.plan.arena import most_live


class Home(enum.StrEnum):
    """How long a block is needed: `resident` always, `pooled` while run steps use it, `staged` only during load.

    A `given` block is an input or output whose buffer the caller provides when the dispatches are replayed.
    """

    RESIDENT = "resident"
    POOLED = "pooled"
    STAGED = "staged"
    GIVEN = "given"


@dataclass(slots=True, eq=False)
class Block:
    """Memory of one tensor, and the buffer that it lies in (its number, -1 until it has one).

    `first` and `last` are the run steps that use it, both included; `data` is what load uploads.
    """

    label: str
    nbytes: int
    home: Home
    data: memoryview | None = None
    first: int = 1 << 60
    last: int = -2
    buffer: int = -1

    def touch(self, step: int) -> None:
        """Records that the run step of this index uses this block."""
        self.first, self.last = min(self.first, step), max(self.last, step)


class Region(NamedTuple):
    """A range of a block.

    Units:  `offset` and `nbytes` are bytes
    """

    block: Block
    offset: int
    nbytes: int


def assign_pooled(blocks: Sequence[Block], first_buffer: int) -> list[int]:
    """Gives each pooled block a buffer, numbered from `first_buffer`; returns the bytes of each buffer.

    In order of first use each block takes the smallest free buffer that holds it, else enlarges the
    largest free one, else a new one.
    """
    sizes: list[int] = []
    free_from: list[int] = []  # first step at which the buffer is free
    for block in sorted(blocks, key=lambda b: (b.first, -b.nbytes)):
        free = [i for i, step in enumerate(free_from) if step <= block.first]
        fitting = [i for i in free if sizes[i] >= block.nbytes]
        if fitting:
            chosen = min(fitting, key=lambda i: sizes[i])
        elif free:
            chosen = max(free, key=lambda i: sizes[i])
            sizes[chosen] = block.nbytes
        else:
            chosen = len(sizes)
            sizes.append(block.nbytes)
            free_from.append(0)
        free_from[chosen] = block.last + 1
        block.buffer = first_buffer + chosen
    return sizes


def busiest(blocks: Sequence[Block]) -> int:
    """Bytes that are needed at the busiest step: no assignment of buffers can do with fewer."""
    return most_live((block.first, block.last, block.nbytes) for block in blocks)
