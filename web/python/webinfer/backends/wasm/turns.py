"""A loop's turns: what they carry goes from one to the next inside the kernels' memory, not through the host.

The plan's program is put between copies: what turns carry is copied from where it is held to the plan's inputs, and the
next state back to where it is held. What all turns read alike is written to the plan's inputs once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.loaded_plan import LoadedPlan, Place
from webinfer.plan import program
from webinfer.plan.blocks import ALIGNMENT, SPARE, Block, Kind, Ref, Step

COPY, NEST_BYTES = "b8_copy", 16  # of one row: its rank, its bytes and two strides, as include/walk.h has them


class CarriedTurns:
    """The turns of a loop on the kernels of its turn's plan. Nothing else may run there before the last one."""

    def __init__(
        self, plan: LoadedPlan, inputs: Mapping[str, Any], carried: Mapping[str, str], shown: Sequence[str],
        unchanged: Set[str],
    ) -> None:  # fmt: skip
        """`carried` maps outputs to the inputs that they are in the next turn; `shown` are outputs to read each turn.

        The first input is the turn's number. A run leaves the inputs `unchanged` as they are.
        """
        self._plan, layout = plan, plan.layout
        number, *others = layout.inputs
        alike = [place for place in others if place.name in unchanged - {*carried.values()}]
        others = [place for place in others if place not in alike]
        ends = {place.name: place for place in layout.outputs}
        held, at = dict[str, Block](), 0
        for place in others:
            held[place.name], at = _block(place.type.nbytes, at), at + _span(place.type.nbytes)
        self._shown, first = dict[str, tuple[int, int]](), at
        for name in shown:
            self._shown[name], at = (at - first, ends[name].type.nbytes), at + _span(ends[name].type.nbytes)
        self._size = at - first
        pairs = [(_there(place), held[place.name]) for place in others]
        copies = [(source, target) for target, source in pairs]
        outs = [(_there(ends[name]), _block(nbytes, first + where)) for name, (where, nbytes) in self._shown.items()]
        outs += [(_there(ends[end]), held[name]) for end, name in carried.items()]
        tables, records = at, _records(plan)
        count, words = len(copies) + len(outs), sum(map(len, records)) + 64 * (len(copies) + len(outs)) + 64
        base = plan.area(tables + count * NEST_BYTES + words)
        for block in {*held.values(), *(target for _, target in outs[: len(self._shown)])}:
            block.address += base
        nests = iter(range(base + tables, base + tables + count * NEST_BYTES, NEST_BYTES))
        before, after = _copies(copies, nests, plan), _copies(outs, nests, plan)
        text = program.assemble([*before, *records, *after])
        self._program, self._steps = base + tables + count * NEST_BYTES, len(before) + len(records) + len(after)
        self._number, self._results = number.address, base + first
        self._held = {name: block.address for name, block in held.items()}
        self._types = {place.name: place.type for place in others}
        plan.kernels.write(self._program, text)
        for place in alike:
            if place.type.nbytes:
                plan.kernels.write(place.address, inputs[place.name])
        for name, address in self._held.items():
            if self._types[name].nbytes:
                plan.kernels.write(address, inputs[name])

    def turn(self, number: int) -> dict[str, memoryview]:
        """Runs one turn; the outputs that are to be shown, each a copy."""
        kernels = self._plan.kernels
        kernels.write(self._number, struct.pack("<q", number))
        self._plan.run_program(self._program, self._steps)
        data = kernels.read(self._results, self._size)
        return {name: data[at : at + nbytes] for name, (at, nbytes) in self._shown.items()}

    def held(self, name: str) -> memoryview:
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
