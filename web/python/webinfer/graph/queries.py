"""Questions about a graph: who reads a value, who writes it, what number a constant is; and replacing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

from webinfer.graph.ir import Graph, Node, Op, Value

MAX_LOOK = 1 << 16  # elements


def use_counts(graph: Graph) -> Counter[Value]:
    """How often each value is read; being an output of the graph counts as one more."""
    counts = Counter(value for node in graph.nodes for value in node.inputs if value is not None)
    counts.update(graph.outputs)
    return counts


def single_producers(graph: Graph) -> dict[Value, Node]:
    """The writer of each value that exactly one reader wants and that is not an output of the graph.

    Such a node may be merged into its reader.
    """
    counts, outputs = use_counts(graph), set(graph.outputs)
    return {
        node.outputs[0]: node
        for node in graph.nodes
        if len(node.outputs) == 1 and counts[node.outputs[0]] == 1 and node.outputs[0] not in outputs
    }


def producer_of(value: Value | None, writers: Mapping[Value, Node], *ops: Op) -> Node | None:
    """The node that writes the value, if it is of one of these operators."""
    node = writers.get(value) if value is not None else None
    return node if node is not None and node.op in ops else None


def scalar_constant(value: Value | None) -> float | None:
    """The element of a dense float constant that has one."""
    if value is None or value.constant is None or value.type.size != 1 or not value.type.dtype.is_float:
        return None
    return float(value.numbers()[0]) if value.constant.sparsity is None else None


def is_all(value: Value, number: float) -> bool:
    """Whether the value is a dense float constant, not too large to look at, whose elements are all this number."""
    if value.constant is None or value.constant.sparsity is not None or not value.type.dtype.is_float:
        return False
    if value.type.size > MAX_LOOK:
        return False
    return all(element == number for element in value.numbers())


def resolve(value: Value, replacements: dict[Value, Value]) -> Value:
    """What the value is replaced by in the end; the chain is shortened for the next call."""
    path = []
    while value in replacements:
        path.append(value)
        value = replacements[value]
    for passed in path:
        replacements[passed] = value
    return value


def substitute(graph: Graph, replacements: dict[Value, Value]) -> None:
    """Makes every reader of a key read its value instead; chains of replacements are followed."""
    if not replacements:
        return

    for node in graph.nodes:
        node.inputs = [None if value is None else resolve(value, replacements) for value in node.inputs]
    graph.outputs = [resolve(value, replacements) for value in graph.outputs]


def remove(graph: Graph, nodes: Container[Node]) -> None:
    """Takes nodes out of the graph; their results must have no reader left."""
    graph.nodes = [node for node in graph.nodes if node not in nodes]
