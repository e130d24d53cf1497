"""What the engine asks of a GPU, as protocols and plain data: pipelines, a program of dispatches, replay, pictures.

Buffers and dispatches are numbered: a program is created once from plain data, then replayed by range,
one encoder, one pass and one submit each time. gpu_browser and gpu_native implement the protocols; no operator is
known here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from webinfer.dtypes import DType
from webinfer.errors import ClosedError
from webinfer.host.coroutines import driven
from webinfer.lazy_dataclass import dataclass
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
# shader-f16 is for subgroup matrices and the text of custom operators: other kernels unpack float16, which is no slower
# than native loads. Browsers have subgroup matrices behind a flag (Chromium 156).
WANTED_FEATURES = ("timestamp-query", "shader-f16", "subgroups", "chromium-experimental-subgroup-matrix")
# A feature of our own: subgroups of 32 that multiply matrices of 16x16 in float16 and sum them up in float32.
MATRICES = "subgroup matrices of 16x16 float16"
ALIGNED = {
    "minStorageBufferOffsetAlignment": 256,
    "minUniformBufferOffsetAlignment": 256,
}  # of a device that asks for none
STAGING_RING = 3  # runs that may be in flight before one waits
RESULT_ALIGNMENT = 16  # bytes: each result of a run starts at a multiple of it in the staging buffer


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """A compute shader: the label that tools show, its WGSL, and the kinds of its bindings in order.

    A kind is "read" or "write" (a storage buffer), "uniform", "texture", "external" (a video frame),
    or "canvas" (a texture of rgba8unorm that is written).
    """

    label: str
    code: str
    bindings: tuple[str, ...]


class Span(NamedTuple):
    """A range of a buffer, which is named by its number in the program.

    Units:  `offset` and `nbytes` are bytes
    """

    buffer: int
    offset: int
    nbytes: int


class SpacedSpan(NamedTuple):
    """So many equal parts of a buffer, `stride` bytes from one to the next, as a result: one behind the other.

    Units:  `offset`, `stride` and `nbytes`, which is of all parts, are bytes, multiples of 4
    """

    buffer: int
    offset: int
    nbytes: int
    parts: int
    stride: int


Reads = Sequence[Span | SpacedSpan]


class SharedBuffer(NamedTuple):
    """A buffer of another program of the same device, by its number there. It lives as long as one of them does."""

    program: GpuProgram
    number: int


def staging_layout(reads: Reads) -> tuple[tuple[int, ...], int]:
    """Where each of the results `reads` starts in a run's staging buffer, and the bytes of all.

    Units:  bytes
    """
    starts, total = [], 0
    for span in reads:
        starts.append(total)
        total += -(-span.nbytes // RESULT_ALIGNMENT) * RESULT_ALIGNMENT
    return tuple(starts), total


@dataclass(frozen=True, slots=True)
class DispatchSpec:
    """One dispatch: the number of its pipeline, its bindings in order, and its workgroup counts in x, y and z."""

    label: str
    pipeline: int
    bindings: tuple[Span, ...]
    groups: tuple[int, int, int]


Groups = tuple[int, int, int]  # workgroup counts in x, y and z
Arrival = Callable[[], Awaitable[list[memoryview]]]  # waits for the results of a run that was submitted


class PageRuns(Protocol):
    """Runs of a program on typed arrays of the page, for which Python has little to do."""

    async def run(self, arrays: Sequence[Any]) -> list[memoryview] | None:
        """As `GpuProgram.run`. None, and nothing was done, unless the run can begin at once and each array fits.

        Raises:  DeviceLostError; GpuError
        """
        ...


class GpuProgram(Protocol):
    """Buffers, bind groups and dispatches of one model on a device."""

    def write(self, buffer: int, data: Any, offset: int = 0) -> None:
        """Copies bytes to the buffer of this number, or to its start the contents of a GPU buffer of this device.

        A `Span` stands for the program's own buffer of its number, as it is after the runs before.

        Units:  `offset` is bytes, a multiple of 4
        """
        ...

    async def read(self, span: Span) -> memoryview:
        """A copy of a range of a buffer after all runs that have begun.

        Raises:  DeviceLostError; GpuError
        """
        ...

    async def start(self, first: int, count: int, reads: Reads, inputs: Sequence[tuple[int, Any]] = ()) -> Arrival:
        """As `run`, but returns when the work is submitted. Call what it returns to wait for the bytes, or leave it.

        Raises:  DeviceLostError; GpuError
        """
        ...

    async def run(
        self, first: int, count: int, reads: Reads, inputs: Sequence[tuple[int, Any]] = ()
    ) -> list[memoryview]:
        """Writes `inputs`, submits dispatches first..first+count-1 and returns the bytes of `reads` after them.

        `inputs` are pairs of a buffer's number and what `write` copies there. Runs may overlap: each writes and
        submits without a pause between, in the order in which they come.

        Raises:  DeviceLostError; GpuError
        """
        ...

    def page_runs(
        self, first: int, count: int, reads: Sequence[Span], inputs: Sequence[tuple[int, DType, int]]
    ) -> PageRuns | None:
        """Runs of this range whose inputs are arrays of these types and bytes; None where there is no page.

        `inputs` are buffers' numbers, types and bytes.
        """
        ...

    async def keep(self, first: int, count: int, reads: Reads, inputs: Sequence[tuple[int, Any]] = ()) -> list[Any]:
        """As `run`, but each result stays on the device: returns a GPU buffer for each of `reads`.

        Raises:  DeviceLostError; GpuError
        """
        ...

    def release(self, buffer: Any) -> None:
        """Takes back a buffer that `keep` gave, so that a later run may use it."""
        ...

    async def rebind(
        self,
        sizes: Mapping[int, int | SharedBuffer],
        uniforms: bytes,
        steps: Sequence[tuple[int, Sequence[Span] | None, Groups]],
    ) -> None:
        """Goes on with other sizes of what dispatches work on; no run is under way.

        The buffers of these numbers are made anew in these bytes, zeroed, or taken from another program, and
        `uniforms` take the place of the parameters. `steps` are a dispatch's number, what it binds from now on (None:
        as before), and its workgroups.
        All dispatches that bind a buffer made anew must be among them with what they bind.

        Raises:  OutOfMemoryError; GpuError; DeviceLostError
        """
        ...

    def free(self, buffers: Sequence[int], dispatches: int) -> None:
        """Frees the buffers of these numbers, which only the first `dispatches` dispatches used; those run no more."""
        ...

    async def time(self, first: int, count: int, repeats: int) -> float:
        """Milliseconds of dispatches first..first+count-1, averaged over `repeats` repetitions in one submit.

        Raises:  DeviceLostError; GpuError
        """
        ...

    def close(self) -> None:
        """Frees buffers and bind groups; a second call does nothing."""
        ...


# For a picture's width, height and look: workgroups, and the bytes of uniforms (web/static/gpu/gpu_mask.js).
Sized = Callable[[int, int, str], tuple[Mapping[str, Any], Sequence[bytes]]]


class GpuPictures(Protocol):
    """Takes the platform's pictures to a device without a detour through memory."""

    device: GpuDevice
    refusal: str  # why the last picture could not be taken

    async def bring(self, source: Any) -> None:
        """Copies a video frame to the device where it is sooner there than when a run imports it: to be awaited first.

        The owner closes the frame when its runs are over; other pictures are left as they are.
        """
        ...

    def size(self, source: Any) -> tuple[int, int] | None:
        """Width and height in pixels of a picture that can be taken now, else None."""
        ...

    def take(self, source: Any, params: bytes, nbytes: int, groups: tuple[int, int]) -> Any:
        """A picture as an input of `GpuProgram.run`, for a buffer of `nbytes` bytes; None if the platform refuses it.

        The run starts with a pass that reads the picture and writes the buffer: `params` are the bytes of its
        uniform, `groups` its workgroups in x and y. The caller closes what it gets after the run.
        """
        ...

    def painter(self, program: Any, recipe: Mapping[str, Any], sized: Sized) -> GpuPainter:
        """What paints pictures as a program's mask of them says; gpu_mask.js says what a recipe holds."""
        ...


