"""A loop's turns, which kernels run by themselves: what they carry stays in the kernels' memory.

The plan's program is put between copies: what turns carry is copied from where it is held to the plan's inputs, and the
next state back to where it is held. What all turns read alike is written to the plan's inputs once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.loaded_plan import LoadedPlan, Place
from webinfer.plan import program
from webinfer.plan.blocks import ALIGNMENT, SPARE, Block, Kind, Ref, Step

COPY, NEST_BYTES = "b8_copy", 16  # of one row: its rank, its bytes and two strides, as include/walk.h has them
TURNS = struct.Struct("<6iq")  # include/turns.h
MOST, KEPT_BYTES = 256, 1 << 16  # turns of one call, and bytes of what they show; one turn at least
# Of a call, after which the next one has half as many turns: the event loop waits so long, a quarter of a frame.
LONG_MS = 4.0


class CarriedTurns:
    """The turns of a loop on the kernels of its turn's plan. Nothing else may run there before the last one."""

    def __init__(
        self, plan: LoadedPlan, inputs: Mapping[str, Any], carried: Mapping[str, str], shown: Sequence[str],
        unchanged: Set[str], now_ms: Callable[[], float],
    ) -> None:  # fmt: skip
        """`carried` maps outputs to the inputs that they are in the next turn; `shown` are outputs to read each turn.

        The first input is the turn's number. A run leaves the inputs `unchanged` as they are.
        """
        self._plan, self._now_ms, layout = plan, now_ms, plan.layout
        number, *others = layout.inputs
        alike = [place for place in others if place.name in unchanged - {*carried.values()}]
        others = [place for place in others if place not in alike]
        ends = {place.name: place for place in layout.outputs}
        held, at = dict[str, Block](), 0
        for place in others:
            held[place.name], at = _block(place.type.nbytes, at), at + _span(place.type.nbytes)
        self._shown, first = list[tuple[int, int]](), at  # where an output begins, and its bytes
        for name in shown:
            self._shown.append((at - first, ends[name].type.nbytes))
            at += _span(ends[name].type.nbytes)
        self._size = at - first
        self._at_once, self._room = 1, max(1, min(MOST, KEPT_BYTES // self._size))
        kept, at = at, at + self._room * self._size
        turns, at = at, at + _span(TURNS.size)
        pairs = [(_there(place), held[place.name]) for place in others]
        copies = [(source, target) for target, source in pairs]
        outs = [
            (_there(ends[name]), _block(nbytes, first + where))
            for name, (where, nbytes) in zip(shown, self._shown, strict=True)
        ]
        outs += [(_there(ends[end]), held[name]) for end, name in carried.items()]
        tables, records = at, _records(plan)
        count, words = len(copies) + len(outs), sum(map(len, records)) + 64 * (len(copies) + len(outs)) + 64
        base = plan.area(tables + count * NEST_BYTES + words)
        for block in {*held.values(), *(target for _, target in outs[: len(self._shown)])}:
            block.address += base
        nests = iter(range(base + tables, base + tables + count * NEST_BYTES, NEST_BYTES))
        before, after = _copies(copies, nests, plan), _copies(outs, nests, plan)
        text = program.assemble([*before, *records, *after])
        address, steps = base + tables + count * NEST_BYTES, len(before) + len(records) + len(after)
        self._turns, self._kept = base + turns, base + kept
        self._held = {name: block.address for name, block in held.items()}
        self._types = {place.name: place.type for place in others}
        plan.kernels.write(address, text)
        told = TURNS.pack(address, steps, number.address, base + first, self._size, self._kept, 0)
        plan.kernels.write(self._turns, told)
        self._fill(inputs, {place.name: place for place in alike})

    def _fill(self, inputs: Mapping[str, Any], alike: Mapping[str, Place]) -> None:
        """Writes what all turns read alike to the plan's inputs, and the state before the first turn."""
        for name, place in alike.items():
            if place.type.nbytes:
                self._plan.kernels.write(place.address, inputs[name])
        for name, address in self._held.items():
            if self._types[name].nbytes:
                self._plan.kernels.write(address, inputs[name])

    async def turns(self, most: int) -> tuple[int, bool, list[list[memoryview]]]:
        """Runs the next turns, at most so many: how many ran, whether the loop goes on, what each output listed."""
        start = self._now_ms()
        done = self._plan.run_turns(self._turns, min(most, self._at_once))
        took = self._now_ms() - start
        if took > LONG_MS:
            self._at_once = max(self._at_once // 2, 1)
        elif took < LONG_MS / 2 and done == self._at_once:
            self._at_once = min(self._at_once * 2, self._room)
        data, size = self._plan.kernels.read(self._kept, done * self._size), self._size
        _, *listed = self._shown
        parts = [[data[i + at : i + at + nbytes] for i in range(0, done * size, size)] for at, nbytes in listed]
        return done, data[(done - 1) * size] != 0, parts

    async def held(self, name: str) -> memoryview:
        """What an input is in the next turn."""
        nbytes = self._types[name].nbytes
        return self._plan.kernels.read(self._held[name], nbytes) if nbytes else memoryview(b"")


def _span(nbytes: int) -> int:
    return (nbytes + SPARE + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def _block(nbytes: int, address: int) -> Block:
    return Block("held", nbytes, Kind.CONSTANT, address=address)


def _there(place: Place) -> Block:
    return _block(place.type.nbytes, place.address)


def _records(plan: LoadedPlan) -> list[bytes]:
    layout = plan.layout
    return program.records(bytes(plan.kernels.read(layout.program, layout.fixed_end - layout.program)))


def _copies(pairs: Iterable[tuple[Block, Block]], nests: Iterable[int], plan: LoadedPlan) -> list[bytes]:
    """The records that copy one block to another; writes their loop nests."""
    steps = []
    for (source, target), place in zip(pairs, nests, strict=False):
        if source.nbytes:
            plan.kernels.write(place, struct.pack("<4i", 1, source.nbytes, 1, 1))
            table = Ref(_block(NEST_BYTES, place))
            steps.append(Step(COPY, (Ref(source), Ref(target), table), source.nbytes, -1, 0))
    return program.records(program.encode(steps, KERNELS))
