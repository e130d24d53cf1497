"""The contract between sessions and backends: what a backend builds, what an executor can do, how a plan is shown.

A `Backend` compiles graphs. An `Executor` is one compiled graph: seven methods. What only some executors can do is an
interface of its own. `registry` lists the backends and what is known of each without importing it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from webinfer.graph.ir import Graph, Node, TensorType, Value
from webinfer.lazy_dataclass import dataclass
from webinfer.tensor import Tensor

if TYPE_CHECKING:
    from webinfer.graph.positions import Axis
    from webinfer.graph.trace import Trace
    from webinfer.host.gpu import GpuDevice, GpuProgram, GpuTensor, Span
    from webinfer.host.interface import Host, Kernels, Progress
    from webinfer.tune.log import TuningReport


DEVICES = ("low-power", "sustained", "high-performance")


# ----- what a plan shows


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One step of a plan: what runs where, on what, and why."""

    index: int  # of the step in the plan
    label: str  # of the node that the step computes, or a part of it
    op: str
    backend: str
    kernel: str  # the function, shader or program that runs
    shapes: str  # of the node, as `shapes_text` writes them
    flops: int
    bytes: int  # read and written
    why: str  # this kernel
    saves: bool = False  # it takes fewer multiplications than `flops` counts, or smaller numbers


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes of a plan. `arena_bound` is what lives at the busiest step: no plan can need less.

    `shared` are those constants that a plan for other sizes of the model's inputs has brought.
    """

    constants: int
    arena: int
    arena_bound: int
    shared: int = 0

    @classmethod
    def total(cls, parts: Iterable[Executor]) -> MemoryReport:
        """The sums over several executors."""
        reports = [part.memory() for part in parts]
        return cls(*(sum(getattr(r, f.name) for r in reports) for f in fields(cls)))


def shapes_text(node: Node) -> str:
    """The node's shapes as `1x4x4x8, 16x1x1x8 -> 1x4x4x16`."""
    inputs = ", ".join("x".join(map(str, v.type.shape)) or "1" for v in node.inputs if v is not None)
    outputs = ", ".join("x".join(map(str, v.type.shape)) or "1" for v in node.outputs)
    return f"{inputs} -> {outputs}"


# ----- a compiled graph


@dataclass(frozen=True, slots=True, eq=False)
class InPlace:
    """Stands for an input that its owner writes to where the executor reads it: no copy in between.

        def write(executor):  # a KernelExecutor; for example a kernel that scales a picture
            executor.kernels.write(executor.input_address("image"), pixels)

        outputs = await session.run({"image": InPlace(write)})

    `write` is called right before every run, when no other run is under way; what it raises, `run` raises. It may use
    `executor.kernels`, `input_address` and `scratch`, and nothing of them later: the next executor may be another one.
    """

    write: Callable[[KernelExecutor], None]


class StateHolder(Protocol):
    """An executor that can keep a state where its runs read it."""

    def read_state(self, slot: StateInput) -> memoryview:
        """A copy of the bytes of a state that lies here."""

    async def fetch_state(self, slot: StateInput) -> memoryview:
        """As `read_state`, where that has to be awaited."""

    async def give_state(self, slot: StateInput) -> None:
        """Lets a state go: afterwards it does not lie here."""


