"""A loaded plan: it lies in the memory of a kernel instance, ready to run. Knows neither graph nor operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from webinfer.backends.base import InPlace, KernelExecutor, MemoryReport, PageExecutor, StateInput
from webinfer.backends.wasm.memory import Held, KernelMemory
from webinfer.backends.wasm.thread_count import ThreadCountController
from webinfer.errors import ClosedError, KernelError
from webinfer.graph.ir import TensorType
from webinfer.host.interface import Host, Kernels, TurnKernels
from webinfer.lazy_dataclass import dataclass
from webinfer.plan import program
from webinfer.tensor import Tensor

COPIES = 8  # of a step that is timed, in one call
VISIBLE_MS = 0.2  # a coarse clock's steps of 5 microseconds are 2.5 % of it
MAX_REPEATS = 4096  # of a step that is timed: some of 0.05 microseconds in VISIBLE_MS
LEAST_SHARE = 0.1  # of what was timed, which a step counts at least: other work may have slowed the calls beside it


@dataclass(frozen=True, slots=True)
class Place:
    """Where an input or output lies; an empty tensor lies nowhere, at 0."""

    name: str
    type: TensorType
    address: int


@dataclass(frozen=True, slots=True)
class Layout:
    """What must be known of a plan to run it.

    Constants and program fill the memory from `base` to `fixed_end`; runs use it up to `top`.
    Units:   addresses and sizes are bytes of the kernels' memory
    """

    name: str  # of the model
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    program: int
    steps: int
    base: int
    fixed_end: int
    top: int
    memory: MemoryReport

    def moved(self, by: int) -> Layout:
        """The same plan so many bytes further on."""
        inputs, outputs = (
            tuple(replace(place, address=place.address and place.address + by) for place in places)
            for places in (self.inputs, self.outputs)
        )
        return replace(
            self, inputs=inputs, outputs=outputs, program=self.program + by, base=self.base + by,
            fixed_end=self.fixed_end + by, top=self.top + by,
        )  # fmt: skip


class LoadedPlan(KernelExecutor, PageExecutor):
    """Runs a plan: inputs in, one call, outputs out."""

    backend = "wasm"
    shareable = False  # whether plans of the model for other sizes may lie beside it
    casts = (0, 0)  # steps at both ends that runs of held states leave out

    def __init__(
        self, layout: Layout, host: Host, kernels: Kernels, memory: KernelMemory | None = None,
        areas: Held | None = None,
    ) -> None:  # fmt: skip
        """`memory` is that of `kernels`, if other plans lie there, which may need its `areas` too; else it is alone."""
        self.layout, self.isa, self._host = layout, kernels.isa, host
        self.areas = areas or {}  # addresses of what only runs read, and bytes from there
        if memory is None:
            memory = KernelMemory(kernels)
            memory.end = layout.top
        self.memory_of_kernels: KernelMemory | None = memory
        self.is_guest = False  # whether it shares another model's memory
        self._behind = (0, 0)  # an area for the turns of a loop
        self._repeated = (0, 0)  # where a profile puts its programs: an address, and bytes from there
        self.pace = ThreadCountController() if kernels.threads > 1 else None  # None: all threads do every run

    # ----- running

    def _lodgings(self) -> KernelMemory:
        memory = self.memory_of_kernels
        if memory is None or memory.kernels is None:
            raise ClosedError(f"the session of {self.layout.name!r} is closed; load the model again")
        return memory

    def _instance(self) -> Kernels:
        kernels = self._lodgings().kernels
        assert kernels is not None
        return kernels

    def _write_inputs(self, inputs: Mapping[str, Any]) -> Kernels:
        kernels = self._instance()
        for place in self.layout.inputs:
            data = inputs[place.name]
            if isinstance(data, InPlace):
                data.write(self)
            elif isinstance(data, StateInput):
                continue  # lies there
            elif len(data):
                kernels.write(place.address, data)
        return kernels

    def area(self, nbytes: int) -> int:
        """The address of so many bytes behind all plans, which the next call may give again."""
        memory = self._lodgings()
        self._behind = memory.area(self._behind, nbytes, self.layout.name)
        return self._behind[0]

    def run_turns(self, turns: int, count: int) -> int:
        """Runs turns of a loop on the plan's memory (interface.TurnKernels); after a trap the instance is let go."""
        kernels = cast(TurnKernels, self._instance())  # the others only write down what a package needs
        try:
            if self.pace is None or self.pace.team:
                return kernels.run_turns(turns, count)
            return int(kernels.call("run_turns", 0, turns, count, 1))
        except KernelError:
            if self.memory_of_kernels is not None:
                self.memory_of_kernels.abandon()
            raise

    def _call(self, kernels: Kernels, first: int, count: int) -> None:
        """Runs steps; after a trap the instance is of no use and is let go."""
        try:
            if self.pace is None or count < self.layout.steps - sum(self.casts):
                kernels.run(self.layout.program, first, count)
                return
            team, start = self.pace.team, self._host.now_ms()
            if team:
                kernels.run(self.layout.program, first, count)
            else:
                kernels.call("run", self.layout.program, first, count, 0, 1)
            self.pace.took(self._host.now_ms() - start)
        except KernelError:
            if self.memory_of_kernels is not None:
                self.memory_of_kernels.abandon()
            raise

    async def run(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs by name."""
        return self.run_at_once(inputs)

    def run_at_once(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs by name: one call of the kernel module, whatever the model's size."""
        kernels = self._write_inputs(inputs)
        self._call(kernels, 0, self.layout.steps)
        return {place.name: self._tensor(kernels, place.address, place.type) for place in self.layout.outputs}

    def _tensor(self, kernels: Kernels, address: int, type: TensorType) -> Tensor:
        data = kernels.read(address, type.nbytes) if type.nbytes else memoryview(b"")
        return Tensor(data, type.shape, type.dtype, type.quant)

    def input_address(self, name: str) -> int:
        """Where an input lies, for kernels that write it in place (image preparation)."""
        return next(place.address for place in self.layout.inputs if place.name == name)

    def scratch(self, nbytes: int) -> int:
        """The address of so many free bytes behind the plans of the instance, for one run; memory grows as needed.

        It is the same in every call of every plan there, until another plan lies behind it and more is asked for.
        """
        memory = self._lodgings()
        memory.scratch = memory.area(memory.scratch, nbytes, self.layout.name)
        return memory.scratch[0]

    def execute(self) -> None:
        """Runs the plan on inputs that are already in place and leaves the outputs there."""
        self._call(self._instance(), 0, self.layout.steps)

    @property
    def closed(self) -> bool:
        """Whether the kernel instance was let go."""
        return self.memory_of_kernels is None or self.memory_of_kernels.kernels is None

    @property
    def abandoned(self) -> bool:
        """Whether the instance was let go because a plan in it trapped."""
        return self.memory_of_kernels is not None and self.memory_of_kernels.kernels is None

    @property
    def kernels(self) -> Kernels:
        """The kernel instance, for pre- and post-processing beside the model."""
        return self._instance()

    # ----- looking inside

    def memory(self) -> MemoryReport:
        """Bytes of constants and arena, and the bound that no arena can go below."""
        return self.layout.memory

    def fixed(self) -> memoryview:
        """A copy of constants and program, which no run changes."""
        kernels = self._instance()
        return kernels.read(self.layout.base, self.layout.fixed_end - self.layout.base)

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Median milliseconds of each step; a step is repeated until the clock can see it.

        What a call of the kernels itself takes does not count.
        """
        kernels, host = self._write_inputs(inputs), self._host
        places, samples = self._repeated_steps(kernels), list[list[float]]()

        def timed(place: int, repeats: int) -> float:
            start = host.now_ms()
            for _ in range(-(-repeats // COPIES) or 1):
                kernels.run(place, 0, min(repeats, COPIES))
            return host.now_ms() - start

        for _ in range(rounds):
            idle, samples = min(timed(self.layout.program, 0) for _ in range(COPIES)), [*samples, []]
            for place in places:
                repeats = COPIES
                while (elapsed := timed(place, repeats)) < VISIBLE_MS and repeats < MAX_REPEATS:
                    repeats *= 4
                samples[-1].append(max(elapsed / repeats - idle / COPIES, LEAST_SHARE * elapsed / repeats))
            await host.pause()
        from statistics import median

        return [median(step) for step in zip(*samples, strict=True)]

    def _repeated_steps(self, kernels: Kernels) -> list[int]:
        """Where programs lie, one a step, that run it COPIES times."""
        size = self.layout.fixed_end - self.layout.program
        records = program.records(bytes(kernels.read(self.layout.program, size)))
        texts = [program.assemble([record] * COPIES) for record in records]
        memory = self._lodgings()
        self._repeated = memory.area(self._repeated, sum(map(len, texts)), self.layout.name)
        place, places = self._repeated[0], []
        for text in texts:
            kernels.write(place, text)
            places.append(place)
            place += len(text)
        return places

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of all steps in the kernels, once; the average of `repeats` passes."""
        self._write_inputs(inputs)
        start = self._host.now_ms()
        for _ in range(repeats):
            self.execute()
        return (self._host.now_ms() - start) / repeats

    def close(self) -> None:
        """Lets the plan go, and with the last one the kernel instance and its memory."""
        if self.memory_of_kernels is not None:
            if self.is_guest:
                self.memory_of_kernels.release(self.layout.top - self.layout.base)
            else:
                address, nbytes = self._behind
                if nbytes:
                    self.memory_of_kernels.hold({address: nbytes})
                    self.areas[address] = nbytes
                self.memory_of_kernels.release(areas=self.areas)
            self.memory_of_kernels = None
