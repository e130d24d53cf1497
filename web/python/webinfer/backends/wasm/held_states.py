"""State that stays in the kernels' memory: an input whose next value is an output is neither read out nor written in.

Each such pair has places of its own beside the arena, with room to grow. An input that the plan appends to has one:
a run writes the new rows. Rows of float16 are held as float32 there, which no run casts; writing them in and reading
them out does. Other pairs have two places, which change roles with every run: where an output was written the input of
the next run is read. Only a place that is outgrown is copied, into one twice as large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webinfer.backends.base import StateInput
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.memory import LINE, KernelMemory
from webinfer.host.interface import Kernels
from webinfer.kernel_constants import PROGRAM_HEADER_WORDS, PROGRAM_RECORD_WORDS
from webinfer.lazy_dataclass import dataclass
from webinfer.lowering.followed_graph import Number, as_json
from webinfer.plan.blocks import SPARE, Block, Step
from webinfer.plan.program import encode

GROWTH = 2  # times what is needed: a cache of 2,000 tokens is copied 11 times
SPARE_ROWS = 32  # of a cache that is new here
CAST_WORDS = PROGRAM_RECORD_WORDS + 2  # of a step that casts: two addresses


@dataclass(frozen=True, slots=True)
class AppendedRows:
    """An input and the output that has rows behind the input's, in one block of the arena.

    There are `outer` runs of `total` rows of `row` bytes, which begin as many rows apart as there is room for. Rows of
    float16 are held as float32, whose bytes these are; the API writes them to another block, `api`.
    """

    input: str
    output: str
    block: int
    api: int
    outer: Number
    row: Number
    total: Number

    @property
    def narrow(self) -> int:
        """How many times as many bytes an element has here as at the API."""
        return 1 if self.api == self.block else 2

    @classmethod
    def read(cls, form: Sequence[Any], number: Callable[[Any, int], Number], blocks: int) -> AppendedRows:
        """What `form` gave.

        Raises:  ValueError where the form is not kept
        """
        input, output, block, api, *numbers = form
        if any(type(one) is not int or not 0 <= one < blocks for one in (block, api)) or len(numbers) != 3:
            raise ValueError(f"a stored plan appends rows to block {block}, {api} of {blocks}")
        return cls(str(input), str(output), block, api, *(number(one, 0) for one in numbers))

    def form(self) -> list[Any]:
        """As JSON."""
        return [self.input, self.output, self.block, self.api, *map(as_json, (self.outer, self.row, self.total))]


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
        held_bytes = 0 if slot is None else slot.nbytes * rows.narrow
        if slot is not None and (held_bytes % (outer * row) or held_bytes > capacity * outer * row):
            self.slots.remove(slot)  # of another batch, which is not what comes next
            slot.leave()
            slot = None
        held = None
        if held_bytes and slot is not None and kernels is not None:
            held = read_rows(kernels, pair.base, held_bytes, pair.outer, pair.stride)
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
        if pair.rows.narrow == 1:
            return read_rows(kernels, pair.base, slot.nbytes, pair.outer, pair.stride)
        part = slot.nbytes // pair.outer
        place = self._cast_room(pair.outer, slot.nbytes)
        self._cast(
            "f32_to_f16", [(pair.base + i * pair.stride, place + i * part) for i in range(pair.outer)], part // 2
        )
        return kernels.read(place, slot.nbytes)

    def write(self, own: AppendedRows, data: memoryview, outer: int, row: int) -> None:
        """Writes an input's rows, so many runs of them, into the place that they have here."""
        pair, kernels = self.pairs[own.input, own.output], self._memory.kernels
        assert kernels is not None
        stride, part = pair.capacity * row, len(data) // outer if outer else 0
        if own.narrow == 1:
            write_rows(kernels, pair.base, data, outer, stride)
        elif part:
            place = self._cast_room(outer, len(data))
            kernels.write(place, data)
            self._cast("f16_to_f32", [(place + i * part, pair.base + i * stride) for i in range(outer)], part // 2)

    def _cast_room(self, steps: int, nbytes: int) -> int:
        """The address of so many bytes at the API, beside the room for a program that casts them."""
        memory, room = self._memory, -(-(4 * (PROGRAM_HEADER_WORDS + steps * CAST_WORDS)) // LINE) * LINE
        memory.scratch = memory.area(memory.scratch, room + nbytes, "casts of states")
        return memory.scratch[0] + room

    def _cast(self, kernel: str, moves: Sequence[tuple[int, int]], count: int) -> None:
        """Casts so many elements from each first address to the second one."""
        kernels = self._memory.kernels
        assert kernels is not None
        steps = [Step(kernel, move, count, -1) for move in moves]
        kernels.write(self._memory.scratch[0], encode(steps, KERNELS))
        kernels.run(self._memory.scratch[0], 0, len(steps))


def write_rows(kernels: Kernels, address: int, data: memoryview, outer: int, stride: int) -> None:
    """Writes so many equal parts of the data, `stride` bytes apart."""
    part = len(data) // outer if outer else 0
    for i in range(outer if part else 0):
        kernels.write(address + i * stride, data[i * part : (i + 1) * part])


def read_rows(kernels: Kernels, address: int, nbytes: int, outer: int, stride: int) -> memoryview:
    """A copy of so many equal parts, `stride` bytes apart, one behind the other."""
    part = nbytes // outer
    return memoryview(b"".join(kernels.read(address + i * stride, part) for i in range(outer)))
