"""What a model is compiled to, as files that can be compared: graph, plan, steps, shaders, dispatches.

Nothing is computed: kernels and GPU are stand-ins that note what they are asked for. So the files do not depend on
the machine, hold no path, and are the same whenever the compiler is the same.
"""

from __future__ import annotations

import hashlib
import json
import logging
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.errors import WebinferError
from webinfer.host import current
from webinfer.host.gpu import DispatchSpec, PipelineSpec, Span
from webinfer.host.interface import Host
from webinfer.kernel_constants import PROGRAM_MAGIC
from webinfer.lazy_dataclass import dataclass
from webinfer.package.recording import PaperDevice, PaperHost, PaperKernels, PaperProgram
from webinfer.plan.program import records
from webinfer.session.loading import load

FEATURES = frozenset({"subgroups", "packed_4x8_integer_dot_product"})


HEAP_BASE = 65536
SUFFIXES = (".json", ".txt", ".wgsl")


@dataclass(frozen=True, slots=True)
class Target:
    """One folder of a dump: a backend, and the GPU that it would run on."""

    backend: str
    adapter: str = ""  # as the GPU names itself; it decides which default tunings apply
    software: bool = False
    features: frozenset[str] = frozenset()
    precision: str = "float32"


TARGETS = {
    "wasm": Target("wasm"),
    "webgpu": Target("webgpu", features=FEATURES),
    "webgpu_software": Target("webgpu", software=True),
    "webgpu_nvidia": Target("webgpu", "nvidia", features=FEATURES),
    "webgpu_float16": Target("webgpu", features=FEATURES, precision="float16"),
}


async def dump(model: Any, folder: Path, targets: Sequence[str] = tuple(TARGETS)) -> None:
    """Writes what the model is compiled to, one folder a target; what a target refuses is written to refused.txt.

    Raises:  ModelFormatError if the model cannot be read
    """
    graph = ""
    for name in targets:
        files, graph_text = await compiled_files(model, TARGETS[name])
        graph = graph or graph_text
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        for old in [path for suffix in SUFFIXES for path in place.glob(f"*{suffix}")]:
            old.unlink()  # of an earlier dump
        for file, text in files.items():
            (place / file).write_text(text, encoding="utf-8")
    if graph:
        (folder / "graph.txt").write_text(graph, encoding="utf-8")


async def compiled_files(model: Any, target: Target) -> tuple[dict[str, str], str]:
    """Path and text of every file of one target, and the optimised graph as text."""
    host = _DumpHost(target)
    warnings = logging.getLogger("webinfer")
    silent, warnings.disabled = warnings.disabled, True
    try:
        session = await load(
            model, backend=target.backend, precision=target.precision, threads=1, tuning_ms=0, host=cast(Host, host)
        )
        with session:
            await session.run(session.noise())
            plan = json.loads(session.plan().json())
            graph = session.graph_text()
    except WebinferError as error:
        if error.code == "model-format":
            raise
        return {"refused.txt": f"{error.code}: {error}\n"}, ""
    finally:
        warnings.disabled = silent
    files = {"plan.json": _json_rows(plan)}
    for i, kernels in enumerate(host.instances):
        files[f"steps{i or ''}.txt"] = kernels.text()
    shaders = _named(host.device.specs)
    for i, program in enumerate(host.device.programs):
        files[f"dispatches{i or ''}.json"] = _program_text(program, shaders)
    files.update({f"{name}.wgsl": spec.code for name, spec in zip(shaders, host.device.specs, strict=True)})
    return files, graph


def _json_rows(table: Mapping[str, Any]) -> str:
    """JSON with one line for each entry of the table's lists, so that a difference is a line."""
    parts = []
    for key, value in sorted(table.items()):
        if isinstance(value, list):
            rows = ",\n".join("  " + json.dumps(row, sort_keys=True) for row in value)
            parts.append(f" {json.dumps(key)}: [\n{rows}\n ]" if rows else f" {json.dumps(key)}: []")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, sort_keys=True)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _digest(data: Any) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


# ----- WASM: a memory that keeps the programs


