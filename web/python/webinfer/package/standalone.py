"""One `.wasm` that holds a model: plan, weights and kernels. Any WebAssembly engine runs it, with nothing of ours.

Exports: `memory`; `run()`; `input(i)` and `output(i)`, where the bytes of a tensor lie; `metadata()` and
`metadata_bytes()`, where its description in JSON does, which is the custom section "webinfer" as well. With a command
also `_start`, the only part that imports anything: three functions of WASI preview 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import InputError, LimitError
from webinfer.graph.ir import Value
from webinfer.host.interface import Host
from webinfer.kernel_constants import MEMORY_MAX_BYTES
from webinfer.package.command import Stream, add_command, body, call, const, get, signature
from webinfer.package.compiling import WasmPlan, compile_wasm_plan, source_of, tensor_facts
from webinfer.package.module import IS_MEMORY, Module, segment, unsigned
from webinfer.version import VERSION

PAGE = 65536  # bytes
BUILDS = ("simd128", "relaxed", "scalar")
COPY = b"\xfc\x0a\0\0"  # memory.copy
_CODES = {DType.BOOL: "|b1", DType.UINT8: "|u1", DType.INT8: "|i1"}  # NumPy's names of types; others are made


async def compile_wasm(
    model: Any,
    *,
    build: str = "simd128",
    command: bool = True,
    task: str | None = None,
    task_options: Mapping[str, Any] | None = None,
    host: Host | None = None,
    **options: Any,
) -> bytes:
    """A WebAssembly module that holds the model and runs by itself.

    `build` is the kernels' instruction set: "simd128" runs in every engine of today, "relaxed" rounds as the newest
    do, "scalar" runs in the oldest. With `command` it is a WASI command besides: `wasmtime model.wasm < in > out`;
    without it imports nothing. `task` puts a task's decoding in. Other options as for `compile_model`.

    Raises:  as `compile_model`
    """
    if build not in BUILDS:
        raise InputError(f"build={build!r}: a module is for one of {', '.join(BUILDS)}")
    source = await source_of(model, task, task_options, host, options)
    if source.task is not None and (source.task.parts or source.task.files):
        raise InputError(f"task {task!r} takes more than one model without files; compile a .webinfer package")
    plan = await compile_wasm_plan(source, build)
    facts = dict[str, Any]()
    if source.task is not None and source.task.facts is not None:
        facts = {"task": {"name": source.task.name, **source.task.facts(plan.graph)}}
    if facts:
        facts["task"].get("picture", {}).pop("passes", None)
    return _written(plan, facts, command)


class _Memory:
    """What lies behind the plan's own memory."""

    def __init__(self, base: int) -> None:
        self.base, self.data = base, bytearray()

    def add(self, data: bytes) -> int:
        """The address of a copy of the bytes."""
        self.data += bytes(-len(self.data) % 16)
        at = self.base + len(self.data)
        self.data += data
        return at


