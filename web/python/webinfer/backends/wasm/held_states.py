"""State that stays in the kernels' memory: an input whose next value is an output is neither read out nor written in.

Each such pair has places of its own beside the arena, with room to grow. An input that the plan appends to has one:
a run writes the new rows. Others have two, which change roles with every run: where an output was written the input of
the next run is read. Only a place that is outgrown is copied, into one twice as large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webinfer.backends.base import StateInput
from webinfer.backends.wasm.memory import LINE, KernelMemory
from webinfer.host.interface import Kernels
from webinfer.lazy_dataclass import dataclass
from webinfer.lowering.followed_graph import Number, as_json
from webinfer.plan.blocks import SPARE, Block

GROWTH = 2  # times what is needed: a cache of 2,000 tokens is copied 11 times
SPARE_ROWS = 32  # of a cache that is new here


@dataclass(frozen=True, slots=True)
class AppendedRows:
    """An input and the output that has rows behind the input's, in one block of the arena.

    There are `outer` runs of `total` rows of `row` bytes, which begin as many rows apart as there is room for.
    """

    input: str
    output: str
    block: int
    outer: Number
    row: Number
    total: Number

    @classmethod
    def read(cls, form: Sequence[Any], number: Callable[[Any, int], Number], blocks: int) -> AppendedRows:
        """What `form` gave.

        Raises:  ValueError where the form is not kept
        """
        input, output, block, *numbers = form
        if type(block) is not int or not 0 <= block < blocks or len(numbers) != 3:
            raise ValueError(f"a stored plan appends rows to block {block} of {blocks}")
        return cls(str(input), str(output), block, *(number(one, 0) for one in numbers))

    def form(self) -> list[Any]:
        """As JSON."""
        return [self.input, self.output, self.block, *map(as_json, (self.outer, self.row, self.total))]


@dataclass(slots=True)
class Pair:
    """An input's block and its output's, by their numbers; places of `room` bytes lie from `base` on."""

    source: int
    target: int
    rows: AppendedRows | None = None  # where both are one, in one place
    base: int = 0
    room: int = 0
    front: int = 0  # the place of the input
    capacity: int = 0  # rows for which there is room, if some are appended
    outer: int = 0  # as many runs of rows lie there now, so many bytes apart
    stride: int = 0

    @property
    def places(self) -> int:
        """How many there are."""
        return 1 if self.rows else 2

    def address(self, place: int) -> int:
        """Where one of the places begins."""
        return self.base + place * (self.room + SPARE)


class HeldStates:
    """The pairs of one plan, by input and output, and whose state lies there."""

    def __init__(self, pairs: Mapping[tuple[str, str], Pair], blocks: Sequence[Block], memory: KernelMemory) -> None:
        self.pairs, self._blocks, self._memory = pairs, blocks, memory
        self.apart = {number for pair in pairs.values() for number in (pair.source, pair.target)}
        self.slots = list[StateInput]()
        self.swaps = any(pair.rows is None for pair in pairs.values())

    def grow(self, needs: Mapping[int, int], model: str, at: Callable[[Number], int]) -> None:
        """Makes room for so many bytes of blocks, by their numbers; what an input holds is kept.

        `at` gives what numbers are for the sizes to come.

        Raises:  LimitError naming the model; OutOfMemoryError
        """
        try:
            for names, pair in self.pairs.items():
                slot = next((slot for slot in self.slots if slot.input == names[0]), None)
                if pair.rows is not None:
                    self._grow_rows(pair, pair.rows, slot, model, at)
                else:
                    self._grow_pair(pair, slot, needs, model)
        finally:
            self.place()

    def _grow_pair(self, pair: Pair, slot: StateInput | None, needs: Mapping[int, int], model: str) -> None:
        need = max(needs.get(number, self._blocks[number].nbytes) for number in (pair.source, pair.target))
        if pair.base and need <= pair.room:
            return
        before = pair.address(pair.front)
        self._move(pair, GROWTH * need if pair.base or pair.source in needs else need, model)
        kernels = self._memory.kernels
        if slot is not None and kernels is not None and slot.nbytes:
            kernels.write(pair.address(0), kernels.read(before, slot.nbytes))

    def _grow_rows(
        self, pair: Pair, rows: AppendedRows, slot: StateInput | None, model: str, at: Callable[[Number], int]
    ) -> None:
        outer, row, total = map(at, (rows.outer, rows.row, rows.total))
        if pair.base and total <= pair.capacity and outer * row * pair.capacity <= pair.room:
            return
        kernels, capacity = self._memory.kernels, GROWTH * total if pair.base else total + SPARE_ROWS
        if slot is not None and (slot.nbytes % (outer * row) or slot.nbytes > capacity * outer * row):
            self.slots.remove(slot)  # of another batch, which is not what comes next
            slot.leave()
            slot = None
        held = self.read(kernels, slot) if slot is not None and kernels is not None else None
        self._move(pair, capacity * outer * row, model)
        pair.capacity, pair.outer, pair.stride = capacity, outer, capacity * row
        if held is not None and kernels is not None:
            write_rows(kernels, pair.base, held, outer, pair.stride)

    def _move(self, pair: Pair, need: int, model: str) -> None:
        """Gives a pair other places, which hold nothing yet."""
        room = -(-need // LINE) * LINE
        place, _ = self._memory.area((0, 0), pair.places * (room + SPARE), model)
        self._memory.dead += pair.places * (pair.room + SPARE) if pair.base else 0
        pair.base, pair.room, pair.front = place, room, 0
        for number in (pair.source, pair.target):
            self._blocks[number].nbytes = room

    def place(self) -> None:
        """Gives the blocks the addresses of the places that they have now."""
        for pair in self.pairs.values():
            if pair.base:
                self._blocks[pair.source].address = pair.address(pair.front)
                self._blocks[pair.target].address = pair.address((1 - pair.front) % pair.places)

    def swap(self) -> None:
        """After a run: what was written is what the next one reads."""
        for pair in self.pairs.values():
            pair.front = (1 - pair.front) % pair.places
        self.place()

    def capacities(self, rows: Sequence[AppendedRows]) -> list[int]:
        """For how many rows there is room, of each that has a place here; 0 of others."""
        found = [self.pairs.get((one.input, one.output)) for one in rows]
        return [pair.capacity if pair is not None else 0 for pair in found]

    def read(self, kernels: Kernels, slot: StateInput) -> memoryview:
        """A copy of a state that lies here."""
        pair = self.pairs[slot.input, slot.output]
        if not slot.nbytes:
            return memoryview(b"")
        if pair.rows is None:
            return kernels.read(pair.address(pair.front), slot.nbytes)
        return read_rows(kernels, pair.base, slot.nbytes, pair.outer, pair.stride)


def write_rows(kernels: Kernels, address: int, data: memoryview, outer: int, stride: int) -> None:
    """Writes so many equal parts of the data, `stride` bytes apart."""
    part = len(data) // outer if outer else 0
    for i in range(outer if part else 0):
        kernels.write(address + i * stride, data[i * part : (i + 1) * part])


def read_rows(kernels: Kernels, address: int, nbytes: int, outer: int, stride: int) -> memoryview:
    """A copy of so many equal parts, `stride` bytes apart, one behind the other."""
    part = nbytes // outer
    return memoryview(b"".join(kernels.read(address + i * stride, part) for i in range(outer)))
