"""Runs a package's plans: on kernels of its own, and on a GPU device. Knows no operator and no graph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from webinfer.backends.base import Executor, GpuExecutor, MemoryReport, PlanRow, Recording
from webinfer.backends.wasm.loaded_plan import Layout, LoadedPlan, Place
from webinfer.errors import ClosedError, DeviceLostError, InputError, ModelFormatError
from webinfer.graph.ir import Graph, Node, Value
from webinfer.host.gpu import DispatchSpec, GpuDevice, GpuProgram, GpuTensor, PipelineSpec, Span
from webinfer.host.interface import Host, Kernels
from webinfer.package.container import Package
from webinfer.package.proofs import check_gpu, check_wasm, whole
from webinfer.package.tunings import words_of
from webinfer.tensor import Tensor

NO_GRAPH = "a package holds no graph to look into; verify the model that it was compiled from"


class WithoutGraph(Executor):
    """A plan of which nothing is known but the names of the kernels that an inference calls."""

    _names: Sequence[Any]

    def rows(self) -> Sequence[PlanRow]:
        """The kernels that an inference calls."""
        why = "compiled into the package"
        return [PlanRow(i, "", "", self.backend, str(name), "", 0, 0, why) for i, name in enumerate(self._names)]

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Never yields.

        Raises:  InputError
        """
        raise InputError(NO_GRAPH)
        yield


class PackagedWasm(WithoutGraph, LoadedPlan):
    """A plan of a package in the memory of an instance of the package's own kernels."""

    def __init__(self, graph: Graph, package: Package, section: str, kernels: Kernels, host: Host) -> None:
        plan = package.json(section)
        sources = package.section("weights"), package.section(f"{section}/programs")
        check_wasm(plan, graph, sources, kernels.heap_base, kernels.call("abi") & 0xFFFFFFFF)
        ends = [
            tuple(Place(v.name, v.type, whole(at)) for v, at in zip(values, plan[key], strict=True))
            for key, values in (("inputs", graph.inputs), ("outputs", graph.outputs))
        ]
        top, (program, steps) = whole(plan["top"]), map(whole, plan["program"])
        memory = MemoryReport(*map(whole, plan["memory"]))
        base = kernels.heap_base
        super().__init__(Layout(graph.name, ends[0], ends[1], program, steps, base, base, top, memory), host, kernels)
        self._names = plan["steps"]
        kernels.grow(top)
        for address, source, at, nbytes in plan["writes"]:
            if nbytes:
                kernels.write(address, sources[source][at : at + nbytes])
        if plan["prepare"] is not None:
            prepare, count = map(whole, plan["prepare"])
            kernels.run(prepare, 0, count)


def gpu_fits(row: Mapping[str, Any], device: GpuDevice) -> bool:
    """Whether a plan is for a device: it has the features, and its name all words of `named` and one of `adapters`."""
    words = words_of(device.name)
    known = any(word.startswith(tuple(row["adapters"])) for word in words) or not row["adapters"]
    return {*row["features"]} <= device.features and known and {*row["named"]} <= {*words}


