"""A compiled graph for the page: as an outline, with the steps of a plan and the operators of the file at its nodes."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.backends.base import PlanRow, shapes_text
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Value
from webinfer.graph.printer import attr_words
from webinfer.importers.core.outline import Outline, OutlineNode, OutlineValue
from webinfer.packing import to_inner

Step = tuple[str, str, str]  # label, operator, shapes


def outline_of(graphs: Sequence[Graph]) -> Outline:
    """The graphs, which follow each other, as one outline. Keys are numbers of values."""
    found, keys = Outline(), {value: key for key, value in values_of(graphs).items()}
    for value, number in keys.items():
        held = value.constant
        found.values[number] = OutlineValue(value.name, str(value.type), held.data.nbytes if held else 0)

    def key(value: Value | None) -> str:
        return "" if value is None else keys[value]

    for graph in graphs:
        found.inputs += map(key, graph.inputs)
        found.outputs += map(key, graph.outputs)
        for node in graph.nodes:
            words = (word.partition("=") for word in attr_words(node.attrs))
            attributes = {name: value or "yes" for name, _, value in words}
            inputs, outputs = list(map(key, node.inputs)), list(map(key, node.outputs))
            found.nodes.append(OutlineNode(node.op.name, node.label, inputs, outputs, attributes, len(found.nodes)))
    return found


def values_of(graphs: Sequence[Graph]) -> dict[str, Value]:
    """The values of the graphs by their keys in the outline: inputs, outputs, then node by node."""
    found = dict[Value, None]()
    for graph in graphs:
        ends = [*graph.inputs, *graph.outputs]
        nodes = (value for node in graph.nodes for value in (*node.inputs, *node.outputs) if value is not None)
        found |= dict.fromkeys((*ends, *nodes))
    return {str(number): value for number, value in enumerate(found)}


def nodes_of_rows(rows: Sequence[PlanRow], nodes: Sequence[Node]) -> list[int]:
    """For each step of a plan the node that it computes or ends with, -1 for none.

    A step knows its node by label, operator and shapes. Nodes that share all of them are told apart by their order.
    """
    alike, steps = dict[Step, list[int]](), dict[Step, list[int]]()
    for i, node in enumerate(nodes):
        alike.setdefault((node.label, node.op.name, shapes_text(node)), []).append(i)
    for i, row in enumerate(rows):
        steps.setdefault((row.label, row.op, row.shapes), []).append(i)
    found = [-1] * len(rows)
    for key, numbers in steps.items():
        own = alike.get(key, ())
        for place, i in enumerate(numbers if own else ()):
            found[i] = own[place * len(own) // len(numbers)]
    return found


def origins(outline: Outline, file: Outline) -> list[int]:
    """For each node of a compiled graph the operator of the file whose result it computes, -1 where none is named."""
    made = {file.values[key].name: i for i, node in enumerate(file.nodes) for key in node.outputs if key in file.values}
    found = []
    for node in outline.nodes:
        names = [outline.values[key].name for key in node.outputs]
        stems = [name.rpartition("/")[0] for name in names]
        found.append(next((made[name] for name in (*names, *stems) if name in made), -1))
    return found


def plain_bytes(data: memoryview, dtype: DType) -> tuple[str, memoryview]:
    """The elements in a type that NumPy has too, and the name of that type."""
    known = dtype.inner is dtype or dtype in (DType.FLOAT16, DType.FLOAT64)
    return (dtype.value, data) if known else (dtype.inner.value, memoryview(to_inner(data, dtype)).cast("B"))
