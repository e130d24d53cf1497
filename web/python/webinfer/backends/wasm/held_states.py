"""State that stays in the kernels' memory: an input whose next value is an output is neither read out nor written in.

Each such pair has two places of its own beside the arena, with room to grow. They change roles with every run: where an
output was written the input of the next run is read. Only a place that is outgrown is copied, into one twice as large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webinfer.backends.base import StateInput
from webinfer.backends.wasm.memory import LINE, KernelMemory
from webinfer.host.interface import Kernels
from webinfer.plan.blocks import SPARE, Block

GROWTH = 2  # times what is needed: a cache of 2,000 tokens is copied 11 times


@dataclass(slots=True)
class Pair:
    """An input's block and its output's, by their numbers; two places of `room` bytes lie from `base` on."""

    source: int
    target: int
    base: int = 0
    room: int = 0
    front: int = 0  # the place of the input

    def address(self, place: int) -> int:
        """Where one of the two places begins."""
        return self.base + place * (self.room + SPARE)


class HeldStates:
    """The pairs of one plan, by input and output, and whose state lies there."""

    def __init__(self, pairs: Mapping[tuple[str, str], Pair], blocks: Sequence[Block], memory: KernelMemory) -> None:
        self.pairs, self._blocks, self._memory = pairs, blocks, memory
        self.apart = {number for pair in pairs.values() for number in (pair.source, pair.target)}
        self.slots = list[StateInput]()

    def grow(self, needs: Mapping[int, int], model: str) -> None:
        """Makes room for so many bytes of blocks, by their numbers; what an input holds is kept.

        Raises:  LimitError naming the model; OutOfMemoryError
        """
        try:
            for names, pair in self.pairs.items():
                need = max(needs.get(number, self._blocks[number].nbytes) for number in (pair.source, pair.target))
                if pair.base and need <= pair.room:
                    continue
                room = -(-(GROWTH * need if pair.base or pair.source in needs else need) // LINE) * LINE
                held = next((slot for slot in self.slots if slot.input == names[0]), None)
                before = pair.address(pair.front)
                place, _ = self._memory.area((0, 0), 2 * (room + SPARE), model)
                self._memory.dead += 2 * (pair.room + SPARE) if pair.base else 0
                pair.base, pair.room, pair.front = place, room, 0
                kernels = self._memory.kernels
                if held is not None and kernels is not None and held.nbytes:
                    kernels.write(place, kernels.read(before, held.nbytes))
                for number in (pair.source, pair.target):
                    self._blocks[number].nbytes = room
        finally:
            self.place()

    def place(self) -> None:
        """Gives the blocks the addresses of the places that they have now."""
        for pair in self.pairs.values():
            if pair.base:
                self._blocks[pair.source].address = pair.address(pair.front)
                self._blocks[pair.target].address = pair.address(1 - pair.front)

    def swap(self) -> None:
        """After a run: what was written is what the next one reads."""
        for pair in self.pairs.values():
            pair.front = 1 - pair.front
        self.place()

    def read(self, kernels: Kernels, slot: StateInput) -> memoryview:
        """A copy of a state that lies here."""
        pair = self.pairs[slot.input, slot.output]
        return kernels.read(pair.address(pair.front), slot.nbytes) if slot.nbytes else memoryview(b"")
