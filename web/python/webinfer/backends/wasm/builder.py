"""Collects the steps of a plan while lowerings describe nodes."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.dtypes import DType
from webinfer.errors import KernelError
from webinfer.graph.dims import has_size, tracing
from webinfer.graph.ir import Graph, Node, SizeConstant, TensorType, Value
from webinfer.lazy_dataclass import dataclass
from webinfer.lowering.aliasing import find_aliases
from webinfer.lowering.appended import Appended
from webinfer.lowering.branches import Side, Sides
from webinfer.ops.movement import TRANSPOSE
from webinfer.plan.blocks import Argument, Arguments, Block, Kind, Ref, Step

COMPUTE = {DType.FLOAT16: DType.FLOAT32}  # no float16 arithmetic in WebAssembly: held as float32
HELD = (DType.FLOAT32, *COMPUTE)  # types of states that are appended to as float32
SKIP = "b8_skip"  # the kernel of steps that leave out a side of a branch
LOAD_STEP = -1  # the moment before the first step: inputs are written


def compute_itemsize(dtype: DType) -> int:
    """Bytes of one element as the kernels hold it."""
    return COMPUTE.get(dtype, dtype).itemsize


@dataclass(slots=True)
class Part:
    """One of the two programs: its steps and the blocks that they use."""

    steps: list[Step] = field(default_factory=list)
    writes: list[Sequence[tuple[Ref, int]]] = field(default_factory=list)  # of each step: see `written`
    blocks: dict[Block, None] = field(default_factory=dict)

    def touch(self, block: Block, step: int) -> None:
        """Records that a step uses a block; a constant is there for every step."""
        if block.kind is not Kind.CONSTANT:
            block.touch(step)
            self.blocks[block] = None


class Builder:
    """What a lowering may ask for. `prepare` runs once at load, `run` once an inference.

    Nodes whose inputs are all constants are lowered into `prepare` without knowing it. `expand` makes the prepare
    steps that write a constant's dense compute form, where the file holds another one.
    """

    def __init__(
        self, graph: Graph, isa: str, tuned: Mapping[str, str] | None, expand: Expand, appended: Sequence[Appended] = ()
    ) -> None:
        self.appended = {value: one for one in appended for value in (one.past, one.result)}
        self.roomy: list[Node] = []  # nodes that were lowered with the room that such tensors have
        self.casts = (0, 0)  # steps at both ends that cast what is appended at the API
        self.graph, self.isa, self._expand = graph, isa, expand
        self.tuned: Mapping[str, str] = tuned or {}  # shape -> kernel variant that a tuner found best
        self.prepare_part, self.run_part = Part(), Part()
        self.constants: dict[Block, memoryview | None] = {}  # None: a prepare step writes it
        self.staged: dict[Block, memoryview] = {}
        self.sized: dict[Block, SizeConstant] = {}  # constants that follow the sizes of inputs
        self._refs: dict[Value, Ref] = {}
        self._packed: dict[Hashable, Block] = {}
        self._shared: dict[Hashable, Ref] = {}
        self._staged_refs: dict[Value, Ref] = {}
        self._folded, self._resident = graph.fixed_values(), frozenset(graph.resident)
        self._derived: dict[Hashable, Value] = {}
        self._transposed: dict[Value, tuple[Value, tuple[int, ...]]] = {}
        self._node_index, self._to_prepare = -1, False
        self._sides: list[tuple[Side, int, int]] = []  # that are open: each one's step, and what was shared before
        self.why: dict[int, str] = {}
        self.joined: dict[int, tuple[Node, ...]] = {}  # the nodes that a node's steps do as well
        self.boundary_refs: dict[tuple[Value, str], Ref] = {}
        self._aliases = find_aliases(graph, self._sizes())
        self.ends: dict[Value, Arguments] = {}  # what else ends the products of results that lie in another's place

    def _sizes(self) -> dict[Value, int]:
        """Elements' bytes of every value that the run program computes or reads as input."""
        sizes = {v: compute_itemsize(v.type.dtype) for v in self.graph.inputs if v.type.dtype not in COMPUTE}
        for node in self.graph.nodes:
            sizes.update({v: compute_itemsize(v.type.dtype) for v in node.outputs if v not in self._folded})
        return {value: size for value, size in sizes.items() if value not in self.appended}

    # ----- what lowerings call

    def ref(self, value: Value) -> Ref:
        """Where the value lies: dense, row-major, in its compute type."""
        found = self._refs.get(value)
        if found is None:
            found = self._refs[value] = self._make_ref(value)
        return found

    def placed_shape(self, node: Node, value: Value) -> tuple[int, ...]:
        """The value's shape, with the room that its memory has, of which `node` takes account."""
        own = self.appended.get(value)
        if own is not None:
            self.roomy.append(node)
        return value.type.shape if own is None else own.shape

    def end(self, value: Value, end: Arguments, result: Value) -> None:
        """Has a product end in these arguments of its epilogue, in the place of the result that they give."""
        self.ends[value] = end
        self._aliases[value] = self._aliases.get(result, (result, 0))

    def optional_ref(self, value: Value | None) -> Ref | None:
        """Where the value lies; the address is left out where there is no value."""
        return None if value is None else self.ref(value)

    def weights(self, value: Value) -> Ref:
        """The constant's bytes as the file stores them; only prepare steps may read them."""
        found = self._staged_refs.get(value)
        if found is None:
            assert value.constant is not None
            block = Block(value.name, len(value.constant.data), Kind.STAGED)
            self.staged[block] = value.constant.data
            found = self._staged_refs[value] = Ref(block)
        return found

    def staged_bytes(self, key: str, data: bytes) -> Ref:
        """Bytes that only prepare steps read (tables of a packing, metadata of a sparse constant)."""
        block = Block(key, len(data), Kind.STAGED)
        self.staged[block] = memoryview(data)
        return Ref(block)

    def table(self, key: Hashable, data: bytes) -> Ref:
        """Constant bytes that steps read (strides, lookup tables), stored once per key."""
        block = self._packed.get(key)
        if block is None:
            block = self._packed[key] = Block(f"table {key}", len(data), Kind.CONSTANT)
            self.constants[block] = memoryview(data)
        return Ref(block)

    def words(self, key: str, numbers: Sequence[int]) -> Ref:
        """Constant int32 words that steps read, stored once for equal ones; they may follow sizes of inputs."""
        own = tuple(numbers)
        if not has_size(own):
            data = struct.pack(f"<{len(own)}i", *own)
            return self.table((key, data), data)
        block = self._packed.get((key, own))
        if block is None:
            block = self._packed[key, own] = Block(f"table {key}", 4 * len(own), Kind.CONSTANT)
            self._follow(block, SizeConstant(own, DType.INT32))
        return Ref(block)

    def _follow(self, block: Block, elements: SizeConstant) -> None:
        """A constant that is written anew when sizes are bound."""
        if elements.stored.is_float:
            raise NotImplementedError("real numbers that follow sizes, as data of a run")
        self.sized[block] = elements
        self.constants[block] = elements.hint_data

    def packed(self, key: Hashable, nbytes: int) -> tuple[Ref, bool]:
        """A block that lives for ever; True if it is new and prepare steps must fill it."""
        block = self._packed.get(key)
        if block is not None:
            return Ref(block), False
        block = self._packed[key] = Block(f"packed {len(self._packed)}", nbytes, Kind.CONSTANT)
        self.constants[block] = None
        return Ref(block), True

    def derived(self, key: Hashable, type: TensorType, name: str) -> tuple[Value, bool]:
        """A value that lives for ever under this key; True if it is new and prepare steps must fill it."""
        known = self._derived.get(key)
        if known is not None:
            return known, False
        value = self._derived[key] = Value(name, type)
        self._folded.add(value)
        return value, True

    def is_fixed(self, value: Value) -> bool:
        """Whether the value is known once the model is loaded: a constant, or computed from constants."""
        return value.is_constant or value in self._folded

    def origin(self, value: Value) -> tuple[Value, tuple[int, ...]]:
        """What the axes of a value that is known at load were moved from, and their order; without one, itself."""
        return self._transposed.get(value, (value, ()))

    def scratch(self, nbytes: int) -> Ref:
        """Bytes that live while this node runs."""
        return Ref(Block("scratch", nbytes, Kind.ARENA))

    def shared(self, key: Hashable, nbytes: int) -> tuple[Ref, bool]:
        """Bytes that several nodes of the run read; True if they are new and a step must fill them."""
        known = self._shared.get(key)
        if known is not None:
            return known, False
        found = self._shared[key] = self.scratch(nbytes)
        return found, True

    def prepare(self, kernel: str, *groups: Arguments, units: int | None = None, **args: Argument) -> None:
        """A step that runs once, at load; otherwise like `step`."""
        self._append(self.prepare_part, kernel, (*groups, args), units)

    def step(self, kernel: str, *groups: Arguments, units: int | None = None, **args: Argument) -> None:
        """A step of every inference (of the load, for a node of constants).

        Arguments have the names of kernels.toml, in any order; `groups` are arguments that several kernels share. A
        step of no units is left out.

        Raises:  KernelError if the kernel does not exist, or an argument is missing, unknown or of the wrong kind
        """
        self._append(self.prepare_part if self._to_prepare else self.run_part, kernel, (*groups, args), units)

    def because(self, reason: str) -> None:
        """Notes for people why this node is lowered as it is."""
        self.why[self._node_index] = reason

    # ----- what the executor calls

    def enter(self, node: Node, index: int, sides: Sides = ()) -> None:
        """The node that the next calls belong to, and the sides of branches for which alone its steps run."""
        to_prepare = bool(node.outputs) and all(v in self._folded for v in node.outputs)
        if not to_prepare:
            self._take_sides(sides, index)
        self._node_index, self._to_prepare = index, to_prepare
        if self._to_prepare and node.op is TRANSPOSE:
            self._transposed[node.output] = (node.required_input(0), node.attrs.perm)

    def boundary(self) -> None:
        """The next calls belong to no node: conversions at the API."""
        self._node_index, self._to_prepare = -1, False
        self._take_sides((), -1)

    def _take_sides(self, sides: Sides, index: int) -> None:
        """Ends the sides that are open and not among these, and begins those that are missing."""
        steps, kept = self.run_part.steps, 0
        while kept < min(len(sides), len(self._sides)) and self._sides[kept][0] == sides[kept]:
            kept += 1
        for _, at, shared in reversed(self._sides[kept:]):
            condition, wanted, _ = steps[at].args
            steps[at] = replace(steps[at], args=(condition, wanted, len(steps) - at - 1))
            for key in list(self._shared)[shared:]:
                del self._shared[key]  # a run may not have filled it
        del self._sides[kept:]
        self._node_index, self._to_prepare = index, False
        for side in sides[kept:]:
            self._sides.append((side, len(steps), len(self._shared)))
            self.step(SKIP, condition=self.ref(side[0]), wanted=int(side[1]), count=0)

    def written(self, step: Step) -> list[tuple[Ref, int]]:
        """Where a step writes, and how many bytes from there at most: as kernels.toml declares of its kernel."""
        writes = KERNELS[step.kernel].writes
        told = writes(step.args, step.units, self._reach) if writes is not None else ()
        return [(target, nbytes) for target, nbytes in told if isinstance(target, Ref)]

    def data_of(self, block: Block) -> memoryview:
        """The bytes of a table, which is a constant or was staged since."""
        data = self.staged[block] if block.kind is Kind.STAGED else self.constants[block]
        assert data is not None
        return data

    def keep_alive(self, ref: Ref, step: int) -> None:
        """Extends a block's life to a step of the run program."""
        self.run_part.touch(ref.block, step)

    def known_refs(self) -> dict[Value, Ref]:
        """Where values lie that were asked for so far."""
        return dict(self._refs)

    def replace_sizes(self, value_of: Callable[[Any], Any]) -> None:
        """Puts numbers in the place of sizes that follow symbols, everywhere."""

        def numbers(thing: Any) -> Any:
            if isinstance(thing, Ref):
                return Ref(thing.block, value_of(thing.offset), value_of(thing.end))
            return value_of(thing)

        for part in (self.run_part, self.prepare_part):
            for i, step in enumerate(part.steps):
                part.steps[i] = replace(step, args=tuple(map(numbers, step.args)), units=value_of(step.units))
            part.writes = [self.written(step) for step in part.steps]
            for block in part.blocks:
                block.nbytes = value_of(block.nbytes)
        self._refs = {value: numbers(ref) for value, ref in self._refs.items()}
        self.boundary_refs = {key: numbers(ref) for key, ref in self.boundary_refs.items()}

    def _append(self, part: Part, name: str, groups: tuple[Arguments, ...], units: int | None) -> None:
        kernel, given = KERNELS.get(name), groups[-1]
        if kernel is None:
            raise KernelError(f"kernel {name!r} is not in this build of the kernel module; rebuild the kernels")
        if units == 0 and kernel.split:
            return  # nothing to do
        units = units or 0
        for group in groups[:-1]:
            count = len(given) + len(group)
            given.update(group)
            if len(given) < count:
                raise KernelError(f"kernel {name}: one of the arguments {', '.join(group)} is given twice")
        at, args = len(part.steps), kernel.arranged(given, units)
        step = Step(name, args, units, self._node_index)
        writes = self.written(step)
        for target, nbytes in writes:
            if nbytes > target.room:
                raise KernelError(
                    f"kernel {name} would write {nbytes} bytes from byte {target.offset} of {target.block.name!r}, "
                    f"where the tensor has {target.room}"
                )
        for i in kernel.arrangement.pointers:
            if isinstance(ref := args[i], Ref):
                part.touch(ref.block, at)
        part.steps.append(step)
        part.writes.append(writes)

    def _reach(self, nest: Ref, operand: int) -> int:
        """How many elements from its start a loop nest reaches in an operand."""
        followed, data = self.sized.get(nest.block), self.data_of(nest.block)
        known = followed.elements if followed is not None and tracing() else struct.unpack(f"<{len(data) // 4}i", data)
        rank, *words = known
        sizes, steps = words[:rank], words[rank * (1 + operand) :]
        return 1 + sum((n - 1) * max(step, 0) for n, step in zip(sizes, steps, strict=False)) if all(sizes) else 0

    def _make_ref(self, value: Value) -> Ref:
        nbytes = value.type.size * compute_itemsize(value.type.dtype)
        if (own := self.appended.get(value)) is not None:
            if value is own.result:
                return self.ref(own.past)
            return Ref(Block(value.name, math.prod(own.shape) * compute_itemsize(value.type.dtype), Kind.ARENA))
        if value in self._aliases:
            owner, offset = self._aliases[value]
            whole = self.ref(owner) + offset
            return Ref(whole.block, whole.offset, whole.offset + nbytes)
        if value.is_constant:
            return self._constant_ref(value, nbytes)
        if value in self._folded or value in self._resident:
            block = Block(value.name, nbytes, Kind.CONSTANT)
            self.constants[block] = None
            return Ref(block)
        return Ref(Block(value.name, nbytes, Kind.ARENA))

    def _constant_ref(self, value: Value, nbytes: int) -> Ref:
        constant = value.constant
        assert constant is not None
        block = Block(value.name, nbytes, Kind.CONSTANT)
        ref = Ref(block)
        if isinstance(constant, SizeConstant):
            self._follow(block, constant)
            return ref
        compute = COMPUTE.get(value.type.dtype, value.type.dtype)
        if constant.stored is compute and constant.sparsity is None:
            self.constants[block] = constant.data
        else:
            self.constants[block] = None
            self._expand(self, value, ref)
        return ref


Lower = Callable[[Node, Builder], None]  # describes one node to a builder
Expand = Callable[[Builder, Value, Ref], None]  # describes how a constant is written to a place
