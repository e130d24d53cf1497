"""What a model is compiled to, as files that can be compared: graph, plan, steps, shaders, dispatches.

Nothing is computed: kernels and GPU are stand-ins that note what they are asked for. So the files do not depend on
the machine, hold no path, and are the same whenever the compiler is the same.
"""

from __future__ import annotations

import hashlib
import json
import logging
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.errors import WebinferError
from webinfer.host import current
from webinfer.host.gpu import DispatchSpec, PipelineSpec, Span
from webinfer.host.interface import Host
from webinfer.kernel_constants import PROGRAM_MAGIC
from webinfer.session.loading import load

LIMITS = {  # what every WebGPU implementation has
    "maxComputeWorkgroupsPerDimension": 65535,
    "maxStorageBufferBindingSize": 1 << 27,
    "maxBufferSize": 1 << 28,
    "maxStorageBuffersPerShaderStage": 8,
    "maxComputeWorkgroupStorageSize": 16384,
    "maxComputeInvocationsPerWorkgroup": 256,
    "maxComputeWorkgroupSizeX": 256,
    "maxComputeWorkgroupSizeY": 256,
    "minStorageBufferOffsetAlignment": 256,
    "minUniformBufferOffsetAlignment": 256,
}
FEATURES = frozenset({"subgroups", "packed_4x8_integer_dot_product"})


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
    host = _PaperHost(target)
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
    for i, program in enumerate(host.device.programs):
        files[f"dispatches{i or ''}.json"] = program.text()
    files.update({f"{name}.wgsl": spec.code for spec, name in host.device.shaders.items()})
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


class _PaperKernels:
    """Notes what is written and run (host.interface.Kernels); every result is zero."""

    isa, threads, heap_base, notes_load = "relaxed", 1, 65536, True

    def __init__(self) -> None:
        self._programs: dict[int, bytes] = {}
        self._written: list[str] = []
        self._constants = 0  # of `_written`: what comes after the last program are inputs
        self._runs: dict[bytes, int] = {}  # program -> most steps that were run of it at once
        self._size = self.heap_base

    def size(self) -> int:
        return self._size

    def grow(self, nbytes: int) -> None:
        self._size = max(self._size, nbytes)

    def read(self, address: int, nbytes: int) -> memoryview:
        return memoryview(bytes(nbytes))

    def write(self, address: int, data: Any) -> None:
        view = memoryview(data).cast("B")
        if len(view) >= 16 and struct.unpack_from("<I", view)[0] == PROGRAM_MAGIC:
            self._programs[address], self._constants = bytes(view), len(self._written)
        else:
            self._written.append(f"constant {address:#x} {len(view)} bytes {_digest(view)}")

    def call(self, name: str, *args: int | float) -> int:
        return KERNELS.abi if name == "abi" else 0

    def run(self, program: int, first: int, count: int) -> None:
        records = self._programs[program]
        self._runs[records] = max(first + count, self._runs.get(records, 0))

    def close(self) -> None:
        """Nothing to let go."""

    def text(self) -> str:
        """What was written, then the steps of every run."""
        lines = [f"memory {self._size} bytes", *self._written[: self._constants]]
        for program, count in self._runs.items():
            lines += [f"run of {count} steps", *_steps(program)[:count]]
        return "\n".join(lines) + "\n"


def _steps(program: bytes) -> list[str]:
    """The records of a program, one line each: kernel, units, arguments; addresses in hexadecimal."""
    kernels = {kernel.id: kernel for kernel in KERNELS.values()}
    lines, at = [], 16
    for _ in range(struct.unpack_from("<4I", program)[2]):
        number, words, units = struct.unpack_from("<3I", program, at)
        kernel = kernels[number]
        arguments = [
            f"{name}={_argument(kind, program, at + 12 + 4 * i)}" for i, (name, kind) in enumerate(kernel.args.items())
        ]
        lines.append(" ".join([kernel.name, f"units={units}", *arguments]))
        at += 4 * words
    return lines


def _argument(kind: str, program: bytes, at: int) -> str:
    if kind == "ptr":
        return f"{struct.unpack_from('<I', program, at)[0]:#x}"
    return repr(struct.unpack_from("<i" if kind == "i32" else "<f", program, at)[0])


# ----- WebGPU: a device that keeps the shaders and dispatches