def _written(plan: WasmPlan, facts: Mapping[str, Any], command: bool) -> bytes:
    layout, graph = plan.layout, plan.graph
    module, memory = Module.read(plan.module), _Memory(-(-max(layout.top, plan.kernels.top) // PAGE) * PAGE)
    ends = {"inputs": layout.inputs, "outputs": layout.outputs}
    about = {
        "name": graph.name, "engine": VERSION, "build": plan.kernels.isa,
        **{key: [[*tensor_facts(p.name, p.type), p.address, p.type.nbytes] for p in ends[key]] for key in ends},
        "states": [[s.name, s.input, s.output] for s in graph.states], **facts,
    }  # fmt: skip
    text = json.dumps(about, separators=(",", ":"), ensure_ascii=False).encode()
    described = memory.add(text)
    kernels = module.exports["run"][1]
    module.imports, module.exports = [], {"memory": (IS_MEMORY, 0)}
    run = module.function(signature(0), _run(plan, kernels, memory), "run")
    for name, places in (("input", layout.inputs), ("output", layout.outputs)):
        module.function(signature(1, 1), _chosen([place.address for place in places]), name)
    module.function(signature(0, 1), body(const(described)), "metadata")
    module.function(signature(0, 1), body(const(len(text))), "metadata_bytes")
    if plan.kernels.prepare is not None:
        module.start = module.function(signature(0), body(_walk(kernels, *plan.kernels.prepare)))
    if command:
        _make_command(module, plan, memory, run)
    written = (*plan.writes, (memory.base, bytes(memory.data)))
    module.data += [segment(address, data) for address, data in written]
    top = memory.base + len(memory.data) + PAGE
    if top > MEMORY_MAX_BYTES:
        raise LimitError(f"memory of model {graph.name!r} in bytes", top, MEMORY_MAX_BYTES, "use a smaller model")
    module.memory = b"\0" + unsigned(-(-top // PAGE))
    module.custom["webinfer"] = text
    return module.written()


def _walk(kernels: int, program: int, steps: int) -> bytes:
    return const(program) + const(0) + const(steps) + const(0) + const(1) + call(kernels)


def _run(plan: WasmPlan, kernels: int, memory: _Memory) -> bytes:
    """The program; for models that remember, between what the run before has kept and what this one keeps.

    An input's place is used for other things during a run, and so is no place to keep anything.
    """
    inputs, outputs = ({p.name: p for p in places} for places in (plan.layout.inputs, plan.layout.outputs))
    before, after = list[bytes](), list[bytes]()
    for state in plan.graph.states:
        if state.input:
            given, result = inputs[state.input], outputs.get(state.output)
            kept = memory.add(bytes(state.initial or bytes(given.type.nbytes)))
            before.append(const(given.address) + const(kept) + const(given.type.nbytes) + COPY)
            if result is not None:
                after.append(const(kept) + const(result.address) + const(given.type.nbytes) + COPY)
    return body(*before, _walk(kernels, plan.layout.program, plan.layout.steps), *after)


def _chosen(addresses: Sequence[int]) -> bytes:
    """The address of this number; a trap for any other."""
    tests = [get(0) + const(i) + b"\x46\x04\x40" + const(address) + b"\x0f\x0b" for i, address in enumerate(addresses)]
    return body(*tests, b"\x00")


def _make_command(module: Module, plan: WasmPlan, memory: _Memory, run: int) -> None:
    kept = {name for state in plan.graph.states for name in (state.input, state.output)}

    def streams(places: Sequence[Any]) -> list[Stream]:
        found = []
        for place in places:
            if place.name in kept:
                continue
            head = npy_head(Value(place.name, place.type))
            shape = "x".join(map(str, place.type.shape)) or "one number"
            told = f"needed: {place.name!r}, {place.type.dtype} {shape}, raw or as .npy\n".encode()
            complaint = memory.add(told), len(told)
            found.append(Stream(place.address, place.type.nbytes, memory.add(head), len(head), complaint))
        return found

    inputs, outputs = streams(plan.layout.inputs), streams(plan.layout.outputs)
    told = b"there is more input than the model takes\n"
    scratch = memory.add(bytes(32 + max((stream.head_bytes for stream in inputs), default=0)))
    add_command(module, run, inputs, outputs, scratch, (memory.add(told), len(told)))


def npy_head(value: Value) -> bytes:
    """What a .npy file of this tensor begins with, as NumPy writes it."""
    dtype = value.type.dtype
    kind = _CODES.get(dtype) or f"<{'f' if dtype.is_float else 'u' if dtype.startswith('u') else 'i'}{dtype.itemsize}"
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {value.type.shape!r}, }}"
    # NumPy leaves room for a first size of 21 digits, then fills up to a multiple of 64.
    text += " " * (21 - len(str(value.type.shape[0])) if value.type.shape else 0)
    return b"\x93NUMPY\x01\0" + _filled(text.encode())


def _filled(text: bytes) -> bytes:
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return len(text).to_bytes(2, "little") + text