class GpuPainter(Protocol):
    """Paints pictures as masks say that a program makes of them: all on the GPU, one submit a picture."""

    @property
    def handle(self) -> Any:
        """What paints, for the platform's own code: it need not come by here."""
        ...

    async def paint(self, source: Any, look: str) -> Any:
        """The picture, painted as the JSON `look` says, as the platform shows pictures; None if it cannot be taken.

        Raises:  DeviceLostError; GpuError
        """
        ...

    def close(self) -> None:
        """Frees its buffers; a second call does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class GpuOffer:
    """What a device will be that is still being opened: its fields of the same names, of limits the wished ones."""

    name: str
    runtime: str
    software: bool
    features: frozenset[str]
    limits: Mapping[str, int]

    def holds(self, device: GpuDevice) -> bool:
        """Whether the device has become that."""
        if (self.name, self.software) != (device.name, device.software):
            return False
        features = all(name in device.features for name in self.features)
        no_more = all(name in self.features for name in (*WANTED_FEATURES, MATRICES) if name in device.features)
        return features and no_more and all(device.limits.get(name) == most for name, most in self.limits.items())


class GpuDevice(Protocol):
    """A GPU device with its pipelines."""

    name: str  # of the adapter, for people
    runtime: str  # the browser or library that drives it, with its version
    software: bool  # True where a CPU does the computing
    features: frozenset[str]  # of the device and of its WGSL
    limits: Mapping[str, int]  # by WebGPU's names
    notes_load: bool  # True where nothing runs: what a load does is written down, so that it must be whole

    @property
    def lost(self) -> str:
        """Why the device is gone, or the empty text while it lives."""
        ...

    def start_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """Starts to create the pipelines that are new, all in parallel, and returns a number for each spec.

        Equal specs share a number. Where the platform can, creation goes on in the background.

        Raises:  GpuError naming the shader, where the platform tells at once; DeviceLostError
        """
        ...

    async def pipelines_ready(self, numbers: Sequence[int]) -> None:
        """Returns when the pipelines of these numbers can run.

        Raises:  GpuError naming the shader; DeviceLostError
        """
        ...

    async def program(
        self, label: str, buffers: Sequence[int | SharedBuffer], uniforms: bytes, dispatches: Sequence[DispatchSpec]
    ) -> GpuProgram:
        """A program over new zeroed buffers of these sizes in bytes, or buffers of other programs.

        Buffer number len(buffers) holds `uniforms`.

        Its pipelines need not be ready before it runs. `label` names the program in errors.

        Raises:  OutOfMemoryError; GpuError; DeviceLostError
        """
        ...

    async def read(self, buffer: Any, nbytes: int) -> memoryview:
        """A copy of the first `nbytes` bytes of a GPU buffer of this device.

        Raises:  DeviceLostError; GpuError
        """
        ...

    async def idle(self) -> None:
        """Returns when everything submitted so far has been computed.

        Raises:  DeviceLostError; GpuError
        """
        ...

    def pictures(self, specs: Mapping[str, PipelineSpec]) -> GpuPictures | None:
        """What takes pictures to this device by its "texture" or "external" pass; None where nothing can."""
        ...

    def close(self) -> None:
        """Destroys the device; a second call does nothing."""
        ...


class GpuTensor:
    """A result that stays on the GPU: `buffer` is a GPUBuffer for your own shaders or for another model.

    The elements, of type `dtype` and shape `shape`, are stored in row-major order from byte 0. `close()` returns the
    buffer to the session.
    """

    __slots__ = ("_buffer", "_device", "_release", "dtype", "shape")

    def __init__(
        self, buffer: Any, shape: tuple[int, ...], dtype: DType, device: GpuDevice, release: Callable[[Any], None]
    ) -> None:
        self._buffer, self.shape, self.dtype, self._device, self._release = buffer, shape, dtype, device, release

    @property
    def buffer(self) -> Any:
        """The GPUBuffer.

        Raises:  ClosedError after `close`
        """
        if self._buffer is None:
            raise ClosedError("this GPU tensor was closed; run again for a new one")
        return self._buffer

    def is_on(self, device: GpuDevice) -> bool:
        """Whether the buffer belongs to this device."""
        return self._device is device

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        count = self.dtype.itemsize
        for size in self.shape:
            count *= size
        return count

    async def read(self) -> Tensor:
        """The elements, copied to memory.

        Raises:  DeviceLostError; ClosedError
        """
        return Tensor(await self._device.read(self.buffer, self.nbytes), self.shape, self.dtype)

    def read_at_once(self) -> Tensor:
        """Like `read`, without an event loop.

        Raises:  InputError in a page, where reading has to be awaited; else as `read`
        """
        found: Tensor = driven(self.read())
        return found

    def close(self) -> None:
        """Returns the buffer to the session; further calls do nothing."""
        if self._buffer is not None:
            self._release(self._buffer)
            self._buffer = None

    def __repr__(self) -> str:
        return f"GpuTensor({self.dtype}, shape={self.shape})"
