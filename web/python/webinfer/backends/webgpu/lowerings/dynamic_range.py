"""Activations rounded to what eight bits hold."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Dispatch,
    Target,
    groups_for,
    read,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import in_words
from webinfer.codegen.prelude import u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node
from webinfer.ops.dynamic_range import rows_of


def _round_rows(node: Node, target: Target) -> list[Dispatch]:
    """round_rows.wgsl: a workgroup a row."""
    x, y, a = node.required_input(0), node.output, node.attrs
    rows, depth = rows_of(x.type, a)
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "symmetric": a.symmetric, **workgroup_reduction(target)}
    bindings = (read("x", x), write("y", y, single=True))
    why = f"a workgroup a row, {workgroup_reduction_text(target)}"
    return [Dispatch("round_rows", variables, bindings, u32(rows=rows, depth=depth), groups_for(rows, target, 1), why)]


round_rows = in_words(_round_rows)
