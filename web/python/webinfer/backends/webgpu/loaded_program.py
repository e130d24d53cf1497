"""Loads a recipe onto a GPU device, and replays it for every run. Knows no operator and no schedule."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from webinfer.backends.base import (
    Executor,
    GpuExecutor,
    MemoryReport,
    PageExecutor,
    Recording,
    StateInput,
    TunableExecutor,
)
from webinfer.backends.webgpu.recipe import Recipe
from webinfer.backends.webgpu.sharing import Load, Mark, load_of, marks_of
from webinfer.errors import ClosedError, DeviceLostError
from webinfer.flags import debug, debug_level
from webinfer.graph.ir import Graph, TensorType, Value
from webinfer.host.gpu import DispatchSpec, GpuDevice, GpuProgram, GpuTensor, PageRuns, SharedBuffer, Span
from webinfer.host.interface import Host, Progress, ProgressEvent
from webinfer.tensor import Tensor

LEAST = 16  # bytes of a buffer
TIMED_MS = 2.0  # the least that a timing lasts: browsers round the GPU's timestamps to 0.1 ms
MAX_REPEATS = 1024  # of a dispatch that is timed: some of 2 microseconds in TIMED_MS
MAX_REBUILDS = 1  # after the loss of a device; one that is lost again is left to the session


class LoadedProgram(GpuExecutor, PageExecutor, TunableExecutor):
    """A recipe on a device; `load` puts it there."""

    backend = "webgpu"
    holds_states = True

    def __init__(self, graph: Graph, host: Host, device: GpuDevice, recipe: Recipe) -> None:
        self.graph, self.recipe = graph, recipe
        self.ends = graph  # whose inputs and outputs alone are looked at by runs
        self.originals: Mapping[Value, Value] = {}  # values of the graph that this one was made from
        self._host, self._device = host, device
        self._program: GpuProgram | None = None
        self._closed, self._rebuilds = False, 0
        self._base, self._count = recipe.prepare, len(recipe.orders) - recipe.prepare
        self._found = [i for i, value in enumerate(graph.outputs) if value.type.size]
        ends = [(recipe.outputs[i].span, graph.outputs[i].type.nbytes) for i in self._found]
        self._reads = [Span(span.buffer, span.offset, nbytes) for span, nbytes in ends]
        self._numbers = [(name, end.span.buffer) for name, end in recipe.inputs.items()]
        self._page_runs: PageRuns | None = None
        self.changing: frozenset[int] = frozenset()  # buffers that are written when sizes are bound
        self._others: list[weakref.ref[LoadedProgram]] = []
        self._marks: dict[int, Mark] | None = None

    def share_with(self, others: Iterable[Executor]) -> None:
        """Takes constants from programs of the same model, where they have them when this one is loaded."""
        self._others = [weakref.ref(other) for other in others if isinstance(other, LoadedProgram)]

    @property
    def device(self) -> GpuDevice:
        """The device that holds the program."""
        return self._device

    @property
    def closed(self) -> bool:
        """Whether it was closed for good."""
        return self._closed

    # ----- loading

    async def load(self, progress: Progress | None = None) -> None:
        """Creates buffers and uploads constants while the pipelines are being made, then runs what runs once."""
        recipe, device = self.recipe, self._device
        buffers, load = self._shared_buffers()
        orders = load.prepare + recipe.orders[recipe.prepare :]
        self._base = len(load.prepare)
        specs = [order.pipeline for order in orders]
        distinct = dict.fromkeys(specs)
        for spec in distinct if debug_level() >= 4 else ():
            debug(4, f"{spec.label}\n{spec.code}")
        numbers = device.start_pipelines(specs)
        rows = zip(orders, numbers, strict=True)
        dispatches = [DispatchSpec(o.pipeline.label, number, o.bindings, o.groups) for o, number in rows]
        program = await device.program(self.graph.name, buffers, recipe.uniforms, dispatches)
        try:
            self._upload(program, load.writes, progress)
            _report(progress, "shaders", 0, len(distinct))
            await device.pipelines_ready(numbers)
            _report(progress, "shaders", len(distinct), len(distinct))
            if self._base:
                await program.run(0, self._base, [])
            program.free(recipe.staged, self._base)
        except BaseException:
            program.close()
            raise
        self._program, self._page_runs = program, None
        if self.graph.resident:  # is lost with the device, so that a program anew could not go on
            recipe.writes.clear()

    def marks(self) -> dict[int, Mark]:
        """What tells the contents of constant buffers apart."""
        if self._marks is None:
            self._marks = marks_of(self.recipe, self.changing)
        return self._marks

    def _shared_buffers(self) -> tuple[list[int | SharedBuffer], Load]:
        """The bytes of each buffer, or the program that has it; and what is left to be loaded."""
        recipe, there = self.recipe, dict[Mark, SharedBuffer]()
        for ref in self._others:
            other = ref()
            program = other._program if other is not None and other is not self else None
            if other is not None and program is not None and other._device is self._device and not other.graph.resident:
                there |= {mark: SharedBuffer(program, buffer) for buffer, mark in other.marks().items()}
        taken = {buffer: there[mark] for buffer, mark in self.marks().items() if mark in there} if there else {}
        load = load_of(recipe, taken) if taken else None
        if load is None:
            taken, load = {}, Load(recipe.orders[: recipe.prepare], recipe.writes, set())
        shared = sum(recipe.sizes[buffer] for buffer in taken)
        self.recipe = replace(recipe, memory=replace(recipe.memory, shared=shared))
        sizes = [LEAST if buffer in load.needless else size for buffer, size in enumerate(recipe.sizes)]
        return [taken.get(buffer, size) for buffer, size in enumerate(sizes)], load

    def _upload(self, program: GpuProgram, writes: Sequence[tuple[int, Any]], progress: Progress | None) -> None:
        sizes = self.recipe.sizes
        total, done = sum(sizes[buffer] for buffer, _ in writes), 0
        for buffer, data in writes:
            program.write(buffer, data)
            done += sizes[buffer]
            _report(progress, "weights", done, total, "bytes")

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

    def _given(self, inputs: Mapping[str, Any]) -> list[tuple[int, Any]]:
        return [(buffer, inputs[name]) for name, buffer in self._numbers if name in inputs]

    def _write(self, program: GpuProgram, inputs: Mapping[str, Any]) -> None:
        for buffer, data in self._given(inputs):
            program.write(buffer, data)

    def input_buffers(self) -> dict[str, int]:
        """The number of the buffer that holds each input."""
        return dict(self._numbers)

    def results(self) -> tuple[list[Value], list[Span]]:
        """Outputs that have elements, and where they lie."""
        return [self.ends.outputs[i] for i in self._found], self._reads

    async def run(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs by name: one submit, one readback, whatever the model's size. Runs may overlap.

        States stay on the device, in buffers of their own.
        """
        program = await self._ready()
        states = {data.output: data for data in inputs.values() if isinstance(data, StateInput)}
        if states:
            return await self._run_with_states(program, inputs, states)
        return self._tensors(await program.run(self._base, self._count, self._reads, self._given(inputs)))

    async def _run_with_states(
        self, program: GpuProgram, inputs: Mapping[str, Any], states: Mapping[str, StateInput],
        placed: Collection[str] = (),
    ) -> dict[str, Tensor]:  # fmt: skip
        """The outputs, or their states; those that are `placed` stay where they are."""
        for state in states.values():
            if state.input in inputs and state.holder is not None:
                await state.holder.give_state(state)
        device, (values, spans) = self._device, self.results()
        given = [(buffer, _state_of(data, device)) for buffer, data in self._given(inputs)]
        shown = [span for value, span in zip(values, spans, strict=True) if value.name not in states]
        own = states.keys() - set(placed)
        kept = [(value, span) for value, span in zip(values, spans, strict=True) if value.name in own]
        arrived = await program.start(self._base, self._count, shown, given)
        # Right behind: nothing runs between.
        buffers = await program.keep(self._base, 0, [span for _, span in kept]) if kept else []
        found: dict[str, Any] = {value.name: states[value.name] for value in values if value.name in states}
        try:
            data = iter(await arrived())
        except BaseException:
            for buffer in buffers:
                buffer.destroy()
            raise
        for (value, _), buffer in zip(kept, buffers, strict=True):
            states[value.name].put(GpuTensor(buffer, value.type.shape, value.type.dtype, device, destroy))
        for value in self.ends.outputs:
            if value.name not in found:
                found[value.name] = tensor(next(data) if value.type.size else memoryview(b""), value.type)
        return found

    async def run_page(self, arrays: Sequence[Any]) -> dict[str, Tensor] | None:
        """The outputs by name: as `run`, with all that can be prepared prepared. None if not for this run."""
        if self._program is None:
            return None
        runs = self._page_runs = self._page_runs or self._prepared_runs(self._program)
        data = None if runs is None else await runs.run(arrays)
        return None if data is None else self._tensors(data)

    def _prepared_runs(self, program: GpuProgram) -> PageRuns | None:
        numbers, values = dict(self._numbers), self.ends.inputs
        if any(value.name not in numbers for value in values):
            return None
        inputs = [(numbers[v.name], v.type.dtype, v.type.nbytes) for v in values]
        return program.page_runs(self._base, self._count, self._reads, inputs)

    def _tensors(self, data: Sequence[memoryview]) -> dict[str, Tensor]:
        found = dict(zip(self._found, data, strict=True))
        return {v.name: tensor(found.get(i, memoryview(b"")), v.type) for i, v in enumerate(self.ends.outputs)}

    async def run_on_gpu(self, inputs: Mapping[str, Any]) -> dict[str, GpuTensor]:
        """The outputs by name, each in a GPU buffer of its own; nothing is read back."""
        program, device = await self._ready(), self._device
        values, spans = self.results()
        buffers = await program.keep(self._base, self._count, spans, self._given(inputs))
        return {
            v.name: GpuTensor(b, v.type.shape, v.type.dtype, device, program.release)
            for v, b in zip(values, buffers, strict=True)
        }

    async def recording(self) -> Recording:
        """What replays the runs of this executor without it. Where ends are given it cannot run by itself any more."""
        program = await self._ready()
        program.free(self.recipe.given, 0)
        rows = zip(self.graph.outputs, self.recipe.outputs, strict=True)
        outputs = {value.name: end for value, end in rows if value.type.size}
        return Recording(program, self._base, self._count, dict(self.recipe.inputs), outputs)

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Median milliseconds of each row of `rows()`; a dispatch is repeated in one submit until that lasts."""
        from webinfer.tune.search import longer

        program = await self._ready()
        self._write(program, inputs)
        times: list[list[float]] = [[] for _ in range(self._count)]
        for _ in range(rounds):
            idle = await program.time(self._base, 0, 1)
            for i, samples in enumerate(times):
                repeats = 1  # a dispatch of an adapter in software may be long enough by itself
                while True:
                    elapsed = max(await program.time(self._base + i, 1, repeats) * repeats - idle, 0.0)
                    if elapsed >= TIMED_MS or repeats >= MAX_REPEATS:
                        break
                    repeats = min(longer(repeats, elapsed, TIMED_MS), MAX_REPEATS)
                samples.append(elapsed / repeats)
            await self._host.pause()
        from statistics import median

        return [median(samples) for samples in times]

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of all dispatches, once; the average of `repeats` passes."""
        program = await self._ready()
        self._write(program, inputs)
        return await program.time(self._base, self._count, repeats)

    async def fill(self, inputs: Mapping[str, memoryview]) -> None:
        """Writes inputs and runs nothing."""
        self._write(await self._ready(), inputs)

    async def elapsed(self, repeats: int) -> float:
        """Milliseconds that the GPU takes for so many runs in a row on the inputs that lie there."""
        program = await self._ready()
        idle = await program.time(self._base, 0, 1)
        total = await program.time(self._base, self._count, repeats) * repeats
        return max(total - idle, 0.0)

    # ----- looking inside

    def memory(self) -> MemoryReport:
        """Bytes of resident and of pooled buffers, and the bound that no pool can go below."""
        return self.recipe.memory

    def close(self) -> None:
        """Frees the buffers; the device is shared and stays."""
        self._closed = True
        if self._program is not None:
            self._program.close()
            self._program = self._page_runs = None


def _state_of(data: Any, device: GpuDevice) -> Any:
    """An input; of a state its buffer, if it is on this device, else its bytes."""
    if not isinstance(data, StateInput):
        return data
    there = data.on_gpu
    return there.buffer if there is not None and there.is_on(device) else data.tensor().flat().cast("B")


def destroy(buffer: Any) -> None:
    """Lets a state's buffer go: none of this size will be asked for again where states grow."""
    buffer.destroy()


def tensor(data: memoryview, type: TensorType) -> Tensor:
    """Bytes as a tensor of a graph's type."""
    return Tensor(data, type.shape, type.dtype, type.quant)


def _report(progress: Progress | None, stage: str, done: int, total: int, unit: str = "steps") -> None:
    if progress is not None:
        progress(ProgressEvent(stage, done, total, unit))
