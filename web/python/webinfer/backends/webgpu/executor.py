"""A graph scheduled for a GPU device: its recipe, its parts and what lives in it, and a look inside."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from webinfer.backends.base import (
    BufferBinding,
    Executor,
    GpuPartExecutor,
    LastOutput,
    MemoryReport,
    PendingResult,
    PlanRow,
    TurnExecutor,
    shapes_text,
)
from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.loaded_program import LoadedProgram, tensor
from webinfer.backends.webgpu.memory import Home, Region, assign_pooled, busiest
from webinfer.backends.webgpu.pipelines import PipelineQueue
from webinfer.backends.webgpu.recipe import Order, Recipe
from webinfer.backends.webgpu.schedule import (
    Schedule,
    Step,
    changed_blocks,
    dispatches_of,
    give_ends,
    make_schedule,
    release_after_load,
)
from webinfer.backends.webgpu.soundness import check_schedule
from webinfer.backends.webgpu.speculative_lowering import SpeculativeLowering
from webinfer.codegen.prelude import pack
from webinfer.graph.ir import Graph, Node, Value
from webinfer.host.gpu import Arrival, GpuDevice, Span
from webinfer.host.interface import Host, Progress
from webinfer.tensor import Tensor

if TYPE_CHECKING:
    from webinfer.backends.webgpu.turns import QueuedTurns

Origins = Callable[[], Mapping[int, str]]  # by a node's position in the graph: whether its kernel is tuned or a default


async def compiled(
    graph: Graph,
    host: Host,
    device: GpuDevice,
    tuned: Mapping[str, str],
    origins: Origins,
    progress: Progress | None = None,
    *,
    given_ends: bool = False,
    ahead: SpeculativeLowering | None = None,
    beside: Sequence[Executor] = (),
) -> WebGpuExecutor:
    """A graph compiled for a device of this host. `tuned` names kernels by tuning key.

    `origins` is called when the plan is inspected. With `given_ends` it is compiled for its `recording` alone, in
    which buffers of others take the place of inputs and outputs. `ahead` is taken if the device and the kernels have
    become what it was lowered for. It shares constants with those of `beside`, programs of the same model.

    Raises:  UnsupportedOpError listing every node; LimitError; OutOfMemoryError; GpuError
    """
    if ahead is not None and ahead.suits(device, tuned):
        schedule = ahead.finished(device)
    else:
        pipelines = PipelineQueue(device)
        schedule = make_schedule(graph, Target.of(device, tuned), pipelines.add)
        pipelines.flush()
    release_after_load(schedule)
    if given_ends:
        give_ends(schedule)
    executor = WebGpuExecutor(schedule, host, device, origins)
    executor.share_with(() if device.notes_load else beside)
    await executor.load(progress)
    return executor


class WebGpuExecutor(LoadedProgram, GpuPartExecutor, TurnExecutor):
    """A schedule on a device."""

    def __init__(
        self, schedule: Schedule, host: Host, device: GpuDevice, origins: Origins, share_parameters: bool = True
    ) -> None:
        """`share_parameters`: dispatches with equal parameters have one copy of them."""
        self._origins, self._schedule = origins, schedule
        recipe = _recipe(schedule, device.limits["minUniformBufferOffsetAlignment"], share_parameters)
        check_schedule(schedule)
        super().__init__(schedule.graph, host, device, recipe)
        ends = [bisect_left(schedule.run, end, key=lambda step: step.node) for end in schedule.graph.parts]
        self._parts = list(zip([0, *ends], ends, strict=False))

    async def load(self, progress: Progress | None = None) -> None:
        """As every program; what lives in the graph is lost with the device, so nothing is kept for a program anew."""
        await super().load(progress)
        for block in self._schedule.blocks if self.graph.resident else ():
            block.data = None

    # ----- parts, and what lives from run to run

    async def run_part(self, part: int, inputs: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, Tensor]:
        """The named outputs of one part of the graph: one submit."""
        return await (await self.begin_part(part, inputs, outputs))()

    async def begin_part(self, part: int, inputs: Mapping[str, Any], outputs: Sequence[str]) -> PendingResult:
        """Submits one part of the graph; what it returns waits for the outputs."""
        program, (first, end) = await self._ready(), self._parts[part]
        regions = {value.name: (value, region) for value, region in self._schedule.outputs}
        buffers = self.input_buffers()
        given = [
            (buffers[name], _span_of(regions[data.name][1], 0) if isinstance(data, LastOutput) else data)
            for name, data in inputs.items()
        ]
        spans = [_span_of(regions[name][1], regions[name][0].type.nbytes) for name in outputs]
        arrived = await program.start(self._base + first, end - first, spans, given)

        async def results() -> dict[str, Tensor]:
            found = zip(outputs, await arrived(), strict=True)
            return {name: tensor(data, regions[name][0].type) for name, data in found}

        return results

    def _resident(self, name: str) -> int:
        """The buffer of a value that stays in place."""
        return next(self._schedule.values[v].block.buffer for v in self.graph.resident if v.name == name)

    async def read_resident(self, name: str, spans: Sequence[tuple[int, int]]) -> bytes:
        """Bytes of a resident value, each span from an offset on so many, one behind the other."""
        program, buffer = await self._ready(), self._resident(name)
        return b"".join([await program.read(Span(buffer, at, nbytes)) for at, nbytes in spans if nbytes])

    async def write_resident(self, name: str, spans: Sequence[tuple[int, int]], data: memoryview) -> None:
        """Puts bytes back that `read_resident` gave for these spans."""
        program, buffer, done = await self._ready(), self._resident(name), 0
        for at, nbytes in spans:
            program.write(buffer, data[done : done + nbytes], at)
            done += nbytes

    # ----- turns of a loop

    async def turns(
        self, inputs: Mapping[str, Any], carried: Mapping[str, str], shown: Sequence[str]
    ) -> QueuedTurns | None:
        """QueuedTurns of a loop whose turn the graph is; None where a state lies in the place of an input."""
        from webinfer.backends.webgpu.turns import QueuedTurns, can_queue  # few models have loops

        program, buffers = await self._ready(), self.input_buffers()
        spans = {value.name: span for value, span in zip(*self.results(), strict=True)}
        if not can_queue(buffers, spans, carried):
            return None

        async def start(reads: Sequence[Span], given: Sequence[tuple[int, Any]]) -> Arrival:
            return await program.start(self._base, self._count, reads, given)

        changed = changed_blocks(self._schedule)
        written = {name for name, region in self._schedule.inputs.items() if region.block in changed}
        return QueuedTurns(self.graph, buffers, spans, start, program.read, inputs, carried, shown, written)

    # ----- looking inside

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node and yields every result as it is computed."""
        program = await self._ready()
        self._write(program, inputs)
        done, steps = 0, self._schedule.run
        for index, node in enumerate(self.graph.nodes):
            first = done
            while done < len(steps) and steps[done].node <= index:
                done += 1
            regions = [(v, self._schedule.values.get(v)) for v in node.outputs]
            shown = [(v, r) for v, r in regions if r is not None and r.block.home is Home.POOLED]
            reads = [_span_of(region, value.type.nbytes) for value, region in shown]
            data = await program.run(self._base + first, done - first, reads)
            for (value, _), bytes_ in zip(shown, data, strict=True):
                yield node, self.originals.get(value, value), tensor(bytes_, value.type)

    def rows(self) -> Sequence[PlanRow]:
        """The plan, dispatch by dispatch."""
        rows, counts, origins = [], dispatches_of(self._schedule.run), self._origins()
        for i, step in enumerate(self._schedule.run):
            node = self.graph.nodes[step.node]
            costs = [n.cost() for n in (node, *self._schedule.absorbed.get(step.node, ()))]
            share = counts[step.node]
            rows.append(
                PlanRow(
                    i, node.label, node.op.name, "webgpu", step.dispatch.name, shapes_text(node),
                    sum(c.flops for c in costs) // share, costs[0].bytes // share,
                    "; ".join(text for text in (step.dispatch.why, origins.get(step.node)) if text),
                )
            )  # fmt: skip
        return rows


