"""Loads a schedule onto a GPU device, and replays it for every run. Knows no operator."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from webinfer.backends.base import (
    Abilities,
    Arriving,
    End,
    Executor,
    LastOutput,
    MemoryReport,
    PlanRow,
    Recording,
    shapes_text,
)
from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.memory import Home, Region, assign_pooled, busiest
from webinfer.backends.webgpu.pipelines import PipelineQueue
from webinfer.backends.webgpu.schedule import (
    Schedule,
    Step,
    dispatches_of,
    give_ends,
    make_schedule,
    release_after_load,
)
from webinfer.codegen.prelude import pack
from webinfer.errors import ClosedError, DeviceLostError
from webinfer.flags import debug, debug_level
from webinfer.graph.ir import Graph, Node, TensorType, Value
from webinfer.host.gpu import DispatchSpec, GpuDevice, GpuProgram, GpuTensor, Span
from webinfer.host.interface import Host, Progress, ProgressEvent
from webinfer.tensor import Tensor

Origins = Callable[[], Mapping[int, str]]  # by a node's position in the graph: whether its kernel is tuned or a default
MAX_REBUILDS = 1  # after the loss of a device; one that is lost again is left to the session


async def compiled(
    graph: Graph,
    host: Host,
    device: GpuDevice,
    tuned: Mapping[str, str],
    origins: Origins,
    progress: Progress | None = None,
    *,
    given_ends: bool = False,
) -> WebGpuExecutor:
    """A graph compiled for a device of this host. `tuned` names kernels by tuning key.

    `origins` is called when somebody looks at the plan. With `given_ends` it is compiled for its `recording` alone, in
    which buffers of others take the place of inputs and outputs.

    Raises:  UnsupportedOpError listing every node; LimitError; OutOfMemoryError; GpuError
    """
    target = Target(dict(device.limits), device.features, device.software, tuned)
    pipelines = PipelineQueue(device)
    schedule = make_schedule(graph, target, pipelines.add)
    pipelines.flush()
    release_after_load(schedule)
    if given_ends:
        give_ends(schedule)
    executor = WebGpuExecutor(schedule, host, device, origins)
    await executor.load(progress)
    return executor


class WebGpuExecutor(Executor):
    """A schedule on a device."""

    backend = "webgpu"
    abilities = Abilities(
        gpu_results=True, overlapping_runs=True, tuning=True, parts=True, parts_ahead=True, page_arrays=True
    )

    def __init__(self, schedule: Schedule, host: Host, device: GpuDevice, origins: Origins) -> None:
        self.graph = schedule.graph
        self.originals: Mapping[Value, Value] = {}  # values of the graph that this one was made from
        self._origins = origins
        self._schedule, self._host, self._device = schedule, host, device
        self._program: GpuProgram | None = None
        self._closed, self._rebuilds = False, 0
        self._sizes = self._assign()
        self._base = len(schedule.prepare)
        ends = [bisect_left(schedule.run, end, key=lambda step: step.node) for end in schedule.graph.parts]
        self._parts = list(zip([0, *ends], ends, strict=False))

    @property
    def device(self) -> GpuDevice:
        """The device that holds the program."""
        return self._device

    # ----- loading

    def _assign(self) -> list[int]:
        """Numbers the buffers: resident, then pooled, then staged ones, then those of given ends; their bytes."""
        blocks = self._schedule.blocks
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

    async def load(self, progress: Progress | None = None) -> None:
        """Creates buffers and uploads constants while the pipelines are being made, then runs what runs once."""
        schedule, device = self._schedule, self._device
        steps = schedule.prepare + schedule.run
        specs = [step.pipeline for step in steps]
        distinct = dict.fromkeys(specs)
        for spec in distinct if debug_level() >= 4 else ():
            debug(4, f"{spec.label}\n{spec.code}")
        numbers = device.start_pipelines(specs)
        uniforms, spans = _uniforms(steps, device.limits["minUniformBufferOffsetAlignment"], len(self._sizes))
        dispatches = [
            DispatchSpec(step.pipeline.label, number, _spans(step) + span, step.dispatch.groups)
            for step, number, span in zip(steps, numbers, spans, strict=True)
        ]
        program = await device.program(schedule.graph.name, self._sizes, uniforms, dispatches)
        try:
            self._upload(program, progress)
            _report(progress, "shaders", 0, len(distinct))
            await device.pipelines_ready(numbers)
            _report(progress, "shaders", len(distinct), len(distinct))
            await self._prepare(program)
        except BaseException:
            program.close()
            raise
        self._program = program
        if schedule.graph.resident:  # is lost with the device, so that a program anew could not go on
            for block in schedule.blocks:
                block.data = None

    def _upload(self, program: GpuProgram, progress: Progress | None) -> None:
        blocks = [b for b in self._schedule.blocks if b.data is not None]
        total, done = sum(b.nbytes for b in blocks), 0
        for block in blocks:
            program.write(block.buffer, block.data)
            done += block.nbytes
            _report(progress, "weights", done, total, "bytes")

    async def _prepare(self, program: GpuProgram) -> None:
        if self._base:
            await program.run(0, self._base, [])
        program.free([b.buffer for b in self._schedule.blocks if b.home is Home.STAGED], self._base)

    @property
    def lost(self) -> str:
        """Why the device is gone, or the empty text."""
        return self._device.lost

    async def _ready(self) -> GpuProgram:
        """The program, restored once if its device was lost since the last run."""
        if self._closed:
            raise ClosedError(f"the session of {self.graph.name!r} is closed; load the model again")
        if self._device.lost or self._program is None:
            if self.graph.resident:
                raise DeviceLostError(f"the GPU was lost ({self._device.lost}) with what it held; open the model again")
            if self._rebuilds >= MAX_REBUILDS:
                raise DeviceLostError(f"the GPU was lost again ({self._device.lost}); use the wasm backend")
            self._rebuilds += 1
            debug(1, f"webgpu: device lost ({self._device.lost}), the session of {self.graph.name!r} is restored")
            self._device, self._program = await self._host.gpu(), None
            await self.load()
        assert self._program is not None
        return self._program

    # ----- running

    def _input_buffers(self, inputs: Mapping[str, Any]) -> list[tuple[int, Any]]:
        return [(buffer, inputs[name]) for name, buffer in self.input_buffers().items()]

    def _write(self, program: GpuProgram, inputs: Mapping[str, Any]) -> None:
        for buffer, data in self._input_buffers(inputs):
            program.write(buffer, data)

    def input_buffers(self) -> dict[str, int]:
        """The number of the buffer that holds each input."""
        return {name: region.block.buffer for name, region in self._schedule.inputs.items()}

    def results(self) -> tuple[list[Value], list[Span]]:
        """Outputs that have elements, and where they lie."""
        found = [(v, _span_of(region, v.type.nbytes)) for v, region in self._schedule.outputs if v.type.size]
        return [v for v, _ in found], [span for _, span in found]

    async def run(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs by name: one submit, one readback, whatever the model's size. Runs may overlap."""
        program = await self._ready()
        values, spans = self.results()
        data = await program.run(self._base, len(self._schedule.run), spans, self._input_buffers(inputs))
        found = dict(zip(values, data, strict=True))
        return {v.name: _tensor(found.get(v, memoryview(b"")), v.type) for v, _ in self._schedule.outputs}

    async def run_on_gpu(self, inputs: Mapping[str, Any]) -> dict[str, GpuTensor]:
        """The outputs by name, each in a GPU buffer of its own; nothing is read back."""
        program, device = await self._ready(), self._device
        values, spans = self.results()
        buffers = await program.keep(self._base, len(self._schedule.run), spans, self._input_buffers(inputs))
        return {
            v.name: GpuTensor(b, v.type.shape, v.type.dtype, device, program.release)
            for v, b in zip(values, buffers, strict=True)
        }

    async def run_part(self, part: int, inputs: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, Tensor]:
        """The named outputs of one part of the graph: one submit."""
        return await (await self.begin_part(part, inputs, outputs))()

    async def begin_part(self, part: int, inputs: Mapping[str, Any], outputs: Sequence[str]) -> Arriving:
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
            return {name: _tensor(data, regions[name][0].type) for name, data in found}

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

    async def recording(self) -> Recording:
        """What replays the runs of this executor without it. Where ends are given it cannot run by itself any more."""
        program, schedule = await self._ready(), self._schedule
        program.free([b.buffer for b in schedule.blocks if b.home is Home.GIVEN], 0)
        inputs = {name: _end(region) for name, region in schedule.inputs.items()}
        outputs = {value.name: _end(region) for value, region in schedule.outputs if value.type.size}
        return Recording(program, self._base, len(schedule.run), inputs, outputs)

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
                yield node, self.originals.get(value, value), _tensor(bytes_, value.type)

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Median milliseconds of each row of `rows()`, from many repeats of a dispatch in one submit."""
        program = await self._ready()
        self._write(program, inputs)
        times: list[list[float]] = [[] for _ in self._schedule.run]
        for _ in range(rounds):
            idle = await program.time(self._base, 0, 1)
            for i, samples in enumerate(times):
                repeats = 8
                while True:
                    elapsed = max(await program.time(self._base + i, 1, repeats) * repeats - idle, 0.0)
                    if elapsed >= 2.0 or repeats >= 1024:
                        break
                    repeats *= 4
                samples.append(elapsed / repeats)
            await self._host.pause()
        return [statistics.median(samples) for samples in times]

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of all dispatches, once; the average of `repeats` passes."""
        program = await self._ready()
        self._write(program, inputs)
        return await program.time(self._base, len(self._schedule.run), repeats)

    async def fill(self, inputs: Mapping[str, memoryview]) -> None:
        """Writes inputs and runs nothing."""
        self._write(await self._ready(), inputs)

    async def elapsed(self, repeats: int) -> float:
        """Milliseconds that the GPU takes for so many runs in a row on the inputs that lie there."""
        program = await self._ready()
        idle = await program.time(self._base, 0, 1)
        total = await program.time(self._base, len(self._schedule.run), repeats) * repeats
        return max(total - idle, 0.0)

    # ----- looking inside

    def rows(self) -> Sequence[PlanRow]:
        """The plan, dispatch by dispatch."""
        rows, counts, origins = [], dispatches_of(self._schedule.run), self._origins()
        for i, step in enumerate(self._schedule.run):
            node = self.graph.nodes[step.node]
            costs = [n.cost() for n in (node, *self._schedule.absorbed.get(step.node, ()))]
            share = counts[step.node]
            rows.append(
                PlanRow(
                    i, node.label, node.op.name, "webgpu", step.dispatch.shader, shapes_text(node),
                    sum(c.flops for c in costs) // share, costs[0].bytes // share,
                    "; ".join(text for text in (step.dispatch.why, origins.get(step.node)) if text),
                )
            )  # fmt: skip
        return rows

    def memory(self) -> MemoryReport:
        """Bytes of resident and of pooled buffers, and the bound that no pool can go below."""
        blocks = self._schedule.blocks
        pooled = [b for b in blocks if b.home is Home.POOLED]
        resident = sum(b.nbytes for b in blocks if b.home is Home.RESIDENT)
        numbers = {b.buffer for b in pooled}
        return MemoryReport(resident, sum(self._sizes[n] for n in numbers), busiest(pooled))

    def close(self) -> None:
        """Frees the buffers; the device is shared and stays."""
        self._closed = True
        if self._program is not None:
            self._program.close()
            self._program = None


