"""A program whose sizes follow those of a model's inputs: scheduled once with symbols, bound by writing parameters.

What lowering made of symbols is an expression: a parameter, a count of workgroups, the bytes of a tensor. Binding
evaluates them, writes all parameters at once and changes counts; shaders and weights stay. Buffers that are too small
are made anew, with a quarter more than is needed.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple, TypeGuard

from webinfer.backends.base import BindableExecutor, BufferBinding, Executor, PlanRow
from webinfer.backends.webgpu.dispatch import Derived, Scratch, Source
from webinfer.backends.webgpu.executor import Origins, WebGpuExecutor
from webinfer.backends.webgpu.held_rows import EMPTY, AppendedRows, RowProgram, Taken
from webinfer.backends.webgpu.memory import Block, Home, Region
from webinfer.backends.webgpu.schedule import Schedule, Step
from webinfer.backends.webgpu.sized_steps import grown_buffers
from webinfer.codegen.prelude import words_of
from webinfer.graph.dims import has_size, hint_of, with_sizes
from webinfer.graph.ir import Graph, Node, Value
from webinfer.graph.stored_trace import written as written_trace
from webinfer.graph.trace import AskedAboutSpareError, Trace
from webinfer.host.gpu import GpuDevice, Span
from webinfer.host.interface import Host, Progress
from webinfer.lowering.appended import find_appended
from webinfer.lowering.followed_graph import FollowedGraph, Number, ShowsFollowedGraph, as_json
from webinfer.tensor import Tensor

_Region = tuple[Block, Number, Number]


class FollowedSchedule(FollowedGraph):
    """What of a schedule follows sizes. The schedule and the graph then hold the program for the hint."""

    def __init__(self, trace: Trace, graph: Graph, schedule: Schedule) -> None:
        super().__init__(trace, graph)
        self.schedule = schedule
        if any(has_size([s.dispatch.params, s.dispatch.groups, [*s.regions]]) for s in schedule.prepare):
            raise NotImplementedError("a dispatch of the load that follows sizes")
        if any(s.dispatch.text for s in schedule.run):
            raise NotImplementedError("a custom operator, whose shader may ask how long its buffers are")
        if any(r.block in schedule.sized for s in schedule.prepare for r in s.regions):
            raise NotImplementedError("a dispatch of the load that reads what follows sizes")
        self.words = [[(kind, self.number(word)) for kind, word in words_of(s.dispatch.params)] for s in schedule.run]
        self.groups = [tuple(map(self.number, s.dispatch.groups)) for s in schedule.run]
        self.regions = [[self._region(region) for region in s.regions] for s in schedule.run]
        self.blocks = {block: self.number(block.nbytes) for block in schedule.blocks}
        self.values = {value: self._region(region) for value, region in schedule.values.items()}
        self.outputs = [self._region(region) for _, region in schedule.outputs]
        self.rows = [
            tuple(map(self.number, (one.outer, 4 * one.row, one.result.type.shape[one.axis])))
            for one in (place.cache for place in schedule.appended)
        ]
        self.elements = {block: (c.layout, list(map(self.number, c.elements))) for block, c in schedule.sized.items()}

    def _region(self, region: Region) -> _Region:
        return region.block, self.number(region.offset), self.number(region.nbytes)

    def to_hint(self) -> None:
        """Leaves numbers in the schedule and in the graph."""
        schedule = self.schedule
        schedule.run[:] = [_step_at_hint(step) for step in schedule.run]
        for block in schedule.blocks:
            block.nbytes = hint_of(block.nbytes)
        schedule.inputs = {name: _region_at_hint(region) for name, region in schedule.inputs.items()}
        schedule.outputs = [(value, _region_at_hint(region)) for value, region in schedule.outputs]
        schedule.values = {value: _region_at_hint(region) for value, region in schedule.values.items()}
        super().to_hint()


def _region_at_hint(region: Region) -> Region:
    return Region(region.block, hint_of(region.offset), hint_of(region.nbytes))


def _follows(number: Number) -> TypeGuard[tuple[int, ...]]:
    """Whether it is the place of an expression of sizes."""
    return isinstance(number, tuple)


def _source_at_hint(source: Source) -> Source:
    """A source that a lowering made, in numbers: the proof of the schedule looks at it."""
    if isinstance(source, Value):
        return Value(source.name, with_sizes(source.type, hint_of), source.constant)
    if isinstance(source, Scratch | Derived) and has_size(source.shape):
        return replace(source, shape=with_sizes(source.shape, hint_of))
    return source


def _step_at_hint(step: Step) -> Step:
    params = tuple(param._replace(value=with_sizes(param.value, hint_of)) for param in step.dispatch.params)
    groups = with_sizes(step.dispatch.groups, hint_of)
    bindings = tuple(binding._replace(source=_source_at_hint(binding.source)) for binding in step.dispatch.bindings)
    dispatch = replace(step.dispatch, params=params, groups=groups, bindings=bindings)
    return replace(step, dispatch=dispatch, regions=tuple(map(_region_at_hint, step.regions)))


class _SizedStep(NamedTuple):
    """A dispatch of a run: what of it follows sizes."""

    words: tuple[tuple[int, str, int], ...]  # of its parameters those that follow sizes: place, format, expression
    groups: tuple[Number, ...]
    regions: Sequence[_Region]
    follows: bool  # whether its workgroups do
    moves: bool  # whether it binds a part of a tensor that does


class OpenProgram(ShowsFollowedGraph, RowProgram, WebGpuExecutor, BindableExecutor):
    """A graph's program for all sizes for which the guards of its trace hold."""

    _followed: FollowedSchedule

    def __init__(self, followed: FollowedSchedule, host: Host, device: GpuDevice, origins: Origins) -> None:
        self._followed = followed
        followed.to_hint()
        self.ends = followed.graph
        super().__init__(followed.schedule, host, device, origins, share_parameters=False)
        self.appended = [
            AppendedRows(place.cache.past.name, place.cache.result.name, place.step, place.block.buffer, *numbers)
            for place, numbers in zip(followed.schedule.appended, followed.rows, strict=True)
        ]
        self._spans = list[tuple[Span, ...]]()  # that dispatches bind now
        self._binders = dict[int, list[int]]()  # dispatches by the buffers that they bind
        self._uniforms = bytearray()
        self._sized_steps = [
            self._sized_step(*row) for row in zip(followed.words, followed.groups, followed.regions, strict=True)
        ]
        self._following = [i for i, one in enumerate(self._sized_steps) if one.words or one.follows or one.moves]
        self.changing = frozenset(block.buffer for block in followed.elements)

    async def load(self, progress: Progress | None = None) -> None:
        """As every program; then for the sizes that are bound."""
        await super().load(progress)
        self._spans = [order.bindings for order in self.recipe.orders[self.recipe.prepare :]]
        self._binders, self._uniforms = {}, bytearray(self.recipe.uniforms)
        for i, spans in enumerate(self._spans):
            for buffer in {span.buffer for span in spans}:
                self._binders.setdefault(buffer, []).append(i)
        await self._apply({}, self._binders.keys())

    def _sizes_bound(self) -> list[int]:
        return self._followed.sizes

    def _evaluated(self, sizes: Sequence[int], capacities: Sequence[int]) -> list[int]:
        return self._followed.evaluate([*sizes, *capacities])

    async def _bind(
        self, sizes: Sequence[int], capacities: Sequence[int], skipped: Collection[int], taken: Taken
    ) -> None:
        followed = self._followed
        found, before = self._evaluated(sizes, capacities), (list(followed.sizes), followed.found)
        grown = self._grown(found)
        followed.bind(sizes, found)
        try:
            await self._apply(grown, skipped=skipped, taken=taken)
        except BaseException:
            followed.bind(*before)
            raise

    def form(self) -> dict[str, Any]:
        """What a package says of the program's sizes, as JSON; the program itself is that of the sizes in use.

        `steps`: for each dispatch of a run the words of its parameters that follow sizes (place, format, expression),
        its workgroups, and what it binds of tensors. Numbers are numbers, or a list with the place of an expression.
        """
        followed, graph = self._followed, self._followed.graph

        def region(block: Block, offset: Number, nbytes: Number) -> list[Any]:
            whole = offset == 0 and nbytes == followed.blocks[block] and block.home is Home.POOLED
            return [block.buffer] if whole else [block.buffer, as_json(offset), as_json(nbytes)]

        steps = [
            [
                [[i, kind, word[0]] for i, (kind, word) in enumerate(words) if isinstance(word, tuple)],
                list(map(as_json, groups)), [region(*one) for one in regions],
            ]
            for words, groups, regions in zip(followed.words, followed.groups, followed.regions, strict=True)
        ]  # fmt: skip
        shapes = {value: list(map(as_json, shape)) for value, (_, shape) in followed.ends.items()}
        appended = {"appended": [one.form() for one in self.appended]} if self.appended else {}
        return appended | {
            "sizes": written_trace(followed.trace, followed.expressions), "hint": followed.sizes, "steps": steps,
            "needs": [[b.buffer, as_json(n)] for b, n in followed.blocks.items() if isinstance(n, tuple)],
            "elements": [[b.buffer, layout, list(map(as_json, row))] for b, (layout, row) in followed.elements.items()],
            "shapes": [[shapes[v] for v in graph.inputs], [shapes[v] for v in graph.outputs]],
            "results": [[block.buffer, as_json(offset)] for block, offset, _ in followed.outputs],
        }  # fmt: skip

    def _grown(self, found: Sequence[int]) -> dict[int, int]:
        """The buffers that are too small, with their new bytes.

        Raises:  LimitError
        """
        needs = [(b.buffer, found[n[0]]) for b, n in self._followed.blocks.items() if isinstance(n, tuple)]
        places = {one.buffer for one in self.appended}
        return grown_buffers(needs, self.recipe.sizes, places, self._limit, self._followed.graph.name)

    async def _apply(
        self,
        grown: Mapping[int, int],
        looked_at: Collection[int] = (),
        skipped: Collection[int] = (),
        taken: Taken = EMPTY,
    ) -> None:
        """Brings the program to the sizes that are bound; `grown` buffers are made anew, `skipped` steps left out.

        Dispatches of buffers that are neither grown nor `looked_at` bind what they did, unless that follows sizes.
        """
        program, followed, recipe = self._program, self._followed, self.recipe
        assert program is not None
        looked_at = looked_at or {*grown, *taken}
        for buffer, nbytes in grown.items():
            recipe.sizes[buffer] = nbytes
        uniforms, steps = self._uniforms, list[tuple[int, Any, Any]]()
        found = followed.found
        touched = {i for buffer in looked_at for i in self._binders.get(buffer, ())}
        for i in sorted({*self._following, *touched, *skipped, *self._skipped}):
            step, old = self._sized_steps[i], self._spans[i]
            spans, changed = old, False
            if step.moves or i in touched:
                spans = (*map(self._span, step.regions), *old[len(step.regions) :])
                changed = spans != old or i in touched
                self._spans[i] = spans
            for place, kind, number in step.words:
                struct.pack_into(f"<{kind}", uniforms, old[-1].offset + place, found[number])
            if i in skipped:
                if changed or i not in self._skipped:
                    steps.append((self._base + i, spans if changed else None, (0, 0, 0)))
            elif changed or step.follows or i in self._skipped:
                x, y, z = [found[count[0]] if isinstance(count, tuple) else count for count in step.groups]
                steps.append((self._base + i, spans if changed else None, (x, y, z)))
        await program.rebind({**grown, **taken}, bytes(uniforms), steps)
        for block, (layout, elements) in followed.elements.items():
            program.write(block.buffer, struct.pack(layout, *map(followed.at, elements)))
        self._note_ends()

    def _sized_step(
        self, words: Sequence[tuple[str, Number]], groups: tuple[Number, ...], regions: Sequence[_Region]
    ) -> _SizedStep:
        moves = any(
            _follows(offset) or (_follows(nbytes) and nbytes != self._followed.blocks[block])
            for block, offset, nbytes in regions
        )
        follows = any(map(_follows, groups))
        places = accumulate((struct.calcsize(kind) for kind, _ in words), initial=0)
        sized = tuple((at, kind, word[0]) for at, (kind, word) in zip(places, words, strict=False) if _follows(word))
        return _SizedStep(sized, groups, regions, follows, moves)

    def _span(self, region: _Region) -> Span:
        """What a dispatch binds of a buffer: all of it for a whole tensor, so that most bindings stay."""
        block, offset, nbytes = region
        if offset == 0 and nbytes == self._followed.blocks[block]:
            return Span(block.buffer, 0, self.recipe.sizes[block.buffer] if block.home is Home.POOLED else block.nbytes)
        return Span(block.buffer, self._followed.at(offset), self._followed.at(nbytes))

    def _note_ends(self) -> None:
        """Where results lie, and how long they are."""
        followed, outputs = self._followed, self._followed.graph.outputs
        ends = [
            BufferBinding(Span(block.buffer, followed.at(offset), followed.at(nbytes)), False)
            for block, offset, nbytes in followed.outputs
        ]
        self.recipe = replace(self.recipe, outputs=ends)
        self._reads = [Span(ends[i].span.buffer, ends[i].span.offset, outputs[i].type.nbytes) for i in self._found]
        self._page_runs = None
        arena = sum(
            self.recipe.sizes[number] for number in {b.buffer for b in followed.blocks if b.home is Home.POOLED}
        )
        self.recipe = replace(self.recipe, memory=replace(self.recipe.memory, arena=arena))

    # ----- looking inside

    def rows(self) -> Sequence[PlanRow]:
        """The plan for the sizes that are bound, dispatch by dispatch."""
        assert self.graph is self.ends  # follows the sizes now
        return super().rows()

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node and yields every result as it is computed."""
        assert self.graph is self.ends
        at = self._followed.at
        for value, (block, offset, nbytes) in self._followed.values.items():
            self._schedule.values[value] = Region(block, at(offset), at(nbytes))
        async for found in super().probe(inputs):
            yield found


def _followed(graph: Graph, trace: Trace, schedule_of: Any) -> FollowedSchedule:
    """The schedule; caches have room to grow, unless packages are made or something cannot skip the room."""
    appended = [] if trace.may_close else find_appended(graph, trace)
    if appended:
        with suppress(AskedAboutSpareError):
            return FollowedSchedule(trace, graph, schedule_of(graph, appended))
    return FollowedSchedule(trace, graph, schedule_of(graph, []))


async def build_open(
    graph: Graph,
    trace: Trace,
    host: Host,
    device: GpuDevice,
    schedule_of: Any,
    origins: Origins,
    beside: Sequence[Executor],
) -> OpenProgram | None:
    """A graph that was read with symbols as a program that can be bound to sizes, bound to those of the hint.

    It shares constants with those of `beside`, programs of the same model.
    `schedule_of` makes the schedule. None where guards leave no symbol open.

    Raises:  as `compilation.build`
    """
    with trace.active():
        followed = _followed(graph, trace, schedule_of)
    if not trace.is_of_use:
        return None
    program = OpenProgram(followed, host, device, origins)
    program.share_with(() if device.notes_load else beside)
    await program.load()
    return program
