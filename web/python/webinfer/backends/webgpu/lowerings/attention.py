"""Attention: one dispatch for all heads."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import Dispatch, Target, groups_for, read, read_given, write
from webinfer.backends.webgpu.lowerings.conversion import in_words
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node
from webinfer.ops.attention import by_heads, mask_strides, strides

_WORKGROUP = 64
_SPLIT = 4  # invocations that share a query
_BLOCK = 512  # quads of keys or values in workgroup memory


def _attention(node: Node, target: Target) -> list[Dispatch]:
    """attention.wgsl."""
    a, y, mask = node.attrs, node.output, node.optional_input(3)
    q, k, v = map(node.required_input, range(3))
    b, h, n, d = by_heads(q.type.shape, a.inner[0])
    _, g, keys, e = by_heads(v.type.shape, a.inner[2])
    d4, e4, quads = -(-d // 4), -(-e // 4), not (d % 4 or e % 4)
    variables: dict[str, Variable] = {
        "workgroup": _WORKGROUP, "split": _SPLIT, "keys": min(32, _BLOCK // max(d4, e4)), "d4": d4, "e4": e4,
        "quads": quads, "masked": mask is not None, "clear_nan": a.clear_nan,
    }  # fmt: skip
    steps = {
        f"{name}_{part}": step
        for name, value, inner in zip("qkvy", (q, k, v, y), a.inner, strict=True)
        for part, step in zip(("batch", "head", "row"), strides(value.type.shape, inner), strict=True)
    }
    if mask is not None:
        parts = zip(("batch", "head", "row"), mask_strides(mask.type.shape), strict=True)
        steps |= {f"mask_{part}": step for part, step in parts}
    counts = u32(heads=b * h, per_batch=h, share=h // g, queries=n, keys=keys, d=d, e=e, **steps)
    bindings = (read("q", q), read("k", k), read("v", v), *read_given(mask=mask), write("y", y, single=not quads))
    groups = groups_for(b * h * -(-n // (_WORKGROUP // _SPLIT)), target, 1)
    why = f"{_SPLIT} invocations a query"
    return [Dispatch("attention", variables, bindings, (*counts, *f32(scale=a.scale)), groups, why)]


attention = in_words(_attention)
