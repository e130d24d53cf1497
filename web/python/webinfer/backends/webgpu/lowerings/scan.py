"""Running sums and the largest elements along one axis."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Dispatch,
    Target,
    check_turns,
    groups_for,
    read,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import (
    in_words,
    one_word,
)
from webinfer.backends.webgpu.lowerings.geometry import split_at
from webinfer.codegen.prelude import u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node, Value


def _cumulative_sum(node: Node, target: Target) -> list[Dispatch]:
    """cumulative_sum.wgsl: an invocation a line."""
    x, y, a = node.required_input(0), node.output, node.attrs
    outer, depth, inner = split_at(x.type.shape, a.axis)
    check_turns(depth, target, "running sums")
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "exclusive": a.exclusive, "backwards": a.reversed}
    params = u32(lines=outer * inner, depth=depth, inner=inner)
    bindings = (read("x", x), write("y", y, single=True))
    return [Dispatch("cumulative_sum", variables, bindings, params, groups_for(outer * inner, target))]


cumulative_sum = one_word(in_words(_cumulative_sum))


def _top_k(node: Node, target: Target) -> list[Dispatch]:
    """top_k.wgsl: an invocation an element, which counts those before it in the order."""
    x: Value = node.required_input(0)
    values, positions = node.outputs
    check_turns(x.type.shape[-1], target, "the largest")
    params = u32(count=x.type.size, depth=x.type.shape[-1], k=node.attrs.k)
    bindings = (read("x", x), write("y", values, single=True), write("positions", positions, single=True))
    return [Dispatch("top_k", {"workgroup": WORKGROUP}, bindings, params, groups_for(x.type.size, target))]


top_k = one_word(in_words(_top_k))