@dataclass(slots=True)
class _PaperProgram:
    """Notes buffers, constants and dispatches (host.gpu.GpuProgram); every result is zero."""

    device: _PaperDevice
    buffers: Sequence[int]
    uniforms: bytes
    dispatches: Sequence[DispatchSpec]
    constants: list[str] = field(default_factory=list)
    at_load: int = 0
    ran: bool = False

    def write(self, buffer: int, data: Any) -> None:
        if not self.ran:
            view = memoryview(data).cast("B")
            self.constants.append(f"buffer {buffer}: {len(view)} bytes {_digest(view)}")

    async def run(self, first: int, count: int, reads: Sequence[Span], inputs: Any = ()) -> list[memoryview]:
        if first:
            self.ran = True
        else:
            self.at_load = count if not reads else self.at_load
        return [memoryview(bytes(span.nbytes)) for span in reads]

    def free(self, buffers: Sequence[int], dispatches: int) -> None:
        self.at_load, self.ran = dispatches, True

    async def time(self, first: int, count: int, repeats: int) -> float:
        return 0.0

    def close(self) -> None:
        """Nothing to let go."""

    def text(self) -> str:
        """Everything as JSON, a dispatch a line."""
        return _json_rows(
            {
                "at_load": self.at_load,
                "buffers": " ".join(map(str, self.buffers)),
                "constants": self.constants,
                "dispatches": [self._row(dispatch) for dispatch in self.dispatches],
            }
        )

    def _row(self, dispatch: DispatchSpec) -> dict[str, Any]:
        spans = [span for span in dispatch.bindings if span.buffer < len(self.buffers)]
        params = [span for span in dispatch.bindings if span.buffer == len(self.buffers)]
        data = b"".join(self.uniforms[span.offset : span.offset + span.nbytes] for span in params)
        return {
            "kernel": self.device.shaders[self.device.specs[dispatch.pipeline]],
            "groups": list(dispatch.groups),
            "bindings": [[span.buffer, span.offset, span.nbytes] for span in spans],
            "params": list(struct.unpack(f"<{len(data) // 4}I", data)),
        }


class _PaperDevice:
    """Notes pipelines and programs (host.gpu.GpuDevice)."""

    runtime, lost, notes_load = "paper", "", True

    def __init__(self, target: Target) -> None:
        self.name, self.software, self.features = target.adapter, target.software, target.features
        self.limits = LIMITS
        self.specs: list[PipelineSpec] = []
        self.shaders: dict[PipelineSpec, str] = {}  # with the name of its file: kernel and number
        self.programs: list[_PaperProgram] = []
        self._counts: dict[str, int] = {}

    def start_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        for spec in specs:
            if spec not in self.shaders:
                stem = "".join(c if c.isalnum() or c in "_-" else "_" for c in spec.label)
                self._counts[stem] = number = self._counts.get(stem, 0) + 1
                self.shaders[spec] = f"{stem}_{number}"
                self.specs.append(spec)
        return [self.specs.index(spec) for spec in specs]

    async def pipelines_ready(self, numbers: Sequence[int]) -> None:
        """Nothing to wait for."""

    async def program(
        self, label: str, buffers: Sequence[int], uniforms: bytes, dispatches: Sequence[DispatchSpec]
    ) -> _PaperProgram:
        self.programs.append(_PaperProgram(self, buffers, uniforms, dispatches))
        return self.programs[-1]


class _PaperHost:
    """The host of this process, with stand-ins for kernels and GPU and without a memory of earlier visits."""

    knows_cores = True  # the one that there is

    def __init__(self, target: Target) -> None:
        self._host = current()
        self.device, self.instances = _PaperDevice(target), list[_PaperKernels]()
        self.fetch: Callable[..., Any] = self._host.fetch
        self.asset, self.image, self.now_ms = self._host.asset, self._host.image, self._host.now_ms
        self.sha256 = self._host.sha256
        self.pause, self.gpu_buffer = self._host.pause, self._host.gpu_buffer
        self.page_array = self._host.page_array

    async def kernels(self, isa: str | None = None, threads: int | None = 1) -> _PaperKernels:
        self.instances.append(_PaperKernels())
        return self.instances[-1]

    def begin_kernels(self, isa: str | None = None, threads: int | None = 1) -> None:
        """Nothing to begin."""

    async def gpu(self) -> _PaperDevice:
        return self.device

    def fingerprint(self) -> str:
        return ""

    def identity(self) -> str:
        return ""

    async def recall(self, name: str) -> None:
        """Nothing is remembered."""

    async def remember(self, name: str, text: str) -> None:
        """Nothing is kept."""