class StateInput:
    """Stands for an input whose next value is an output: after a run it stands for that.

    An executor that `holds_states` keeps it in its own memory, or in a buffer of its GPU, and gives the object itself
    in the place of the output.
    """

    __slots__ = ("_tensor", "dtype", "holder", "input", "on_gpu", "output", "shape")

    def __init__(self, input: str, output: str, tensor: Tensor) -> None:
        self.input, self.output = input, output
        self._tensor: Tensor | None = tensor
        self.shape, self.dtype = tensor.shape, tensor.dtype
        self.holder: StateHolder | None = None
        self.on_gpu: GpuTensor | None = None  # which has the value

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def hold(self, holder: StateHolder, shape: tuple[int, ...]) -> None:
        """The next value, of this shape, lies with a holder."""
        self.close()
        self.holder, self.shape, self._tensor = holder, shape, None

    def put(self, value: GpuTensor) -> None:
        """The next value is in a buffer of a GPU, which is this object's from now on."""
        self.close()
        self.shape, self.on_gpu, self._tensor = value.shape, value, None

    def close(self) -> None:
        """Gives the buffer on the GPU back, if there is one, or the place with a holder, with what is there alone."""
        self.holder = None
        if self.on_gpu is not None:
            self.on_gpu.close()
            self.on_gpu = None

    def tensor(self) -> Tensor:
        """The value, copied out of the holder's memory if it lies there.

        Raises:  InputError if it is on the GPU of a page that cannot wait; `read` can
        """
        if self._tensor is None and self.on_gpu is not None:
            self._tensor = self.on_gpu.read_at_once()
        elif self._tensor is None:
            assert self.holder is not None
            self._tensor = Tensor(self.holder.read_state(self), self.shape, self.dtype)
        assert self._tensor is not None
        return self._tensor

    async def read(self) -> Tensor:
        """As `tensor`, also from the GPU of a page.

        Raises:  DeviceLostError
        """
        if self._tensor is None and self.on_gpu is not None:
            self._tensor = await self.on_gpu.read()
        elif self._tensor is None and self.holder is not None:
            self._tensor = Tensor(await self.holder.fetch_state(self), self.shape, self.dtype)
        return self.tensor()

    def leave(self) -> None:
        """The holder needs its memory, or is closed."""
        if self.holder is not None:
            self.tensor()
            self.holder = None


@dataclass(frozen=True, slots=True)
class LastOutput:
    """Stands for an input whose first bytes are those of an output as the run before leaves it, where that one ran."""

    name: str


@dataclass(frozen=True, slots=True)
class BufferBinding:
    """Where an input or output lies in a program; `given` if a buffer of at least its bytes is to be bound there."""

    span: Span
    given: bool


@dataclass(frozen=True, slots=True)
class Recording:
    """The dispatches of a run in a program, and its inputs and outputs by name."""

    program: GpuProgram
    first: int
    count: int
    inputs: dict[str, BufferBinding]
    outputs: dict[str, BufferBinding]


ReadGraph = Callable[[Mapping[str, Sequence[int]]], Graph]  # the model's graph for these shapes of inputs
PendingResult = Callable[[], Awaitable[dict[str, Tensor]]]  # waits for the outputs of a run that has begun