class _DumpKernels(PaperKernels):
    """Notes how far each program ran, too."""

    def __init__(self) -> None:
        super().__init__("relaxed", 1, HEAP_BASE, top=HEAP_BASE)
        self._runs: dict[bytes, int] = {}  # program -> most steps that were run of it at once

    def run(self, program: int, first: int, count: int) -> None:
        records = next(data for at, data in reversed(self.writes) if at == program and _is_program(data))
        self._runs[records] = max(first + count, self._runs.get(records, 0))

    def text(self) -> str:
        """What was written before the last program, then the steps of every run. What came later are inputs."""
        last = max((i for i, (_, data) in enumerate(self.writes) if _is_program(data)), default=0)
        constants = [row for row in self.writes[:last] if not _is_program(row[1])]
        lines = [f"memory {self.size()} bytes"]
        lines += [f"constant {at:#x} {len(data)} bytes {_digest(data)}" for at, data in constants]
        for program, count in self._runs.items():
            lines += [f"run of {count} steps", *_steps(program)[:count]]
        return "\n".join(lines) + "\n"


def _is_program(data: bytes) -> bool:
    return len(data) >= 16 and struct.unpack_from("<I", data)[0] == PROGRAM_MAGIC


def _steps(program: bytes) -> list[str]:
    """The records of a program, one line each: kernel, units, arguments; addresses in hexadecimal."""
    kernels, lines = {kernel.id: kernel for kernel in KERNELS.values()}, list[str]()
    for record in records(program):
        kernel = kernels[struct.unpack_from("<I", record)[0]]
        _, _, units, shares, *values = struct.unpack(kernel.arrangement.layout, record)
        arguments = [
            f"{name}={value:#x}" if kind == "ptr" else f"{name}={value!r}"
            for (name, kind), value in zip(kernel.args.items(), values, strict=True)
        ]
        lines.append(" ".join([kernel.name, f"units={units} shares={shares}", *arguments]))
    return lines


# ----- WebGPU: a device that keeps the shaders and dispatches


class _DumpProgram(PaperProgram):
    """Notes what is written while it loads; every result is zero."""

    ran = False

    def write(self, buffer: int, data: Any) -> None:
        if not self.ran:
            super().write(buffer, data)

    async def run(self, first: int, count: int, reads: Sequence[Span], inputs: Any = ()) -> list[memoryview]:
        self.ran = self.ran or first > 0
        if not first and not reads:
            await super().run(first, count, reads)
        return [memoryview(bytes(span.nbytes)) for span in reads]

    def free(self, buffers: Sequence[int], dispatches: int) -> None:
        super().free(buffers, dispatches)
        self.ran = True

    async def time(self, first: int, count: int, repeats: int) -> float:
        return 0.0


def _named(specs: Iterable[PipelineSpec]) -> list[str]:
    """The name of each shader's file: its kernel and a number."""
    names, counts = [], dict[str, int]()
    for spec in specs:
        stem = "".join(c if c.isalnum() or c in "_-" else "_" for c in spec.label)
        counts[stem] = number = counts.get(stem, 0) + 1
        names.append(f"{stem}_{number}")
    return names


def _program_text(program: PaperProgram, shaders: Sequence[str]) -> str:
    """Everything as JSON, a dispatch a line."""
    constants = [f"buffer {buffer}: {len(data)} bytes {_digest(data)}" for buffer, data in program.writes]
    return _json_rows(
        {
            "at_load": program.prepare,
            "buffers": " ".join(map(str, program.buffers)),
            "constants": constants,
            "dispatches": [_row(program, dispatch, shaders) for dispatch in program.dispatches],
        }
    )


def _row(program: PaperProgram, dispatch: DispatchSpec, shaders: Sequence[str]) -> dict[str, Any]:
    last = len(program.buffers)  # behind them lie the parameters
    spans = [span for span in dispatch.bindings if span.buffer < last]
    params = [span for span in dispatch.bindings if span.buffer == last]
    data = b"".join(program.uniforms[span.offset : span.offset + span.nbytes] for span in params)
    return {
        "kernel": shaders[dispatch.pipeline],
        "groups": list(dispatch.groups),
        "bindings": [[span.buffer, span.offset, span.nbytes] for span in spans],
        "params": list(struct.unpack(f"<{len(data) // 4}I", data)),
    }


class _DumpHost(PaperHost):
    """The host of this process, with stand-ins and without a memory of earlier visits."""

    knows_cores = True  # the one that there is

    def __init__(self, target: Target) -> None:
        self.device = PaperDevice(target.features, target.adapter, made=_DumpProgram, software=target.software)
        self.instances = list[_DumpKernels]()
        super().__init__(current(), device=self.device)

    async def kernels(self, isa: str | None = None, threads: int | None = 1) -> _DumpKernels:
        self.instances.append(_DumpKernels())
        return self.instances[-1]
