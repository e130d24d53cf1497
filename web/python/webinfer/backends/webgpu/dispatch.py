"""What a lowering returns: dispatches as data, over graph values and a few other sources of bytes.

Neither devices nor operators are here: `schedule` gives the sources memory, `pipelines` renders the shaders.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from webinfer.backends.webgpu.device_size import MEASURED, cores_of
from webinfer.codegen.elements import Element, element_of
from webinfer.codegen.prelude import Access, Param, Slot
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import LimitError, UnsupportedOpError
from webinfer.graph.dims import maximum
from webinfer.graph.ir import Node, Value
from webinfer.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from webinfer.host.gpu import GpuDevice, GpuOffer

# Iterations of all loops of an invocation together, after which Mesa's CPU adapter (lavapipe) ends them silently:
# LP_MAX_TGSI_LOOP_ITERATIONS in gallivm's lp_bld_limits.h.
MAX_TURNS = 65_535
# Invocations, where a kernel has no reason for another number: 32 took 0.99 of the time, 128 1.04 (H100, 2026-11-28).
WORKGROUP = 64
MIN_LIMITS = {  # what every device has
    "maxComputeWorkgroupStorageSize": 16384,
    "maxComputeInvocationsPerWorkgroup": 256,
    "maxStorageBuffersPerShaderStage": 8,
}


@dataclass(frozen=True, slots=True, eq=False)
class Scratch:
    """A tensor that only the dispatches of one node use: undefined before, forgotten after."""

    shape: tuple[int, ...]
    dtype: DType = DType.FLOAT32


@dataclass(frozen=True, slots=True)
class Literal:
    """Bytes that the lowering knows, as elements of `dtype`; equal literals are stored once."""

    data: bytes
    dtype: DType = DType.FLOAT32


@dataclass(frozen=True, slots=True)
class Stored:
    """The bytes of a constant as the model file holds them: narrower or sparse, before any expansion."""

    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """A tensor computed from other sources, once for each key: at load where the sources are constant.

    `make` returns the dispatches that write it.
    """

    key: Hashable
    shape: tuple[int, ...]
    make: Callable[[Derived], Sequence[Dispatch]]
    dtype: DType = DType.FLOAT32


Source = Value | Scratch | Literal | Stored | Derived  # what a shader may be bound to


def source_dtype(source: Source) -> DType:
    """The element type of a source."""
    if isinstance(source, Value):
        return source.type.dtype
    if isinstance(source, Stored):
        assert source.value.constant is not None
        return source.value.constant.stored
    return source.dtype


class Binding(NamedTuple):
    """A source, and the slot (name, element type, access) under which a shader binds it."""

    slot: Slot
    source: Source


def read(name: str, source: Source, element: Element | None = None, *, staged: bool = False) -> Binding:
    """A binding that the shader only reads; with `staged` it fetches four elements as stored and widens them later."""
    return Binding(Slot(name, element or element_of(source_dtype(source)), Access.READ, staged=staged), source)


def read_given(**values: Value | None) -> list[Binding]:
    """Bindings of the optional inputs that there are, each by its name in the shader."""
    return [read(name, value) for name, value in values.items() if value is not None]


def write(name: str, source: Source, element: Element | None = None, *, single: bool = False) -> Binding:
    """A binding that the shader writes in full; with `single` it stores elements one by one, else four at a time."""
    return Binding(Slot(name, element or element_of(source_dtype(source)), Access.WRITE, single), source)


def update(name: str, source: Source, element: Element | None = None, *, single: bool = False) -> Binding:
    """A binding that the shader reads and writes; `single` as for `write`."""
    return Binding(Slot(name, element or element_of(source_dtype(source)), Access.UPDATE, single), source)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One dispatch: which shader with which template variables, on what, how many workgroups in x, y and z.

    `why` tells people, in the plan, why this shader was chosen. `text` is a custom operator's own WGSL; `label` is its
    name, or that of a described kernel.
    """

    shader: str
    variables: Mapping[str, Variable]
    bindings: tuple[Binding, ...]
    params: tuple[Param, ...]
    groups: tuple[int, int, int]
    why: str = ""
    text: str = ""
    label: str = ""

    @property
    def name(self) -> str:
        """What people are told that runs: the label, or the shader's name."""
        return self.label or self.shader


@dataclass(frozen=True, slots=True)
class Target:
    """What lowerings may know of the device: limits and features by WebGPU's names, and the kernels tuned for it.

    `software` says that a CPU does the computing. `tuned` names kernels by tuning key (lowerings.variants). `cores` run
    a workgroup or several each (device_size). `places` are what values lie in that have room (lowering.appended).
    """

    limits: Mapping[str, int]
    features: frozenset[str] = frozenset()
    software: bool = False
    tuned: Mapping[str, str] = field(default_factory=dict)
    cores: int = MEASURED
    places: Mapping[Value, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, device: GpuDevice | GpuOffer, tuned: Mapping[str, str] | None = None) -> Target:
        """What lowerings may know of this device."""
        return cls(dict(device.limits), device.features, device.software, tuned or {}, cores_of(device.name))

    def placed_shape(self, value: Value) -> tuple[int, ...]:
        """The value's shape, with the room that it has."""
        return self.places.get(value, value).type.shape

    def limit(self, name: str) -> int:
        """A limit by WebGPU's name, or the one that every device has."""
        return self.limits.get(name, MIN_LIMITS[name])


@dataclass(frozen=True, slots=True, eq=False)
class FusedGroup:
    """What one node's dispatches compute besides: the nodes that get none of their own, and the inputs of these.

    `product` takes the place of matrix products among them, and reads `constants` that are made at load.
    """

    absorbed: tuple[Node, ...]
    inputs: tuple[Value, ...]
    lower: Callable[[Target], Sequence[Dispatch]]
    product: Node | None = None
    constants: Sequence[Value] = ()


Lower = Callable[[Node, Target], Sequence[Dispatch]]  # raises UnsupportedOpError with what it cannot do


def workgroup_reduction(target: Target) -> dict[str, Variable]:
    """The variable of _workgroup_reduce.wgsl: it reduces by subgroups where the device has them, else in a tree."""
    return {"subgroups": "subgroups" in target.features}


def workgroup_reduction_text(target: Target) -> str:
    """How _workgroup_reduce.wgsl goes about it on this target, for people."""
    return "by subgroups" if workgroup_reduction(target)["subgroups"] else "in a tree"


def may_loop(turns: int, target: Target) -> bool:
    """Whether an invocation may loop so often."""
    return not target.software or turns <= MAX_TURNS


def check_turns(turns: int, target: Target, what: str) -> None:
    """Nothing, if an invocation may loop so often.

    Raises:  UnsupportedOpError on an adapter that ends loops early
    """
    if not may_loop(turns, target):
        raise UnsupportedOpError([f"{what} of {turns}; adapters on the processor end loops after {MAX_TURNS}"])


def groups_for(invocations: int, target: Target, workgroup: int = WORKGROUP) -> tuple[int, int, int]:
    """Workgroup counts in x, y and z for `invocations` of a flat index, `workgroup` in each workgroup.

    The counts go on in y where the device does not allow so many in x.

    Raises:  LimitError if even two dimensions do not suffice
    """
    limit = target.limits["maxComputeWorkgroupsPerDimension"]
    count = maximum(1, -(-invocations // workgroup))
    if count <= limit:
        return (count, 1, 1)
    rows = -(-count // limit)
    if rows > limit:
        raise LimitError("workgroups of a dispatch", count, limit * limit, "use a smaller input")
    return (-(-count // rows), rows, 1)
