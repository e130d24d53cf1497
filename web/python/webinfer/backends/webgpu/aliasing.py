"""Which values lie inside other ones and need no bytes of their own.

The result of a reshape has the bytes of its input; the parts of a concat lie inside its result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from webinfer.graph.ir import Graph, Node, Value

Aliases = dict[Value, tuple[Value, int]]  # value -> its owner, bytes from the owner's start


def find_aliases(
    graph: Graph, folded: set[Value], alignment: int, extra_reads: Mapping[Node, Sequence[Value]] | None = None
) -> Aliases:
    """For each value that lies inside another one: that owner and the offset there.

    `folded` values are computed at load and stay apart; `extra_reads` is what nodes read besides their inputs. No
    node reads and writes parts of one owner: WebGPU forbids a buffer to be bound both ways. So what a reshape or a
    concat takes lies in its place in the result, or in another owner: a value in two places is copied to both.

    Units:  offsets are bytes, multiples of `alignment`
    """
    refused: set[Value] = set()
    while True:
        parents = _alias(graph, folded, alignment, refused)
        conflicts = _conflicts(graph, parents, extra_reads or {})
        if not conflicts:
            return {value: _resolve(value, parents) for value in parents}
        refused |= conflicts


def _alias(graph: Graph, folded: set[Value], alignment: int, refused: set[Value]) -> Aliases:
    computed = {v for node in graph.nodes for v in node.outputs if v.type.size} - folded - refused
    parents: Aliases = {}
    for node in reversed(graph.nodes):
        if node.op.name == "reshape":
            _alias_reshape(node, parents, computed, graph)
        elif node.op.name == "concat":
            _alias_concat(node, parents, computed, alignment)
    return parents


def _resolve(value: Value, parents: Aliases) -> tuple[Value, int]:
    offset = 0
    while value in parents:
        value, step = parents[value]
        offset += step
    return value, offset


def _alias_reshape(node: Node, parents: Aliases, computed: set[Value], graph: Graph) -> None:
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


def _alias_concat(node: Node, parents: Aliases, computed: set[Value], alignment: int) -> None:
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


def _conflicts(graph: Graph, parents: Aliases, extra_reads: Mapping[Node, Sequence[Value]]) -> set[Value]:
    """Outputs inside an owner that their node reads as well, and what is moved within one owner."""
    conflicts: set[Value] = set()
    for node in graph.nodes:
        if node.op.name in ("reshape", "concat"):
            conflicts |= _misplaced(node, parents)
            continue
        owners = {_resolve(v, parents)[0] for v in (*node.inputs, *extra_reads.get(node, ())) if v is not None}
        conflicts |= {v for v in node.outputs if v in parents and _resolve(v, parents)[0] in owners}
    return conflicts


def _misplaced(node: Node, parents: Aliases) -> set[Value]:
    """Inputs of a reshape or a concat that lie inside the owner of its result, but not where the result has them."""
    owner, offset = _resolve(node.output, parents)
    found: set[Value] = set()
    for value in node.inputs:
        if value is None:
            continue
        own, place = _resolve(value, parents)
        if own is owner and place != offset and value.type.size:
            found.add(value if value in parents else node.output)
        offset += value.type.nbytes
    return found