def _recipe(schedule: Schedule, alignment: int, share: bool = True) -> Recipe:
    """The recipe of a schedule, whose blocks get their buffers."""
    sizes = _assign(schedule)
    steps = schedule.prepare + schedule.run
    uniforms, spans = _uniforms(steps, alignment, len(sizes), share)
    return Recipe(
        sizes,
        uniforms,
        [Order(s.pipeline, _spans(s) + span, s.dispatch.groups) for s, span in zip(steps, spans, strict=True)],
        len(schedule.prepare),
        [(block.buffer, block.data) for block in schedule.blocks if block.data is not None],
        [block.buffer for block in schedule.blocks if block.home is Home.STAGED],
        [block.buffer for block in schedule.blocks if block.home is Home.GIVEN],
        {name: _end(region) for name, region in schedule.inputs.items()},
        [_end(region) for _, region in schedule.outputs],
        _memory(schedule, sizes),
    )


def _assign(schedule: Schedule) -> list[int]:
    """Numbers the buffers: resident, then pooled, then staged ones, then those of given ends; their bytes."""
    blocks = schedule.blocks
    sizes: list[int] = []

    def own_buffers(home: Home) -> None:
        for block in blocks:
            if block.home is home:
                block.buffer = len(sizes)
                sizes.append(block.nbytes)

    own_buffers(Home.RESIDENT)
    sizes += assign_pooled([b for b in blocks if b.home is Home.POOLED], len(sizes))
    own_buffers(Home.STAGED)
    own_buffers(Home.GIVEN)
    return sizes


def _memory(schedule: Schedule, sizes: Sequence[int]) -> MemoryReport:
    pooled = [b for b in schedule.blocks if b.home is Home.POOLED]
    resident = sum(b.nbytes for b in schedule.blocks if b.home is Home.RESIDENT)
    return MemoryReport(resident, sum(sizes[n] for n in {b.buffer for b in pooled}), busiest(pooled))


def _spans(step: Step) -> tuple[Span, ...]:
    return tuple(Span(r.block.buffer, r.offset, r.nbytes) for r in step.regions)


def _end(region: Region) -> BufferBinding:
    return BufferBinding(_span_of(region, region.nbytes), region.block.home is Home.GIVEN)


def _span_of(region: Region, nbytes: int) -> Span:
    return Span(region.block.buffer, region.offset, nbytes)


def _uniforms(steps: Sequence[Step], alignment: int, buffer: int, share: bool) -> tuple[bytes, list[tuple[Span, ...]]]:
    """The uniform buffer's bytes (equal parameters stored once, with `share`) and each step's place in it."""
    out, known, spans = bytearray(), dict[bytes, Span](), list[tuple[Span, ...]]()
    for step in steps:
        data = pack(step.dispatch.params)
        if not data:
            spans.append(())
            continue
        if data not in known or not share:
            out += bytes(-len(out) % alignment)
            known[data] = Span(buffer, len(out), len(data))
            out += data
        spans.append((known[data],))
    return bytes(out), spans
