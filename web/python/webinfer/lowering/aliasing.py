"""Aliasing, which value lies inside which: a reshape is its input, a part of a concat lies inside the result."""

from __future__ import annotations

import math

from webinfer.graph.ir import Graph, Node, Value
from webinfer.plan.blocks import ALIGNMENT


def find_aliases(graph: Graph, itemsize: dict[Value, int]) -> dict[Value, tuple[Value, int]]:
    """For each value that lies inside another one: that value, and the offset in bytes.

    `itemsize` gives the bytes that the backend spends on one element of each value that it computes; values missing
    there (constants, inputs that are converted) lie inside no other.
    """
    parents: dict[Value, tuple[Value, int]] = {}
    for node in reversed(graph.nodes):
        if node.op.name == "reshape":
            _alias_reshape(node, parents, itemsize)
        elif node.op.name == "concat":
            _alias_parts(node, parents, itemsize)
    return {value: _resolve(value, parents) for value in parents}


def _resolve(value: Value, parents: dict[Value, tuple[Value, int]]) -> tuple[Value, int]:
    offset = 0
    while value in parents:
        value, step = parents[value]
        offset += step
    return value, offset


def _alias_reshape(node: Node, parents: dict[Value, tuple[Value, int]], itemsize: dict[Value, int]) -> None:
    source, target = node.inputs[0], node.output
    if source is None or itemsize.get(source) is None or itemsize.get(source) != itemsize.get(target):
        return
    if source not in parents:
        parents[source] = (target, 0)
    elif target not in parents and _resolve(source, parents)[0] is not target:
        parents[target] = (source, 0)


def _alias_parts(node: Node, parents: dict[Value, tuple[Value, int]], itemsize: dict[Value, int]) -> None:
    """Parts move into the result where they are contiguous there and stay aligned."""
    target, size = node.output, itemsize.get(node.output)
    if size is None or math.prod(target.type.shape[: node.attrs.axis]) != 1:
        return
    offset = 0
    for part in node.inputs:
        assert part is not None
        fits = itemsize.get(part) == size and part.type.quant == target.type.quant
        if fits and part not in parents and offset % ALIGNMENT == 0 and node.inputs.count(part) == 1:
            parents[part] = (target, offset)
        offset += part.type.size * size
