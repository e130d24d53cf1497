"""Softmax and its logarithm along one axis."""

from __future__ import annotations

from collections.abc import Sequence

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
from webinfer.backends.webgpu.lowerings.conversion import (
    in_words,
    on_reals,
)
from webinfer.backends.webgpu.lowerings.geometry import split_at
from webinfer.backends.webgpu.lowerings.reduce import long_row
from webinfer.backends.webgpu.lowerings.short import short_softmax
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node
from webinfer.lowering.short_softmax import short_rows


def _softmax(node: Node, target: Target) -> list[Dispatch]:
    """softmax_workgroup.wgsl for long lines, else softmax_lines.wgsl: an invocation a line."""
    x, y, a = node.required_input(0), node.output, node.attrs
    outer, depth, inner = split_at(x.type.shape, a.axis)
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "logarithm": node.op.name == "log_softmax"}
    params = (*u32(lines=outer * inner, depth=depth, inner=inner), *f32(beta=a.beta))
    bindings = (read("x", x), write("y", y, single=True))
    if depth >= long_row(outer * inner, target):
        groups, why = groups_for(outer * inner, target, 1), f"a workgroup a line, {workgroup_reduction_text(target)}"
        return [Dispatch("softmax_workgroup", variables | workgroup_reduction(target), bindings, params, groups, why)]
    groups = groups_for(outer * inner, target)
    return [Dispatch("softmax_lines", variables, bindings, params, groups, "an invocation a line")]


def softmax(node: Node, target: Target) -> Sequence[Dispatch]:
    """Softmax of real numbers, or of what stored integers stand for; of 16-bit integers as LiteRT, from tables."""
    return (short_softmax if node.op.name == "softmax" and short_rows(node) else _real)(node, target)


_real = on_reals(in_words(_softmax))
