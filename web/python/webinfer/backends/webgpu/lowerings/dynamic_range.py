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
from webinfer.backends.webgpu.lowerings.reduce import ONE_LOOP, reduce
from webinfer.codegen.prelude import u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node, Value, apply
from webinfer.ops.dynamic_range import RoundRowsAttrs, rows_of
from webinfer.ops.reduce import REDUCE_MAX, REDUCE_MIN, ReduceAttrs


def _round_rows(node: Node, target: Target) -> list[Dispatch]:
    """round_rows.wgsl: a workgroup a row; round_long_rows.wgsl for rows that keep one too long at work."""
    x, y, a = node.required_input(0), node.output, node.attrs
    rows, depth = rows_of(x.type, a)
    if depth > ONE_LOOP:
        return _long_rows(x, y, a, target)
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "symmetric": a.symmetric, **workgroup_reduction(target)}
    bindings = (read("x", x), write("y", y, single=True))
    why = f"a workgroup a row, {workgroup_reduction_text(target)}"
    return [Dispatch("round_rows", variables, bindings, u32(rows=rows, depth=depth), groups_for(rows, target, 1), why)]


def _long_rows(x: Value, y: Value, a: RoundRowsAttrs, target: Target) -> list[Dispatch]:
    axes = ReduceAttrs(tuple(range(a.axes, x.type.rank)), False)
    nodes = [apply(op, [x], axes) for op in (REDUCE_MIN, REDUCE_MAX)]
    (low, high), count = (node.output for node in nodes), x.type.size
    params = u32(count=count, depth=rows_of(x.type, a)[1])
    bindings = (read("x", x), read("low", low), read("high", high), write("y", y))
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "symmetric": a.symmetric}
    groups = groups_for(-(-count // 4), target)
    last = Dispatch("round_long_rows", variables, bindings, params, groups, "extremes of long rows first")
    return [*(dispatch for node in nodes for dispatch in reduce(node, target)), last]


round_rows = in_words(_round_rows)
