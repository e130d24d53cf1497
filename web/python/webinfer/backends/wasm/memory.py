"""The memory of one kernel instance: the plans of one model, of which what is equal is there once, and lodgers.

A lodger is the plan of another model of the same task. It shares kernels, threads and scratch with the others, but has
constants and arena of its own: it may run while another plan is looked into.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from webinfer.errors import LimitError
from webinfer.host.interface import Kernels
from webinfer.kernel_constants import MEMORY_MAX_BYTES
from webinfer.plan.blocks import ALIGNMENT, SPARE, Block, Kind, Ref, Step
from webinfer.plan.marks import Marks, digest
from webinfer.plan.plan_bytes import MAX_BYTES

if TYPE_CHECKING:
    from webinfer.backends.wasm.builder import Builder

MAX_DEAD_BYTES = 64 << 20  # of plans that were closed, before the next plan begins an instance of its own. A guess
LINE = 64  # bytes of a cache line: lodgers begin with one
_Mark = bytes  # tells contents apart
_UNKNOWN = b""
Held = dict[int, int]  # areas that a plan needs: addresses, and bytes from there


class KernelMemory:
    """A kernel instance and what lies in it. Plans acquire and release it; the last one drops the instance go.

    Plans of one model never run at the same time: they share an arena.
    """

    def __init__(self, kernels: Kernels) -> None:
        self._kernels: Kernels | None = kernels
        self.end = kernels.heap_base  # of all that is in use
        self.arena = (0, 0)  # where the largest arena begins, and its bytes
        self.dead = 0
        self.scratch = (0, 0)  # address and bytes, for the code that prepares a run
        self._plans = 1
        self._builders: list[tuple[Builder, Held]] = []
        self._places: dict[_Mark, int] = {}
        self._users: dict[int, int] = {}  # how many plans need what begins at an address
        self._marks = Marks()
        self._gaps: dict[int, int] = {}  # bytes from an address on that no plan needs, none beside another

    @property
    def kernels(self) -> Kernels | None:
        """The instance; None when it was let go."""
        return self._kernels

    def join(self) -> None:
        """Counts one plan more."""
        self._plans += 1

    def acquire(self) -> None:
        """Counts one plan more, which will lie behind all that is here."""
        self.join()
        self.end = -(-self.end // LINE) * LINE

    def area(self, before: tuple[int, int], nbytes: int, owner: str) -> tuple[int, int]:
        """Address and size of at least so many bytes: the area from `before`, longer if it can be, or a new one.

        Raises:  LimitError naming the `owner`; OutOfMemoryError
        """
        address, size = before
        if nbytes <= size:
            return before
        if address + size + SPARE != self.end:
            address, self.dead = -(-self.end // ALIGNMENT) * ALIGNMENT, self.dead + size
        end = address + nbytes + SPARE
        if end > MEMORY_MAX_BYTES:
            what = f"memory of model {owner!r} and its scratch in bytes"
            raise LimitError(what, end, MEMORY_MAX_BYTES, "use a smaller model, or give it smaller pictures")
        if self._kernels is not None:
            self._kernels.grow(end)
        self.end = end
        return address, nbytes

    def hold(self, areas: Held) -> None:
        """Notes that one plan more needs what lies in these areas."""
        for address in areas:
            self._users[address] = self._users.get(address, 0) + 1

    def place(self, nbytes: int) -> int | None:
        """Where so many bytes lie that no plan needs any more, the smallest such place; now they are the caller's."""
        fitting = [(size, address) for address, size in self._gaps.items() if size >= nbytes]
        if not fitting or not nbytes:
            return None
        size, address = min(fitting)
        del self._gaps[address]
        if size > nbytes:
            self._gaps[address + nbytes] = size - nbytes
        self.dead -= nbytes
        return address

    def release(self, nbytes: int = 0, areas: Held | None = None) -> None:
        """Counts one plan less, of which so many bytes are nobody's now, and areas that no other plan needs."""
        self._plans -= 1
        self.dead += nbytes
        if self._plans <= 0:
            self.abandon()
        elif areas is not None:
            self._builders = [one for one in self._builders if one[1] is not areas]
            self._free({address: size for address, size in areas.items() if not self._leave(address)})

    def _leave(self, address: int) -> int:
        """How many plans still need what lies there when one no longer does."""
        self._users[address] -= 1
        return self._users[address] or self._users.pop(address)

    def _free(self, areas: Held) -> None:
        self._places = {mark: address for mark, address in self._places.items() if address not in areas}
        self.dead += sum(areas.values())
        gaps, first, end = sorted((self._gaps | areas).items()), -1, -1
        self._gaps = {}
        for address, size in gaps:
            first = first if address == end else address
            self._gaps[first] = self._gaps.get(first, 0) + size
            end = address + size

    def abandon(self) -> None:
        """Drops the instance, with all plans in it: it trapped, or the last plan was closed."""
        kernels, self._kernels, self._builders, self._places = self._kernels, None, [], {}
        self._gaps, self._marks = {}, Marks()
        if kernels is not None:
            kernels.close()

    def add(self, builder: Builder, areas: Held) -> None:
        """Notes what a plan has put here, which later plans may use until these areas are released."""
        self._builders.append((builder, areas))

    def find(self, builder: Builder) -> dict[Block, int]:
        """Where constants of a plan lie already, which another plan has put here."""
        places = self.places() if self._builders or self._places else {}
        found = contents(builder, self._marks) if places else {}
        return {block: places[mark] for block, mark in found.items() if mark in places}

    def places(self) -> Mapping[bytes, int]:
        """Addresses of constants that plans have put here, by what tells their contents apart."""
        while self._builders:
            other, _ = self._builders.pop(0)
            for block, mark in contents(other, self._marks).items():
                self._places.setdefault(mark, block.address)
        return self._places

    def know(self, places: Mapping[bytes, int]) -> None:
        """Notes where constants lie that were put here out of a stored plan."""
        self._places.update(places)


