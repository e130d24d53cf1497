"""From a builder's steps to a loaded plan: constants and program lie in kernel memory. Knows no operator."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from webinfer.backends.base import MemoryReport, PartExecutor, PlanRow, TurnExecutor, shapes_text
from webinfer.backends.wasm.builder import COMPUTE, SKIP, Builder
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.load_steps import JOINED_BYTES, drop_intermediates, in_runs, in_turns
from webinfer.backends.wasm.loaded_plan import Layout, LoadedPlan, Place
from webinfer.backends.wasm.lowerings import LOWERINGS, UNSUPPORTED
from webinfer.backends.wasm.lowerings.clamp_fusion import find_floors
from webinfer.backends.wasm.lowerings.constants import (
    begin_inputs,
    end_appended,
    expand_constant,
    narrow_output,
    widen_input,
)
from webinfer.backends.wasm.lowerings.fused import find_fused
from webinfer.backends.wasm.memory import Held, KernelMemory, needed
from webinfer.backends.wasm.sharing import only_moves, saves, steps_per_node, with_short_steps_alone
from webinfer.backends.wasm.soundness import check_plan
from webinfer.errors import LimitError, UnsupportedOpError
from webinfer.graph.ir import Graph, Node, TensorType, Value
from webinfer.host.interface import Host, Kernels, Progress, ProgressEvent
from webinfer.kernel_constants import MEMORY_MAX_BYTES
from webinfer.lowering.appended import Appended
from webinfer.lowering.branches import find_sides
from webinfer.lowering.soundness import check_graph, named_failures
from webinfer.plan import arena, program
from webinfer.plan.blocks import ALIGNMENT, Block, Kind, Ref
from webinfer.rewrite.facts import Facts
from webinfer.tensor import Tensor

if TYPE_CHECKING:
    from webinfer.backends.wasm.turns import CarriedTurns


def build_of(kernels: Kernels) -> str:
    """The build that these kernels are of, by its file's name: "relaxed", "relaxed-threads", ..."""
    return f"{kernels.isa}-threads" if kernels.threads > 1 else kernels.isa


def lower_graph(graph: Graph, isa: str, tuned: Mapping[str, str] | None, appended: Sequence[Appended] = ()) -> Builder:
    """A builder that holds every node as steps, for this build; `tuned` names kernels by tuning key.

    Raises:  UnsupportedOpError listing every node that has no kernel
    """
    check_graph(graph)
    builder = Builder(graph, isa, tuned, expand_constant, appended)
    begin_inputs(builder)
    facts = Facts(graph)
    floors = find_floors(facts)
    for node, (value, floor) in floors.items():
        builder.end(value, {"lo": floor}, node.output)
    fused = find_fused(graph, facts, isa, floors)
    needless = {*floors, *(inner for one in fused.values() for inner in one.instead)}
    sides, problems = find_sides(graph), list[str]()
    refused: list[Node] = []
    for index, node in enumerate(graph.nodes):
        if all(v.type.size == 0 for v in node.outputs) or node in needless:
            continue
        builder.enter(node, index, sides.get(node, ()))
        lower = LOWERINGS.get(node.op)
        try:
            if lower is None:
                raise UnsupportedOpError([UNSUPPORTED.get(node.op, "a custom operator, which has no kernel")])
            with named_failures(node, "wasm"):
                if node in fused:
                    fused[node].lower(node, index, builder)
                else:
                    lower(node, builder)
        except UnsupportedOpError as error:
            problems += [f"{node.label}: {node.op.name} on wasm: {problem}" for problem in error.problems]
            refused.append(node)
    if problems:
        raise UnsupportedOpError(problems, refused)
    builder.boundary()
    end_appended(builder)
    return builder


