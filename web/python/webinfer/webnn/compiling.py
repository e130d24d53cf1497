"""Graphs compiled so that JavaScript runs them without Python: as a program in kernel memory, or as GPU dispatches."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from webinfer.backends import registry
from webinfer.backends.base import BuildOptions, Executor
from webinfer.backends.wasm.executor import WasmExecutor, lower_graph
from webinfer.backends.webgpu.compilation import build
from webinfer.errors import UnsupportedOpError, WebinferError
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host
from webinfer.lazy_dataclass import dataclass
from webinfer.passes.pipeline import optimize
from webinfer.session.selection import LoadOptions, choose


@dataclass(slots=True)
class Compiled:
    """A compiled graph: `facts` say how it runs, and go over as JSON.

    In a worker's kernel memory, `fixed` are its constants and its program, and `program` is the compiled module of the
    kernels; in this thread's, `program` has their memory and exports. On a GPU `program` is the recorded one.
    `executor` runs what only Python can, and on threads.
    """

    facts: dict[str, Any]
    fixed: memoryview | None = None
    program: Any = None
    executor: Executor | None = None
    graph: Graph | None = field(default=None, repr=False)


async def compiled(graph: Graph, host: Host, kind: str) -> Compiled:
    """The graph for a page's worker on the processor ("cpu"), for this thread's kernels ("here"), or for a GPU ("gpu").

    Raises:  UnsupportedOpError; LimitError; OutOfMemoryError; GpuError; BackendUnavailableError
    """
    for _ in optimize(graph):
        pass
    if kind == "here":
        executor: Any = await registry.open_backend("wasm").build(graph, host, BuildOptions(tuning_ms=0))
        kernels = executor.kernels
        facts = {**_placed("here", executor), "threads": kernels.threads}
        return Compiled(facts, program=kernels.handle, executor=executor, graph=graph)
    return await (_for_kernels(graph, host) if kind == "cpu" else _for_gpu(graph, host))


def _placed(kind: str, executor: WasmExecutor) -> dict[str, Any]:
    """Where a graph's program and its ends lie in the kernels' memory."""
    layout = executor.layout
    return {
        "kind": kind, "program": layout.program, "steps": layout.steps,
        "inputs": {place.name: [place.address, place.type.nbytes] for place in layout.inputs},
        "outputs": {place.name: [place.address, place.type.nbytes] for place in layout.outputs},
    }  # fmt: skip


async def _for_kernels(graph: Graph, host: Host) -> Compiled:
    kernels = await host.kernels(None, 1)
    try:
        executor = WasmExecutor(graph, host, kernels, lower_graph(graph, kernels.isa, {}))
        facts = {**_placed("cpu", executor), "base": executor.layout.base, "top": executor.layout.top}
        browsers: Any = host  # only a browser hands its modules out
        return Compiled(facts, executor.fixed(), await browsers.compiled_kernels(kernels.isa))
    finally:
        kernels.close()


async def _for_gpu(graph: Graph, host: Host) -> Compiled:
    try:
        executor = await build(graph, host, given_ends=True)
    except UnsupportedOpError:
        selection = await choose(graph, host, ["webgpu"], LoadOptions())
        return Compiled({"kind": "mixed", "why": selection.reason}, executor=selection.executor, graph=graph)
    recording = await executor.recording()
    browsers: Any = recording.program  # only a browser replays without Python
    ends = {
        what: {name: [end.given, end.span.buffer, end.span.offset, end.span.nbytes] for name, end in named.items()}
        for what, named in (("inputs", recording.inputs), ("outputs", recording.outputs))
    }
    facts = {"kind": "gpu", "first": recording.first, "count": recording.count, **ends}
    return Compiled(facts, program=browsers.handle, executor=executor)


async def run_mixed(found: Compiled, inputs: dict[str, memoryview]) -> dict[str, memoryview]:
    """The outputs of a graph that runs on two backends, bytes by name."""
    if found.executor is None:
        raise WebinferError("this graph runs without Python")
    results = await found.executor.run(inputs)
    return {name: tensor.flat().cast("B") for name, tensor in results.items()}
