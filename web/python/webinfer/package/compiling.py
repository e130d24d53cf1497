"""From a model to the bytes of a package: it is loaded on stand-ins, and what they note is written down."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, cast

from webinfer.backends.base import Executor
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.loaded_plan import Layout, LoadedPlan
from webinfer.backends.wasm.open_plan import OpenExecutor
from webinfer.backends.webgpu.default_tunings import ADAPTER_WORDS, DATA
from webinfer.backends.webgpu.executor import WebGpuExecutor
from webinfer.backends.webgpu.open_program import OpenProgram
from webinfer.errors import InputError, KernelError, UnsupportedOpError
from webinfer.graph.ir import Graph, TensorType, Value
from webinfer.host import current
from webinfer.host.interface import Host
from webinfer.kernel_constants import (
    MEMORY_STACK_BYTES,
    PROGRAM_HEADER_WORDS,
    PROGRAM_MAGIC,
    THREAD_POOL_BYTES,
    THREAD_POOL_MAX_NAPS_WORD,
    THREAD_POOL_NAP_MS,
    THREAD_POOL_POISONED_WORD,
)
from webinfer.lazy_dataclass import dataclass
from webinfer.package.container import Writer
from webinfer.package.module import Module
from webinfer.package.open_sizes import open_axes, regimes_of
from webinfer.package.proofs import bindings_of, order_of, referenced
from webinfer.package.pruning import pruned
from webinfer.package.recording import PaperDevice, PaperHost, PaperKernels
from webinfer.package.task_parts import PackagedTask
from webinfer.package.tasks import packaged_task
from webinfer.package.tunings import places_of, words_of
from webinfer.plan.blocks import SPARE
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
    "the control flow depends on data, which needs the engine at run time; if one input alone decides it, bind that "
    "with `values`, in a shell with --value INPUT=NUMBER"
)
Shapes = dict[str, list[Any]]  # of inputs and outputs whose sizes are open: the file's names, "?" for what follows them
_FEATURES = frozenset({"subgroups", "packed_4x8_integer_dot_product"})


@dataclass(frozen=True, slots=True)
class Source:
    """What is compiled: a model, the task around it, and how it is loaded.

    Sizes that the model leaves open stay open, or are fixed by the task.
    """

    model: Any
    task: PackagedTask | None
    options: Mapping[str, Any]
    host: Host

    @property
    def stays_open(self) -> bool:
        """Whether sizes may stay open."""
        return self.task is None or bool(self.task.sizes)

    async def load(self, backend: str, paper: PaperHost) -> Session:
        """The model on a stand-in.

        Raises:  what `webinfer.load` raises
        """
        source, spent = self.model if self.task is None else self.task.source, None if paper.log else 0
        return await load(
            source, backend=backend, strict=True, threads=1, tuning_ms=spent, host=cast(Host, paper), **self.options
        )


async def source_of(
    model: Any, task: str | None, task_options: Mapping[str, Any] | None, host: Host | None, options: Mapping[str, Any]
) -> Source:
    """What is compiled.

    Raises:  InputError
    """
    host = host or current()
    made = None if task is None else await packaged_task(task, model, task_options or {}, host)
    given = {name: value for name, value in options.items() if value is not None}
    return Source(model, made, {**made.reading, **given} if made else given, host)


@dataclass(slots=True)
class WasmPlan:
    """A model compiled for one build of the kernels; `regimes` are plans for kinds of sizes, where those are open."""

    graph: Graph
    layout: Layout
    kernels: PaperKernels
    writes: list[tuple[int, bytes]]
    module: bytes  # of the kernels that it calls
    steps: list[str] = field(default_factory=list)  # kernels of an inference, in order
    regimes: list[dict[str, Any]] = field(default_factory=list)
    shapes: Shapes = field(default_factory=dict)


async def compile_model(
    model: Any,
    *,
    backend: str | Sequence[str] = BACKENDS,
    builds: Sequence[str] = BUILDS,
    threads: bool = True,
    task: str | None = None,
    task_options: Mapping[str, Any] | None = None,
    tunings: str = "",
    sizes: Sequence[Mapping[str, Sequence[int]]] = (),
    host: Host | None = None,
    **options: Any,
) -> bytes:
    """A `.webinfer` file of the model: plans, weights, the kernels and shaders that they use, and the task around it.

    `backend` names what it can run on, "wasm", "webgpu" or both. `builds` are the kernels' instruction sets,
    "relaxed", "simd128", "scalar"; with `threads` each but the last also for several threads. `task` puts preparation
    and decoding in, `task_options` are that task's. `tunings` are lines of a tuning log: each adapter in it gets a plan
    with the kernels that won on it. Sizes of inputs that the model leaves open stay open, unless `shapes` binds them; a
    package holds plans for a few kinds of sizes, found by trial, or those of `sizes`, each of which says the shapes of
    all inputs whose sizes are open. Other options are those of `webinfer.load` that say how a model is
    read: `shapes`, `values`, `signature`, `member`, `dequantize`, `dynamic_range`, `precision`.

    Raises:  InputError naming an option that is wrong; UnsupportedOpError if no single backend can run the whole
             model, or data decides what runs; what `webinfer.load` raises
    """
    wanted = [backend] if isinstance(backend, str) else list(backend)
    if not wanted or {*wanted} - {*BACKENDS}:
        raise InputError(f"backend={backend!r}: a package is for {' or '.join(BACKENDS)}, or both")
    names = [build for isa in builds for build in ([isa, f"{isa}-threads"] if threads and isa != "scalar" else [isa])]
    source = await source_of(model, task, task_options, host, options)
    return await _package(source, names if "wasm" in wanted else [], "webgpu" in wanted, places_of(tunings), sizes)


async def _package(
    source: Source, builds: Sequence[str], gpu: bool, logs: Sequence[Log], sizes: Sequence[Mapping[str, Sequence[int]]]
) -> bytes:
    """The file of a source, for these builds of the kernels and for a GPU; models of a task's parts are files in it."""
    writer, facts, graph, shapes = Writer(), dict[str, Any](), None, Shapes()
    sizes = sizes or (source.task.sizes if source.task else ())
    if builds:
        facts["wasm"] = []
        for build in builds:
            plan = await compile_wasm_plan(source, build, sizes)
            graph, shapes = plan.graph, plan.shapes
            facts["wasm"].append(_put_wasm(writer, build, plan))
    if gpu:
        facts["webgpu"], graph, shapes = await _put_webgpu(writer, source, logs, sizes)
    if source.task is not None:
        writer.sections |= {f"files/{name}": data for name, data in source.task.files.items()}
        for name, part in source.task.parts.items():
            one = part if isinstance(part, PackagedTask) else None
            inner = Source(one.source, one, one.reading, source.host) if one else Source(part, None, {}, source.host)
            writer.sections[f"parts/{name}"] = await _package(inner, builds, gpu, logs, ())
    assert graph is not None
    return writer.file(_header(graph, source, facts, shapes))


