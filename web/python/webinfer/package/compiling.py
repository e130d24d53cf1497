"""From a model to the bytes of a package: it is loaded on stand-ins, and what they note is written down."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from webinfer.backends.base import Executor
from webinfer.backends.wasm.kernel_table import ABI, KERNELS
from webinfer.backends.wasm.loaded_plan import Layout, LoadedPlan
from webinfer.backends.webgpu.default_tunings import ADAPTER_WORDS, DATA
from webinfer.backends.webgpu.executor import WebGpuExecutor
from webinfer.errors import InputError, KernelError, UnsupportedOpError
from webinfer.graph.ir import Graph, TensorType
from webinfer.host import current
from webinfer.host.interface import Host
from webinfer.host.kernel_constants import (
    MEMORY_STACK_BYTES,
    THREAD_POOL_BYTES,
    THREAD_POOL_MAX_NAPS_WORD,
    THREAD_POOL_NAP_MS,
    THREAD_POOL_POISONED_WORD,
)
from webinfer.package.container import Writer
from webinfer.package.module import Module
from webinfer.package.proofs import order_of, referenced
from webinfer.package.pruning import pruned
from webinfer.package.recording import PaperDevice, PaperHost, PaperKernels
from webinfer.package.tasks import PackagedTask, packaged_task
from webinfer.package.tunings import places_of, words_of
from webinfer.plan.kernel_constants import PROGRAM_HEADER_WORDS, PROGRAM_MAGIC
from webinfer.session.loading import load
from webinfer.session.session import Session
from webinfer.tasks.image import KERNEL as PICTURE_KERNEL
from webinfer.tune.log import Log
from webinfer.version import VERSION

BACKENDS = ("wasm", "webgpu")
BUILDS = ("relaxed", "simd128")  # of the kernels, the best first
MOST_THREADS = 8  # that a plan leaves room for
EXPORTS = ("run", "abi", "__heap_base", "__stack_pointer", "thread_pool_run", "thread_pool_work")
DECIDED_BY_DATA = (
    "data decides what runs, which needs the engine beside it; if an input decides alone, bind it with `values`, in a "
    "shell with --value INPUT=NUMBER"
)
_FEATURES = frozenset({"subgroups", "packed_4x8_integer_dot_product"})


@dataclass(frozen=True, slots=True)
class Source:
    """What is compiled: a model, the task around it, and how it is loaded."""

    model: Any
    task: PackagedTask | None
    options: Mapping[str, Any]
    host: Host

    async def load(self, backend: str, paper: PaperHost) -> Session:
        """The model on a stand-in.

        Raises:  what `webinfer.load` raises
        """
        source, spent = self.model if self.task is None else self.task.source, None if paper.log else 0
        return await load(
            source, backend=backend, strict=True, threads=1, tuning_ms=spent, host=cast(Host, paper), **self.options
        )


def source_of(
    model: Any, task: str | None, task_options: Mapping[str, Any] | None, host: Host | None, options: Mapping[str, Any]
) -> Source:
    """What is compiled.

    Raises:  InputError
    """
    made = None if task is None else packaged_task(task, model, task_options or {})
    return Source(model, made, options, host or current())


@dataclass(slots=True)
class WasmPlan:
    """A model compiled for one build of the kernels."""

    graph: Graph
    layout: Layout
    kernels: PaperKernels
    writes: list[tuple[int, bytes]]
    module: bytes  # of the kernels that it calls
    steps: list[str] = field(default_factory=list)  # kernels of an inference, in order


async def compile_model(
    model: Any,
    *,
    backend: str | Sequence[str] = BACKENDS,
    builds: Sequence[str] = BUILDS,
    threads: bool = True,
    task: str | None = None,
    task_options: Mapping[str, Any] | None = None,
    tunings: str = "",
    host: Host | None = None,
    **options: Any,
) -> bytes:
    """A `.webinfer` file of the model: plans, weights, the kernels and shaders that they use, and the task around it.

    `backend` names what it can run on, "wasm", "webgpu" or both. `builds` are the kernels' instruction sets,
    "relaxed", "simd128", "scalar"; with `threads` each but the last also for several threads. `task` puts preparation
    and decoding in, `task_options` are that task's. `tunings` are lines of a tuning log: each adapter in it gets a plan
    with the kernels that won on it. Other options are those of `webinfer.load` that say how a model is
    read: `shapes`, `values`, `signature`, `member`, `dequantize`, `dynamic_range`, `precision`.

    Raises:  InputError naming an option that is wrong; UnsupportedOpError if no single backend can run the whole
             model, or data decides what runs; what `webinfer.load` raises
    """
    wanted = [backend] if isinstance(backend, str) else list(backend)
    if not wanted or {*wanted} - {*BACKENDS}:
        raise InputError(f"backend={backend!r}: a package is for {' or '.join(BACKENDS)}, or both")
    source = source_of(model, task, task_options, host, options)
    writer, facts, graph = Writer(), dict[str, Any](), None
    if "wasm" in wanted:
        names = [
            build for isa in builds for build in ([isa, f"{isa}-threads"] if threads and isa != "scalar" else [isa])
        ]
        facts["wasm"] = []
        for build in names:
            plan = await compile_wasm_plan(source, build)
            graph = plan.graph
            facts["wasm"].append(_put_wasm(writer, build, plan))
    if "webgpu" in wanted:
        facts["webgpu"], graph = await _put_webgpu(writer, source, places_of(tunings))
    assert graph is not None
    return writer.file(_header(graph, source, facts))


def _header(graph: Graph, source: Source, facts: Mapping[str, Any]) -> dict[str, Any]:
    task = source.task
    header = {
        "name": graph.name,
        "engine": VERSION,
        "inputs": [tensor_facts(v.name, v.type) for v in graph.inputs],
        "outputs": [tensor_facts(v.name, v.type) for v in graph.outputs],
        "states": [[s.name, s.input, s.output, bytes(s.initial or b"").hex()] for s in graph.states],
        "outer": dict(graph.outer),
        "notes": graph.notes,
        **facts,
    }
    return header if task is None else {**header, "task": {"name": task.name, **task.facts(graph)}}


def tensor_facts(name: str, type: TensorType) -> list[Any]:
    """An input or output in a header: name, element type, shape, and scales, zero points and axis if it has any."""
    return [name, type.dtype, type.shape, None if type.quant is None else list(asdict(type.quant).values())]


# ----- WASM


def _executor_of(session: Session) -> Executor:
    """The plan of a session whose sizes are all known.

    Raises:  InputError naming the inputs whose sizes are open
    """
    if opened := [info for info in session.inputs if any(not isinstance(size, int) for size in info.shape)]:
        sizes = ", ".join(f"{info.name!r}: ({', '.join(map(str, info.shape))})" for info in opened)
        raise InputError(
            f"{session.name!r} leaves sizes of inputs open, {sizes}, and a package has one plan; give `shapes`, in a "
            "shell --shape INPUT=1x16"
        )
    return session.executor


async def compile_wasm_plan(source: Source, build: str) -> WasmPlan:
    """The model compiled for a build of the kernels, such as "simd128" or "relaxed-threads".

    Raises:  as `compile_model`
    """
    module = Module.read(bytes(await source.host.kernel_module(build)))
    if (found := module.constant("abi")) != ABI:
        raise KernelError(f"the kernel module has interface {found}, the engine needs {ABI}; rebuild both together")
    heap, threads = module.constant("__heap_base"), 1
    if build.endswith("-threads"):
        pool = -(-heap // 64) * 64
        heap, threads = pool + THREAD_POOL_BYTES + (MOST_THREADS - 1) * MEMORY_STACK_BYTES, MOST_THREADS
    kernels = PaperKernels(build.removesuffix("-threads"), threads, heap)
    with await source.load("wasm", PaperHost(source.host, kernels)) as session:
        executor = _executor_of(session)
        if not isinstance(executor, LoadedPlan):
            raise UnsupportedOpError([f"{session.name}: {DECIDED_BY_DATA}"])
        (graph,), layout = session.graphs(), executor.layout
        writes = [(address, data) for address, data in kernels.writes if data]
    programs = {address: _kernels_of(data) for address, data in writes if _is_program(data)}
    used = {name for names in programs.values() for name in names}
    used |= {PICTURE_KERNEL} if source.task is not None else set()
    needed = pruned(module, sorted(used), [name for name in KERNELS if name not in used], EXPORTS)
    return WasmPlan(graph, layout, kernels, writes, needed.written(), programs.get(layout.program, []))


def _is_program(data: bytes) -> bool:
    return len(data) >= 4 * PROGRAM_HEADER_WORDS and struct.unpack_from("<I", data)[0] == PROGRAM_MAGIC


def _kernels_of(program: bytes) -> list[str]:
    """The kernel of each record of a program."""
    names, found, at = {kernel.id: name for name, kernel in KERNELS.items()}, list[str](), 4 * PROGRAM_HEADER_WORDS
    for _ in range(struct.unpack_from("<3I", program)[2]):
        number, words = struct.unpack_from("<2I", program, at)
        found.append(names[number])
        at += 4 * words
    return found


def _put_wasm(writer: Writer, build: str, plan: WasmPlan) -> dict[str, Any]:
    """The plan in sections of its own, and its row in the header."""
    layout, prepare = plan.layout, plan.kernels.prepare
    programs, writes = bytearray(), list[list[int]]()
    for address, data in plan.writes:
        if _is_program(data):
            writes.append([address, 1, len(programs), len(data)])
            programs += data
        else:
            writes.append([address, 0, *writer.weights(data)])
    ends = [p.address for p in (*layout.inputs, *layout.outputs) if p.type.nbytes]
    starts = [*ends, *(address for address, source, *_ in writes if source == 0)]
    taken = [row[2:] for row in writes if row[1] == 0]
    name = f"wasm/{build}"
    writer.sections[f"{name}/kernels"] = plan.module
    writer.sections[f"{name}/programs"] = bytes(programs)
    writer.sections[name] = _json(
        {
            "abi": ABI, "heap": plan.kernels.heap_base, "top": max(layout.top, plan.kernels.top),
            "writes": writes, "prepare": prepare, "program": [layout.program, layout.steps],
            "inputs": [p.address for p in layout.inputs], "outputs": [p.address for p in layout.outputs],
            "memory": list(asdict(layout.memory).values()), "steps": plan.steps, "for": _made_for(plan.graph, taken),
            "referenced": referenced(memoryview(programs), starts),
            "pool": {
                "bytes": THREAD_POOL_BYTES, "poisoned": THREAD_POOL_POISONED_WORD, "maxNaps": THREAD_POOL_MAX_NAPS_WORD,
                "napMs": THREAD_POOL_NAP_MS, "stack": MEMORY_STACK_BYTES,
            } if plan.kernels.threads > 1 else None,
        }
    )  # fmt: skip
    return {"isa": plan.kernels.isa, "threads": plan.kernels.threads, "section": name}


def _made_for(graph: Graph, taken: Sequence[Sequence[int]]) -> dict[str, Any]:
    """What a plan is made for, which its readers compare with what is there.

    Name, type, shape of inputs and outputs; of the weights that it takes, [first byte, bytes], the two sums.
    """
    rows = {
        key: [tensor_facts(v.name, v.type)[:3] for v in values]
        for key, values in (("inputs", graph.inputs), ("outputs", graph.outputs))
    }
    return {**rows, "weights": [sum(at for at, _ in taken), sum(nbytes for _, nbytes in taken)]}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


# ----- WebGPU


async def _put_webgpu(writer: Writer, source: Source, logs: Sequence[Log]) -> tuple[list[dict[str, Any]], Graph]:
    """The plans for classes of devices, the least demanding first, then of logs: rows of the header, the graph."""
    tuned = [name for name, row in DATA.items() if row.get("choices")]
    targets: list[tuple[str, frozenset[str], Log | None]] = [("", frozenset[str](), None), ("", _FEATURES, None)]
    targets += [(name, _FEATURES, None) for name in tuned]
    targets += [(log.about.adapter, features, log) for log in logs for features in (frozenset[str](), _FEATURES)]
    rows, sections, shaders = list[dict[str, Any]](), dict[bytes, str](), dict[bytes, int]()
    graph: Graph | None = None
    for adapter, features, log in targets:
        device = PaperDevice(features, adapter, "paper" if log is None else log.about.browser)
        with await source.load("webgpu", PaperHost(source.host, None, device, log)) as session:
            executor = _executor_of(session)
            if not isinstance(executor, WebGpuExecutor):
                raise UnsupportedOpError([f"{session.name}: {DECIDED_BY_DATA}"])
            (graph,) = session.graphs()
            plan = _json(_webgpu_plan(writer, device, executor, graph, shaders))
        known = plan in sections
        name = sections.setdefault(plan, f"webgpu/{len(sections)}")
        writer.sections[name] = plan
        if not known or log is not None:
            words = ADAPTER_WORDS[adapter] if adapter and log is None else ()
            named = words_of(adapter) if log is not None else []
            rows.append({"features": sorted(features), "adapters": words, "named": named, "section": name})
    writer.sections["webgpu/shaders"] = b"[" + b",".join(shaders) + b"]"
    assert graph is not None
    return rows, graph


def _webgpu_plan(
    writer: Writer, device: PaperDevice, executor: WebGpuExecutor, graph: Graph, shaders: dict[bytes, int]
) -> dict[str, Any]:
    (program,) = device.programs
    numbers = [shaders.setdefault(_json(asdict(spec)), len(shaders)) for spec in device.specs]
    values, spans = executor.results()
    where = dict(zip(values, spans, strict=True))
    inputs = executor.input_buffers()
    writes = [[buffer, *writer.weights(data)] for buffer, data in program.writes if data]
    plan = {
        "buffers": program.buffers, "uniforms": program.uniforms.hex(),
        "dispatches": [
            [d.label, numbers[d.pipeline], [[s.buffer, s.offset, s.nbytes] for s in d.bindings], d.groups]
            for d in program.dispatches
        ],
        "prepare": program.prepare, "freed": program.freed,
        "writes": writes,
        "inputs": [inputs[v.name] for v in graph.inputs],
        "outputs": [[s.buffer, s.offset, s.nbytes] if (s := where.get(v)) else None for v in graph.outputs],
        "memory": list(asdict(executor.memory()).values()), "for": _made_for(graph, [row[1:] for row in writes]),
    }  # fmt: skip
    return {**plan, "order": order_of(plan)}
