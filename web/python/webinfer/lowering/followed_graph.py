"""A graph whose sizes follow symbols: it is lowered with them once, and later shows the sizes that are bound."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from webinfer.graph.dims import Size, has_size, hint_of, sizes_in, with_sizes
from webinfer.graph.ir import Constant, Graph, Node, SizeConstant, TensorType, Value
from webinfer.graph.positions import Axis, positions_among
from webinfer.graph.stored_trace import written
from webinfer.graph.stored_types import ends_form
from webinfer.graph.trace import Expressions, Trace

T = TypeVar("T")
Number = Any  # a number, or a tuple of its place among the expressions


def as_json(number: Number) -> Any:
    """A number, or the place of an expression in a list, for plans that are stored."""
    return list(number) if isinstance(number, tuple) else number


class _Placeholder(int):
    """A size of a stored text."""

    def __new__(cls, hint: int, number: int) -> _Placeholder:
        made = super().__new__(cls, hint)
        made.number = number
        return made

    number: int

    def __str__(self) -> str:
        return f"{{{self.number}}}"


class FollowedGraph:
    """What of a graph follows sizes. Made while the trace is active; `to_hint` then leaves numbers in the graph."""

    def __init__(self, trace: Trace, graph: Graph) -> None:
        self.trace, self.graph, self.expressions = trace, graph, Expressions(trace)
        values = _values(graph)
        self.ends = {v: (v.type, tuple(map(self.number, v.type.shape))) for v in (*graph.inputs, *graph.outputs)}
        self._types = {v: v.type for v in values if has_size(v.type.shape)}
        self._constants = {v: v.constant for v in values if isinstance(v.constant, SizeConstant)}
        self._attrs: dict[Node, Any] = {node: node.attrs for node in graph.nodes if has_size(node.attrs)}
        elements = [constant.elements for constant in self._constants.values()]
        for size in sizes_in([*self._types.values(), *self._attrs.values(), *elements]):
            self.number(size)
        found = positions_among(graph, graph.inputs)
        self.axes = [(name, self.number(axis.size), axis.reader) for name, axis in found.items()]
        self._is_current = True
        self.sizes: list[int] = []
        self.found: list[int] = []  # the expressions' values for these sizes

    def number(self, value: Any) -> Number:
        """An expression as its place among all, in a tuple; a number as it is."""
        return (self.expressions.number(value),) if isinstance(value, Size) else value

    def to_hint(self) -> None:
        """Leaves numbers in the graph, those of the hint, when all expressions are numbered."""
        self._set(hint_of)
        self.bind([hint_of(self.trace.size(symbol)) for symbol in self.trace.symbols])
        self._is_current = True

    def evaluate(self, sizes: Sequence[int]) -> list[int]:
        """The expressions' values for these sizes of the symbols."""
        return self.expressions.evaluate(sizes)

    def bind(self, sizes: Sequence[int], found: list[int] | None = None) -> None:
        """Takes other sizes; inputs and outputs follow now, the rest of the graph when it is looked at."""
        self.sizes, self.found, self._is_current = list(sizes), found or self.evaluate(sizes), False
        values = self.found
        for value, (type, shape) in self.ends.items():  # in each step of a decoder: without a call for each number
            now = tuple([values[size[0]] if isinstance(size, tuple) else size for size in shape])
            if value.type.shape != now:
                value.type = TensorType(now, type.dtype, type.quant)

    def at(self, number: Number) -> int:
        """A number, or the value of the expression at this place."""
        return self.found[number[0]] if isinstance(number, tuple) else number

    def current(self) -> Graph:
        """The graph for the sizes that are bound."""
        if not self._is_current:
            self._is_current = True
            self._set(lambda size: self.expressions.value_of(size, self.found))
        return self.graph

    def shown(self, value_of: Callable[[Size], Any], look: Callable[[], T]) -> T:
        """What one sees who looks at the graph while it has other values in the place of its sizes."""
        try:
            self._is_current = True
            self._set_shapes(value_of)
            return look()
        finally:
            self._is_current = False
            self.current()

    def _set(self, value_of: Callable[[Size], int]) -> None:
        self._set_shapes(value_of)
        for value, constant in self._constants.items():
            data = struct.pack(constant.layout, *with_sizes(constant.elements, value_of))
            value.constant = Constant(memoryview(data), constant.stored)

    def _set_shapes(self, value_of: Callable[[Size], Any]) -> None:
        for value, type in self._types.items():
            value.type = with_sizes(type, value_of)
        for node, attrs in self._attrs.items():
            node.attrs = with_sizes(attrs, value_of)
        for node in self.graph.nodes:
            node.inferred = None


class ShowsFollowedGraph:
    """Of an executor: its graph follows the sizes that are bound, when it is looked at; and positions do."""

    _followed: FollowedGraph
    rows: Callable[[], Sequence[Any]]  # of the executor

    @property
    def graph(self) -> Graph:
        """The graph for the sizes that are bound."""
        return self._followed.current()

    @graph.setter
    def graph(self, graph: Graph) -> None:
        assert graph is self._followed.graph

    def positions(self) -> dict[str, Axis]:
        """The inputs that hold positions, with their axes for the sizes that are bound."""
        return {name: Axis(self._followed.at(size), reader) for name, size, reader in self._followed.axes}

    def _rows_form(self) -> dict[str, Any]:
        """The plan's rows: texts in which "{k}" stands for a size, and numbers or expressions.

        Operations and bytes are 0 where their count asks more of sizes than a sum of products says.
        """
        followed, expressions = self._followed, Expressions(self._followed.trace)

        def number(value: Any) -> Any:
            return [expressions.number(value)] if isinstance(value, Size) else value

        shapes = followed.shown(lambda size: _Placeholder(size.hint, expressions.number(size)), self.rows)
        try:
            rows = followed.shown(lambda size: size, self.rows)
        except RuntimeError:  # a question about a size, whose trace has ended
            rows = [replace(row, flops=0, bytes=0) for row in shapes]
        found = [
            [row.index, row.label, row.op, row.backend, row.kernel, text.shapes, number(row.flops), number(row.bytes),
             row.why, row.saves] for row, text in zip(rows, shapes, strict=True)
        ]  # fmt: skip
        return {"rows": found, "sizes": written(followed.trace, expressions) | {"guards": []}}

    def shown_form(self) -> dict[str, Any]:
        """What a stored plan says of its graph and of its rows: the form that `ShowsDeferredGraph` reads."""
        graph = self._followed.graph
        return {
            "name": graph.name, "ends": [ends_form(graph.inputs), ends_form(graph.outputs)], "notes": graph.notes,
            "axes": [[name, as_json(size), reader] for name, size, reader in self._followed.axes],
            "rows": self._rows_form(),
        }  # fmt: skip


def _values(graph: Graph) -> list[Value]:
    found = [*graph.inputs, *graph.outputs]
    for node in graph.nodes:
        found += [*(v for v in node.inputs if v is not None), *node.outputs]
    return list(dict.fromkeys(found))