def _spans(step: Step) -> tuple[Span, ...]:
    return tuple(Span(r.block.buffer, r.offset, r.nbytes) for r in step.regions)


def _end(region: Region) -> End:
    return End(_span_of(region, region.nbytes), region.block.home is Home.GIVEN)


def _span_of(region: Region, nbytes: int) -> Span:
    return Span(region.block.buffer, region.offset, nbytes)


def _uniforms(steps: Sequence[Step], alignment: int, buffer: int) -> tuple[bytes, list[tuple[Span, ...]]]:
    """The uniform buffer's bytes (equal parameters stored once) and each step's place in it."""
    out, known, spans = bytearray(), dict[bytes, Span](), list[tuple[Span, ...]]()
    for step in steps:
        data = pack(step.dispatch.params)
        if not data:
            spans.append(())
            continue
        if data not in known:
            out += bytes(-len(out) % alignment)
            known[data] = Span(buffer, len(out), len(data))
            out += data
        spans.append((known[data],))
    return bytes(out), spans


def _tensor(data: memoryview, type: TensorType) -> Tensor:
    return Tensor(data, type.shape, type.dtype, type.quant)


def _report(progress: Progress | None, stage: str, done: int, total: int, unit: str = "steps") -> None:
    if progress is not None:
        progress(ProgressEvent(stage, done, total, unit))
