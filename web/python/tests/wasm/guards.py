"""Guarded plans: every block stands alone between gaps, and whatever a step changes beside its results is named.

`build` takes the place of the wasm backend's; inside `guarded()` every plan that the backend compiles is guarded.
A run is made twice. The memory is filled with another pattern each time, so that an element that is never written
or a read of an adjacent element shows in a result; and the second time three threads' shares are done one after the
other, so that a share that leaves its units shows (kernels that have threads use them). After each step all memory is
compared with what it was.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from webinfer.backends.base import MemoryReport
from webinfer.backends.wasm import executor as executors
from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.executor import WasmExecutor, build_of, lower_graph
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.memory import KernelMemory
from webinfer.errors import KernelError
from webinfer.graph.ir import Graph, Value
from webinfer.host import native
from webinfer.host.interface import Host, Kernels, Progress
from webinfer.host.kernels_native import NativeKernels
from webinfer.host.native import NativeHost
from webinfer.host.threads_native import SUFFIX, ThreadPoolKernels
from webinfer.plan import program
from webinfer.plan.blocks import ALIGNMENT, SPARE, Block, Kind, Step
from webinfer.tensor import Tensor

GAP = 64  # bytes at least between two blocks, before the first and behind the last
BUILDS = (*native.BUILDS, *(f"{isa}{SUFFIX}" for isa in native.BUILDS if isa != "scalar"))
PASSES = (("noise", 1), ("ones", 3))  # what memory is filled with, and the threads that share each step
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Words = np.ndarray[Any, np.dtype[np.uint64]]


class GuardError(Exception):
    """A step did what no step may; the message names kernel, node and place."""


class GuardedExecutor(WasmExecutor):
    """A graph's plan with gaps between its blocks; none shares its memory with another one, as they else do."""

    shareable = False

    def __init__(
        self, graph: Graph, host: Host, kernels: Kernels, builder: Builder, progress: Progress | None = None
    ) -> None:
        self._builder, self._threads = builder, PASSES[0][1]
        super().__init__(graph, host, kernels, builder, progress)

    # ----- loading

    def _load(
        self, builder: Builder, kernels: Kernels, memory: KernelMemory, progress: Progress | None
    ) -> tuple[int, int, int, MemoryReport]:
        """Places everything apart and loads it."""
        self._base = top = (kernels.heap_base + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        prepare, run = builder.prepare_part, builder.run_part
        self._places: list[tuple[int, int, str]] = []  # start, bytes and name, upwards
        constants_end = top = self._stack(builder.constants, top)
        self._program, top = self._reserve("the program", program.nbytes(run.steps), top)
        arena = [b for b in run.blocks if b.kind is Kind.ARENA]
        fixed_end, top = top, self._stack(arena, top)
        arena_bytes = top - fixed_end
        top = self._stack(builder.staged, top)
        top = self._stack([b for b in prepare.blocks if b not in builder.staged], top)
        self._prepare, top = self._reserve("the load's program", program.nbytes(prepare.steps), top)
        self._top = memory.end = top
        kernels.grow(top)
        self._reload(kernels, PASSES[0][0])
        report = MemoryReport(constants_end - kernels.heap_base, arena_bytes, sum(b.nbytes for b in arena))
        return self._program, fixed_end, top, report

    def _reserve(self, name: str, nbytes: int, top: int) -> tuple[int, int]:
        """An address behind a gap, and the end of the gap behind that."""
        address = (top + GAP + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        self._places.append((address, nbytes, name))
        return address, address + nbytes + max(GAP, SPARE)

    def _stack(self, blocks: Mapping[Block, Any] | Sequence[Block], top: int) -> int:
        for block in blocks:
            block.address, top = self._reserve(repr(block.name), block.nbytes, top)
        return top

    def _reload(self, kernels: Kernels, fill: str) -> None:
        """Memory as it is before the first run, with the fill wherever nothing lies.

        Noise shows an adjacent element that is copied too; bits that are all one (NaN, or -1) show one that is used.
        """
        builder, size = self._builder, self._top - self._base
        kernels.write(self._base, np.random.default_rng(7).bytes(size) if fill == "noise" else b"\xff" * size)
        self._fill({**builder.constants, **builder.staged}, kernels)
        kernels.write(self._program, program.encode(self._steps, KERNELS))
        steps = builder.prepare_part.steps
        kernels.write(self._prepare, program.encode(steps, KERNELS))
        self._watch(kernels, steps, self._prepare, 0, len(steps))

    # ----- running

    async def run(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs of the second run, after they were compared with those of the first.

        Raises:  GuardError
        """
        found, results = [], []
        for fill, self._threads in PASSES:
            self._reload(self._instance(), fill)
            results.append(await super().run(inputs))
            found.append(self._memory(self._instance()).view(np.uint8).copy())
        self._compare(*found)
        for name, tensor in results[0].items():
            if tensor.tobytes() != results[1][name].tobytes():
                raise GuardError(f"output {name!r} differs between two runs in memory that was filled differently")
        return results[1]

    def _call(self, kernels: Kernels, first: int, count: int) -> None:
        self._watch(kernels, self._steps, self.layout.program, first, count)

    def _watch(self, kernels: Kernels, steps: Sequence[Step], address: int, first: int, count: int) -> None:
        """Runs steps one by one; each may change what its kernel declares and nothing else."""
        memory = self._memory(kernels)
        before, after = memory.copy().view(np.uint8), memory.view(np.uint8)
        for number, step in enumerate(steps[first : first + count], first):
            try:
                if kernels.threads > 1:
                    kernels.run(address, number, 1)
                for thread in reversed(range(self._threads if kernels.threads == 1 else 0)):
                    kernels.call("run", address, number, 1, thread, self._threads)
            except KernelError as error:
                raise GuardError(f"{self._told(step)} failed: {error}") from error
            for target, nbytes in self._builder.written(step):
                at = target.address - self._base
                before[at : at + nbytes] = after[at : at + nbytes]
            if not np.array_equal(before.view(np.uint64), memory):
                found = np.flatnonzero(before != after)
                what = f"changed {found.size} bytes beside its results, the first {self._where(int(found[0]))}"
                raise GuardError(f"{self._told(step)} {what}")

    def _memory(self, kernels: Kernels) -> Words:
        """The memory itself, no copy, from the first block to its end; until it grows."""
        assert isinstance(kernels, NativeKernels)
        nbytes = kernels.size() - self._base
        memory = (ctypes.c_char * nbytes).from_address(kernels._pointer(self._base, nbytes))
        return np.frombuffer(memoryview(memory).cast("B"), np.uint64)

    def _compare(self, one: Bytes, other: Bytes) -> None:
        """What nodes computed must not depend on what lay in memory, nor on how many threads share a step."""
        for node in self.graph.nodes:
            for value in (v for v in node.outputs if v in self._refs):
                block = self._refs[value].block
                part = slice(block.address - self._base, block.address - self._base + block.nbytes)
                if block.address >= 0 and not np.array_equal(one[part], other[part]):
                    at = np.flatnonzero(one[part] != other[part])
                    steps = [s for s in self._steps if self._touches(s, value)]
                    raise GuardError(
                        f"{'; '.join(map(self._told, steps))}: {at.size} bytes of the result differ, the first at byte "
                        f"{at[0]} of {block.name!r}: never written, made of neighbours, or of another thread's units"
                    )

    def _touches(self, step: Step, value: Value) -> bool:
        block = self._refs[value].block
        return any(target.block is block for target, _ in self._builder.written(step))

    # ----- words

    def _told(self, step: Step) -> str:
        label = self.graph.nodes[step.node].label if step.node >= 0 else "the API's"
        return f"kernel {step.kernel} of {label!r}"

    def _where(self, offset: int) -> str:
        address = self._base + offset
        before = [place for place in self._places if place[0] <= address]
        if not before:
            return f"{self._places[0][0] - address} bytes before {self._places[0][2]}"
        start, nbytes, name = before[-1]
        if address < start + nbytes:
            return f"at byte {address - start} of {name}"
        return f"{address - start - nbytes} bytes behind {name}"


async def build(
    graph: Graph,
    host: Host,
    progress: Progress | None = None,
    *,
    isa: str | None = None,
    threads: int | None = None,
) -> GuardedExecutor:
    """The graph as a guarded plan.

    Raises:  as the wasm backend's build; GuardError if a step of the load does what no step may
    """
    kernels = await host.kernels(isa, threads)
    try:
        return GuardedExecutor(graph, host, kernels, lower_graph(graph, build_of(kernels), {}), progress)
    except Exception:
        kernels.close()
        raise


class BuildHost(NativeHost):
    """The native host; `kernels` gives this build of them, with `threads` where it has any."""

    def __init__(self, isa: str, threads: int = 1) -> None:
        super().__init__()
        self._isa, self._threads = isa, threads

    async def kernels(self, isa: str | None = None, threads: int | None = 1, module: bytes = b"") -> Kernels:
        """A new kernel instance."""
        isa = isa or self._isa
        if isa.endswith(SUFFIX):
            return ThreadPoolKernels(isa.removesuffix(SUFFIX), self._threads)
        return await super().kernels(isa)


@contextmanager
def guarded() -> Iterator[None]:
    """Inside, sessions on wasm run guarded plans."""
    with mock.patch.object(executors, "WasmExecutor", GuardedExecutor):
        yield
