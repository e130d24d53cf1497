"""A kernel as data: which indices it runs over, and the formula of the element of y at an index.

    outer, size, inner = sizes(outer=2, size=5, inner=8)
    x = Tensor("x", (outer, size, inner))
    o, i = axes(o=outer, i=inner)
    k = along("k", size)
    Kernel("sum_middle", (x,), (o, i), total(k, x[o, k, i]), Kind.NUMBER)

Indices are whole numbers that may be negative; their `//` cuts towards zero, `real` and `whole` lead to floats and
back. A select at the top of a kernel is a branch: what is not chosen is not read. Sizes are parameters: one text serves
all of them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from webinfer.expr.formula import Formula, Operand, formula, primitive
from webinfer.lazy_dataclass import dataclass

_RESERVED = frozenset("at begin count end first from line run unit y".split())  # names in the texts of kernels
# What languages apply to each number of a vector.
_EACH = frozenset({
    *("+", "-", "*", "/", "//", "neg", "abs", "ceil", "clamp", "exp", "floor", "larger", "max", "min", "round_even"),
    *("bit_and", "bit_or", "bit_xor", "shift_right", "sign", "smaller", "sqrt", "real", "whole"),
})  # fmt: skip
real = primitive("real")  # an index as a float
shift_right = primitive("shift_right")  # (an integer, by how many bits); the sign comes along
whole = primitive("whole")  # a float as an index, cut towards zero; it is in the range of indices


class Kind(enum.StrEnum):
    """What the elements of a tensor are to a kernel."""

    __hash__ = str.__hash__

    BITS = "bits"  # moved, never looked at: element types of one width are the same
    INDEX = "index"  # whole numbers that name places; what no int32 holds is the nearest one
    NUMBER = "number"  # computed with, as float32 or int32


@dataclass(frozen=True, slots=True, eq=False)
class Size(Formula):
    """A whole number that the kernel is given: a length, a step or a bound.

    One that is `fixed` stands in the text where texts are made for a model: loops over it can be unrolled.
    """

    fixed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Real(Formula):
    """A float that the kernel is given."""


@dataclass(frozen=True, slots=True, eq=False)
class Element(Formula):
    """One element of y that the kernel is given, in the units in which it is stored; `number` is exact."""

    number: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Axis(Formula):
    """An index: 0 up to `extent`. In an index space `outer` is the axis around it."""

    extent: Size = field(default_factory=lambda: Size("one", value=1.0))
    outer: Axis | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Flat(Formula):
    """The row-major number of the indices up to and including this axis."""

    axis: Axis | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reduction(Formula):
    """`body`, the first part, over all indices of an axis, beginning with the second part.

    Its name says how: "sum" or "largest". `kind` says what it computes with. Where there is a third part, only indices
    count at which it holds, and at others `body` is not read.
    """

    axis: Axis | None = None
    kind: Kind = Kind.NUMBER


@dataclass(frozen=True, slots=True, eq=False)
class Read(Formula):
    """An element of a tensor; its one part is the place. `last` is the axis whose neighbours lie together, if any."""

    tensor: Tensor = field(default_factory=lambda: Tensor("", ()))
    last: Axis | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """An input of a kernel, seen with these sizes: x[b, i] is its element there."""

    name: str
    shape: tuple[Size, ...]
    kind: Kind = Kind.BITS

    def __getitem__(self, indices: Operand | tuple[Operand, ...]) -> Read:
        """The element at these indices, one for each size; all of them are inside."""
        at = indices if isinstance(indices, tuple) else (indices,)
        if len(at) != len(self.shape):
            raise ValueError(f"{self.name} has {len(self.shape)} axes and is read at {len(at)} indices")
        place, inside = formula(at[0]), list(zip(at, self.shape, strict=True))
        for index, size in inside[1:]:
            place = _next_place(place, formula(index), size)
        index, size = inside[-1]
        last = index if isinstance(index, Axis) and index.extent is size else None
        return Read(f"load_{self.name}", (place,), tensor=self, last=last)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """At most eight whole numbers that the kernel is given: table[d] is one of them."""

    name: str
    values: tuple[int, ...]

    def __getitem__(self, index: Operand) -> Formula:
        return Formula(f"{self.name}_at", (formula(index),))


def _next_place(place: Formula, index: Formula, size: Size) -> Formula:
    """The place one axis further in. Where an index space is walked as it lies, its own number is the place."""
    before = place.axis if isinstance(place, Flat) else place
    outermost = isinstance(place, Flat) or (isinstance(place, Axis) and place.outer is None)
    if outermost and isinstance(index, Axis) and index.extent is size and index.outer is before:
        return flat(index)
    return place * size + index


def sizes(**values: int) -> tuple[Size, ...]:
    """Whole numbers by name; names are those of parameters in the kernel's text. Those that are symbols stay so."""
    return tuple(Size(name, value=float(value) if isinstance(value, int) else value) for name, value in values.items())


def fixed_sizes(**values: int) -> tuple[Size, ...]:
    """Whole numbers by name of which there are few: windows, dilations."""
    return tuple(Size(name, value=float(value), fixed=True) for name, value in values.items())


def lengths(shape: Sequence[int], **ends: int) -> tuple[Size, ...]:
    """The axes of a shape multiplied in groups, each by its name and where it ends; the first begins at 0."""
    starts = (0, *ends.values())
    return sizes(
        **{name: math.prod(shape[start:end]) for start, (name, end) in zip(starts, ends.items(), strict=False)}
    )


