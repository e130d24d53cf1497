"""From a graph to steps over blocks: lowers every node and finds what can be computed once at load.

Which buffers the blocks lie in is decided in `memory`; here is no device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import field, replace

from webinfer.backends.webgpu.aliasing import bindable_aliases
from webinfer.backends.webgpu.chains import find_chains
from webinfer.backends.webgpu.dispatch import (
    Derived,
    Dispatch,
    FusedGroup,
    Literal,
    Scratch,
    Source,
    Stored,
    Target,
    source_dtype,
)
from webinfer.backends.webgpu.fused_groups import find_groups
from webinfer.backends.webgpu.lowerings import LOWERINGS, UNSUPPORTED
from webinfer.backends.webgpu.lowerings.constants import expand
from webinfer.backends.webgpu.lowerings.custom import custom
from webinfer.backends.webgpu.lowerings.movement import append, concat_parts
from webinfer.backends.webgpu.memory import Block, Home, Region
from webinfer.backends.webgpu.pipelines import pipeline_of
from webinfer.backends.webgpu.writes import check_writes
from webinfer.codegen.elements import storage_bytes
from webinfer.codegen.prelude import Access
from webinfer.errors import UnsupportedOpError
from webinfer.graph.dims import has_size, with_sizes
from webinfer.graph.ir import Graph, Node, SizeConstant, TensorType, Value
from webinfer.graph.trace import AskedAboutSpareError
from webinfer.host.gpu import PipelineSpec
from webinfer.lazy_dataclass import dataclass
from webinfer.lowering.appended import Appended
from webinfer.lowering.soundness import check_graph, named_failures
from webinfer.ops.custom import CustomOp

PRODUCTS = frozenset({"conv2d", "matmul"})
LONG = frozenset({"conv2d_tiled"})  # shaders of theirs that compile longest
ATTENTIONS = frozenset({"attention", "attention_wide"})  # shaders that skip the room of a cache
ALIASED_OPS = ("concat", "reshape")  # no copy where source and result lie in one owner


@dataclass(frozen=True, slots=True)
class Step:
    """A dispatch with its shader, on the regions that it binds; `node` is the index of its node in the graph."""

    dispatch: Dispatch
    pipeline: PipelineSpec
    regions: tuple[Region, ...]
    node: int


@dataclass(frozen=True, slots=True)
class AppendedPlace:
    """Where a cache's next value lies, and the run's step that copies the cache's input to it."""

    cache: Appended
    block: Block
    step: int


@dataclass(slots=True)
class Schedule:
    """What runs once at load (`prepare`), what runs with each inference (`run`), and on which blocks."""

    graph: Graph
    target: Target
    prepare: list[Step] = field(default_factory=list)
    run: list[Step] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    inputs: dict[str, Region] = field(default_factory=dict)
    outputs: list[tuple[Value, Region]] = field(default_factory=list)
    values: dict[Value, Region] = field(default_factory=dict)
    sized: dict[Block, SizeConstant] = field(default_factory=dict)  # constants that follow the sizes of inputs
    absorbed: dict[int, tuple[Node, ...]] = field(default_factory=dict)  # by the node that computes them on the way
    appended: list[AppendedPlace] = field(default_factory=list)


def _ignore(spec: PipelineSpec) -> None:
    """Does nothing with a pipeline."""


def make_schedule(
    graph: Graph,
    target: Target,
    on_pipeline: Callable[[PipelineSpec], None] = _ignore,
    appended: Sequence[Appended] = (),
) -> Schedule:
    """The steps of a graph. `on_pipeline` is called with each step's pipeline as soon as it is known.

    The next values of `appended` caches lie in places that have room to grow.

    Raises:  UnsupportedOpError listing every node that cannot run; KernelError if a dispatch would write
             more or less than its tensor; AskedAboutSpareError if one cannot skip the room of a cache
    """
    slices = scheduling(graph, target, on_pipeline, appended)
    while True:
        try:
            next(slices)
        except StopIteration as done:
            made: Schedule = done.value
            return made


def scheduling(
    graph: Graph, target: Target, on_pipeline: Callable[[PipelineSpec], None], appended: Sequence[Appended] = ()
) -> Generator[None, None, Schedule]:
    """As `make_schedule`, which may rest after each node."""
    check_graph(graph)
    builder = _Builder(graph, target, on_pipeline, appended)
    problems: list[str] = []
    refused: list[Node] = []
    too_large: list[str] = []  # inputs: the nodes that read them say it again, and run elsewhere
    for value in graph.inputs:
        try:
            builder.enter_input(value)
        except UnsupportedOpError as error:
            too_large += error.problems
    builder.precompile_shaders()
    for index, node in enumerate(graph.nodes):
        if any(v.type.size for v in node.outputs) and node not in builder.absorbed:
            try:
                with named_failures(node, "webgpu"):
                    builder.add(index, node)
            except UnsupportedOpError as error:
                together = builder.together(node)
                told = "; ".join(error.problems)
                problems += [f"{each.label}: {each.op.name} on webgpu: {told}" for each in together]
                refused += together
        yield
    if problems or too_large:
        raise UnsupportedOpError(problems or too_large, refused)
    builder.finish()
    return builder.schedule