def contents(builder: Builder, known: Marks) -> dict[Block, _Mark]:
    """What tells the content of each constant apart from others: its bytes, or the steps that write it.

    Left out is what a run changes or follows sizes, and what one step reads before another one writes it anew.
    """
    views = [*builder.constants.items(), *builder.staged.items()]
    lasting = sum(block.nbytes for block in builder.constants) <= MAX_BYTES  # more is not stored
    marks = {block: _UNKNOWN if data is None else known.of(data, lasting) for block, data in views}
    read: dict[Block, set[_Mark]] = {}
    for step in builder.prepare_part.steps:
        refs, targets = pointers(step), [target.block for target, _ in builder.written(step)]
        for ref in refs:
            if ref.block not in targets:
                read.setdefault(ref.block, set()).add(marks.get(ref.block, _UNKNOWN))
        said = [marks.get(ref.block, _UNKNOWN) + b"%d %d" % (ref.offset, ref.room) for ref in refs]
        args = [b"" if isinstance(arg, Ref) else repr(arg).encode() for arg in step.args]
        mark = digest(step.kernel.encode(), *args, b"%d" % step.units, *said)
        for i, block in enumerate(targets):
            marks[block] = digest(mark, b"%d" % i)
    changed = {target.block for step in builder.run_part.steps for target, _ in builder.written(step)}
    return {
        block: mark + b"%d" % block.nbytes
        for block, mark in marks.items()
        if block.kind is Kind.CONSTANT
        and mark
        and block not in changed
        and block not in builder.sized
        and read.get(block, {mark}) == {mark}
    }


def pointers(step: Step) -> list[Ref]:
    """The places that a step reads or writes."""
    return [arg for arg in step.args if isinstance(arg, Ref)]


def needed(builder: Builder, shared: Mapping[Block, int]) -> tuple[list[Step], list[Block]] | None:
    """The prepare steps that a plan needs beside constants that are there already, and what they read of the file.

    None if one of these steps would write what is there.
    """
    wanted, steps = {block for block in builder.constants if block not in shared}, list[Step]()
    part = builder.prepare_part
    for step, writes in zip(reversed(part.steps), reversed(part.writes), strict=True):
        targets = {target.block for target, _ in writes}
        if targets & wanted:
            if any(block in shared for block in targets):
                return None
            wanted |= {ref.block for ref in pointers(step) if ref.block not in shared}
            steps.append(step)
    return steps[::-1], [block for block in builder.staged if block in wanted]
