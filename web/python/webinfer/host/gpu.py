"""What the engine asks of a GPU: pipelines, a program of dispatches, replay. Knows no operator.

Buffers and dispatches are numbered: a program is created once from plain data, then replayed by range,
one encoder, one pass and one submit each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# Limits that a device is asked to raise as far as its adapter goes, by their WebGPU names.
RAISED_LIMITS = (
    "maxBufferSize",
    "maxStorageBufferBindingSize",
    "maxStorageBuffersPerShaderStage",
    "maxComputeWorkgroupStorageSize",
    "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupSizeX",
    "maxComputeWorkgroupSizeY",
    "maxComputeWorkgroupsPerDimension",
)
WANTED_FEATURES = ("timestamp-query", "shader-f16", "subgroups")
STAGING_RING = 3  # runs that may be in flight before one waits


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """A shader and what it binds: "read", "write" (storage) or "uniform", in order."""

    label: str
    code: str
    bindings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a numbered buffer."""

    buffer: int
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class DispatchSpec:
    """One dispatch: a pipeline's number, its bindings in order, workgroup counts."""

    label: str
    pipeline: int
    bindings: tuple[Span, ...]
    groups: tuple[int, int, int]


class GpuProgram(Protocol):
    """Buffers, bind groups and dispatches of one model on a device."""

    def write(self, buffer: int, data: Any) -> None:
        """Copies bytes to the start of a buffer, ordered before the next run."""
        ...

    async def run(self, first: int, count: int, reads: Sequence[Span]) -> list[memoryview]:
        """Submits dispatches first..first+count-1 and gives the bytes of `reads` after them.

        Raises:  DeviceLostError; GpuError
        """
        ...

    def free(self, buffers: Sequence[int], dispatches: int) -> None:
        """Lets buffers go that only the first `dispatches` dispatches used."""
        ...

    async def time(self, first: int, count: int, repeats: int) -> float:
        """Milliseconds of one pass over a range, averaged over `repeats` passes of one submit."""
        ...

    def close(self) -> None:
        """Frees everything; a second call does nothing."""
        ...


class GpuDevice(Protocol):
    """A device that this engine opened."""

    name: str  # adapter, for people
    software: bool  # a CPU pretends to be a GPU
    features: frozenset[str]  # of the device and of its WGSL
    limits: Mapping[str, int]  # by WebGPU's names

    @property
    def lost(self) -> str:
        """Why the device is gone, or the empty text while it lives."""
        ...

    async def pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """A number for each spec; equal specs share one, new ones are created in parallel.

        Raises:  GpuError naming the shader; DeviceLostError
        """
        ...

    async def program(
        self, label: str, buffers: Sequence[int], uniforms: bytes, dispatches: Sequence[DispatchSpec]
    ) -> GpuProgram:
        """A program over new zeroed buffers of these sizes; buffer number len(buffers) holds `uniforms`.

        Raises:  OutOfMemoryError; GpuError; DeviceLostError
        """
        ...

    def close(self) -> None:
        """Destroys the device."""
        ...
