"""Dynamic-range models in real numbers: activations beside 8-bit weights stay what they are."""

from __future__ import annotations

import dataclasses

from webinfer.graph.ir import Graph, Node, Value
from webinfer.graph.queries import remove, substitute
from webinfer.ops.dynamic_range import ROUND_ROWS
from webinfer.ops.recurrent import RECURRENT

NOTE = "dynamic range: {count} products of float activations with 8-bit weights, "
IN_FLOAT = NOTE + (
    'computed in float32; load(dynamic_range="int8") rounds activations to 8 bits a row, as the format\'s runtime does'
)
ROUNDED = NOTE + (
    'activations rounded to 8 bits a row, as the format\'s runtime does; load(dynamic_range="float") leaves them'
)


def drop_rounding(graph: Graph) -> int:
    """Number of roundings of activations that were left out; the graph's notes say so."""
    nodes = [node for node in graph.nodes if node.op is ROUND_ROWS]
    replacements: dict[Value, Value] = {node.output: node.required_input(0) for node in nodes}
    substitute(graph, replacements)
    remove(graph, set(nodes))
    layers = _rounded_layers(graph)
    for layer in layers:
        layer.attrs = dataclasses.replace(layer.attrs, symmetric=None)
    if count := len(nodes) + len(layers):
        graph.notes.append(IN_FLOAT.format(count=count))
    return count


def _rounded_layers(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op is RECURRENT and node.attrs.symmetric is not None]


def note_rounding(graph: Graph) -> int:
    """0: nothing is rewritten, but the graph's notes say that activations are rounded, if they are."""
    count = sum(node.op is ROUND_ROWS for node in graph.nodes) + len(_rounded_layers(graph))
    if count:
        graph.notes.append(ROUNDED.format(count=count))
    return 0
