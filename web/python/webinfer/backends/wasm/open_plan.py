"""A plan whose words follow the sizes of a model's inputs: lowered once with symbols, bound by writing words.

What lowering made of symbols is an expression: an argument, a unit count, the offset of a pointer, a word of a loop
nest. How they are written is in sized_words.py.
"""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from webinfer.backends.base import PlanRow
from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.executor import WasmExecutor
from webinfer.backends.wasm.held_states import AppendedRows
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.loaded_plan import Place
from webinfer.backends.wasm.lowerings.constants import narrow_output, widen_input
from webinfer.backends.wasm.memory import KernelMemory, pointers
from webinfer.backends.wasm.sharing import work_of
from webinfer.backends.wasm.sized_words import Owner, SizedExecutor, SizedWords
from webinfer.backends.wasm.sized_words import written as written_words
from webinfer.graph.dims import has_size, hint_of
from webinfer.graph.ir import Graph, Node, Value
from webinfer.graph.stored_trace import written as written_trace
from webinfer.graph.trace import Trace
from webinfer.host.interface import Host, Kernels
from webinfer.kernel_constants import PROGRAM_HEADER_WORDS, PROGRAM_RECORD_WORDS
from webinfer.lowering.followed_graph import FollowedGraph, ShowsFollowedGraph, as_json
from webinfer.plan.blocks import Kind, Ref
from webinfer.tensor import Tensor


class Followed(FollowedGraph):
    """What of a builder's plan follows sizes. The builder and the graph then hold the plan for the hint."""

    def __init__(self, trace: Trace, graph: Graph, builder: Builder, shared: bool) -> None:
        """`shared`: threads share steps, so that the nodes' work counts."""
        super().__init__(trace, graph)
        self.builder = builder
        ends = [(v, widen_input(builder, v)) for v in graph.inputs]
        ends += [(v, narrow_output(builder, v)) for v in graph.outputs]
        self.places = {v: (ref.block, self.number(ref.offset)) for v, ref in ends}
        self.refs = {v: (ref.block, self.number(ref.offset)) for v, ref in builder.known_refs().items()}
        steps, prepare = builder.run_part.steps, builder.prepare_part.steps
        works = {step.node: work_of(graph, step.node, builder.joined) for step in steps} if shared else {}
        self.works = {number: self.number(work) for number, work in works.items()}
        if any(has_size(step.args) or has_size(step.units) for step in prepare):
            raise NotImplementedError("a step of the load that follows sizes")
        if any(ref.block in builder.sized for step in prepare for ref in pointers(step)):
            raise NotImplementedError("a step of the load that reads what follows sizes")
        self.args = [[self._argument(arg) for arg in step.args] for step in steps]
        self.units = [self.number(step.units) for step in steps]
        self.blocks = [(b, self.number(b.nbytes)) for b in builder.run_part.blocks if has_size(b.nbytes)]
        self.words = {block: list(map(self.number, c.elements)) for block, c in builder.sized.items()}
        appended = {one.past: one for one in builder.appended.values()}.values()
        self.rows = [
            (
                one,
                (builder.ref(one.past).block, self.places[one.past][0]),
                [self.number(n) for n in (one.outer, 4 * one.row, one.result.type.shape[one.axis])],
            )
            for one in appended
        ]

    def _argument(self, arg: Any) -> Any:
        return (arg.block, self.number(arg.offset)) if isinstance(arg, Ref) else self.number(arg)

    def to_hint(self) -> None:
        """Leaves numbers in the builder and in the graph."""
        self.builder.replace_sizes(hint_of)
        super().to_hint()


