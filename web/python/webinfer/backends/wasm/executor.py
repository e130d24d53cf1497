"""Runs a plan: inputs in, one call, outputs out. Knows no operator."""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from webinfer.backends.base import MemoryReport, PlanRow, shapes_text
from webinfer.backends.wasm.builder import COMPUTE, LOAD_STEP, Builder
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.lowerings import LOWERINGS, UNSUPPORTED
from webinfer.backends.wasm.lowerings.constants import narrow_output, widen_input
from webinfer.errors import ClosedError, KernelError, LimitError, UnsupportedOpError
from webinfer.graph.ir import Graph, Node, TensorType, Value
from webinfer.host.interface import Host, Kernels, Progress, ProgressEvent
from webinfer.plan import arena, program
from webinfer.plan.blocks import ALIGNMENT, Block, Kind, Ref, Step
from webinfer.tensor import Tensor

MEMORY_LIMIT = 2**31  # bytes of linear memory that one session may take


def lower_graph(graph: Graph, isa: str, choices: Mapping[str, str] | None) -> Builder:
    """Every node as steps.

    Raises:  UnsupportedOpError listing every node that has no kernel
    """
    builder = Builder(graph, isa, choices)
    for value in graph.inputs:
        builder.keep_alive(widen_input(builder, value), LOAD_STEP)
    problems: list[str] = []
    refused: list[Node] = []
    for index, node in enumerate(graph.nodes):
        if all(v.type.size == 0 for v in node.outputs):
            continue
        builder.enter(node, index)
        lower = LOWERINGS.get(node.op)
        try:
            if lower is None:
                raise UnsupportedOpError([UNSUPPORTED.get(node.op, "a custom operator, which has no kernel")])
            lower(node, builder)
        except UnsupportedOpError as error:
            problems += [f"{node.label}: {node.op.name} on wasm: {problem}" for problem in error.problems]
            refused.append(node)
    if problems:
        raise UnsupportedOpError(problems, refused)
    builder.boundary()
    return builder


