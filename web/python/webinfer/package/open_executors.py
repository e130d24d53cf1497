"""Runs a package's plans for sizes that are open: each is bound to sizes by writing words. Knows no operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.backends.base import RegimeExecutor
from webinfer.backends.wasm.memory import KernelMemory
from webinfer.backends.wasm.restored_words import RestoredSizedExecutor, RestoredWords
from webinfer.backends.webgpu.sized_steps import SizedSteps
from webinfer.errors import InputError
from webinfer.graph.compiled import CompiledGraph
from webinfer.graph.stored_trace import restored
from webinfer.graph.trace import Trace
from webinfer.host.gpu import GpuDevice
from webinfer.host.interface import Host, Kernels
from webinfer.lowering.restored_sizes import RestoredSizes
from webinfer.package.container import Package
from webinfer.package.executors import PackagedGpu, WithoutGraph
from webinfer.package.proofs import check_bindings, check_open_wasm, whole
from webinfer.plan.blocks import ALIGNMENT

SHOWN = 4  # guards of a regime that an error lists


class PackagedOpenWasm(WithoutGraph, RestoredSizedExecutor):
    """One regime of a package in the memory of an instance of the package's own kernels, where the others lie too."""

    def __init__(
        self, graph: CompiledGraph, facts: Mapping[str, Any], words: RestoredWords, host: Host, memory: KernelMemory
    ) -> None:
        super().__init__(graph, facts, words, host, memory)
        self.graph, self._names = graph, facts["steps"]


class PackagedOpenGpu(PackagedGpu, RegimeExecutor):
    """One regime of a package on a GPU device; those of other regimes are loaded when their sizes come."""

    def __init__(self, graph: CompiledGraph, package: Package, section: str, device: GpuDevice) -> None:
        plan = package.json(section)
        form = plan["open"]
        check_bindings(form)
        ends = [*graph.inputs, *graph.outputs]
        hint = RestoredSizes(form["sizes"], ends, [*form["shapes"][0], *form["shapes"][1]])
        hint.bind([whole(size) for size in form["hint"]])  # for which the program is written down
        super().__init__(graph, package, section, device)
        spans = [spans for _, _, spans, _ in self._dispatches[self._prepare :]]
        self._bound, self.ends = SizedSteps(form, ends, self._sizes, self._uniforms, spans), graph
        self.trace, self._limit = self._bound.sizes.trace, device.limits["maxBufferSize"]

    async def bind(self, sizes: Sequence[int]) -> None:
        """Writes parameters and counts of workgroups, and makes buffers anew that are too small."""
        program, _ = self._ready()
        if list(sizes) != self._bound.sizes.sizes:
            await self._bound.bind(sizes, program, self._prepare, self._limit, self.graph.name)
            rows = zip(self.graph.outputs, self._bound.results(self.graph.outputs), strict=True)
            self._outputs = [(value, span if span.nbytes else None) for value, span in rows]


async def open_on_gpu(
    graph: CompiledGraph, package: Package, sections: Sequence[str], device: GpuDevice
) -> PackagedOpenGpu:
    """The plan that holds for the sizes of the graph's inputs, bound to them.

    Raises:  InputError where none holds; ModelFormatError, LimitError, GpuError
    """
    sizes, traces = sizes_of(graph), list[Trace]()
    for section in sections:
        traces.append(restored(package.json(section)["open"]["sizes"])[0])
        if traces[-1].compile_guards()(sizes):
            executor = PackagedOpenGpu(graph, package, section, device)
            await executor.load()
            try:
                await executor.bind(sizes)
            except BaseException:
                executor.close()
                raise
            return executor
    raise refuse_sizes(graph, traces)


def sizes_of(graph: CompiledGraph) -> list[int]:
    """The sizes of a model's inputs, axis by axis."""
    return [size for value in graph.inputs for size in value.type.shape]


def refuse_sizes(graph: CompiledGraph, regimes: Sequence[Trace]) -> InputError:
    """What to say of sizes that no plan holds for."""
    sizes, shapes = sizes_of(graph), ", ".join(f"{value.name!r} {value.type.shape}" for value in graph.inputs)
    closest = min((trace.broken(sizes) for trace in regimes), key=len)
    return InputError(
        f"package {graph.name!r} has no plan for {shapes}: the closest of {len(regimes)} holds while "
        f"{' and '.join(closest[:SHOWN])}; compile it again with these `sizes`"
    )


async def open_packaged(
    graph: CompiledGraph, package: Package, section: str, kernels: Kernels, host: Host
) -> PackagedOpenWasm:
    """The plan that holds for the sizes of the graph's inputs, bound to them, with those of other regimes.

    Raises:  InputError where none holds; ModelFormatError, LimitError
    """
    plan = package.json(section)
    sources = package.section("weights"), package.section(f"{section}/programs")
    check_open_wasm(plan, graph, sources, kernels.heap_base, kernels.call("abi") & 0xFFFFFFFF)
    regimes = [(facts, RestoredWords(facts, graph.inputs, graph.outputs)) for facts in plan["regimes"]]
    sizes = sizes_of(graph)
    held = [number for number, (_, words) in enumerate(regimes) if words.sizes.holds(sizes)]
    if not held:
        raise refuse_sizes(graph, [words.sizes.trace for _, words in regimes])
    kernels.grow(whole(plan["top"]))
    for address, source, at, nbytes in plan["writes"]:
        if nbytes:
            kernels.write(address, sources[source][at : at + nbytes])
    for prepare, count in plan["prepares"]:
        kernels.run(prepare, 0, count)
    memory = KernelMemory(kernels)
    memory.end = -(-plan["top"] // ALIGNMENT) * ALIGNMENT
    memory.arena = memory.end, 0
    made = list[PackagedOpenWasm]()
    for facts, words in regimes:
        if made:
            memory.join()
        made.append(PackagedOpenWasm(graph, facts, words, host, memory))
        made[-1].together = made
    await made[held[0]].bind(sizes)
    return made[held[0]]