def reals(**values: float) -> tuple[Real, ...]:
    """Floats by name."""
    return tuple(Real(name, value=value) for name, value in values.items())


def axes(**extents: Size) -> tuple[Axis, ...]:
    """The indices of an index space by name, outermost first."""
    found: list[Axis] = []
    for name, extent in extents.items():
        found.append(Axis(name, extent=extent, outer=found[-1] if found else None))
    return tuple(found)


def along(name: str, extent: Size) -> Axis:
    """The index of a reduction."""
    return Axis(name, extent=extent)


def flat(axis: Axis) -> Flat:
    """The row-major number of the indices up to this one."""
    return Flat(f"to_{axis.name}", axis=axis)


def total(
    axis: Axis, body: Formula, start: Operand = 0.0, *, where: Formula | None = None, kind: Kind = Kind.NUMBER
) -> Reduction:
    """The sum of `start` and of `body` at all indices, or at those `where` something holds, in their order."""
    return Reduction("sum", (body, formula(start), *([where] if where else [])), axis=axis, kind=kind)


def largest(
    axis: Axis, body: Formula, start: Operand, *, where: Formula | None = None, kind: Kind = Kind.INDEX
) -> Reduction:
    """The largest of `start` and of `body` at all indices, or at those `where` something holds."""
    return Reduction("largest", (body, formula(start), *([where] if where else [])), axis=axis, kind=kind)


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """`value` is the element of y at each index of the space; y is dense and written in full.

    The name stands for the text: the same structure always, only the numbers differ. `inputs` are the operator's, in
    order. `gives` says what y's elements are.
    """

    name: str
    inputs: tuple[Tensor, ...]
    space: tuple[Axis, ...]
    value: Formula
    gives: Kind = Kind.BITS
    tables: tuple[Table, ...] = ()

    def __post_init__(self) -> None:
        formulas: tuple[Formula, ...] = (*self.parameters(), *self.space)
        names = [part.name for part in formulas] + [t.name for t in self.inputs] + [t.name for t in self.tables]
        if len(set(names)) < len(names) or _RESERVED & set(names):
            raise ValueError(f"kernel {self.name}: a name stands twice or is reserved in {sorted(names)}")
        if len(self.space) < 2:
            raise ValueError(f"kernel {self.name} has one axis; it needs rows and the elements of a row")

    def everything(self) -> Iterator[Formula]:
        """All formulas of the kernel; one that is used twice comes twice. The outermost extent is none of them."""
        yield from self.value
        for axis in self.space[1:]:
            yield axis.extent

    def parameters(self) -> list[Formula]:
        """Sizes, floats and elements that the kernel is given, each once, in order of their names."""
        found: dict[int, Formula] = {}
        for part in self.everything():
            if isinstance(part, Size | Real | Element):
                found[id(part)] = part
            elif isinstance(part, Reduction) and part.axis is not None:
                found[id(part.axis.extent)] = part.axis.extent
        return sorted(found.values(), key=lambda part: part.name)

    def copies_rows(self) -> bool:
        """Whether rows of y are rows of an input, as they are."""
        return isinstance(self.value, Read) and self.value.last is self.space[-1] and self.moves_rows()

    def walks_as_it_lies(self) -> bool:
        """Whether y and all that is read along its last axis are walked from end to end, together."""
        last = self.space[-1]
        return all(
            isinstance(part.parts[0], Axis | Flat)
            for part in self.value
            if isinstance(part, Read) and part.last is last
        )

    def moves_rows(self) -> bool:
        """Whether neighbours along the last axis depend on it by where they lie only, in y and in what is read.

        Then they may be taken several at a time: the last size counts groups of them.
        """
        last = self.space[-1]
        return _runs(self.value, last, _names(last))


def _names(last: Axis) -> Sequence[str]:
    return last.name, f"to_{last.name}", last.extent.name


def _runs(part: Formula, last: Axis, names: Sequence[str]) -> bool:
    """Whether all that depends on the last axis are elements read along it, none of them an index or a condition."""
    if isinstance(part, Read) and part.last is last:
        place = part.parts[0]
        plain = isinstance(place, Axis | Flat) or not _depends(place.parts[0].parts[0], names)  # (rows * size) + index
        return plain and part.tensor.kind is not Kind.INDEX
    if isinstance(part, Reduction) and part.axis is not None:
        body, start, *where = part.parts
        fixed = [part.axis.extent, *where]
        return _runs(body, last, names) and _runs(start, last, names) and not any(_depends(f, names) for f in fixed)
    if part.name == "select":
        condition, chosen, other = part.parts
        return not _depends(condition, names) and _runs(chosen, last, names) and _runs(other, last, names)
    if part.name not in _EACH and part.parts and not isinstance(part, Read):
        return not _depends((part,), names) and not any(_depends(inner, names) for inner in part.parts)
    return part.name not in names and all(_runs(inner, last, names) for inner in part.parts)


def runs_along(part: Formula, axis: Axis) -> bool:
    """Whether the formula is of neighbours along this axis, which lie together where they are read."""
    return any(isinstance(inner, Read) and inner.last is axis for inner in part)


def _depends(parts: Iterable[Formula], names: Sequence[str]) -> bool:
    return any(part.name in names for part in parts)


def element(name: str, number: float) -> Element:
    """An element of y by name."""
    return Element(name, number=number)


def within(position: Formula, size: Formula) -> Formula:
    """A position as an index: from the end if it is negative; one outside goes to the nearest element."""
    from_end = Formula("select", (position < 0, position + size, position))
    return Formula("clamp", (from_end, formula(0), size - 1))
