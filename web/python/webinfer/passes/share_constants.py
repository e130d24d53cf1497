"""Constants that are the same bytes of the file with the same type become one value."""

from __future__ import annotations

from typing import Any

from webinfer.graph.ir import Graph, Value
from webinfer.graph.queries import substitute


def share_constants(graph: Graph) -> int:
    """Number of constants that were replaced by an equal one."""
    first: dict[Any, Value] = {}
    replacements: dict[Value, Value] = {}
    for node in graph.nodes:
        for value in node.inputs:
            if value is None or value.constant is None or value in replacements:
                continue
            constant = value.constant
            # Tensors that share a buffer share the view object; comparing bytes would read every weight.
            key = (id(constant.data), constant.stored, id(constant.sparsity), value.type)
            same = first.setdefault(key, value)
            if same is not value:
                replacements[value] = same
    count = len(replacements)
    substitute(graph, replacements)
    return count
