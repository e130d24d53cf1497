"""Which values lie inside other ones, where no dispatch may bind one buffer for reading and for writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webinfer.graph.ir import Graph, Node, Value
from webinfer.lowering.aliasing import Aliases, find_parents, resolve_alias

QUAD = 4  # elements: a part is stored in whole quads, so its last one would reach into the next part


def bindable_aliases(
    graph: Graph, folded: set[Value], alignment: int, extra_reads: Mapping[Node, Sequence[Value]] | None = None
) -> Aliases:
    """For each value that lies inside another one: that owner and the offset there.

    `folded` values are computed at load and stay apart; `extra_reads` is what nodes read besides their inputs. No
    node reads and writes parts of one owner: WebGPU forbids a buffer to be bound both ways. So what a reshape or a
    concat takes lies in its place in the result, or in another owner: a value in two places is copied to both.

    Units:  offsets are bytes, multiples of `alignment`
    """
    computed = {v: v.type.dtype.itemsize for node in graph.nodes for v in node.outputs if v.type.size}
    refused = folded
    while True:
        sizes = {value: size for value, size in computed.items() if value not in refused}
        parents = find_parents(graph, sizes, alignment, QUAD, graph.inputs)
        conflicts = _conflicts(graph, parents, extra_reads or {})
        if not conflicts:
            return {value: resolve_alias(value, parents) for value in parents}
        refused = refused | conflicts


def _conflicts(graph: Graph, parents: Aliases, extra_reads: Mapping[Node, Sequence[Value]]) -> set[Value]:
    """Outputs inside an owner that their node reads as well, and what is moved within one owner."""
    conflicts: set[Value] = set()
    for node in graph.nodes:
        if node.op.name in ("reshape", "concat"):
            conflicts |= _misplaced(node, parents)
            continue
        owners = {resolve_alias(v, parents)[0] for v in (*node.inputs, *extra_reads.get(node, ())) if v is not None}
        conflicts |= {v for v in node.outputs if v in parents and resolve_alias(v, parents)[0] in owners}
    return conflicts


def _misplaced(node: Node, parents: Aliases) -> set[Value]:
    """Inputs of a reshape or a concat that lie inside the owner of its result, but not where the result has them."""
    owner, offset = resolve_alias(node.output, parents)
    found: set[Value] = set()
    for value in node.inputs:
        if value is None:
            continue
        own, place = resolve_alias(value, parents)
        if own is owner and place != offset and value.type.size:
            found.add(value if value in parents else node.output)
        offset += value.type.nbytes
    return found