def _of_language_models(graph: Graph, folded: set[Value], target: Target) -> dict[Node, FusedGroup]:
    names = {node.op.name for node in graph.nodes}
    if "block_matmul" in names:
        from webinfer.backends.webgpu.language.joined import joined_products  # a late part

        return joined_products(graph, folded, target)
    if "packed_matmul" in names and not graph.parts and not graph.resident:
        from webinfer.backends.webgpu.language.packed import packed_groups

        return packed_groups(graph, target)
    return {}


def _one_each(node: Node, lowered: Sequence[Dispatch]) -> bool:
    """Whether these dispatches copy one input of a concatenation each."""
    return node.op.name == "concat" and len(lowered) == len(node.inputs)


class _Builder:
    """Collects steps while nodes are lowered."""

    def __init__(
        self, graph: Graph, target: Target, on_pipeline: Callable[[PipelineSpec], None], appended: Sequence[Appended]
    ) -> None:
        self._caches = {one.result: one for one in appended}
        places = {v: Value(v.name, TensorType(one.shape, v.type.dtype)) for v, one in self._caches.items()}
        target = replace(target, places=places) if places else target
        self.graph, self.target, self._on_pipeline = graph, target, on_pipeline
        self.schedule = Schedule(graph, target)
        self.folded, self._resident = graph.fixed_values(), frozenset(graph.resident)
        self.groups = _of_language_models(graph, self.folded, self.target)
        taken = {node for last, one in self.groups.items() for node in (last, *one.absorbed)}
        self.groups |= find_groups(graph, target, taken)
        self.groups |= find_chains(graph, self.folded, target, taken)
        self.absorbed = {node for one in self.groups.values() for node in one.absorbed}
        extra_reads = {node: one.inputs for node, one in self.groups.items()}
        self.aliases = bindable_aliases(
            graph, self.folded | {*places}, target.limits["minStorageBufferOffsetAlignment"], extra_reads
        )
        self._in_places = {v: result for result, place in places.items() for v in (result, place)}
        self._places: dict[Value, Block] = {}
        self._regions: dict[Hashable, Region] = {}
        self._made: dict[Derived, Sequence[Dispatch]] = {}
        self._early: dict[Node, Sequence[Dispatch]] = {}

    def precompile_shaders(self) -> None:
        """Lowers dense products before their turn: a load ends with their shaders, which compile longest."""
        for node in self.graph.nodes:
            together = {node.op.name, *(each.op.name for each in self._absorbed_by(node))}
            product = bool(together & PRODUCTS) and "depthwise_conv2d" not in together
            if not product or node in self.absorbed or not any(v.type.size for v in node.outputs):
                continue
            with contextlib.suppress(UnsupportedOpError), named_failures(node, "webgpu"):  # its turn tells
                self._early[node] = self._lowered(node)
                for dispatch in self._early[node]:
                    if dispatch.shader in LONG:
                        self._on_pipeline(pipeline_of(dispatch))

    def _absorbed_by(self, node: Node) -> tuple[Node, ...]:
        return self.groups[node].absorbed if node in self.groups else ()

    def together(self, node: Node) -> list[Node]:
        """The node, behind those that it computes on the way."""
        return [*self._absorbed_by(node), node]

    def enter_input(self, value: Value) -> None:
        region = self._region(value, self.schedule.run)
        region.block.touch(-1)
        self.schedule.inputs[value.name] = region

    def add(self, index: int, node: Node) -> None:
        lowered = self._early.pop(node, None) or self._lowered(node)
        if any(v in self._caches for v in node.outputs):
            place = self._place(node.output)
            self.schedule.appended.append(AppendedPlace(self._caches[node.output], place, len(self.schedule.run)))
            for dispatch in lowered:
                self._append(index, dispatch, self.schedule.run)
            return
        if node in self.groups:
            self.schedule.absorbed[index] = self.groups[node].absorbed
        left = [i for i, d in enumerate(lowered) if node.op.name not in ALIASED_OPS or not self._in_place(d)]
        together = concat_parts(node, left, self.target) if _one_each(node, lowered) else []
        for dispatch in together or [lowered[i] for i in left]:
            self._append(index, dispatch, self._part(node, dispatch))

    def _lowered(self, node: Node) -> Sequence[Dispatch]:
        if node in self.groups:
            return self.groups[node].lower(self.target)
        if (place := self.target.places.get(node.outputs[0])) is not None:
            return append(node, place, self.target)
        lower = custom if isinstance(node.op, CustomOp) else LOWERINGS.get(node.op)
        if lower is None:
            raise UnsupportedOpError([UNSUPPORTED.get(node.op, "no lowering")])
        return lower(node, self.target)

    def finish(self) -> None:
        schedule = self.schedule
        for value in self.graph.outputs:
            region = self._region(value, schedule.run)
            region.block.touch(len(schedule.run))
            schedule.outputs.append((value, region))
        # What is not written before a part or a loop's turn runs is as it was before another one.
        if self.graph.parts or self.graph.keeps_inputs:
            for region in schedule.inputs.values():
                region.block.touch(len(schedule.run))
        schedule.values = {v: r for v, r in self._regions.items() if isinstance(v, Value)}
        reads = [(s.dispatch.shader, b.source) for s in schedule.run for b in s.dispatch.bindings]
        if len(schedule.appended) < len(self._caches) or any(
            source in self._caches and shader not in ATTENTIONS for shader, source in reads
        ):
            raise AskedAboutSpareError

    def _part(self, node: Node, dispatch: Dispatch) -> list[Step]:
        """Load or run: what reads only constants runs once, be it a whole node or one of its dispatches."""
        written = [b.source for b in dispatch.bindings if b.slot.access is not Access.READ]
        inner = [w for w in written if isinstance(w, Value) and w not in node.outputs]
        constant = all(v in self.folded for v in node.outputs)
        if not constant and len(inner) == len(written):
            reads = [b.source for b in dispatch.bindings if b.slot.access is Access.READ]
            updated = any(b.slot.access is Access.UPDATE for b in dispatch.bindings)
            constant = bool(reads) and not updated and all(self._is_constant(r) for r in reads)
        if constant:
            self.folded.update(inner)
        return self.schedule.prepare if constant else self.schedule.run

    def _in_place(self, dispatch: Dispatch) -> bool:
        owners = set()
        for binding in dispatch.bindings:
            if not isinstance(binding.source, Value):
                return False
            owners.add(self.aliases.get(binding.source, (binding.source, 0))[0])
        return len(owners) == 1

    def _append(self, index: int, dispatch: Dispatch, part: list[Step]) -> None:
        check_writes(dispatch)
        regions = tuple(self._region(b.source, part, index) for b in dispatch.bindings)
        for region in regions:
            if region.block not in self._places.values():
                self._demand_fits(region.block.label, region.nbytes, "maxStorageBufferBindingSize", "binding")
            if part is self.schedule.run:
                region.block.touch(len(part))
        storages = self.target.limits["maxStorageBuffersPerShaderStage"]
        if len(regions) > storages:
            most = f"a dispatch of this device at most {storages}"
            raise UnsupportedOpError([f"{dispatch.name} has {len(regions)} bindings, {most}"])
        if has_size(dispatch.variables):  # a shader for each of them
            dispatch = replace(dispatch, variables=with_sizes(dispatch.variables, int))
        pipeline = pipeline_of(dispatch)
        self._on_pipeline(pipeline)
        part.append(Step(dispatch, pipeline, regions, index))

    def _region(self, source: Source, part: list[Step], index: int = -1) -> Region:
        key: Hashable = source.key if isinstance(source, Derived) else source
        found = self._regions.get(key)
        if found is None:
            found = self._make(source, part, index)
            self._regions[key] = found
            if isinstance(source, Derived):
                self._derive(source, found, index)
            elif isinstance(source, Value) and source.constant is not None and found.block.data is None:
                self._expand(source, index)
        return found

    def _make(self, source: Source, part: list[Step], index: int) -> Region:
        if isinstance(source, Value):
            return self._value_region(source, part, index)
        if isinstance(source, Stored):
            assert source.value.constant is not None
            data = source.value.constant.data
            return self._new(source.value.name, len(data), source_dtype(source).itemsize, Home.RESIDENT, data)
        itemsize = source.dtype.itemsize
        if isinstance(source, Literal):
            return self._new("literal", len(source.data), itemsize, Home.RESIDENT, memoryview(source.data))
        count = 1
        for n in source.shape:
            count *= n
        home = Home.POOLED
        if isinstance(source, Derived):
            home = Home.RESIDENT if self._is_constant(source) else Home.POOLED
        elif part is self.schedule.prepare:
            home = Home.RESIDENT  # until `release_after_load`
        return self._new("derived" if isinstance(source, Derived) else "scratch", count * itemsize, itemsize, home)

    def _value_region(self, value: Value, part: list[Step], index: int) -> Region:
        itemsize = value.type.dtype.itemsize
        if (result := self._in_places.get(value)) is not None:
            block = self._place(result)
            return Region(block, 0, block.nbytes)
        if value in self.aliases:
            owner, offset = self.aliases[value]
            whole = self._region(owner, part, index)
            return Region(whole.block, offset, storage_bytes(value.type.nbytes, itemsize))
        if value.constant is None:
            home = Home.RESIDENT if value in self.folded or value in self._resident else Home.POOLED
            return self._new(value.name, value.type.nbytes, itemsize, home)
        if isinstance(value.constant, SizeConstant):
            if value.constant.stored.is_float:
                raise NotImplementedError("real numbers that follow sizes, as data of a run")
            found = self._new(value.name, value.type.nbytes, itemsize, Home.RESIDENT, value.constant.hint_data)
            self.schedule.sized[found.block] = value.constant
            return found
        same = value.constant.stored is value.type.dtype and value.constant.sparsity is None
        return self._new(value.name, value.type.nbytes, itemsize, Home.RESIDENT, value.constant.data if same else None)

    def _place(self, result: Value) -> Block:
        """The block of a cache's next value: nothing else lies in its buffer, whose contents stay from run to run."""
        block = self._places.get(result)
        if block is None:
            for limit, what in (("maxBufferSize", "buffer"), ("maxStorageBufferBindingSize", "binding")):
                self._demand_fits(result.name, result.type.nbytes, limit, what)
            block = self._places[result] = Block(result.name, self.target.places[result].type.nbytes, Home.POOLED)
            block.touch(-1)
            self.schedule.blocks.append(block)
        return block

    def _demand_fits(self, label: str, nbytes: int, limit: str, what: str) -> None:
        """Raises UnsupportedOpError for a tensor that the device has no place for: other backends take its nodes."""
        if nbytes > self.target.limits[limit]:
            most = self.target.limits[limit]
            raise UnsupportedOpError([f"tensor {label!r} has {nbytes} bytes, a {what} of this device at most {most}"])

    def _new(self, label: str, nbytes: int, itemsize: int, home: Home, data: memoryview | None = None) -> Region:
        size = storage_bytes(nbytes, itemsize)
        self._demand_fits(label, size, "maxBufferSize", "buffer")
        block = Block(label, size, home, data)
        self.schedule.blocks.append(block)
        return Region(block, 0, size)

    def _is_constant(self, source: Source) -> bool:
        if isinstance(source, Value):
            follows = isinstance(source.constant, SizeConstant)  # its elements change when sizes are bound
            return (source.is_constant and not follows) or source in self.folded
        if isinstance(source, Derived):
            reads = [b.source for d in self._makers(source) for b in d.bindings if b.slot.access is Access.READ]
            return all(self._is_constant(r) for r in reads)
        return not isinstance(source, Scratch)

    def _makers(self, source: Derived) -> Sequence[Dispatch]:
        """The dispatches that write a derived tensor, made once."""
        found = self._made.get(source)
        if found is None:
            found = self._made[source] = source.make(source)
        return found

    def _derive(self, source: Derived, region: Region, index: int) -> None:
        part = self.schedule.prepare if region.block.home is Home.RESIDENT else self.schedule.run
        for dispatch in self._makers(source):
            self._append(index, dispatch, part)

    def _expand(self, value: Value, index: int) -> None:
        for dispatch in expand(value, self.target):
            self._append(index, dispatch, self.schedule.prepare)


