"""What a lowering returns: dispatches as data, over graph values and a few other sources of bytes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from webinfer.codegen.elements import Element, element_of
from webinfer.codegen.prelude import Access, Param, Slot
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import LimitError
from webinfer.graph.ir import Node, Value

WORKGROUP = 64  # invocations, where a kernel has no reason for another number


@dataclass(frozen=True, slots=True, eq=False)
class Scratch:
    """A tensor that lives while its node runs."""

    shape: tuple[int, ...]
    dtype: DType = DType.FLOAT32


@dataclass(frozen=True, slots=True)
class Literal:
    """Bytes that the lowering knows; equal ones are stored once."""

    data: bytes
    dtype: DType = DType.FLOAT32


@dataclass(frozen=True, slots=True)
class Stored:
    """A constant's bytes as the file holds them, before any expansion."""

    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """A tensor computed from other sources, once per key: at load where they are constant.

    `make` gives the dispatches that write it.
    """

    key: Hashable
    shape: tuple[int, ...]
    make: Callable[[Derived], Sequence[Dispatch]]
    dtype: DType = DType.FLOAT32


Source = Value | Scratch | Literal | Stored | Derived


def source_dtype(source: Source) -> DType:
    """The element type of a source."""
    if isinstance(source, Value):
        return source.type.dtype
    if isinstance(source, Stored):
        assert source.value.constant is not None
        return source.value.constant.stored
    return source.dtype


@dataclass(frozen=True, slots=True)
class Binding:
    """A source under the name that the shader knows it by."""

    slot: Slot
    source: Source


def read(name: str, source: Source, element: Element | None = None, *, staged: bool = False) -> Binding:
    """A binding that the shader only reads; `staged` fetches quads and widens them later."""
    return Binding(Slot(name, element or element_of(source_dtype(source)), Access.READ, staged=staged), source)


def write(name: str, source: Source, element: Element | None = None, *, single: bool = False) -> Binding:
    """A binding that the shader writes in full; `single` stores elements one by one."""
    return Binding(Slot(name, element or element_of(source_dtype(source)), Access.WRITE, single), source)


def update(name: str, source: Source, element: Element | None = None, *, single: bool = False) -> Binding:
    """A binding that the shader reads and writes."""
    return Binding(Slot(name, element or element_of(source_dtype(source)), Access.UPDATE, single), source)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One dispatch: which shader with which variables, on what, how many workgroups. `why` is for people.

    `text` is a custom operator's own WGSL, `label` its name.
    """

    shader: str
    variables: Mapping[str, Variable]
    bindings: tuple[Binding, ...]
    params: tuple[Param, ...]
    groups: tuple[int, int, int]
    why: str = ""
    text: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """What lowerings may know of the device."""

    limits: Mapping[str, int]
    features: frozenset[str] = frozenset()
    software: bool = False
    choices: Mapping[str, str] = field(default_factory=dict)


Lower = Callable[[Node, Target], Sequence[Dispatch]]


def joining(target: Target) -> dict[str, Variable]:
    """What shaders with _workgroup_join.wgsl ask of a device: by subgroups where it has them, else in a tree."""
    return {"subgroups": "subgroups" in target.features}


def joining_text(target: Target) -> str:
    """How `joining` went, for people."""
    return "by subgroups" if joining(target)["subgroups"] else "in a tree"


def groups_for(invocations: int, target: Target, workgroup: int = WORKGROUP) -> tuple[int, int, int]:
    """Workgroup counts for a flat index, folded into y where one dimension is too short.

    Raises:  LimitError if even two dimensions do not suffice
    """
    limit = target.limits["maxComputeWorkgroupsPerDimension"]
    count = max(1, -(-invocations // workgroup))
    if count <= limit:
        return (count, 1, 1)
    rows = -(-count // limit)
    if rows > limit:
        raise LimitError("workgroups of a dispatch", count, limit * limit, "use a smaller input")
    return (-(-count // rows), rows, 1)


def present(node: Node, index: int) -> Value | None:
    """An optional input, None where it is absent or the list is shorter."""
    return node.inputs[index] if index < len(node.inputs) else None


def operand(node: Node, index: int) -> Value:
    """A required input."""
    value = node.inputs[index]
    assert value is not None, f"{node.label}: input {index} is missing"
    return value
