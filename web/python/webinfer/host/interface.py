"""What the engine asks of the place where Python runs. Imports only the leaves.

`browser` (Pyodide) and `native` (CPython with wasmtime and wgpu) implement these protocols; nothing
else in the engine imports js, pyodide, wasmtime or wgpu.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Progress = Callable[["ProgressEvent"], None]


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """Where long work stands. `total` is 0 where it cannot be known; `unit` is "bytes" or "steps"."""

    stage: str
    done: int
    total: int
    unit: str = "bytes"

    def __str__(self) -> str:
        of = f"/{self.total}" if self.total else ""
        return f"{self.stage}: {self.done}{of} {self.unit}"


@dataclass(frozen=True, slots=True)
class Capability:
    """One feature: present, or the reason why not and what would help."""

    name: str
    present: bool
    reason: str = ""
    fix: str = ""
    value: str = ""


class Kernels(Protocol):
    """One instance of the kernel module with a linear memory of its own.

    Addresses and sizes are bytes of that memory.
    """

    isa: str  # "scalar", "simd128" or "relaxed"
    threads: int  # that `run` uses
    heap_base: int  # first address that the module itself does not use

    def size(self) -> int:
        """Bytes of memory now."""

    def grow(self, nbytes: int) -> None:
        """Makes the memory at least this large; raises OutOfMemoryError."""

    def read(self, address: int, nbytes: int) -> memoryview:
        """A copy of the bytes."""

    def write(self, address: int, data: Any) -> None:
        """Copies any C-contiguous buffer into the memory."""

    def call(self, name: str, *args: int | float) -> Any:
        """Calls an exported kernel; raises KernelError if it traps."""

    def run(self, program: int, first: int, count: int) -> None:
        """Runs records of a program on all threads; raises KernelError if it traps or a thread is lost."""

    def close(self) -> None:
        """Lets the instance and its threads go."""


class Host(Protocol):
    """The door to the platform."""

    name: str  # "browser" or "native"

    def now_ms(self) -> float:
        """A monotonic clock."""

    async def pause(self) -> None:
        """Lets other tasks (messages, painting) run."""

    async def fetch(self, url: str, progress: Progress | None = None) -> memoryview:
        """The bytes of a URL or, natively, of a path; raises ModelFormatError naming what was found."""

    def locate(self, model: str) -> str:
        """The path or URL of a known model; raises ModelFormatError if there is none."""

    async def kernels(self, isa: str | None = None, threads: int | None = 1) -> Kernels:
        """A new kernel instance, the best build that this engine of WebAssembly runs unless named.

        `threads` None means what suits the machine; where threads cannot be had there is one.
        """

    async def gpu(self) -> Any:
        """The shared GPU device (host.gpu.GpuDevice); raises BackendUnavailableError with the reason."""

    def gpu_buffer(self, value: Any) -> Any:
        """The platform's GPU buffer where `value` is one or a GpuTensor, else None."""

    def capabilities(self) -> Sequence[Capability]:
        """Every feature that matters, present or not."""

    def image(self, source: Any) -> tuple[int, int, memoryview] | None:
        """(width, height, RGBA8 rows) of a platform image, or None if `source` is not one."""

    def fingerprint(self) -> str:
        """A short text that differs where timings may: machine, browser or runtime."""

    def identity(self) -> str:
        """A short text that changes with any file of engine or kernels; "" if that cannot be told."""

    async def recall(self, name: str) -> str | None:
        """A text remembered by this host, or None."""

    async def remember(self, name: str, text: str) -> None:
        """Keeps a small text beyond this process where that is possible; never raises."""

    async def recall_bytes(self, name: str) -> Any:
        """Bytes remembered by this host, or None."""

    async def remember_bytes(self, name: str, data: bytes) -> None:
        """As `remember`, for what may be large."""
