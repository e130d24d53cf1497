"""Caches to which runs append where they lie: a step of a decoder writes its new rows and copies nothing.

An input and its next value have one place on the device, with room for more rows, which stays from run to run. A run
whose states lie there leaves out the dispatches that copy inputs to their places. States of others, and all that is no
run with states, find rows side by side: what lies in the places then moves to buffers of its own, on the GPU.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from types import MappingProxyType
from typing import Any, NamedTuple

from webinfer.backends.base import StateInput
from webinfer.backends.webgpu.loaded_program import LoadedProgram, destroy
from webinfer.errors import DeviceLostError, WebinferError
from webinfer.host.coroutines import driven
from webinfer.host.gpu import GpuProgram, GpuTensor, SharedBuffer, SpacedSpan
from webinfer.host.interface import Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.lowering.followed_graph import Number, as_json
from webinfer.tensor import Tensor

GROWTH = 2  # times the rows that are needed, for a place that is outgrown: a cache of 2,000 tokens moves 11 times
Taken = Mapping[int, SharedBuffer]  # by the number of an own buffer: what takes its place
EMPTY: Taken = MappingProxyType({})


class AppendedRows(NamedTuple):
    """An input and the output that has rows behind the input's, in a place of their own.

    There are `outer` runs of `total` rows of `row` bytes, as many rows apart as there is room for.
    """

    input: str
    output: str
    step: int  # of a run, which copies the input to the place
    buffer: int  # the place
    outer: Number
    row: Number
    total: Number

    @classmethod
    def read(cls, form: Sequence[Any], number: Callable[[Any, int], Number], steps: int, buffers: int) -> AppendedRows:
        """What `form` gave.

        Raises:  ValueError where the form is not kept
        """
        input, output, step, buffer, *numbers = form
        for value, end in ((step, steps), (buffer, buffers)):
            if type(value) is not int or not 0 <= value < end or len(numbers) != 3:
                raise ValueError(f"a stored plan appends rows by {form}")
        return cls(str(input), str(output), step, buffer, *(number(one, 0) for one in numbers))

    def form(self) -> list[Any]:
        """As JSON."""
        return [*self[:4], *map(as_json, self[4:])]


@dataclass(slots=True)
class Places:
    """The states that lie in the places of a program, or of several of one model: of all places, or none."""

    slots: list[StateInput] = field(default_factory=list)
    strides: list[tuple[int, int]] = field(default_factory=list)  # of each: runs of rows, bytes between them


class RowProgram(LoadedProgram):
    """A program with symbols whose runs may append rows. Subclasses bind sizes, with room for so many rows a place.

    A program whose sizes come next takes over the places of the one before, with what lies there: many kernels are
    chosen by whether a size is a multiple of four, so that a decoder goes on with another program at every fourth step.
    """

    appended: Sequence[AppendedRows] = ()
    _capacities: Sequence[int] = ()  # the rows that places have room for; none while rows lie side by side
    _strides: list[tuple[int, int]]  # of states that are written with this room
    _skipped: Collection[int] = ()  # steps of a run that are left out, for what they would copy lies there
    _places: Places
    _turn: asyncio.Lock

    # ----- what subclasses do

    def _sizes_bound(self) -> list[int]:
        """The sizes that are bound."""
        raise NotImplementedError

    def _evaluated(self, sizes: Sequence[int], capacities: Sequence[int]) -> list[int]:
        """The expressions' values for these sizes and rows that places have room for."""
        raise NotImplementedError

    async def _bind(
        self, sizes: Sequence[int], capacities: Sequence[int], skipped: Collection[int], taken: Taken
    ) -> None:
        """Brings the program to these sizes, and to buffers that are `taken`; what lies in buffers that are not made
        anew stays."""
        raise NotImplementedError

    # ----- sizes

    async def load(self, progress: Progress | None = None) -> None:
        """As every program; what lay on a device before is lost."""
        self._places, self._capacities, self._skipped, self._strides = Places(), (), (), []
        self._turn = asyncio.Lock()
        await super().load(progress)

    async def bind(self, sizes: Sequence[int]) -> None:
        """Writes parameters and counts of workgroups, and makes buffers anew that are too small."""
        if list(sizes) != self._sizes_bound():
            await LoadedProgram._ready(self)
            await self._arrange(sizes, in_place=bool(self._places.slots))

    async def _ready(self) -> GpuProgram:
        """The program, whose rows lie side by side."""
        program = await super()._ready()
        if self._capacities or self._places.slots:
            await self._arrange(self._sizes_bound(), in_place=False)
        return program

    async def _arrange(self, sizes: Sequence[int], in_place: bool, taken: Taken = EMPTY) -> None:
        """Binds sizes, with rows in their places or side by side; states that cannot stay there leave."""
        capacities, before = list[int](), [self.recipe.sizes[one.buffer] for one in self.appended]
        if in_place:
            capacities, self._strides = self._room(sizes, before)
        if not in_place or self._strides != self._places.strides:
            await self._leave()
        skipped = frozenset(one.step for one in self.appended) if self._places.slots else frozenset[int]()
        await self._bind(sizes, capacities, skipped, taken)
        self._capacities, self._skipped = capacities, skipped
        if before != [self.recipe.sizes[one.buffer] for one in self.appended]:
            self._places = Places()  # others keep those that were outgrown

    def _room(self, sizes: Sequence[int], nbytes: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
        """For how many rows places of so many bytes have room, more where they are outgrown; and the strides then."""
        found, capacities, strides = self._evaluated(sizes, ()), list[int](), list[tuple[int, int]]()
        for one, size in zip(self.appended, nbytes, strict=True):
            outer, row, total = (_value(number, found) for number in one[4:])
            room = size // (outer * row)
            capacities.append(room if total <= room else max(total, min(GROWTH * total, self._limit // (outer * row))))
            strides.append((outer, capacities[-1] * row))
        return capacities, strides

    async def _take_over(self, other: RowProgram) -> None:
        """Goes on with the places of another program of the same model, in which its states stay, if they can."""
        sizes = [other.recipe.sizes[one.buffer] for one in other.appended]
        if other._program is None or self._room(self._sizes_bound(), sizes)[1] != other._places.strides:
            return
        await self._leave()
        taken = dict[int, SharedBuffer]()
        for one, theirs, nbytes in zip(self.appended, other.appended, sizes, strict=True):
            taken[one.buffer] = SharedBuffer(other._program, theirs.buffer)
            self.recipe.sizes[one.buffer] = nbytes
        self._places = other._places
        await self._arrange(self._sizes_bound(), in_place=True, taken=taken)

    def _may_take_over(self, other: Any) -> bool:
        """Whether another program of the same model has places that are not this one's."""
        return (
            isinstance(other, RowProgram)
            and other._places is not self._places
            and other._device is self._device
            and [one[:2] for one in other.appended] == [one[:2] for one in self.appended]
        )

    @property
    def _limit(self) -> int:
        """Bytes of the largest buffer."""
        limits = self._device.limits
        return min(limits["maxStorageBufferBindingSize"], limits["maxBufferSize"])

    # ----- runs

    async def run(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """As every program's; states are appended to where they lie. Such models run one run at a time."""
        if not self.appended:
            return await super().run(inputs)
        async with self._turn:
            slots = [slot for one in self.appended if (slot := _state_of(inputs, one)) is not None]
            if len(slots) < len(self.appended):
                return await super().run(inputs)
            return await self._run_in_place(inputs, slots)

    async def _run_in_place(self, inputs: Mapping[str, Any], slots: list[StateInput]) -> dict[str, Tensor]:
        program = await LoadedProgram._ready(self)
        other: Any = slots[0].holder
        if self._may_take_over(other) and slots == other._places.slots:
            await self._take_over(other)
        stay = slots == self._places.slots
        if not stay:
            await self._leave()
        if not self._capacities or bool(self._skipped) is not stay:
            await self._arrange(self._sizes_bound(), in_place=True)
        there = {one.input for one in self.appended} if stay else set[str]()
        given = {name: data for name, data in inputs.items() if name not in there}
        states = {data.output: data for data in inputs.values() if isinstance(data, StateInput)}
        found = await self._run_with_states(program, given, states, {one.output for one in self.appended})
        shapes = {value.name: value.type.shape for value in self.ends.outputs}
        for slot in slots:
            slot.hold(self, shapes[slot.output])
        self._places.slots, self._places.strides = slots, self._strides
        return found

    async def run_page(self, arrays: Sequence[Any]) -> dict[str, Tensor] | None:
        """As every program's; None while states lie in their places."""
        return None if self._capacities or self._places.slots else await super().run_page(arrays)

    # ----- states

    def _place_of(self, slot: StateInput) -> SpacedSpan:
        """Where a state lies.

        Raises:  DeviceLostError
        """
        there = self._places
        for one, own, (outer, stride) in zip(self.appended, there.slots, there.strides, strict=False):
            if own is slot:
                return SpacedSpan(one.buffer, 0, slot.nbytes, outer, stride)
        raise DeviceLostError(f"the GPU was lost with the state {slot.input!r} of {self.ends.name!r}; start over")

    async def _leave(self) -> None:
        """Moves the states that lie in places to buffers of their own, on the device."""
        slots = [slot for slot in self._places.slots if slot.holder is not None]
        if slots:
            assert self._program is not None
            buffers = await self._program.keep(self._base, 0, [self._place_of(slot) for slot in slots])
            for slot, buffer in zip(slots, buffers, strict=True):
                slot.put(GpuTensor(buffer, slot.shape, slot.dtype, self._device, destroy))
        self._places.slots = []

    def read_state(self, slot: StateInput) -> memoryview:
        """A copy of a state that lies here.

        Raises:  InputError in a page, where reading has to be awaited; DeviceLostError
        """
        found: memoryview = driven(self.fetch_state(slot))
        return found

    async def fetch_state(self, slot: StateInput) -> memoryview:
        """As `read_state`.

        Raises:  DeviceLostError
        """
        program, span = self._program, self._place_of(slot)
        assert program is not None
        (data,) = await program.run(self._base, 0, [span])
        return data

    async def give_state(self, slot: StateInput) -> None:
        """Moves a state to a buffer of its own, with those that lie beside it.

        Raises:  DeviceLostError
        """
        self._place_of(slot)
        await self._leave()

    def close(self) -> None:
        """As every program's; states that lie here move to buffers of their own."""
        own = self.appended and any(slot.holder is self for slot in self._places.slots)
        if own and not self._closed and not self.lost:
            with suppress(WebinferError):
                driven(self._leave())
        super().close()


def _state_of(inputs: Mapping[str, Any], one: AppendedRows) -> StateInput | None:
    """The input's state, which the output is to be, if it has elements."""
    slot = inputs.get(one.input)
    return slot if isinstance(slot, StateInput) and slot.output == one.output and slot.nbytes else None


def _value(number: Number, found: Sequence[int]) -> int:
    return found[number[0]] if isinstance(number, tuple) else number