class OpenExecutor(ShowsFollowedGraph, WasmExecutor, SizedExecutor):
    """A graph's plan for all sizes for which the guards of its trace hold."""

    _followed: Followed

    def __init__(self, followed: Followed, host: Host, kernels: Kernels, memory: KernelMemory | None) -> None:
        self._followed = self._sizes = followed
        followed.to_hint()
        self.ends = followed.graph
        super().__init__(followed.graph, host, kernels, followed.builder, memory=memory)
        blocks = [b for b in followed.builder.run_part.blocks if b.kind is Kind.ARENA]
        self._numbers = {block: i for i, block in enumerate(blocks)}
        self._rows = [
            AppendedRows(one.past.name, one.result.name, *(self._numbers[block] for block in blocks), *numbers)
            for one, blocks, numbers in followed.rows
        ]
        self.casts = followed.builder.casts
        followed.words = {b: words for b, words in followed.words.items() if b in followed.builder.constants}
        first = min([self.layout.program, *(block.address for block in followed.words)])
        text = kernels.read(first, self.layout.fixed_end - first)
        words = array("I", bytes(text[: len(text) // 4 * 4]))
        needs = [(self._numbers[block], i) for block, (i,) in followed.blocks]
        self._sized = SizedWords(first, words, blocks, needs)
        self._sized.placed = True
        self._find_words()

    def _ends(self) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
        graph = self._followed.graph
        return self._places(graph.inputs), self._places(graph.outputs)

    def _block_of(self, name: str) -> int | None:
        for value, (block, offset) in self._followed.places.items():
            if value.name == name:
                return self._numbers.get(block) if offset == 0 else None
        return None

    def _places(self, values: Sequence[Value]) -> tuple[Place, ...]:
        followed, places = self._followed, list[Place]()
        for value in values:
            type, (block, offset) = value.type, followed.places[value]
            places.append(Place(value.name, type, 0 if 0 in type.shape else block.address + followed.at(offset)))
        return tuple(places)

    def _find_words(self) -> None:
        """Notes where the words lie that follow sizes, and those that point into the arena."""
        sized, followed = self._sized, self._followed
        for block, numbers in followed.words.items():
            wide = block.nbytes // max(len(numbers), 1) == 8
            for i, number in enumerate(numbers):
                if isinstance(number, tuple):
                    place = (block.address - sized.first) // 4 + i * (2 if wide else 1)
                    (sized.wide if wide else sized.plain).append((place, number[0]))
        if followed.works:
            sized.owners, sized.units = [Owner(step.node) for step in self._steps], followed.units
            sized.works = followed.works
        at = (self.layout.program - sized.first) // 4 + PROGRAM_HEADER_WORDS
        for step, args, units in zip(self._steps, followed.args, followed.units, strict=True):
            if isinstance(units, tuple):
                sized.plain.append((at + 2, units[0]))
            if followed.works:
                sized.shares.append(at + 3)
            kinds = KERNELS[step.kernel].args.values()
            for place, (arg, kind) in enumerate(zip(args, kinds, strict=True), at + PROGRAM_RECORD_WORDS):
                self._find_word(place, arg, kind)
            at += PROGRAM_RECORD_WORDS + len(args)

    def _find_word(self, place: int, arg: Any, kind: str) -> None:
        sized = self._sized
        if kind == "ptr":
            if arg is None:
                return
            block, offset = arg
            if isinstance(offset, tuple):
                sized.offsets.append((place, self._numbers[block], offset[0]))
            elif block.kind is Kind.ARENA:
                sized.pointers.append((place, self._numbers[block], offset))
        elif isinstance(arg, tuple):
            (sized.floats if kind == "f32" else sized.plain).append((place, arg[0]))

    def form(self) -> dict[str, Any]:
        """What a stored plan or a package says of the words, as JSON; the text itself lies in memory."""
        followed, graph = self._followed, self._followed.graph
        nbytes = dict(followed.blocks)
        ends = {
            key: [self._end_form(value) for value in values]
            for key, values in (("inputs", graph.inputs), ("outputs", graph.outputs))
        }
        shapes = {value: list(map(as_json, shape)) for value, (_, shape) in followed.ends.items()}
        words = written_words(self._sized, [nbytes.get(block, block.nbytes) for block in self._sized.blocks])
        appended = {"rows_appended": [own.form() for own in self._rows], "casts": self.casts} if self._rows else {}
        return {
            **words, **ends, **appended, "sizes": written_trace(followed.trace, followed.expressions),
            "shapes": [[shapes[v] for v in graph.inputs], [shapes[v] for v in graph.outputs]],
        }  # fmt: skip

    def _end_form(self, value: Value) -> list[Any]:
        """Where an input or output lies: its block in the arena and the offset there, or -1 and the address."""
        block, offset = self._followed.places[value]
        number = self._numbers.get(block, -1)
        return [number, list(offset) if isinstance(offset, tuple) else offset + (block.address if number < 0 else 0)]

    # ----- looking inside

    def rows(self) -> Sequence[PlanRow]:
        """The plan for the sizes that are bound, step by step."""
        assert self.graph is self.ends  # follows the sizes now
        return super().rows()

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node and yields every result as it is computed."""
        assert self.graph is self.ends
        for value, (block, offset) in self._followed.refs.items():
            if value in self._refs:
                self._refs[value] = Ref(block, self._followed.at(offset))
        async for found in super().probe(inputs):
            yield found
