"""Sizes that follow inputs, out of the bytes of a stored plan or a package, whose graph is not read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webinfer.errors import ModelFormatError
from webinfer.graph.deferred import DeferredGraph
from webinfer.graph.ir import Graph, TensorType, Value
from webinfer.graph.positions import Axis
from webinfer.graph.stored_trace import restored
from webinfer.graph.stored_types import ends_of
from webinfer.lowering.followed_graph import Number


class RestoredSizes:
    """Shapes of inputs and outputs that follow sizes, and the expressions of a stored plan.

    Raises:  ModelFormatError where the form is not kept
    """

    def __init__(self, form: Any, values: Sequence[Value], shapes: Sequence[Any]) -> None:
        self.trace, self.expressions = restored(form)
        self.count = len(self.expressions.listed())
        self.holds = self.trace.compile_guards()
        self.sizes: list[int] = []
        self.found: list[int] = []
        self._shapes = [
            (value, tuple(self.number(size, 0) for size in shape))
            for value, shape in zip(values, shapes, strict=True)
        ]  # fmt: skip

    def number(self, word: Any, least: int | None = None) -> Number:
        """A number, of at least so much, or a list with the place of an expression."""
        match word:
            case int() if not isinstance(word, bool) and (least is None or word >= least):
                return word
            case [int(place)] if 0 <= place < self.count:
                return (place,)
        raise ModelFormatError(f"a stored plan has {str(word)[:40]} for a number or one of {self.count} expressions")

    def evaluate(self, sizes: Sequence[int]) -> list[int]:
        """The expressions' values for these sizes of the symbols."""
        return self.expressions.evaluate(sizes)

    def bind(self, sizes: Sequence[int], found: list[int] | None = None) -> None:
        """Takes other sizes; inputs and outputs follow."""
        self.sizes, self.found = list(sizes), found or self.evaluate(sizes)
        for value, shape in self._shapes:
            value.type = TensorType(tuple(map(self.at, shape)), value.type.dtype, value.type.quant)

    def axes(self, form: Sequence[Any]) -> list[tuple[str, Number, str]]:
        """Inputs that hold positions: a name, the axis' size and who reads it."""
        return [(str(name), self.number(size, 0), str(reader)) for name, size, reader in form]

    def at(self, number: Number) -> int:
        """A number, or the value of the expression at this place."""
        return self.found[number[0]] if isinstance(number, tuple) else number


class ShowsDeferredGraph:
    """Of an executor out of the plan cache: its graph is read, for the sizes that are bound, when it is looked at."""

    ends: Graph
    facts: Mapping[str, Any]  # "name", "ends", "notes", "axes" and "rows", as they were stored
    _sizes: Any  # the RestoredSizes
    _read: Callable[[Mapping[str, Sequence[int]]], Graph]
    _axes: list[tuple[str, Number, str]]
    _graph: Graph | None = None

    @property
    def graph(self) -> Graph:
        """The graph for the sizes that are bound."""
        if self._graph is None:
            inputs, outputs = ([Value(v.name, v.type) for v in ends] for ends in (self.ends.inputs, self.ends.outputs))
            shapes = {value.name: value.type.shape for value in inputs}
            self._graph = DeferredGraph(self.ends.name, inputs, outputs, lambda: self._read(shapes))
            self._graph.notes += self.ends.notes
        return self._graph

    @graph.setter
    def graph(self, graph: Graph | None) -> None:
        self._graph = graph

    def positions(self) -> dict[str, Axis]:
        """The inputs that hold positions, with their axes for the sizes that are bound."""
        return {name: Axis(self._sizes.at(size), reader) for name, size, reader in self._axes}

    def _listed_rows(self) -> list[list[Any]]:
        """The fields of the plan's rows for the sizes that are bound."""
        form = self.facts["rows"]
        _, expressions = restored(form["sizes"])
        found = expressions.evaluate(self._sizes.sizes)

        def value(field: Any) -> Any:
            return found[field[0]] if isinstance(field, list) else field

        return [[*map(value, row[:5]), row[5].format(*found), *map(value, row[6:])] for row in form["rows"]]


def ends_graph(facts: Mapping[str, Any]) -> Graph:
    """A graph without nodes, with the name, the ends and the notes of stored facts."""
    inputs, outputs = ([Value(*end) for end in ends_of(form)] for form in facts["ends"])
    ends = Graph(str(facts["name"]), inputs, outputs, ())
    ends.notes += facts["notes"]
    return ends


def whole(number: Any) -> int:
    """A number of a stored plan: an int of at least 0.

    Raises:  ModelFormatError
    """
    if type(number) is not int or number < 0:
        raise ModelFormatError(f"a stored plan has {str(number)[:40]!r} where a whole number belongs")
    return number
