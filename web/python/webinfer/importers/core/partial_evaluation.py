"""Partial evaluation for models whose shapes or control flow depend on data.

`KnownValues` holds what was observed so far. Importing raises `DataDependentValue` when it needs another value; the
session then runs the graph up to that value and imports the model again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from webinfer.errors import ShapeError
from webinfer.graph.ir import Graph, Value
from webinfer.lazy_dataclass import dataclass

Key = tuple[
    int, int
]  # of a value: its node's place in the graph and among the results; (-1, i): input; (i, -1): a loop


@dataclass(frozen=True, slots=True)
class KnownValues:
    """The values that decide, as far as they were read, and what sizes of inputs may be bound.

    Reading is repeated in the same order, so a key means the same value in every reading that knows what this one knew.
    """

    known: Mapping[Key, Any] = field(default_factory=dict)  # bytes of a value; types of what a loop gives
    only_open: bool = False  # whether sizes that the file fixes keep what it says
    others: bool = False  # whether sizes may be given for names that are not inputs
    kept: dict[str, Any] = field(default_factory=dict)  # what a reader keeps from one reading of a file to the next


@dataclass(frozen=True, slots=True)
class DynamicLoop:
    """A loop whose trip count depends on data. `DataDependentValue.graph` gives limit, first state and other inputs.

    `graph` is one turn. It takes the number of turns so far, the state and what else it reads; it gives whether the
    loop goes on, the next state and what the turn adds to lists.
    """

    graph: Graph
    state: int  # how many values
    names: tuple[str, ...]  # that the last state and the lists have as inputs of the graph that is read next


class DataDependentValue(Exception):
    """The graph as far as it was read. Its outputs decide what follows: one value, or what `turns` begin with.

    `resume` goes on from there with the values that are known by then, where the format's reader can; it may be called
    several times. `live` are values that what follows may read, as far as the reader can tell.
    """

    def __init__(self, graph: Graph, key: Key, turns: DynamicLoop | None) -> None:
        super().__init__(f"{', '.join(v.name for v in graph.outputs)} of {graph.name} are known at run time only")
        self.graph, self.key, self.turns = graph, key, turns
        self.resume: Callable[[Mapping[Key, Any]], Graph] | None = None
        self.live: Sequence[Value] = ()
        self.outputs: Sequence[Value] = ()  # what the file says of the outputs; a name may stand for a size


class NeedsUnrolling(Exception):
    """One plan cannot serve every turn of a loop: its state grows, it holds lists, or data decides inside of a turn."""


class OpenSizes(ShapeError):
    """Sizes of inputs are open. `inputs` and `outputs` are what the file says of them: a name stands for a size."""

    def __init__(self, message: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        super().__init__(message)
        self.inputs, self.outputs = inputs, outputs
