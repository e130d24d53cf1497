"""Values that need no bytes of their own: a reshape is its input, a part of a concat lies inside the result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from webinfer.graph.ir import Graph, Node, Value

Placed = dict[Value, tuple[Value, int]]


def place(
    graph: Graph, folded: set[Value], alignment: int, hidden: Mapping[Node, Sequence[Value]] | None = None
) -> Placed:
    """For each value inside another one: the owner and the offset in bytes. `hidden`: what nodes read besides inputs.

    Offsets are multiples of `alignment`. No node reads and writes parts of one owner: WebGPU forbids a
    buffer to be bound both ways.
    """
    refused: set[Value] = set()
    while True:
        parents = _join(graph, folded, alignment, refused)
        clashes = _clashes(graph, parents, hidden or {})
        if not clashes:
            return {value: _resolve(value, parents) for value in parents}
        refused |= clashes


def _join(graph: Graph, folded: set[Value], alignment: int, refused: set[Value]) -> Placed:
    computed = {v for node in graph.nodes for v in node.outputs if v.type.size} - folded - refused
    parents: Placed = {}
    for node in reversed(graph.nodes):
        if node.op.name == "reshape":
            _join_reshape(node, parents, computed, graph)
        elif node.op.name == "concat":
            _join_concat(node, parents, computed, alignment)
    return parents


def _resolve(value: Value, parents: Placed) -> tuple[Value, int]:
    offset = 0
    while value in parents:
        value, step = parents[value]
        offset += step
    return value, offset


def _join_reshape(node: Node, parents: Placed, computed: set[Value], graph: Graph) -> None:
    source, target = node.inputs[0], node.output
    if source is None or target not in computed:
        return
    if source in computed and source not in parents:
        parents[source] = (target, 0)
    elif (
        target not in parents
        and (source in computed or source in graph.inputs)
        and _resolve(source, parents)[0] is not target
    ):
        parents[target] = (source, 0)


def _join_concat(node: Node, parents: Placed, computed: set[Value], alignment: int) -> None:
    """Parts move into the result where they are contiguous there and stay aligned."""
    target = node.output
    if target not in computed or math.prod(target.type.shape[: node.attrs.axis]) != 1:
        return
    offset = 0
    for part in node.inputs:
        assert part is not None
        # A part is stored in whole quads: its last one may reach into the next part unless it is aligned.
        fits = part in computed and part.type.quant == target.type.quant and part.type.size % 4 == 0
        if fits and part not in parents and offset % alignment == 0 and node.inputs.count(part) == 1:
            parents[part] = (target, offset)
        offset += part.type.nbytes


def _clashes(graph: Graph, parents: Placed, hidden: Mapping[Node, Sequence[Value]]) -> set[Value]:
    """Placed outputs of nodes that also read from the same owner (the joining nodes themselves aside)."""
    clashes: set[Value] = set()
    for node in graph.nodes:
        if node.op.name in ("reshape", "concat"):
            continue
        owners = {_resolve(v, parents)[0] for v in (*node.inputs, *hidden.get(node, ())) if v is not None}
        clashes |= {v for v in node.outputs if v in parents and _resolve(v, parents)[0] in owners}
    return clashes
