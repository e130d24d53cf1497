"""Aliasing, which value lies inside which: a reshape is its input, a part of a concat lies inside the result."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from webinfer.graph.ir import Graph, Node, Value
from webinfer.plan.blocks import ALIGNMENT

Aliases = dict[Value, tuple[Value, int]]  # value -> what it lies inside of, bytes from there


def find_aliases(graph: Graph, itemsize: Mapping[Value, int]) -> Aliases:
    """For each value that lies inside another one: the outermost of these, and the offset in bytes.

    `itemsize` gives the bytes that the backend spends on one element of each value that it computes; values missing
    there (constants, inputs that are converted) lie inside no other.
    """
    parents = find_parents(graph, itemsize, ALIGNMENT)
    return {value: resolve_alias(value, parents) for value in parents}


def find_parents(
    graph: Graph, itemsize: Mapping[Value, int], alignment: int, whole: int = 1, owners: Collection[Value] = ()
) -> Aliases:
    """As `find_aliases`, but one step outwards: `resolve_alias` takes all of them.

    Parts begin at multiples of `alignment` bytes and are a multiple of `whole` elements. `owners` may hold others, but
    lie in none.
    """
    parents: Aliases = {}
    for node in reversed(graph.nodes):
        if node.op.name == "reshape":
            _alias_reshape(node, parents, itemsize, owners)
        elif node.op.name == "concat":
            _alias_parts(node, parents, itemsize, alignment, whole)
    return parents


def resolve_alias(value: Value, parents: Aliases) -> tuple[Value, int]:
    """The outermost value that holds this one, and the offset there."""
    offset = 0
    while value in parents:
        value, step = parents[value]
        offset += step
    return value, offset


def _alias_reshape(node: Node, parents: Aliases, itemsize: Mapping[Value, int], owners: Collection[Value]) -> None:
    source, target = node.required_input(0), node.output
    size = itemsize.get(target)
    if size is None:
        return
    alike = itemsize.get(source) == size
    if alike and source not in parents:
        parents[source] = (target, 0)
    elif (alike or source in owners) and target not in parents and resolve_alias(source, parents)[0] is not target:
        parents[target] = (source, 0)


def _alias_parts(node: Node, parents: Aliases, itemsize: Mapping[Value, int], alignment: int, whole: int) -> None:
    """Parts move into the result where they are contiguous there and stay aligned."""
    target, size = node.output, itemsize.get(node.output)
    if size is None or math.prod(target.type.shape[: node.attrs.axis]) != 1:
        return
    offset = 0
    for part in node.inputs:
        assert part is not None
        fits = itemsize.get(part) == size and part.type.quant == target.type.quant and not part.type.size % whole
        if fits and part not in parents and offset % alignment == 0 and node.inputs.count(part) == 1:
            parents[part] = (target, offset)
        offset += part.type.size * size
