"""Caches of a graph: an input to which new rows are appended, with a result that is given out and fed back.

Both may lie in one place, with room for more rows. Then only the new rows are written, as long as what reads the result
can skip the room between one head and the next.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from typing import Any, NamedTuple

from webinfer.dtypes import DType
from webinfer.graph.dims import Size
from webinfer.graph.ir import Graph, Node, Value
from webinfer.graph.trace import Trace
from webinfer.ops.attention import ATTENTION
from webinfer.ops.movement import CONCAT


class Appended(NamedTuple):
    """An input, the concatenation that appends rows to it along `axis`, and the shape of the place of both."""

    past: Value
    result: Value
    concat: Node
    readers: tuple[Node, ...]
    axis: int
    shape: tuple[Any, ...]

    @property
    def outer(self) -> Any:
        """How many runs of rows there are: one a head."""
        return math.prod(self.shape[: self.axis])

    @property
    def row(self) -> Any:
        """Elements of a row."""
        return math.prod(self.shape[self.axis + 1 :])


def find_appended(graph: Graph, trace: Trace, types: Container[DType] = (DType.FLOAT32,)) -> list[Appended]:
    """The caches among the inputs of a graph that was read with the trace's symbols, of these types."""
    consumers, found = graph.consumers(), list[Appended]()
    for node in graph.nodes:
        if node.op is not CONCAT or len(node.inputs) != 2:
            continue
        past, result, axis = node.required_input(0), node.output, node.attrs.axis
        readers = consumers.get(result, [])
        if (
            past in graph.inputs
            and past.type.dtype in types
            and consumers[past] == [node]
            and past not in graph.outputs
            and graph.outputs.count(result) == 1
            and readers
            and isinstance(result.type.shape[axis], Size)
            and all(_reads_rows(reader, result, axis) for reader in readers)
        ):
            shape: list[Any] = list(result.type.shape)
            shape[axis] = shape[axis] + trace.spare(shape[axis])
            found.append(Appended(past, result, node, tuple(readers), axis, tuple(shape)))
    return found


def _reads_rows(node: Node, value: Value, axis: int) -> bool:
    """Whether a node reads the value as keys or values only, whose rows lie along the axis."""
    places = [i for i, one in enumerate(node.inputs) if one is value]
    return node.op is ATTENTION and all(i in (1, 2) and axis == (1 if node.attrs.inner[i] else 2) for i in places)


def are_lowered(found: Iterable[Appended], lowered: Iterable[Node]) -> bool:
    """Whether all nodes of these caches were lowered by code that skips the room."""
    return {node for one in found for node in (one.concat, *one.readers)} <= {*lowered}
