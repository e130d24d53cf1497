"""Which words of a plan follow sizes, and how an executor brings them to other sizes. Knows no graph.

Binding evaluates expressions, writes the constants that follow sizes and the program beside them in one piece, and
moves the arena where a tensor has outgrown its place. Weights stay where they are.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Container, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple, Protocol

from webinfer.backends.base import BindableExecutor, InPlace, StateInput
from webinfer.backends.wasm.held_states import AppendedRows, HeldStates, Pair, write_rows
from webinfer.backends.wasm.loaded_plan import LoadedPlan, Place
from webinfer.backends.wasm.sharing import shares_of
from webinfer.errors import InputError, LimitError, OutOfMemoryError
from webinfer.graph.ir import Value
from webinfer.host.interface import Kernels
from webinfer.kernel_constants import MEMORY_MAX_BYTES
from webinfer.lazy_dataclass import dataclass
from webinfer.lowering.followed_graph import Number, as_json
from webinfer.plan import arena
from webinfer.plan.blocks import ALIGNMENT, Block
from webinfer.tensor import Tensor

GROWTH = 5, 4  # the room that tensors get when one has outgrown its own: 200 steps of a decoder move the arena 24 times
_WORD = 0xFFFFFFFF  # all bits of a word


class Owner(NamedTuple):
    """Of a step: the node that it computes, whose work counts when threads share it."""

    node: int


@dataclass(slots=True)
class SizedWords:
    """The text that holds all words which follow sizes, from the address `first` on, and where they lie in it.

    Places count words of the text; an expression is a place in the list of values. Blocks are those of the arena.
    """

    first: int
    words: array[int]
    blocks: list[Block]
    needs: list[tuple[int, int]]  # a block's number and the expression of its bytes
    plain: list[tuple[int, int]] = field(default_factory=list)  # a word's place, and its expression
    wide: list[tuple[int, int]] = field(default_factory=list)  # of two words
    floats: list[tuple[int, int]] = field(default_factory=list)
    offsets: list[tuple[int, int, int]] = field(default_factory=list)  # a word's place, a block, an expression
    pointers: list[tuple[int, int, int]] = field(default_factory=list)  # and the bytes from where a block begins
    shares: list[int] = field(default_factory=list)  # places, one a step; none where one thread runs
    owners: list[Owner] = field(default_factory=list)  # of the steps, where threads share them
    units: list[Number] = field(default_factory=list)
    works: dict[int, Number] = field(default_factory=dict)
    placed: bool = field(init=False, default=False)  # whether the blocks have addresses

    def outgrown(self, found: Sequence[int]) -> bool:
        """Whether a tensor has no room where it lies, or lies nowhere yet."""
        if not self.placed:
            return True
        blocks = self.blocks
        return any(found[i] > blocks[block].nbytes for block, i in self.needs)

    def text(self, found: Sequence[int]) -> bytes:
        """The text for these values of the expressions."""
        words, blocks = self.words[:], self.blocks
        for place, i in self.plain:
            words[place] = found[i] & _WORD
        for place, i in self.wide:
            words[place], words[place + 1] = found[i] & _WORD, found[i] >> 32 & _WORD
        for place, i in self.floats:
            (words[place],) = struct.unpack("<I", struct.pack("<f", found[i]))
        for place, block, i in self.offsets:
            words[place] = blocks[block].address + found[i]
        if self.shares:
            units = [found[u[0]] if isinstance(u, tuple) else u for u in self.units]
            works = {n: found[w[0]] if isinstance(w, tuple) else w for n, w in self.works.items()}
            for place, share in zip(self.shares, shares_of(self.owners, units, works), strict=True):
                words[place] = share
        return words.tobytes()

    def point(self, only: Container[int] | None = None) -> None:
        """Takes over where the blocks lie now, all or those of these numbers."""
        self.placed = True
        for place, block, offset in self.pointers:
            if only is None or block in only:
                self.words[place] = self.blocks[block].address + offset


class Sizes(Protocol):
    """The sizes that are bound, and what follows them."""

    sizes: list[int]
    found: list[int]

    def evaluate(self, sizes: Sequence[int]) -> list[int]:
        """The expressions' values."""

    def bind(self, sizes: Sequence[int], found: list[int] | None = None) -> None:
        """Takes other sizes."""

    def at(self, number: Number) -> int:
        """A number, or the value of an expression."""