def release_after_load(schedule: Schedule) -> None:
    """Marks blocks that only load uses, such as weights before they are packed, as staged: they are freed after it."""
    used = {region.block for step in schedule.run for region in step.regions}
    used |= {region.block for _, region in schedule.outputs}
    for block in schedule.blocks:
        if block.home is Home.RESIDENT and block not in used:
            block.home = Home.STAGED


def give_ends(schedule: Schedule) -> None:
    """Marks inputs and outputs as given if a buffer of the caller can replace them in every step.

    It cannot for an output that is a constant, an input or another output as well, or lies inside another value,
    nor for an input that a step changes.
    """
    outputs = [region for _, region in schedule.outputs]
    ends = [region.block for region in (*schedule.inputs.values(), *outputs)]
    changed = changed_blocks(schedule)
    inside = {region.block for region in outputs if region.nbytes != region.block.nbytes}
    fixed = inside | (changed & {region.block for region in schedule.inputs.values()})
    for block in ends:
        if block.home is Home.POOLED and ends.count(block) == 1 and block not in fixed:
            block.home = Home.GIVEN


def changed_blocks(schedule: Schedule) -> set[Block]:
    """The blocks that steps of a run write."""
    return {
        region.block
        for step in schedule.run
        for binding, region in zip(step.dispatch.bindings, step.regions, strict=True)
        if binding.slot.access is not Access.READ
    }


def dispatches_of(steps: Sequence[Step]) -> dict[int, int]:
    """How many of these steps belong to each node, by the node's index in the graph."""
    counts: dict[int, int] = {}
    for step in steps:
        counts[step.node] = counts.get(step.node, 0) + 1
    return counts
