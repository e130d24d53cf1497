"""What the engine asks of a GPU: pipelines, a program of dispatches, replay. Knows no operator.

Buffers and dispatches are numbered: a program is created once from plain data, then replayed by range,
one encoder, one pass and one submit each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from webinfer.dtypes import DType
from webinfer.errors import ClosedError
from webinfer.tensor import Tensor

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
# shader-f16 is for the text of custom operators: own kernels unpack float16, which is no slower than native loads.
WANTED_FEATURES = ("timestamp-query", "shader-f16", "subgroups")
STAGING_RING = 3  # runs that may be in flight before one waits


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """A shader and what it binds: "read", "write" (storage), "uniform", "texture" or "external" (a frame), in order."""

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
        """Copies bytes, or the contents of a GPU buffer of this device, to the start of a buffer."""
        ...

    async def run(
        self, first: int, count: int, reads: Sequence[Span], feeds: Sequence[tuple[int, Any]] = ()
    ) -> list[memoryview]:
        """Writes `feeds`, submits dispatches first..first+count-1 and gives the bytes of `reads` after them.

        Runs may overlap: each writes and submits without a pause between, in the order in which they come.

        Raises:  DeviceLostError; GpuError
        """
        ...

    async def keep(
        self, first: int, count: int, reads: Sequence[Span], feeds: Sequence[tuple[int, Any]] = ()
    ) -> list[Any]:
        """As `run`, but each result stays on the device, in a GPU buffer of its own."""
        ...

    def release(self, buffer: Any) -> None:
        """Takes back a buffer that `keep` gave."""
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


class GpuPictures(Protocol):
    """What takes the platform's pictures to a device."""

    device: GpuDevice
    refusal: str  # why the last picture could not be taken

    def size(self, source: Any) -> tuple[int, int] | None:
        """Width and height in pixels of a picture that can be taken now, else None."""
        ...

    def take(self, source: Any, params: bytes, nbytes: int, groups: tuple[int, int]) -> Any:
        """What a run can be fed with instead of a buffer of `nbytes` bytes, to be closed after it; None if refused.

        The run begins with the pass: uniform `params`, so many workgroups in x and y.
        """
        ...


class GpuDevice(Protocol):
    """A device that this engine opened."""

    name: str  # adapter, for people
    runtime: str  # what drives it, with its version
    software: bool  # a CPU pretends to be a GPU
    features: frozenset[str]  # of the device and of its WGSL
    limits: Mapping[str, int]  # by WebGPU's names

    @property
    def lost(self) -> str:
        """Why the device is gone, or the empty text while it lives."""
        ...

    def begin(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """A number for each spec; equal specs share one, new ones are begun, all at once, beside what follows.

        Raises:  GpuError naming the shader, where the platform tells at once; DeviceLostError
        """
        ...

    async def ready(self, numbers: Sequence[int]) -> None:
        """Ends when these pipelines can run.

        Raises:  GpuError naming the shader; DeviceLostError
        """
        ...

    async def program(
        self, label: str, buffers: Sequence[int], uniforms: bytes, dispatches: Sequence[DispatchSpec]
    ) -> GpuProgram:
        """A program over new zeroed buffers of these sizes; buffer number len(buffers) holds `uniforms`.

        Its pipelines need not be ready before it runs.

        Raises:  OutOfMemoryError; GpuError; DeviceLostError
        """
        ...

    async def read(self, buffer: Any, nbytes: int) -> memoryview:
        """The first bytes of a GPU buffer."""
        ...

    async def idle(self) -> None:
        """Ends when everything submitted so far has been computed."""
        ...

    def pictures(self, specs: Mapping[str, PipelineSpec]) -> GpuPictures | None:
        """What takes pictures here, by a "texture" or an "external" pass; None on platforms without pictures."""
        ...

    def close(self) -> None:
        """Destroys the device."""
        ...


class GpuTensor:
    """A result that stays on the GPU: `buffer` is a GPUBuffer for shaders of your own or for the next model.

    Elements lie in row-major order from byte 0. `close()` gives the buffer back to the session.
    """

    __slots__ = ("_buffer", "_device", "_release", "dtype", "shape")

    def __init__(
        self, buffer: Any, shape: tuple[int, ...], dtype: DType, device: GpuDevice, release: Callable[[Any], None]
    ) -> None:
        self._buffer, self.shape, self.dtype, self._device, self._release = buffer, shape, dtype, device, release

    @property
    def buffer(self) -> Any:
        """The GPUBuffer."""
        if self._buffer is None:
            raise ClosedError("this GPU tensor was closed; run again for a new one")
        return self._buffer

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        count = self.dtype.itemsize
        for size in self.shape:
            count *= size
        return count

    async def read(self) -> Tensor:
        """A copy in memory.

        Raises:  DeviceLostError; ClosedError
        """
        return Tensor(await self._device.read(self.buffer, self.nbytes), self.shape, self.dtype)

    def close(self) -> None:
        """Gives the buffer back; a second call does nothing."""
        if self._buffer is not None:
            self._release(self._buffer)
            self._buffer = None

    def __repr__(self) -> str:
        return f"GpuTensor({self.dtype}, shape={self.shape})"