class SizedExecutor(LoadedPlan, BindableExecutor):
    """A plan that is bound to sizes by writing words. `_sized` are its words, `_sizes` what is bound."""

    _sized: SizedWords
    _sizes: Sizes
    holds_states = True
    _held: HeldStates | None = None
    _current = True  # whether the words in memory are those of the places that blocks have
    _rows: Sequence[AppendedRows] = ()  # inputs that outputs continue in the same place
    _has_room = False  # whether these lie as far apart as there is room for, not side by side

    async def bind(self, sizes: Sequence[int]) -> None:
        """Writes the words that follow sizes, and moves the arena where a tensor has outgrown its place."""
        if list(sizes) == self._sizes.sizes:
            return
        self._has_room = self._held is not None and bool(self._held.slots)
        found = self._fitted(sizes)
        self._sizes.bind(sizes, found)
        self._write_words(found)

    def _fitted(self, sizes: Sequence[int]) -> list[int]:
        """The expressions' values for these sizes, for which there is room then."""
        found = self._evaluated(sizes)
        if not self._sized.outgrown(found) and not self._rows_outgrown(found):
            return found
        try:
            self._move_arena(found)
        except BaseException:
            if self._sizes.sizes:  # some states may have moved, and lie further apart
                self._sizes.found = self._evaluated(self._sizes.sizes)
            raise
        return self._evaluated(sizes)

    def _rows_outgrown(self, found: Sequence[int]) -> bool:
        if self._held is None or not self._has_room or not self._rows:
            return False
        rows = self._held.capacities(self._rows)
        return any(
            capacity and _value(own.total, found) > capacity for own, capacity in zip(self._rows, rows, strict=True)
        )

    def _evaluated(self, sizes: Sequence[int]) -> list[int]:
        """The expressions' values: with the room that held states have, if it is in use."""
        held = self._held if self._has_room else None
        return self._sizes.evaluate([*sizes, *(held.capacities(self._rows) if held is not None else ())])

    def _use_room(self, has_room: bool) -> None:
        """Has inputs that are continued lie as far apart as there is room for, or side by side."""
        if self._rows and has_room is not self._has_room:
            self._has_room, self._current = has_room, False
            self._sizes.found = self._fitted(self._sizes.sizes)

    def _write_words(self, found: Sequence[int]) -> None:
        self._instance().write(self._sized.first, self._sized.text(found))
        inputs, outputs = self._ends()
        self.layout = replace(self.layout, inputs=inputs, outputs=outputs)
        self._current = True

    # ----- states

    def run_at_once(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs by name. A state that is among the inputs stays here, where there can be a place for it."""
        slots = [data for data in inputs.values() if isinstance(data, StateInput)]
        if not slots and self._held is None:
            return super().run_at_once(inputs)
        if not slots or not self._set_apart(slots):
            self._leave()
            return super().run_at_once({name: _plain(data) for name, data in inputs.items()})
        held = self._held
        assert held is not None
        for slot in [slot for slot in held.slots if slot not in slots]:
            held.slots.remove(slot)
            slot.leave()
        self._use_room(True)
        if not self._current:
            self._write_words(self._sizes.found)
        written = {n: d if isinstance(d, StateInput) and d.holder is self else _plain(d) for n, d in inputs.items()}
        kernels = super()._write_inputs(self._without_rows(written))
        opening, closing = self.casts
        self._call(kernels, opening, self.layout.steps - opening - closing)
        states = {slot.output: slot for slot in slots}
        found: dict[str, Any] = {
            place.name: states.get(place.name) or self._tensor(kernels, place.address, place.type)
            for place in self.layout.outputs
        }
        for place in self.layout.outputs:
            if place.name in states:
                states[place.name].hold(self, place.type.shape)
        held.slots = slots
        for own in self._rows:
            if pair := held.pairs.get((own.input, own.output)):
                pair.outer, pair.stride = self._at(own.outer), pair.capacity * self._at(own.row)
        if held.swaps:
            held.swap()
            self._sized.point(held.apart)
            self._current = False
        return found

    def _at(self, number: Number) -> int:
        return _value(number, self._sizes.found)

    def _without_rows(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Writes the inputs that are continued in their place, run by run; the others, and nothing for these."""
        left = dict(inputs)
        for own in self._rows:
            data = left[own.input]
            if isinstance(data, StateInput):
                continue  # lies there
            page = self._host.page_array(data)
            if isinstance(data, InPlace):
                raise InputError(f"input {own.input!r} is continued where it lies, so that it cannot be written there")
            view = memoryview(data if page is None else page if isinstance(page, memoryview) else page.view())
            outer, row, data = self._at(own.outer), self._at(own.row), view.cast("B")
            held = self._held if self._has_room else None
            if held is not None and (own.input, own.output) in held.pairs:
                held.write(own, data, outer, row)
            else:
                place = self._sized.blocks[own.api].address
                write_rows(self._instance(), place, data, outer, self._at(own.total) * row // own.narrow)
            left[own.input] = b""
        return left

    def _write_inputs(self, inputs: Mapping[str, Any]) -> Kernels:
        if self._held is not None and not any(isinstance(data, StateInput) for data in inputs.values()):
            self._leave()
        self._use_room(False)
        if not self._current:
            self._write_words(self._sizes.found)
        return super()._write_inputs(self._without_rows(inputs))

    def read_state(self, slot: StateInput) -> memoryview:
        """A copy of a state that lies here.

        Raises:  ClosedError if the kernels have trapped meanwhile
        """
        assert self._held is not None
        return self._held.read(self._instance(), slot)

    async def fetch_state(self, slot: StateInput) -> memoryview:
        """As `read_state`."""
        return self.read_state(slot)

    async def give_state(self, slot: StateInput) -> None:
        """Reads a state out, with those that lie beside it."""
        self._leave()

    def close(self) -> None:
        """As every plan's; states that lie here are read out."""
        if not self.closed:
            self._leave()
        super().close()

    def _leave(self) -> None:
        """Reads out the states that lie here: their places are needed."""
        slots = self._held.slots if self._held is not None else []
        while slots:
            slots.pop().leave()

    def _set_apart(self, slots: Sequence[StateInput]) -> bool:
        """Gives inputs and outputs places of their own, unless they have them; whether there can be such places."""
        pairs = [(slot.input, slot.output) for slot in slots]
        if not all(place.type.nbytes for place in self.layout.outputs if place.name in dict(pairs).values()):
            return False  # of a branch that was not taken: the state stays what it is
        if self._held is not None and [*self._held.pairs] == pairs:
            return True
        rows = {(own.input, own.output): own for own in self._rows}
        blocks = [self._block_of(name) for pair in pairs if pair not in rows for name in pair]
        types = {place.name: place.type.dtype for place in (*self.layout.inputs, *self.layout.outputs)}
        if None in blocks or len({*blocks}) < len(blocks):
            return False
        if any(own.narrow > 1 and names not in pairs for names, own in rows.items()):
            return False  # runs of held states leave out the casts of all
        if self._held is not None or any(types[a] is not types[b] for a, b in pairs):  # a model has one set of states
            return False
        numbers, made = iter(blocks), dict[tuple[str, str], Pair]()
        for pair in pairs:
            own = rows.get(pair)
            made[pair] = (
                Pair(next(numbers) or 0, next(numbers) or 0) if own is None else Pair(own.block, own.block, own)
            )
        held = HeldStates(made, self._sized.blocks, self._lodgings())
        found, before = self._sizes.found, [(block, block.nbytes, block.address) for block in self._sized.blocks]
        try:
            needs = {block: found[i] for block, i in self._sized.needs if block in held.apart}
            held.grow(needs, self.layout.name, self._at)
        except (LimitError, OutOfMemoryError):
            for block, nbytes, address in before:
                block.nbytes, block.address = nbytes, address
            return False
        self._held = held
        self._sized.point(held.apart)
        self._write_words(found)
        self.layout = replace(self.layout, top=max(self.layout.top, self._lodgings().end))
        return True

    def _block_of(self, name: str) -> int | None:
        """The number of the arena's block that an input or output fills from its first byte; None if there is none."""
        raise NotImplementedError

    def _ends(self) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
        """Where inputs and outputs lie for the sizes that are bound."""
        raise NotImplementedError

    def _place(self, value: Value, address: int) -> Place:
        return Place(value.name, value.type, address if value.type.nbytes else 0)

    def _move_arena(self, found: Sequence[int]) -> None:
        """Makes room where a tensor has outgrown its place: in the arena, or for states that lie beside it."""
        sized, apart = self._sized, self._held.apart if self._held is not None else set[int]()
        needs = {block: found[i] for block, i in sized.needs if block not in apart}
        if self._held is not None:
            try:
                own = {block: found[i] for block, i in sized.needs if block in apart}
                self._held.grow(own, self.layout.name, lambda number: _value(number, found))
            finally:  # a state that was moved is read from where it is, whatever became of the others
                sized.point(apart)
                self._current = False
            if not any(need > sized.blocks[block].nbytes for block, need in needs.items()):
                return
        self._lay_out([block for number, block in enumerate(sized.blocks) if number not in apart], needs)

    def _lay_out(self, blocks: Sequence[Block], needs: Mapping[int, int]) -> None:
        """Lays the arena out anew: what follows sizes gets a quarter more than it needs, or keeps what it has."""
        memory, sized = self._lodgings(), self._sized
        before = [(block.nbytes, block.address) for block in blocks]
        try:
            for more in (GROWTH, (1, 1)):
                for number, need in needs.items():
                    block = sized.blocks[number]
                    block.nbytes = max(block.nbytes, -(-need * more[0] // more[1]))
                nbytes = arena.assign(blocks)
                base, room = memory.arena
                at_end = _align(base + room) == _align(memory.end)
                if nbytes > room and not at_end:
                    base = _align(memory.end)
                if max(base + max(room, nbytes), memory.end) <= MEMORY_MAX_BYTES:
                    break
            else:
                what = f"memory of model {self.layout.name!r} in bytes"
                raise LimitError(what, base + nbytes, MEMORY_MAX_BYTES, "use a smaller model or input size")
            arena.check(blocks)
            if nbytes > room:
                self._instance().grow(base + nbytes)
                memory.dead += 0 if at_end else room
                memory.arena, memory.end = (base, nbytes), max(memory.end, base + nbytes)
        except BaseException:
            for block, (size, address) in zip(blocks, before, strict=True):
                block.nbytes, block.address = size, address
            raise
        for block in blocks:
            block.address += base
        sized.point()
        report = replace(self.layout.memory, arena=nbytes, arena_bound=arena.lower_bound(blocks))
        self.layout = replace(self.layout, memory=report, top=max(self.layout.top, memory.end))


def _value(number: Number, found: Sequence[int]) -> int:
    return found[number[0]] if isinstance(number, tuple) else number


def _plain(data: Any) -> Any:
    """An input as bytes."""
    return data.tensor().flat().cast("B") if isinstance(data, StateInput) else data


def _align(nbytes: int) -> int:
    return (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def written(sized: SizedWords, nbytes: Sequence[Any]) -> dict[str, Any]:
    """The JSON form of the words, but for the text itself; `nbytes` are the blocks' bytes as numbers or expressions."""
    return {
        "first": sized.first, "count": len(sized.words),
        "blocks": [[min(b.first, b.last), b.last, as_json(n)] for b, n in zip(sized.blocks, nbytes, strict=True)],
        **{key: getattr(sized, key) for key in ("plain", "wide", "floats", "offsets", "pointers", "shares")},
        "nodes": [owner.node for owner in sized.owners], "units": list(map(as_json, sized.units)),
        "works": [[node, as_json(work)] for node, work in sized.works.items()],
    }  # fmt: skip
