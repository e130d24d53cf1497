"""Values in another order of axes than users know: remembered, and written out only where the order matters.

A `View` is a value of the file that no node computes as such. What is computed is its `source`, an image as NHWC for
example; axis i of the view is axis perm[i] of the source. Operators that treat all axes alike work on sources and
give views in their turn, so that most transposes are never written.
"""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.graph.ir import TensorType, Value
from webinfer.lazy_dataclass import dataclass


class View(Value):
    """A value that is known as `source` with its axes in the order `perm`; `dense` once it was written out."""

    __slots__ = ("dense", "perm", "source")

    def __init__(self, name: str, source: Value, perm: tuple[int, ...]) -> None:
        shape = tuple(source.type.shape[i] for i in perm)
        super().__init__(name, TensorType(shape, source.type.dtype, source.type.quant))
        self.source, self.perm = source, perm
        self.dense: Value | None = None


@dataclass(frozen=True, slots=True)
class Arranged:
    """A value as it is computed, and where each axis that users know lies in it."""

    value: Value
    perm: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that users know."""
        return tuple(self.value.type.shape[i] for i in self.perm)

    def reordered(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """A number for each axis that users know, brought to the order of the value."""
        return tuple(numbers[i] for i in inverse(self.perm))


def arranged(value: Value) -> Arranged:
    """The value as it is computed."""
    if isinstance(value, View):
        return Arranged(value.source, value.perm)
    return Arranged(value, tuple(range(value.type.rank)))


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """The order that undoes `perm`."""
    result = [0] * len(perm)
    for i, p in enumerate(perm):
        result[p] = i
    return tuple(result)


def channels_last(rank: int) -> tuple[int, ...]:
    """Where the axes N, C, and the others of users lie in a value whose channels come last."""
    return (0, rank - 1, *range(1, rank - 1))
