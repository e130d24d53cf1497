"""Stand-ins for kernels and GPU that note what a loaded model asks of them: that is the compiled model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.host.gpu import DispatchSpec, PipelineSpec, Span
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.tune.log import Log

BASIC_LIMITS = {  # what every WebGPU implementation has
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


@dataclass(slots=True)
class PaperKernels:
    """Notes what is written and run (host.interface.Kernels); every result is zero.

    Reading gives what was written there.
    """

    isa: str
    threads: int
    heap_base: int
    writes: list[tuple[int, bytes]] = field(default_factory=list)  # address, bytes; until the first inference
    prepares: list[tuple[int, int]] = field(default_factory=list)  # address and steps of what ran while loading
    top: int = 0  # bytes of memory that were asked for
    notes_load: bool = True

    def size(self) -> int:
        """Bytes of memory now."""
        return self.top

    def grow(self, nbytes: int) -> None:
        """Makes the memory at least this large."""
        self.top = max(self.top, nbytes)

    def read(self, address: int, nbytes: int) -> memoryview:
        """What was written last to each byte, else zero."""
        found = bytearray(nbytes)
        for at, data in self.writes:
            begin, end = max(at, address), min(at + len(data), address + nbytes)
            if begin < end:
                found[begin - address : end - address] = data[begin - at : end - at]
        return memoryview(found)

    def write(self, address: int, data: Any) -> None:
        """Notes the bytes."""
        self.writes.append((address, bytes(memoryview(data).cast("B"))))

    def call(self, name: str, *args: int | float) -> int:
        """Zero, or the interface that the engine expects."""
        return KERNELS.abi if name == "abi" else 0

    def run(self, program: int, first: int, count: int) -> None:
        """Notes the program: only loading runs one here, once a plan."""
        self.prepares.append((program, count))

    @property
    def prepare(self) -> tuple[int, int] | None:
        """What ran while the only plan was loaded."""
        assert len(self.prepares) < 2, "a package runs all that it packs at once"
        return self.prepares[0] if self.prepares else None

    def close(self) -> None:
        """Nothing to let go."""


@dataclass(slots=True)
class PaperProgram:
    """Notes buffers, constants and dispatches (host.gpu.GpuProgram)."""

    buffers: Sequence[int]
    uniforms: bytes
    dispatches: Sequence[DispatchSpec]
    writes: list[tuple[int, bytes]] = field(default_factory=list)  # number of the buffer, bytes
    prepare: int = 0  # the first dispatches, which run once
    freed: list[int] = field(default_factory=list)  # buffers that only those use

    def write(self, buffer: int, data: Any) -> None:
        """Notes the bytes."""
        self.writes.append((buffer, bytes(memoryview(data).cast("B"))))

    async def run(
        self, first: int, count: int, reads: Sequence[Span], inputs: Sequence[tuple[int, Any]] = ()
    ) -> list[memoryview]:
        """Notes what runs once."""
        self.prepare = count
        return []

    async def rebind(self, sizes: Mapping[int, int], uniforms: bytes, steps: Sequence[Any]) -> None:
        """Nothing: the program stays that of the sizes for which it was made."""

    def free(self, buffers: Sequence[int], dispatches: int) -> None:
        """Notes the buffers."""
        self.freed, self.prepare = list(buffers), dispatches

    def close(self) -> None:
        """Nothing to let go."""


class PaperDevice:
    """Notes pipelines and programs (host.gpu.GpuDevice) for an adapter with these features."""

    lost, notes_load = "", True

    def __init__(
        self, features: frozenset[str], adapter: str = "", runtime: str = "paper", *, software: bool = False,
        made: type[PaperProgram] = PaperProgram,
    ) -> None:  # fmt: skip
        self.name, self.features, self.limits, self.runtime = adapter, features, BASIC_LIMITS, runtime
        self.software, self._made = software, made
        self.specs: dict[PipelineSpec, int] = {}
        self.programs: list[PaperProgram] = []

    def start_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """A number for each."""
        return [self.specs.setdefault(spec, len(self.specs)) for spec in specs]

    async def pipelines_ready(self, numbers: Sequence[int]) -> None:
        """Nothing to wait for."""

    async def program(
        self, label: str, buffers: Sequence[int], uniforms: bytes, dispatches: Sequence[DispatchSpec]
    ) -> PaperProgram:
        """Notes the program."""
        self.programs.append(self._made(list(buffers), uniforms, list(dispatches)))
        return self.programs[-1]

    def pictures(self, specs: Mapping[str, PipelineSpec]) -> None:
        """None: a package carries the passes of pictures apart."""


class PaperHost:
    """A host that reads files as `host` does, with stand-ins for kernels and GPU. It remembers a tuning log, if any."""

    name = "paper"
    settles_later = False

    def __init__(
        self,
        host: Host,
        kernels: PaperKernels | None = None,
        device: PaperDevice | None = None,
        log: Log | None = None,
    ) -> None:
        self._host, self._kernels, self._device, self.log = host, kernels, device, log
        self.asset, self.beside, self.now_ms, self.pause = host.asset, host.beside, host.now_ms, host.pause
        self.image, self.gpu_buffer, self.page_array = host.image, host.gpu_buffer, host.page_array
        self.sha256 = host.sha256

    async def fetch(self, url: str, progress: Progress | None = None, fresh: bool = False) -> memoryview:
        """The bytes of a URL or a path."""
        return await self._host.fetch(url, progress, fresh)

    async def kernels(self, isa: str | None = None, threads: int | None = 1) -> PaperKernels:
        """The stand-in."""
        return self._kernels or PaperKernels("relaxed", 1, 0)

    def begin_kernels(self, isa: str | None = None, threads: int | None = 1) -> None:
        """Nothing to begin."""

    async def gpu(self) -> PaperDevice | None:
        """The stand-in."""
        return self._device

    def capabilities(self) -> list[Any]:
        """None that matters."""
        return []

    def fingerprint(self) -> str:
        """The empty text."""
        return ""

    def identity(self) -> str:
        """The empty text: plans are not stored."""
        return ""

    async def recall(self, name: str) -> str | None:
        """The tuning log."""
        return self.log.text() if self.log and name.startswith("tuning-webgpu-") else None

    async def remember(self, name: str, text: str) -> None:
        """Nothing is kept."""
