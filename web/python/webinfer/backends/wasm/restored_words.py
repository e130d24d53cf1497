"""A plan whose words follow sizes, out of the bytes of a package or of the plan cache; its graph was never read."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.backends.base import MemoryReport, RegimeExecutor
from webinfer.backends.wasm.held_states import AppendedRows
from webinfer.backends.wasm.loaded_plan import Layout, Place
from webinfer.backends.wasm.memory import Held, KernelMemory
from webinfer.backends.wasm.sized_words import Owner, SizedExecutor, SizedWords
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.host.interface import Host, Kernels
from webinfer.lowering.restored_sizes import RestoredSizes, whole
from webinfer.plan.blocks import Block, Kind


class RestoredWords:
    """The words of a stored plan, and where its inputs and outputs lie; checked against the bytes that there are."""

    def __init__(self, form: Mapping[str, Any], inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        rows = [*form["inputs"], *form["outputs"]]
        if len(form["inputs"]) != len(inputs) or len(rows) != len(inputs) + len(outputs):
            raise ModelFormatError("a stored plan has other inputs or outputs")
        self.values = [*inputs, *outputs]
        self.sizes = sizes = RestoredSizes(form["sizes"], self.values, [*form["shapes"][0], *form["shapes"][1]])
        self._blocks = [
            (_within(first, 1 << 31, -1), _within(last, 1 << 31, -1), sizes.number(nbytes, 0))
            for first, last, nbytes in form["blocks"]
        ]
        self.places = [(_within(block, len(self._blocks), -1), sizes.number(at, 0)) for block, at in rows]
        self.form = form
        self.first, self.count = whole(form["first"]), whole(form["count"])

    def words(self, kernels: Kernels) -> SizedWords:
        """The words, of which the text lies in the kernels' memory."""
        form, count, sizes = self.form, self.count, self.sizes
        if self.first % 4 or self.first + 4 * count > kernels.size():
            raise ModelFormatError(f"the words of a stored plan lie at {self.first}")
        blocks, needs = list[Block](), list[tuple[int, int]]()
        for number, (first, last, nbytes) in enumerate(self._blocks):
            if isinstance(nbytes, tuple):
                needs.append((number, nbytes[0]))
            blocks.append(Block(f"{number}", 0 if isinstance(nbytes, tuple) else nbytes, Kind.ARENA, first, last))
        pairs = {
            key: [(_within(place, limit), _within(i, sizes.count)) for place, i in form[key]]
            for key, limit in (("plain", count), ("wide", count - 1), ("floats", count))
        }
        offsets = [
            (_within(p, count), _within(block, len(blocks)), _within(i, sizes.count)) for p, block, i in form["offsets"]
        ]
        pointers = [(_within(p, count), _within(block, len(blocks)), whole(at)) for p, block, at in form["pointers"]]
        if len(form["shares"]) not in (0, len(form["nodes"])) or len(form["nodes"]) != len(form["units"]):
            raise ModelFormatError("a stored plan has shares of other steps")
        works = {_within(node, 1 << 31, -1): sizes.number(work) for node, work in form["works"]}
        owners = [Owner(node) for node in form["nodes"]]
        if any(owner.node not in works for owner in owners):
            raise ModelFormatError("a stored plan has steps of nodes without work")
        text = array("I", bytes(kernels.read(self.first, 4 * count)))
        return SizedWords(
            self.first, text, blocks, needs, **pairs, offsets=offsets, pointers=pointers,
            shares=[_within(place, count) for place in form["shares"]], owners=owners,
            units=[sizes.number(units, 0) for units in form["units"]], works=works,
        )  # fmt: skip


class RestoredSizedExecutor(SizedExecutor, RegimeExecutor):
    """Binds the words of a stored plan, whose bytes lie in memory; the arena is laid out when sizes are bound."""

    def __init__(
        self, ends: Graph, facts: Mapping[str, Any], words: RestoredWords, host: Host, memory: KernelMemory,
        areas: Held | None = None,
    ) -> None:  # fmt: skip
        """`facts`: "program", its address and steps, and "memory", the fields of a report; `areas` are its bytes."""
        kernels = memory.kernels
        assert kernels is not None
        program, steps = map(whole, facts["program"])
        report = MemoryReport(*map(whole, facts["memory"]))
        layout = Layout(ends.name, (), (), program, steps, memory.end, memory.end, memory.end, report)
        super().__init__(layout, host, kernels, memory, areas)
        self.ends, self.trace = ends, words.sizes.trace
        self._words, self._sizes, self._sized = words, words.sizes, words.words(kernels)
        blocks = len(self._sized.blocks)
        self._rows = [
            AppendedRows.read(form, words.sizes.number, blocks) for form in words.form.get("rows_appended", ())
        ]
        opening, closing = words.form.get("casts", (0, 0))
        self.casts = _within(opening, steps + 1), _within(closing, steps + 1 - opening)

    async def bind(self, sizes: Sequence[int]) -> None:
        """As every one; inputs and outputs follow even where nothing else has to: regimes share them."""
        if list(sizes) == self._sizes.sizes:
            self._words.sizes.bind(sizes, self._words.sizes.found)
        await super().bind(sizes)

    def _block_of(self, name: str) -> int | None:
        words = self._words
        for value, (block, at) in zip(words.values, words.places, strict=True):
            if value.name == name:
                return block if block >= 0 and at == 0 else None
        return None

    def _ends(self) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
        words, blocks = self._words, self._sized.blocks
        places = [
            self._place(value, words.sizes.at(at) + (blocks[block].address if block >= 0 else 0))
            for value, (block, at) in zip(words.values, words.places, strict=True)
        ]
        count = len(self._words.form["inputs"])
        return tuple(places[:count]), tuple(places[count:])


def _within(word: Any, limit: int, least: int = 0) -> int:
    if type(word) is not int or not least <= word < limit:
        raise ModelFormatError(f"a stored plan has {str(word)[:40]}, needs a number from {least} to {limit - 1}")
    return word
