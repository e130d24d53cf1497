"""Running sums and the largest elements along one axis."""

from __future__ import annotations

import math

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Dispatch,
    Scratch,
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

# Elements of a row that is not cut into parts, and of a part of one that is: whole, 1,100 to 2,000 took 1.3 to 7 times
# as long; parts of 512 1.3 times (H100, 2026-11-28).
WHOLE, PART = 1024, 256
# Times as many elements as are wanted has a part at least: 2 and 8 took 1.2 times as long (H100, 2026-11-28).
ENOUGH = 4


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
    """top_k.wgsl: an invocation an element, which counts those before it in the order.

    A long row is cut into parts, of which the best go on: every element is compared with those of its part only.
    """
    x: Value = node.required_input(0)
    *outer, depth = x.type.shape
    rows, k = math.prod(outer), node.attrs.k
    source, carried, stages = read("x", x), tuple[Binding, ...](), list[Dispatch]()
    while True:
        parts = 1 if depth <= max(WHOLE, ENOUGH * k) else -(-depth // max(PART, ENOUGH * k))
        check_turns(-(-depth // parts), target, "the largest")
        shortest, longer = divmod(depth, parts)
        best = node.outputs if parts == 1 else _scratch(node, (rows * parts, k))
        params = u32(count=rows * depth, depth=depth, k=k, parts=parts, shortest=shortest, longer=longer)
        bindings = (source, *carried, write("y", best[0], single=True), write("positions", best[1], single=True))
        variables: dict[str, Variable] = {
            "workgroup": WORKGROUP, "carried": bool(carried), "real": x.type.dtype.is_float,
        }  # fmt: skip
        stages.append(Dispatch("top_k", variables, bindings, params, groups_for(rows * depth, target)))
        if parts == 1:
            return stages
        source, carried, depth = read("x", best[0]), (read("places", best[1]),), parts * k


def _scratch(node: Node, shape: tuple[int, int]) -> tuple[Scratch, ...]:
    return tuple(Scratch(shape, value.type.dtype) for value in node.outputs)


top_k = one_word(in_words(_top_k))
