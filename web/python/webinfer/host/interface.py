"""What the engine asks of the platform, as protocols: files, clock, kernels, a GPU, pictures, storage.

`browser` (Pyodide) and `native` (CPython with wasmtime and wgpu) implement them. Here is not code of a platform, and
no knowledge of graphs, models or backends.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from webinfer.host.pictures import Pixels, SizeCheck
from webinfer.lazy_dataclass import dataclass
from webinfer.spans import LargeFile

Progress = Callable[["ProgressEvent"], None]


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """Progress of a long operation: `done` of `total` in `unit` ("bytes" or "steps") of one stage.

    `total` is 0 if it is unknown.
    """

    stage: str
    done: int
    total: int
    unit: str = "bytes"

    def __str__(self) -> str:
        of = f"/{self.total}" if self.total else ""
        return f"{self.stage}: {self.done}{of} {self.unit}"


ARRAYS_MET = set[type]()  # Python's classes of typed arrays that a host has met: to ask a proxy takes microseconds


@dataclass(frozen=True, slots=True)
class PageArray:
    """A typed array of JavaScript, which executors may read where it lies. `dtype` is "" for plain bytes."""

    array: Any
    dtype: str
    nbytes: int

    def view(self) -> memoryview:
        """A copy of the elements."""
        data: memoryview = self.array.to_memoryview()
        return data


@dataclass(frozen=True, slots=True)
class Capability:
    """A feature of the platform: supported (with details in `value`), or the reason why not and how to enable it."""

    name: str
    present: bool
    reason: str = ""
    fix: str = ""
    value: str = ""


class Kernels(Protocol):
    """One instance of the WebAssembly kernel module, with a linear memory of its own.

    Units:  addresses and sizes are bytes of that memory
    """

    isa: str  # "scalar", "simd128" or "relaxed"
    threads: int  # that `run` uses
    heap_base: int  # first address that the module itself does not use
    notes_load: bool  # whether it computes nothing but notes a load, which must be writes and then one program

    def size(self) -> int:
        """Bytes of memory now."""

    def grow(self, nbytes: int) -> None:
        """Makes the memory at least this large.

        Raises:  OutOfMemoryError with what is needed and what there is
        """

    def read(self, address: int, nbytes: int) -> memoryview:
        """A copy of the bytes."""

    def write(self, address: int, data: Any) -> None:
        """Copies any C-contiguous buffer into the memory, or a list of bytes one behind the other."""

    def call(self, name: str, *args: int | float) -> Any:
        """Calls an exported function of the module and returns its result.

        Raises:  KernelError if it traps or does not exist
        """

    def run(self, program: int, first: int, count: int) -> None:
        """Runs `count` records, from number `first`, of the program at address `program`, on all threads.

        Raises:  KernelError if one traps or a thread does not answer
        """

    def close(self) -> None:
        """Frees the instance, its memory and its threads; a second call does nothing."""


class TurnKernels(Kernels, Protocol):
    """Kernels that run a loop by themselves, as include/turns.h says."""

    def run_turns(self, turns: int, count: int) -> int:
        """Runs the next turns of those at address `turns`, at most so many, until one ends the loop; how many ran.

        Raises:  as `run`
        """


class WebNn(Protocol):
    """A context of WebNN, with the tensors and graphs that the platform makes for it."""

    limits: Mapping[str, Any]  # of `opSupportLimits`
    origin: str  # whose it is and what it runs on, for people
    lost: str  # why the context is gone; "" while it lives

    def now_ms(self) -> float:
        """Milliseconds of a monotonic clock."""

    def builder(self) -> Any:
        """A new builder: `input(name, dtype, shape)`, `constant(dtype, shape, data)`, `call(method, given, more)`."""

    async def build(self, builder: Any, outputs: Mapping[str, Any]) -> Any:
        """The graph of these operands, by name.

        Raises:  KernelError; OutOfMemoryError
        """

    async def tensor(self, dtype: str, shape: Sequence[int], writable: bool) -> Any:
        """A new tensor, to be written or to be read.

        Raises:  KernelError; OutOfMemoryError
        """

    def write(self, tensor: Any, data: Any) -> None:
        """Copies bytes into a tensor."""

    def named(self, tensors: Mapping[str, Any]) -> Any:
        """Tensors by name as `dispatch` takes them, again and again."""

    def dispatch(self, graph: Any, inputs: Any, outputs: Any) -> None:
        """Runs a graph on tensors that `named` has named, behind all that was said before."""

    async def read(self, tensors: Sequence[Any]) -> list[memoryview]:
        """Copies of these tensors' bytes, read together.

        Raises:  KernelError
        """

    def free(self, part: Any) -> None:
        """Destroys a tensor or a graph."""


IDLE_DELAY_S = 2.0  # of hosts where nobody asked for another


class Host(Protocol):
    """The platform that Python runs on."""

    name: str  # "browser" or "native"
    knows_cores: bool  # whether as many threads as it chooses have a core each; a browser may name more than there are
    settles_later: bool  # whether a session may begin before "auto" has measured: work goes on behind its caller

    @property
    def idle_delay_s(self) -> float:
        """Seconds after a load before work that only later visits gain from begins: tuning, storing plans."""

    def now_ms(self) -> float:
        """Milliseconds of a monotonic clock."""

    async def pause(self) -> None:
        """Lets other tasks (messages, painting) run."""

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine, for callers that cannot await.

        Raises:  what the coroutine raises; InputError where nothing can wait
        """

    async def fetch(self, url: str, progress: Progress | None = None, fresh: bool = False) -> memoryview:
        """The bytes of a URL or, natively, of a path; `fresh` ones do not come from what the platform has kept.

        Raises:  ModelFormatError saying what could not be fetched and why
        """

    async def large_file(
        self, place: Any, published: Sequence[str] = (), progress: Progress | None = None
    ) -> LargeFile | None:
        """A file that is read in parts: of a URL, or one that the user chose. None if the platform has none such.

        One of the SHA-256 in `published` is checked where there are any; such a file is kept for later visits.

        Raises:  ModelFormatError saying what could not be fetched and why; IntegrityError if it came damaged twice
        """

    async def kept_file(self, published: Sequence[str]) -> LargeFile | None:
        """The file with one of these SHA-256 that `large_file` kept; None if none is here, or not whole."""

    async def kept_files(self) -> Mapping[str, int]:
        """The bytes of each file that `large_file` keeps, begun ones too; one is complete if `name`.json is there."""

    async def forget_files(self) -> int:
        """Deletes what `large_file` keeps; how many bytes that freed."""

    async def sha256(self, data: memoryview) -> str:
        """The SHA-256 of bytes, in hexadecimal digits, by the quickest way of the platform."""

    def asset(self, *names: str) -> str:
        """The URL or path of a published file by its logical name, such as "models/face_landmark.tflite".

        Of several names, the first that the platform knows.

        Raises:  BackendUnavailableError or ModelFormatError saying where it was looked for
        """

    def beside(self, place: str, name: str) -> str:
        """The URL or path of a file that a model at `place` names; `name` is relative to the model's folder.

        Raises:  ModelFormatError if it lies outside of that folder, by a link for example, or is not a file
        """

    async def kernels(self, isa: str | None = None, threads: int | None = 1, module: bytes = b"") -> Kernels:
        """A new kernel instance: the best build that this engine of WebAssembly runs, unless `isa` names one.

        `threads` None means what suits the machine; one where threads are not available. `module` are the bytes
        of that build of one thread, where they are not the host's own.

        Raises:  BackendUnavailableError with the reason
        """

    def begin_kernels(self, isa: str | None = None, threads: int | None = 1) -> None:
        """Starts what the next call of `kernels` with these arguments waits for; a failure is that call's."""

    async def kernel_module(self, build: str) -> memoryview:
        """The bytes of a build of the kernel module, such as "simd128-threads".

        Raises:  BackendUnavailableError, ModelFormatError if the download fails; IntegrityError
        """

    async def gpu(self, kind: str = "") -> Any:
        """The shared GPU device (host.gpu.GpuDevice); a new one if the last one was lost, or of another kind.

        `kind` is one of backends.base.DEVICES, where a platform has several; "" for the one there is.

        Raises:  BackendUnavailableError with the reason
        """

    async def gpu_offer(self) -> Any:
        """What the shared device will be (host.gpu.GpuOffer), while it is being opened; None where nobody knows."""

    async def webnn(self, device: str = "") -> WebNn:
        """A context of WebNN for a kind of device: "low-power", "sustained", "high-performance", or "" for any.

        Raises:  BackendUnavailableError with the reason
        """

    def gpu_buffer(self, value: Any) -> Any:
        """The platform's GPU buffer where `value` is one or a GpuTensor, else None."""

    def page_array(self, value: Any) -> PageArray | memoryview | None:
        """A typed array of the platform, or a copy of its elements where they are few; None for another thing."""

    def capabilities(self) -> Sequence[Capability]:
        """Every feature of the platform that matters to the engine, present or not."""

    def image(self, source: Any, check: SizeCheck) -> Pixels | None:
        """The pixels of a platform image, a Pillow image or a picture file; None if `source` is none of these.

        `check` is called with width and height before memory is taken for the pixels.

        Raises:  what `check` raises; InputError if the pixels cannot be read
        """

    def fingerprint(self) -> str:
        """A short text that differs where timings may differ: machine, browser or runtime."""

    def identity(self) -> str:
        """A short text that changes with any file of engine or kernels; "" if that cannot be told."""

    async def recall(self, name: str) -> str | None:
        """The text that `remember` stored under this name; None if there is none or it is damaged."""

    async def remember(self, name: str, text: str) -> None:
        """Stores a small text beyond this process where that is possible; never raises."""

    async def recall_bytes(self, name: str) -> Any:
        """The bytes that `remember_bytes` stored under this name; None if there are none or they are damaged."""

    async def remember_bytes(self, name: str, data: bytes) -> None:
        """Stores bytes, few or many, beyond this process where that is possible; never raises."""