class PackagedGpu(WithoutGraph, GpuExecutor):
    """A plan of a package on a GPU device."""

    backend = "webgpu"

    def __init__(self, graph: Graph, package: Package, section: str, device: GpuDevice) -> None:
        plan = package.json(section)
        specs = package.json("webgpu/shaders")
        check_gpu(plan, specs, graph, len(package.section("weights")))
        self.graph, self._device = graph, device
        self._program: GpuProgram | None = None
        self._sizes, self._uniforms = list(map(whole, plan["buffers"])), bytes.fromhex(plan["uniforms"])
        self._dispatches = [
            (str(label), PipelineSpec(**{**specs[whole(number)], "bindings": tuple(specs[number]["bindings"])}),
             tuple(_span(row, len(self._sizes)) for row in bindings), _groups(groups))
            for label, number, bindings, groups in plan["dispatches"]
        ]  # fmt: skip
        weights = package.section("weights")
        self._writes = [(_number(b, self._sizes), weights[whole(at) : at + whole(n)]) for b, at, n in plan["writes"]]
        self._prepare, self._freed = whole(plan["prepare"]), [_number(b, self._sizes) for b in plan["freed"]]
        self._names = [label for label, _, _, _ in self._dispatches[self._prepare :]]
        pairs = zip(graph.inputs, plan["inputs"], strict=True)
        self._inputs = {v.name: _number(buffer, self._sizes) for v, buffer in pairs}
        ends = zip(graph.outputs, plan["outputs"], strict=True)
        self._outputs = [(v, None if row is None else _span(row, len(self._sizes) - 1)) for v, row in ends]
        self._memory = MemoryReport(*map(whole, plan["memory"]))

    async def load(self) -> PackagedGpu:
        """Makes pipelines and buffers, uploads the weights and runs what runs once; the executor itself.

        Raises:  GpuError, OutOfMemoryError, DeviceLostError
        """
        device = self._device
        numbers = device.start_pipelines([spec for _, spec, _, _ in self._dispatches])
        rows = zip(self._dispatches, numbers, strict=True)
        dispatches = [DispatchSpec(label, number, spans, groups) for (label, _, spans, groups), number in rows]
        program = await device.program(self.graph.name, self._sizes, self._uniforms, dispatches)
        try:
            for buffer, data in self._writes:
                program.write(buffer, data)
            await device.pipelines_ready(numbers)
            if self._prepare:
                await program.run(0, self._prepare, [])
            program.free(self._freed, self._prepare)
        except BaseException:
            program.close()
            raise
        self._program = program
        return self

    @property
    def device(self) -> GpuDevice:
        """The device that holds the program."""
        return self._device

    @property
    def lost(self) -> str:
        """Why the device is gone, or the empty text."""
        return self._device.lost

    def _ready(self) -> tuple[GpuProgram, int]:
        """The program, and how many dispatches an inference has."""
        if self._program is None:
            raise ClosedError(f"the session of {self.graph.name!r} is closed; load the package again")
        if self._device.lost:
            raise DeviceLostError(f"{self.graph.name!r}: the GPU was lost ({self._device.lost}); run again")
        return self._program, len(self._dispatches) - self._prepare

    def _given(self, inputs: Mapping[str, Any]) -> list[tuple[int, Any]]:
        return [(buffer, inputs[name]) for name, buffer in self._inputs.items()]

    async def run(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs by name: one submit, one readback."""
        program, count = self._ready()
        spans = [span for _, span in self._outputs if span is not None]
        found = iter(await program.run(self._prepare, count, spans, self._given(inputs)))
        data = [memoryview(b"") if span is None else next(found) for _, span in self._outputs]
        rows = zip(self._outputs, data, strict=True)
        return {v.name: Tensor(bytes_, v.type.shape, v.type.dtype, v.type.quant) for (v, _), bytes_ in rows}

    async def run_on_gpu(self, inputs: Mapping[str, Any]) -> dict[str, GpuTensor]:
        """The outputs by name, each in a GPU buffer of its own; nothing is read back."""
        program, count = self._ready()
        ends = [(v, span) for v, span in self._outputs if span is not None]
        buffers = await program.keep(self._prepare, count, [span for _, span in ends], self._given(inputs))
        rows = zip(ends, buffers, strict=True)
        return {v.name: GpuTensor(b, v.type.shape, v.type.dtype, self._device, program.release) for (v, _), b in rows}

    async def recording(self) -> Recording:
        """Never returns.

        Raises:  InputError
        """
        raise InputError(NO_GRAPH)

    def memory(self) -> MemoryReport:
        """As it was when the model was compiled."""
        return self._memory

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Milliseconds of each dispatch, averaged over a few repeats."""
        program, count = self._ready()
        self._fill(program, inputs)
        return [await program.time(self._prepare + i, 1, 8 * rounds) for i in range(count)]

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of all dispatches, once; the average of `repeats` passes."""
        program, count = self._ready()
        self._fill(program, inputs)
        return await program.time(self._prepare, count, repeats)

    def _fill(self, program: GpuProgram, inputs: Mapping[str, Any]) -> None:
        for buffer, data in self._given(inputs):
            program.write(buffer, data)

    def close(self) -> None:
        """Frees the buffers; the device is shared and stays."""
        if self._program is not None:
            self._program.close()
            self._program = None


def _number(buffer: Any, sizes: Sequence[int]) -> int:
    """A buffer's number."""
    if whole(buffer) >= len(sizes):
        raise ModelFormatError(f"a package names buffer {buffer} of {len(sizes)}")
    return int(buffer)


def _span(row: Sequence[Any], last: int) -> Span:
    buffer, offset, nbytes = map(whole, row)
    if buffer > last:
        raise ModelFormatError(f"a package names buffer {buffer}, its last is {last}")
    return Span(buffer, offset, nbytes)


def _groups(row: Sequence[Any]) -> tuple[int, int, int]:
    x, y, z = map(whole, row)
    return x, y, z