def _header(graph: Graph, source: Source, facts: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    """The facts of the whole package; `shapes` are those of inputs and outputs whose sizes are open."""
    task = source.task

    def ends(values: Sequence[Value]) -> list[list[Any]]:
        rows = [tensor_facts(v.name, v.type) for v in values]
        return [[name, dtype, shapes.get(name, shape), quant] for name, dtype, shape, quant in rows]

    header = {
        "name": graph.name,
        "engine": VERSION,
        "inputs": ends(graph.inputs),
        "outputs": ends(graph.outputs),
        "states": [[s.name, s.input, s.output, bytes(s.initial or b"").hex()] for s in graph.states],
        "outer": dict(graph.outer),
        "notes": graph.notes,
        **facts,
    }
    if task is None or task.facts is None:
        return header
    parts = {"parts": list(task.parts)} if task.parts else {}
    return {**header, "task": {"name": task.name, **task.facts(graph), **parts}}


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


async def compile_wasm_plan(
    source: Source, build: str, sizes: Sequence[Mapping[str, Sequence[int]]] | None = None
) -> WasmPlan:
    """The model compiled for a build of the kernels, such as "simd128" or "relaxed-threads".

    `sizes` are those of `compile_model`; with None, none may be open.

    Raises:  as `compile_model`
    """
    module = Module.read(bytes(await source.host.kernel_module(build)))
    if (found := module.constant("abi")) != KERNELS.abi:
        raise KernelError(
            f"the kernel module has interface {found}, the engine needs {KERNELS.abi}; rebuild both together"
        )
    heap, threads = module.constant("__heap_base"), 1
    if build.endswith("-threads"):
        pool = -(-heap // 64) * 64
        heap, threads = pool + THREAD_POOL_BYTES + (MOST_THREADS - 1) * MEMORY_STACK_BYTES, MOST_THREADS
    kernels = PaperKernels(build.removesuffix("-threads"), threads, heap)
    regimes, shapes = list[dict[str, Any]](), Shapes()
    with await source.load("wasm", PaperHost(source.host, kernels)) as session:
        if sizes is not None and source.stays_open and open_axes(session.inputs):
            opened = await _open_wasm(session, sizes, kernels, regimes)
            graph, layout = opened.graph, opened.layout
            shapes = _open_shapes(session, graph, regimes)
        else:
            executor = _executor_of(session)
            if not isinstance(executor, LoadedPlan):
                raise UnsupportedOpError([f"{session.name}: {DECIDED_BY_DATA}"])
            (graph,), layout = session.graphs(), executor.layout
        writes = [(address, data) for address, data in kernels.writes if data]
    programs = {address: _kernels_of(data) for address, data in writes if _is_program(data)}
    used = {name for names in programs.values() for name in names}
    used |= {PICTURE_KERNEL} if source.task is not None else set()
    needed = pruned(module, sorted(used), [name for name in KERNELS if name not in used], EXPORTS)
    steps = [*programs.get(layout.program, [])]
    for regime in regimes:
        regime["steps"] = programs[regime["program"][0]]
        regime["bindings"] = bindings_of(regime)
    return WasmPlan(graph, layout, kernels, writes, needed.written(), steps, regimes, shapes)


def _open_shapes(session: Session, graph: Graph, regimes: Sequence[Mapping[str, Any]]) -> Shapes:
    """Shapes of inputs as the model has them, of outputs with "?" for each size that is not always the same."""
    forms = [regime.get("open", regime) for regime in regimes]
    found = {info.name: list(info.shape) for info in session.inputs}
    for i, value in enumerate(graph.outputs):
        shapes = [[_constant(size, regime["sizes"]) for size in regime["shapes"][1][i]] for regime in forms]
        found[value.name] = [own[0] if len({*own}) == 1 else "?" for own in zip(*shapes, strict=True)]
    return found


def _constant(size: Any, form: Mapping[str, Any]) -> Any:
    """The number that a size is in a regime; "?" if it follows others."""
    if not isinstance(size, list):
        return size
    match form["values"][size[0]]:
        case []:
            return 0
        case [[int(number)]]:
            return number
    return "?"


async def _open_wasm(
    session: Session, sizes: Sequence[Mapping[str, Sequence[int]]], kernels: PaperKernels,
    regimes: list[dict[str, Any]],
) -> OpenExecutor:  # fmt: skip
    """The last executor of the plans for kinds of sizes, all in one memory; their facts go to `regimes`."""

    def made(executor: Executor) -> None:
        assert isinstance(executor, OpenExecutor)
        assert executor.memory_of_kernels is not None
        executor.memory_of_kernels.end = kernels.top  # the next plan shall overwrite nothing of what this one loads
        layout = executor.layout
        facts = {"program": [layout.program, layout.steps], "memory": list(asdict(layout.memory).values())}
        regimes.append({**facts, **executor.form()})

    executor = (await regimes_of(session, sizes, made))[-1].executor
    assert isinstance(executor, OpenExecutor)
    return executor


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
    layout = plan.layout
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
    name, facts = f"wasm/{build}", dict[str, Any]()
    if plan.regimes:
        facts = {"prepares": plan.kernels.prepares, "regimes": plan.regimes, "weights": _sums(taken), "spare": SPARE}
    else:
        facts = {
            "prepare": plan.kernels.prepare, "program": [layout.program, layout.steps],
            "inputs": [p.address for p in layout.inputs], "outputs": [p.address for p in layout.outputs],
            "memory": list(asdict(layout.memory).values()), "steps": plan.steps, "for": _made_for(plan.graph, taken),
            "referenced": referenced(memoryview(programs), starts),
        }  # fmt: skip
    writer.sections[f"{name}/kernels"] = plan.module
    writer.sections[f"{name}/programs"] = bytes(programs)
    writer.sections[name] = _json(
        {
            "abi": KERNELS.abi, "heap": plan.kernels.heap_base, "top": max(layout.top, plan.kernels.top),
            "writes": writes, **facts,
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
    return {**rows, "weights": _sums(taken)}


def _sums(taken: Sequence[Sequence[int]]) -> list[int]:
    return [sum(at for at, _ in taken), sum(nbytes for _, nbytes in taken)]


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


# ----- WebGPU


async def _put_webgpu(
    writer: Writer, source: Source, logs: Sequence[Log], sizes: Sequence[Mapping[str, Sequence[int]]]
) -> tuple[list[dict[str, Any]], Graph, Shapes]:
    """The plans for classes of devices, the least demanding first, then of logs: rows of the header, the graph."""
    tuned = [name for name, row in DATA.items() if row.get("choices")]
    targets: list[tuple[str, frozenset[str], Log | None]] = [("", frozenset[str](), None), ("", _FEATURES, None)]
    targets += [(name, _FEATURES, None) for name in tuned]
    targets += [(log.about.adapter, features, log) for log in logs for features in (frozenset[str](), _FEATURES)]
    rows, sections, shaders = list[dict[str, Any]](), dict[bytes, str](), dict[bytes, int]()
    graph: Graph | None = None
    shapes = Shapes()
    for adapter, features, log in targets:
        device = PaperDevice(features, adapter, "paper" if log is None else log.about.browser)
        with await source.load("webgpu", PaperHost(source.host, None, device, log)) as session:
            if source.stays_open and open_axes(session.inputs):
                graph, plans = await _open_webgpu(writer, device, session, sizes, shaders)
                shapes = _open_shapes(session, graph, plans)
            else:
                executor = _executor_of(session)
                if not isinstance(executor, WebGpuExecutor):
                    raise UnsupportedOpError([f"{session.name}: {DECIDED_BY_DATA}"])
                (graph,) = session.graphs()
                plans = [_webgpu_plan(writer, device, executor, graph, shaders)]
        texts = list(map(_json, plans))
        known = all(text in sections for text in texts)
        names = [sections.setdefault(text, f"webgpu/{len(sections)}") for text in texts]
        writer.sections.update(zip(names, texts, strict=True))
        if not known or log is not None:
            words = ADAPTER_WORDS[adapter] if adapter and log is None else ()
            named = words_of(adapter) if log is not None else []
            row = {"features": sorted(features), "adapters": words, "named": named, "section": names[0]}
            rows.append({**row, "regimes": names} if shapes else row)
    writer.sections["webgpu/shaders"] = b"[" + b",".join(shaders) + b"]"
    assert graph is not None
    return rows, graph, shapes


async def _open_webgpu(
    writer: Writer, device: PaperDevice, session: Session, sizes: Sequence[Mapping[str, Sequence[int]]],
    shaders: dict[bytes, int],
) -> tuple[Graph, list[dict[str, Any]]]:  # fmt: skip
    """The graph and the plans for kinds of sizes of one class of devices."""
    plans = list[dict[str, Any]]()

    def made(executor: Executor) -> None:
        assert isinstance(executor, OpenProgram)
        plan = _webgpu_plan(writer, device, executor, executor.graph, shaders)
        form = executor.form()
        plans.append({**plan, "open": {**form, "bindings": bindings_of(form)}})

    executor = (await regimes_of(session, sizes, made))[-1].executor
    return executor.graph, plans


def _webgpu_plan(
    writer: Writer, device: PaperDevice, executor: WebGpuExecutor, graph: Graph, shaders: dict[bytes, int]
) -> dict[str, Any]:
    program = device.programs[-1]
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