class WasmExecutor(LoadedPlan, PartExecutor, TurnExecutor):
    """A graph's plan in the memory of one kernel instance, with the graph behind it."""

    shareable = True

    def __init__(
        self, graph: Graph, host: Host, kernels: Kernels, builder: Builder, progress: Progress | None = None,
        memory: KernelMemory | None = None, is_guest: bool = False,
    ) -> None:  # fmt: skip
        """`memory` is that of `kernels`, if other plans lie there: the model's, or another model's (`is_guest`)."""
        self.graph, self.areas = graph, Held()
        self._build = f"{kernels.isa} build, {kernels.threads} thread{'s' * (kernels.threads > 1)}"
        self._steps, self._why, self._joined = builder.run_part.steps, builder.why, builder.joined
        inputs = [(v, widen_input(builder, v)) for v in graph.inputs]
        outputs = [(v, narrow_output(builder, v)) for v in graph.outputs]
        for _, ref in outputs:
            builder.keep_alive(ref, len(self._steps))
        self._unchanged = frozenset[str]()  # inputs that a run leaves as they are
        if graph.keeps_inputs:
            written = {target.block for writes in builder.run_part.writes for target, _ in writes}
            for _, ref in inputs:
                builder.keep_alive(ref, len(self._steps))
            self._unchanged = frozenset(v.name for v, ref in inputs if ref.block not in written)
        self._refs = {
            v: builder.ref(v) for node in graph.nodes for v in node.outputs if v.type.size and v not in builder.ends
        }
        drop_intermediates(builder, [ref for _, ref in (*inputs, *outputs)])
        check_plan(builder, [ref for _, ref in inputs], outputs)
        memory = memory or KernelMemory(kernels)
        base, apart = _align(memory.end), KernelMemory(kernels)
        apart.end = base
        program, fixed_end, top, report = self._load(builder, kernels, apart if is_guest else memory, progress)
        memory.end = max(memory.end, apart.end)
        places = [tuple(_place(v, ref) for v, ref in pairs) for pairs in (inputs, outputs)]
        layout = Layout(graph.name, places[0], places[1], program, len(self._steps), base, fixed_end, top, report)
        super().__init__(layout, host, kernels, memory, self.areas)
        self.is_guest, self.shareable = is_guest, self.shareable and not is_guest
        if self.shareable and can_share(graph):
            memory.add(builder, self.areas)
        self._residents = frozenset(graph.resident)
        self._resident = {v.name: (builder.ref(v).address, v.type.nbytes) for v in graph.resident}
        ends = [bisect_left(self._steps, end, key=lambda step: step.node) for end in graph.parts]
        self._starts = [0, *ends]

    # ----- parts, and what lives from run to run

    async def turns(self, inputs: Mapping[str, Any], carried: Mapping[str, str], shown: Sequence[str]) -> CarriedTurns:
        """CarriedTurns of a loop whose turn the graph is."""
        from webinfer.backends.wasm.turns import CarriedTurns  # few models have loops, and pages start without

        return CarriedTurns(self, inputs, carried, shown, self._unchanged, self._host.now_ms)

    async def run_part(self, part: int, inputs: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, Tensor]:
        """The named outputs of one part of the graph: its steps up to the last one that they or the residents need."""
        kernels, first = self._instance(), self._starts[part]
        for place in self.layout.inputs:
            if place.name in inputs:
                kernels.write(place.address, inputs[place.name])
        self._call(kernels, first, self._end(part, outputs) - first)
        places = {place.name: place for place in self.layout.outputs}
        return {name: self._tensor(kernels, places[name].address, places[name].type) for name in outputs}

    def _end(self, part: int, outputs: Sequence[str]) -> int:
        """The step behind the last one that makes one of these outputs, or changes a resident value."""
        begin, end = [0, *self.graph.parts][part : part + 2]
        for number in range(end - 1, begin - 1, -1):
            node = self.graph.nodes[number]
            if any(value.name in outputs for value in node.outputs) or not self._residents.isdisjoint(node.inputs):
                return bisect_left(self._steps, number + 1, key=lambda step: step.node)
        return self._starts[part]

    async def read_resident(self, name: str, spans: Sequence[tuple[int, int]]) -> bytes:
        """Bytes of a resident value, each span from an offset on so many, one behind the other."""
        kernels, (address, _) = self._instance(), self._resident[name]
        return b"".join(kernels.read(address + at, nbytes) for at, nbytes in spans)

    async def write_resident(self, name: str, spans: Sequence[tuple[int, int]], data: memoryview) -> None:
        """Puts bytes back that `read_resident` gave for these spans."""
        kernels, (address, _) = self._instance(), self._resident[name]
        done = 0
        for at, nbytes in spans:
            kernels.write(address + at, data[done : done + nbytes])
            done += nbytes

    # ----- loading

    def _load(
        self, builder: Builder, kernels: Kernels, memory: KernelMemory, progress: Progress | None
    ) -> tuple[int, int, int, MemoryReport]:
        """Places and writes everything: the program's address, the ends of what stays and of all, the report."""
        there = memory.find(builder)
        found = needed(builder, there)
        if found is None:
            there, found = {}, (builder.prepare_part.steps, list(builder.staged))
        prepare, staged = found
        for block, address in there.items():
            block.address = address
        own = _in_order(builder, there)
        base = _align(memory.end)
        for block in own:
            place = None if block in builder.sized else memory.place(block.span)
            block.address = -1 if place is None else place
        constants_end = _stack([block for block in own if block.address < 0], base)
        fixed_end = _align(constants_end + program.nbytes(self._steps))
        arena_blocks = [b for b in builder.run_part.blocks if b.kind is Kind.ARENA]
        arena_bytes = _assign_at(arena_blocks, 0)
        arena_base, room = memory.arena
        if not room or arena_bytes > room:
            arena_base, room = fixed_end, arena_bytes
        for block in arena_blocks:
            block.address += arena_base
        end = max(fixed_end, arena_base + room)
        turns, passing = in_turns(prepare, staged, at_once=kernels.notes_load)
        passing_base = fixed_end if arena_base == fixed_end else end  # a run's arena is free while nothing runs
        prepare_end = passing_base + _assign_at(passing, passing_base, arena.assign_in_time_order)
        top = max(end, prepare_end + max((program.nbytes(turn.steps) for turn in turns), default=0))
        if top > MEMORY_MAX_BYTES:
            what = f"memory of model {self.graph.name!r} in bytes"
            raise LimitError(what, top, MEMORY_MAX_BYTES, "use a smaller model or input size")
        kernels.grow(top)
        total = sum(block.nbytes for block in (*own, *staged))
        done = self._fill(own, kernels, progress, 0, total)
        for turn in turns:
            done = self._fill({block: builder.staged[block] for block in turn.sources}, kernels, progress, done, total)
            kernels.write(prepare_end, program.encode(turn.steps, KERNELS))
            kernels.run(prepare_end, 0, len(turn.steps))
        steps = with_short_steps_alone(self._steps, self.graph, builder.joined) if kernels.threads > 1 else self._steps
        kernels.write(constants_end, program.encode(steps, KERNELS))
        memory.end, memory.arena = end, (arena_base, room)
        self.areas = {block.address: block.span for block in (*own, *there)}
        self.areas[constants_end] = fixed_end - constants_end
        memory.hold(self.areas)
        shared = sum(block.span for block in there)
        constants = sum(block.span for block in own) + shared
        report = MemoryReport(constants, arena_bytes, arena.lower_bound(arena_blocks), shared)
        return constants_end, fixed_end, end, report

    def _fill(
        self, sources: Mapping[Block, memoryview | None], kernels: Kernels, progress: Progress | None = None,
        done: int = 0, total: int = 0,
    ) -> int:  # fmt: skip
        """Writes what is given and tells the progress; the bytes that are done then."""
        end = done + sum(block.nbytes for block in sources)
        for address, data, nbytes in in_runs(sources, 0 if kernels.notes_load else JOINED_BYTES):
            kernels.write(address, data)
            done += nbytes
            if progress is not None:
                progress(ProgressEvent("weights", done, total))
        if progress is not None and done < end:  # what steps of the load write
            progress(ProgressEvent("weights", end, total))
        return end

    # ----- looking inside

    def rows(self) -> Sequence[PlanRow]:
        """The plan, step by step."""
        rows, counts = [], steps_per_node(self._steps)
        computing = steps_per_node([step for step in self._steps if not only_moves(step.kernel)])
        for i, step in enumerate(self._steps):
            node = self.graph.nodes[step.node] if step.node >= 0 else None
            if node is None:
                rows.append(
                    PlanRow(i, "api", "cast", "wasm", step.kernel, "", 0, 0, "float16 at the API, float32 inside")
                )
                continue
            cost = node.cost()
            share, sharing = counts[step.node], computing.get(step.node)  # a node's sums are in the steps that compute
            whole = cost.flops + sum(one.cost().flops for one in self._joined.get(step.node, ()))
            flops = whole // (sharing or share) if not sharing or not only_moves(step.kernel) else 0
            why = self._why.get(step.node, self._build)
            rows.append(
                PlanRow(
                    i,
                    node.label,
                    node.op.name,
                    "wasm",
                    step.kernel,
                    shapes_text(node),
                    flops,
                    cost.bytes // share,
                    why,
                    saves(step.kernel),
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
            while first < done and self._steps[first].kernel == SKIP:  # both sides of branches are shown
                first += 1
            if done > first:
                self._call(kernels, first, done - first)
            for value in node.outputs:
                ref = self._refs.get(value)
                if ref is None or ref.block.kind is not Kind.ARENA or ref.block.address < 0:
                    continue
                type = TensorType(value.type.shape, COMPUTE.get(value.type.dtype, value.type.dtype), value.type.quant)
                yield node, value, self._tensor(kernels, ref.address, type)


def _in_order(builder: Builder, there: Mapping[Block, int]) -> dict[Block, memoryview | None]:
    """The constants that a plan brings: first those that are written, side by side, then those that steps compute; what
    follows sizes lies next to the program, which follows them too.
    """
    own = {block: data for block, data in builder.constants.items() if block not in there}
    sized = {block: own.pop(block) for block in builder.sized if block in own}
    given = {block: data for block, data in own.items() if data is not None}
    return given | own | sized


def can_share(graph: Graph) -> bool:
    """Whether a plan may lie beside others: nothing of it lives in the arena from run to run."""
    return not graph.parts and not graph.resident


def _place(value: Value, ref: Ref) -> Place:
    return Place(value.name, value.type, ref.address if value.type.nbytes else 0)


def _align(nbytes: int) -> int:
    return (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def _stack(blocks: Iterable[Block], base: int) -> int:
    """Puts blocks one after the other; the first free address behind them."""
    address = _align(base)
    for block in blocks:
        block.address = address
        address += block.span
    return address


def _assign_at(blocks: Sequence[Block], base: int, assign: Callable[[Sequence[Block]], int] = arena.assign) -> int:
    """Gives blocks addresses from `base` on; the bytes that they take."""
    nbytes = assign(blocks)
    arena.check(blocks)
    for block in blocks:
        block.address += base
    return nbytes
