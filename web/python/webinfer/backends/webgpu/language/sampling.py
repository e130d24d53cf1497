"""The next word."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import (
    Dispatch,
    Target,
    check_turns,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.backends.webgpu.language.products import words
from webinfer.codegen.prelude import u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node

_WORKGROUP = 256  # WebGPU's limit of a workgroup
_PASSES = 3 * 32 + 8  # over the logits, besides those that look for a place


def sample(node: Node, target: Target) -> list[Dispatch]:
    """sample.wgsl: one workgroup."""
    x, options, y = node.required_input(0), node.required_input(1), node.output
    n, place_bits = x.type.size, (x.type.size - 1).bit_length()
    check_turns((_PASSES + place_bits) * (-(-n // _WORKGROUP) + 12), target, f"a choice among {n} in loops")
    variables: dict[str, Variable] = {
        "workgroup": _WORKGROUP, "place_bits": place_bits, **workgroup_reduction(target)
    }  # fmt: skip
    bindings = (words("x", x), words("options", options), write("y", y, single=True))
    why = f"bounds found bit by bit, {workgroup_reduction_text(target)}"
    return [Dispatch("sample", variables, bindings, u32(n=n), (1, 1, 1), why)]