class WasmExecutor:
    """A plan in the memory of one kernel instance."""

    backend = "wasm"

    def __init__(
        self, graph: Graph, host: Host, kernels: Kernels, builder: Builder, progress: Progress | None = None
    ) -> None:
        self.graph, self.isa, self._host = graph, kernels.isa, host
        self._build = f"{kernels.isa} build, {kernels.threads} thread{'s' * (kernels.threads > 1)}"
        self._kernels: Kernels | None = kernels
        self._input_refs = {v.name: widen_input(builder, v) for v in graph.inputs}
        self._output_refs = [(v, narrow_output(builder, v)) for v in graph.outputs]
        end = len(builder.run_part.steps)
        for _, ref in self._output_refs:
            builder.keep_alive(ref, end)
        self._steps, self._why = builder.run_part.steps, builder.why
        self._refs = {v: builder.ref(v) for node in graph.nodes for v in node.outputs if v.type.size}
        self._load(builder, kernels, progress)

    # ----- loading

    def _load(self, builder: Builder, kernels: Kernels, progress: Progress | None) -> None:
        constants_end = _stack(builder.constants, kernels.heap_base)
        words = sum(3 + len(KERNELS[s.kernel].args) if s.kernel in KERNELS else 0 for s in self._steps)
        self._program = constants_end
        arena_base = _align(constants_end + 4 * (4 + words))
        arena_blocks = [b for b in builder.run_part.blocks if b.kind is Kind.ARENA]
        arena_bytes = _assign_at(arena_blocks, arena_base)
        staged_end = _stack(builder.staged, arena_base)
        prepare_arena = [b for b in builder.prepare_part.blocks if b.kind is Kind.ARENA]
        prepare_end = staged_end + _assign_at(prepare_arena, staged_end)
        prepare_words = 4 * (4 + sum(3 + len(s.args) for s in builder.prepare_part.steps))
        top = max(arena_base + arena_bytes, prepare_end + prepare_words)
        if top > MEMORY_LIMIT:
            raise LimitError(
                f"memory of model {self.graph.name!r} in bytes", top, MEMORY_LIMIT, "use a smaller model or input size"
            )
        kernels.grow(top)
        self._memory = MemoryReport(constants_end - kernels.heap_base, arena_bytes, arena.lower_bound(arena_blocks))
        self._fill(builder, kernels, progress)
        if builder.prepare_part.steps:
            kernels.write(prepare_end, program.encode(builder.prepare_part.steps, KERNELS))
            kernels.run(prepare_end, 0, len(builder.prepare_part.steps))
        kernels.write(self._program, program.encode(self._steps, KERNELS))

    def _fill(self, builder: Builder, kernels: Kernels, progress: Progress | None) -> None:
        sources = {**builder.constants, **builder.staged}
        total, done = sum(b.nbytes for b in sources), 0
        for block, data in sources.items():
            if data is not None and len(data):
                kernels.write(block.address, data)
            done += block.nbytes
            if progress is not None:
                progress(ProgressEvent("weights", done, total))

    # ----- running

    def _instance(self) -> Kernels:
        if self._kernels is None:
            raise ClosedError(f"the session of {self.graph.name!r} is closed; load the model again")
        return self._kernels

    def _write_inputs(self, inputs: Mapping[str, memoryview]) -> Kernels:
        kernels = self._instance()
        for name, ref in self._input_refs.items():
            if len(inputs[name]):
                kernels.write(ref.address, inputs[name])
        return kernels

    def _call(self, kernels: Kernels, first: int, count: int) -> None:
        """Runs steps; after a trap the instance is of no use and is let go."""
        try:
            kernels.run(self._program, first, count)
        except KernelError:
            self.close()
            raise

    async def run(self, inputs: Mapping[str, memoryview]) -> dict[str, Tensor]:
        """The outputs by name: one call of the kernel module, whatever the model's size."""
        kernels = self._write_inputs(inputs)
        self._call(kernels, 0, len(self._steps))
        return {v.name: self._tensor(kernels, ref, v.type) for v, ref in self._output_refs}

    def _tensor(self, kernels: Kernels, ref: Ref, type: TensorType) -> Tensor:
        data = kernels.read(ref.address, type.nbytes) if type.nbytes else memoryview(b"")
        return Tensor(data, type.shape, type.dtype, type.quant)

    # ----- looking inside

    def input_address(self, name: str) -> int:
        """Where an input lies, for kernels that write it in place (image preparation)."""
        return self._input_refs[name].address

    def output_address(self, name: str) -> int:
        """Where an output lies after a run, for kernels that read it in place (decoding)."""
        return next(ref.address for v, ref in self._output_refs if v.name == name)

    def execute(self) -> None:
        """Runs the plan on inputs that are already in place and leaves the outputs there."""
        self._call(self._instance(), 0, len(self._steps))

    @property
    def kernels(self) -> Kernels:
        """The kernel instance, for pre- and post-processing beside the model."""
        return self._instance()

    def memory(self) -> MemoryReport:
        """Bytes of constants and arena, and the bound that no arena can go below."""
        return self._memory

    def rows(self) -> Sequence[PlanRow]:
        """The plan, step by step."""
        rows, counts = [], _steps_per_node(self._steps)
        for i, step in enumerate(self._steps):
            node = self.graph.nodes[step.node] if step.node >= 0 else None
            if node is None:
                rows.append(
                    PlanRow(i, "api", "cast", "wasm", step.kernel, "", 0, 0, "float16 at the API, float32 inside")
                )
                continue
            cost = node.op.cost(
                [v.type if v else None for v in node.inputs], [v.type for v in node.outputs], node.attrs
            )
            share = counts[step.node]
            why = self._why.get(step.node, self._build)
            rows.append(
                PlanRow(
                    i,
                    node.label,
                    node.op.name,
                    "wasm",
                    step.kernel,
                    shapes_text(node),
                    cost.flops // share,
                    cost.bytes // share,
                    why,
                )
            )
        return rows

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node and yields every result as it is computed (float16 comes as float32)."""
        kernels = self._write_inputs(inputs)
        done = 0
        for index, node in enumerate(self.graph.nodes):
            first = done
            while done < len(self._steps) and self._steps[done].node in (index, -1):
                done += 1
            if done > first:
                self._call(kernels, first, done - first)
            for value in node.outputs:
                ref = self._refs.get(value)
                if ref is None or ref.block.kind is not Kind.ARENA or ref.block.address < 0:
                    continue
                type = TensorType(value.type.shape, COMPUTE.get(value.type.dtype, value.type.dtype), value.type.quant)
                yield node, value, self._tensor(kernels, ref, type)

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Median milliseconds of each step; a step is repeated until the clock can see it."""
        kernels, host = self._write_inputs(inputs), self._host
        times: list[list[float]] = [[] for _ in self._steps]
        for _ in range(rounds):
            for i in range(len(self._steps)):
                repeats, elapsed = 1, 0.0
                while elapsed < 0.2 and repeats < 4096:
                    start = host.now_ms()
                    for _ in range(repeats):
                        kernels.run(self._program, i, 1)
                    elapsed = host.now_ms() - start
                    if elapsed < 0.2:
                        repeats *= 4
                times[i].append(elapsed / repeats)
            await host.pause()
        return [statistics.median(t) for t in times]

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of all steps in the kernels, once; the average of `repeats` passes."""
        self._write_inputs(inputs)
        start = self._host.now_ms()
        for _ in range(repeats):
            self.execute()
        return (self._host.now_ms() - start) / repeats

    def close(self) -> None:
        """Lets the kernel instance and its memory go."""
        if self._kernels is not None:
            self._kernels.close()
            self._kernels = None


def _align(nbytes: int) -> int:
    return (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def _stack(blocks: Mapping[Block, Any], base: int) -> int:
    """Puts blocks one after the other; the first free address behind them."""
    address = _align(base)
    for block in blocks:
        block.address = address
        address += block.span
    return address


def _assign_at(blocks: Sequence[Block], base: int) -> int:
    nbytes = arena.assign(blocks)
    for block in blocks:
        block.address += base
    return nbytes


def _steps_per_node(steps: Sequence[Step]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for step in steps:
        counts[step.node] = counts.get(step.node, 0) + 1
    return counts