class Executor(ABC):
    """A compiled graph on one backend. Subclasses set `backend`.

    What only some executors can do is an interface of its own below: a session asks whether an executor is one.
    """

    backend: str
    holds_states = False  # whether inputs may be `StateInput`s

    @abstractmethod
    async def run(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs by name.

        `inputs` was checked by the session: one entry for each input of the graph, bytes unless an interface of the
        executor allows other ones.

        Raises:  DeviceLostError, KernelError; the next run needs a new executor then
        """

    @abstractmethod
    def rows(self) -> Sequence[PlanRow]:
        """The plan, step by step."""

    @abstractmethod
    def memory(self) -> MemoryReport:
        """What the plan needs."""

    @abstractmethod
    def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node and yields every result as it is computed."""

    @abstractmethod
    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Median milliseconds of each row of `rows()`."""

    @abstractmethod
    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of all steps, once, without inputs and outputs; the average of `repeats` passes."""

    @abstractmethod
    def close(self) -> None:
        """Frees what the executor holds; a second call does nothing."""

    @property
    def device(self) -> GpuDevice | None:
        """The GPU device that holds the plan; None where there is no such device."""
        return None

    @property
    def lost(self) -> str:
        """Why the device of this executor is gone; "" while it works, and where there is none."""
        return ""

    @property
    def abandoned(self) -> bool:
        """Whether what it ran on was let go because a plan beside it failed: it has to be built anew."""
        return False


class GpuExecutor(Executor):
    """A plan on a GPU. Inputs may be buffers of its device; a run may begin before the one before it has ended."""

    @abstractmethod
    async def run_on_gpu(self, inputs: Mapping[str, Any]) -> dict[str, GpuTensor]:
        """The outputs by name, each in a GPU buffer of its own; nothing is read back."""

    @abstractmethod
    async def recording(self) -> Recording:
        """What replays the runs of this executor without it.

        Raises:  InputError where the plan was compiled elsewhere
        """


class KernelExecutor(Executor):
    """A plan in the memory of kernels. Nothing of a run is waited for; inputs may be `InPlace`."""

    @abstractmethod
    def run_at_once(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """As `run`, without an event loop."""

    @property
    @abstractmethod
    def kernels(self) -> Kernels:
        """The kernel instance whose memory holds the plan.

        Raises:  ClosedError after `close`, or when a kernel trapped
        """

    @abstractmethod
    def input_address(self, name: str) -> int:
        """Where an input lies in the memory of `kernels`, for who writes it there."""

    @abstractmethod
    def scratch(self, nbytes: int) -> int:
        """The address of so many free bytes behind the plan; memory grows as needed.

        The address is the same in every call, 16-byte aligned; runs leave these bytes alone, and 16 more behind
        them may be read.

        Raises:  LimitError above 2 GiB for plan and scratch together; OutOfMemoryError; ClosedError
        """


class TurnExecutor(Executor):
    """An executor of a loop's turn that can keep what turns carry."""

    @abstractmethod
    async def turns(self, inputs: Mapping[str, Any], carried: Mapping[str, str], shown: Sequence[str]) -> Any:
        """The turns that begin with these inputs, the first of which is the turn's number; None where it cannot.

        Its methods are awaited. `turns(most)` runs some of them, at most so many, until the first of the outputs
        `shown` is false: how many ran, whether the loop goes on, and the other outputs, each a list of bytes.
        `held(name)` is an input of the next one. `carried` maps outputs to the inputs that they are then. Nothing else
        runs on the executor meanwhile.

        Raises:  KernelError
        """


class PageExecutor(Executor):
    """An executor whose inputs may be typed arrays of JavaScript, as bytes in the type of computing."""

    async def run_page(self, arrays: Sequence[Any]) -> dict[str, Tensor] | None:
        """As `run`, of typed arrays of the page in the order of the graph's inputs, which nobody has checked.

        None, and nothing was done, unless the run can begin at once and each array has its input's type and bytes.

        Raises:  as `run`
        """
        return None


class PartExecutor(Executor):
    """A graph of parts that run one at a time (`Graph.parts`), with values that stay from run to run."""

    @abstractmethod
    async def run_part(self, part: int, inputs: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, Tensor]:
        """The named outputs of one part of the graph.

        `inputs` are bytes by name; an input that is left out is as in the last run. Runs of one executor wait for each
        other: who calls sees to it.

        Raises:  DeviceLostError, KernelError; the next run needs a new executor then
        """

    @abstractmethod
    async def read_resident(self, name: str, spans: Sequence[tuple[int, int]]) -> bytes:
        """Bytes of a resident value: of each span, an offset and a length, one behind the other."""

    @abstractmethod
    async def write_resident(self, name: str, spans: Sequence[tuple[int, int]], data: memoryview) -> None:
        """Puts bytes back that `read_resident` gave for the same spans."""


class GpuPartExecutor(GpuExecutor, PartExecutor):
    """Parts on a GPU: the next one may begin while one is under way."""

    @abstractmethod
    async def begin_part(self, part: int, inputs: Mapping[str, Any], outputs: Sequence[str]) -> PendingResult:
        """As `run_part`, but returns when the run is under way; call what it returns to wait for the outputs.

        An input may be `LastOutput`.

        Raises:  DeviceLostError; the next run needs a new executor then
        """


class TunableExecutor(Executor):
    """A plan whose kernels are chosen by timing them: built with a tuning budget, it carries a report."""

    tuning: TuningReport | None = None


# ----- a backend


class StoredPlan(Protocol):
    """A compiled graph as it was read from the plan cache, whole and of this engine."""

    @property
    def inputs(self) -> Sequence[tuple[str, TensorType]]:
        """Names and types of the graph's inputs, in order."""

    @property
    def outputs(self) -> Sequence[tuple[str, TensorType]]:
        """Names and types of the graph's outputs, in order."""

    @property
    def notes(self) -> Sequence[str]:
        """The graph's notes."""


@dataclass(frozen=True, slots=True)
class StoredRegimes:
    """Plans with symbols of one model as they were read from the plan cache, whole and of this engine."""

    backend: str
    inputs: Sequence[tuple[str, TensorType]]  # as the model's file has them: names stand for open sizes
    outputs: Sequence[tuple[str, TensorType]]
    notes: Sequence[str]
    reason: str  # for the backend, as it was when they were made
    facts: Mapping[str, Any]  # of the backend
    body: memoryview

    @classmethod
    def read(cls, backend: str, magic: bytes, data: Any, identity: str) -> StoredRegimes | None:
        """The plans in these bytes; None if they are none, or not by the engine of this identity."""
        from webinfer.graph.stored_types import ends_of
        from webinfer.plan.plan_bytes import unpack

        found = unpack(data, magic, identity)
        if found is None:
            return None
        facts, body = found
        about = facts["about"]
        inputs, outputs = map(ends_of, about["ends"])
        return cls(backend, inputs, outputs, about["notes"], about["reason"], facts, body)


P = TypeVar("P")


@dataclass(slots=True)
class PlanEntry:
    """A model's entry in the plan cache: the name it is stored under, and the plans of backends that were found."""

    name: str
    plans: list[StoredPlan | StoredRegimes] = field(default_factory=list)

    def take(self, kind: type[P]) -> P | None:
        """The plan of this kind that was found; the entry lets it go, as its bytes need not be in memory twice."""
        for i, plan in enumerate(self.plans):
            if isinstance(plan, kind):
                del self.plans[i]
                return plan
        return None

    def of(self, suffix: str) -> PlanEntry:
        """The same entry as one backend sees it, whose plans have names with this suffix."""
        return PlanEntry(self.name + suffix, self.plans)


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a backend is told besides the graph. A session sets only what the backend's row in the registry lists."""

    progress: Progress | None = None
    plan_entry: PlanEntry | None = None  # None: the plan is neither restored nor stored
    threads: int | None = None  # None: what suits the machine
    tuning_ms: float | None = None  # budget for timing kernels on this device; None: the backend's own
    float16: bool = False  # store weights and intermediate results in half the memory
    device: str = ""  # the kind of device that is asked for: one of `DEVICES`; "" for any
    beside: Sequence[Executor] = ()  # of the same model for other sizes of inputs, never at work with this one
    shared_memory_with: Executor | None = (
        None  # executor of another model of the task, whose memory and threads may be shared
    )


class Backend(ABC):
    """Compiles graphs. A backend's package has one, named BACKEND; `executor` is the class of its executors."""

    @property
    def executor(self) -> type:
        """The class of what `build` gives."""
        return Executor

    @abstractmethod
    async def build(self, graph: Graph, host: Host, options: BuildOptions) -> Executor:
        """The graph, compiled. Where `options.plan_entry` holds a plan that fits, that plan, and no node is read.

        Raises:  BackendUnavailableError; UnsupportedOpError with all nodes that this backend cannot run;
                 LimitError; OutOfMemoryError; GpuError
        """

    def begin(self, host: Host, options: BuildOptions) -> None:
        """Starts what `build` will wait for with these options, while a model is still being read."""
        return

    def accepts(self, node: Node) -> bool:
        """Whether a node may be handed to this backend when another one refused it."""
        return True

    def deserialize(self, data: Any, identity: str) -> StoredPlan | StoredRegimes | None:
        """The plan in these bytes of the plan cache, or the plans of a model whose sizes are open.

        None if they are damaged, another backend's, or of an engine with another `Host.identity`.
        """
        return None

    def arithmetic(self, work: int) -> Graph | None:
        """A graph of one node that multiplies and adds as fast as this backend can, `work` times a first amount.

        None where there is no such graph.
        """
        return None


class BindableExecutor(Executor):
    """A plan whose sizes are symbols of a trace: bound to others without reading the model again."""

    graph: Graph  # as it is for the sizes that are bound
    ends: Graph  # whose inputs and outputs alone are sure to have those sizes; looking at it costs nothing

    @abstractmethod
    async def bind(self, sizes: Sequence[int]) -> None:
        """Goes on for these sizes of the trace's symbols, for which its guards hold; no run is under way.

        Raises:  LimitError; OutOfMemoryError; GpuError; the sizes before are bound then
        """

    def positions(self) -> dict[str, Axis]:
        """The inputs that hold positions, with the axes that these count along, for the sizes that are bound."""
        return {}


async def probe_anew(
    compile_anew: Callable[[], Awaitable[Executor]], inputs: Mapping[str, memoryview]
) -> AsyncIterator[tuple[Node, Value, Tensor]]:
    """Every result of a plan that is compiled for this alone: a stored plan does not keep what steps pass on."""
    whole = await compile_anew()
    try:
        async for result in whole.probe(inputs):
            yield result
    finally:
        whole.close()


class RegimeExecutor(BindableExecutor):
    """A plan with symbols that was compiled before, with those of other regimes of its model beside it."""

    trace: Trace  # whose guards say for which sizes it holds
    together: Sequence[RegimeExecutor] = ()  # those that were stored with this one, it too

    def regimes(self) -> Sequence[RegimeExecutor]:
        """All of the model's that there are, this one too."""
        return self.together or [self]


class BindingBackend(Backend):
    """A backend that makes plans whose sizes are symbols."""

    @abstractmethod
    async def build_open(
        self, graph: Graph, trace: Trace, host: Host, options: BuildOptions
    ) -> BindableExecutor | None:
        """A graph that was read with the trace's symbols as a plan, bound to the sizes of its hint.

        None where the plan would hold for those sizes alone. Asks the trace more, which adds guards to it.

        Raises:  what `build` raises, and whatever sizes that are not numbers lead to
        """

    def serialize_open(self, executors: Sequence[Executor], host: Host, about: Mapping[str, Any]) -> bytes:
        """The bytes to store of the plans with symbols among these executors of one model; none where they are too
        large or cannot be stored. `about` has the fields of `StoredRegimes` that the session knows, as JSON."""
        return b""

    async def restore_open(
        self, stored: StoredRegimes, host: Host, options: BuildOptions, read: ReadGraph
    ) -> Sequence[RegimeExecutor]:
        """Stored plans, ready to be bound; none if they were made for another device or other settings.

        `read` gives the model's graph for shapes of its inputs, for who looks into a plan.

        Raises:  what `build` raises; ModelFormatError, LookupError, TypeError, ValueError where facts are missing or
                 of other types
        """
        return []


class TunableBackend(Backend):
    """A backend with a log of what tuning found on this host's device."""

    @abstractmethod
    async def export_tuning(self, host: Host) -> str:
        """What was found, as JSON lines; "" where nothing was."""

    @abstractmethod
    async def import_tuning(self, host: Host, text: str) -> tuple[int, int]:
        """Adds lines of `export_tuning` to what is known; how many, and how many belong to other devices.

        Raises:  ModelFormatError naming the lines that cannot be read; nothing is taken over then
        """

    @abstractmethod
    async def forget_tuning(self, host: Host) -> None:
        """Forgets what was found."""
