"""Which nodes serve only one side of a choice by a condition: a run may leave them out where it takes the other one.

Importers write a small branch as both of its sides and a `where` with one condition for all elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops.elementwise import WHERE

Side = tuple[Value, bool]  # the condition, and the truth for which the nodes must run
Sides = tuple[Side, ...]  # from the outermost branch inwards


def find_sides(graph: Graph) -> dict[Node, Sides]:
    """For each node that only sides of branches need, these sides; their conditions are computed before the node.

    Nodes that change what lives from run to run belong to none.
    """
    if not any(map(_chooses, graph.nodes)):
        return {}
    made = {value: place for place, node in enumerate(graph.nodes) for value in node.outputs}
    needed: dict[Value, Sides] = dict.fromkeys(graph.outputs, ())
    found, resident = dict[Node, Sides](), frozenset(graph.resident)
    for place in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[place]
        sides = _common([needed[value] for value in node.outputs if value in needed])
        late = (k for k, (condition, _) in enumerate(sides) if made.get(condition, -1) > place)
        sides = sides[: next(late, len(sides))]
        if sides and not resident.isdisjoint((*node.inputs, *node.outputs)):
            sides = ()
        if sides:
            found[node] = sides
        for i, value in enumerate(node.inputs):
            if value is not None:
                own = (*sides, (node.required_input(0), i == 1)) if i and _chooses(node) else sides
                needed[value] = _common([own, needed.get(value, own)])
    return found


def _chooses(node: Node) -> bool:
    return node.op is WHERE and node.required_input(0).type.size == 1


def _common(paths: Sequence[Sides]) -> Sides:
    """The sides that all of these begin with."""
    if not paths:
        return ()
    first = min(paths, key=len)
    ends = (k for k, side in enumerate(first) if any(path[k] != side for path in paths))
    return first[: next(ends, len(first))]
