"""Nodes whose results nobody wants are removed."""

from __future__ import annotations

from webinfer.graph.ir import Graph, Node, Value


def eliminate_dead(graph: Graph) -> int:
    """Number of nodes that were removed. The graph's inputs stay, wanted or not."""
    wanted: set[Value] = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(value in wanted for value in node.outputs):
            wanted.update(value for value in node.inputs if value is not None)
            kept.append(node)
    removed = len(graph.nodes) - len(kept)
    graph.nodes = kept[::-1]
    return removed
