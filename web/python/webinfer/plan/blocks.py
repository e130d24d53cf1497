"""Blocks of memory and references into them, before anything has an address."""

from __future__ import annotations

import enum
from dataclasses import field

from webinfer.kernel_constants import MEMORY_SPARE_BYTES
from webinfer.lazy_dataclass import dataclass

ALIGNMENT = 16  # bytes: one v128
SPARE = MEMORY_SPARE_BYTES  # readable bytes after every block, so that kernels may load whole vectors at an end


class Kind(enum.StrEnum):
    """Where a block lives: `constant` for ever, `arena` while steps use it, `staged` only during load."""

    CONSTANT = "constant"
    ARENA = "arena"
    STAGED = "staged"


@dataclass(slots=True, eq=False)
class Block:
    """Contiguous bytes. `first` and `last` are the steps that use it, both included."""

    name: str
    nbytes: int
    kind: Kind
    first: int = 1 << 60
    last: int = -1
    address: int = -1

    @property
    def span(self) -> int:
        """Bytes that the planner reserves: aligned, the spare bytes included."""
        return (self.nbytes + SPARE + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT

    def touch(self, step: int) -> None:
        """Records that a step uses this block."""
        if step < self.first:
            self.first = step
        if step > self.last:
            self.last = step


@dataclass(frozen=True, slots=True)
class Ref:
    """A place inside a block, in bytes; `end` is where the tensor there ends, None where it ends with the block.

    Two places are equal if they begin at the same byte.
    """

    block: Block
    offset: int = 0
    end: int | None = field(default=None, compare=False)

    def __add__(self, nbytes: int) -> Ref:
        return Ref(self.block, self.offset + nbytes, self.end)

    @property
    def room(self) -> int:
        """Bytes from here to the end of the tensor."""
        return (self.block.nbytes if self.end is None else self.end) - self.offset

    @property
    def address(self) -> int:
        """The absolute address, once the block has one."""
        if self.block.address < 0:
            raise ValueError(f"block {self.block.name!r} has no address yet")
        return self.block.address + self.offset


Argument = Ref | int | float | None  # None: an address that is left out
Arguments = dict[str, Argument]  # by the kernel's names for them


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a kernel. `units` is the work that threads may split; 0 means that one thread does all.

    `shares`: how many parts they share it in, at least; 0: one thread does all.
    """

    kernel: str
    args: tuple[Argument, ...]
    units: int
    node: int  # index of the node in the graph, -1 for steps of the API boundary
    shares: int = 1
