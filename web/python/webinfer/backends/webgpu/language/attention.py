"""Attention over a cache that grows: where a row stands is read from a buffer, so that nothing is planned anew."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Dispatch,
    Scratch,
    Target,
    check_turns,
    groups_for,
    read,
    update,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.backends.webgpu.lowerings.attention import attention_over_cache
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node

# Invocations of a workgroup, each of which takes a key: 256 and 1,024 were slower at 367 keys (H100, 2026-11-27).
_KEYS = 512
_KEYS_OF_SOFTWARE = 64  # where every barrier costs


def cached_attention(node: Node, target: Target) -> list[Dispatch]:
    """Attention of queries, keys and values that are a tensor each."""
    return joined_attention(node, target)


def joined_attention(node: Node, target: Target, side_by_side: Scratch | None = None) -> list[Dispatch]:
    """cached_attention.wgsl for one row; of several cache_rows.wgsl puts keys and values into the cache before
    attention.wgsl. Queries, keys and values may lie side by side in the rows of one tensor.
    """
    q, k, v, place, speeds, keys, values = map(node.required_input, range(7))
    a, y = node.attrs, node.output
    if values.type.dtype is not DType.FLOAT32:
        raise UnsupportedOpError([f"a cache of {values.type.dtype}; needs float32"])
    groups, capacity, width = values.type.shape
    rows = q.type.shape[0]
    variables: dict[str, Variable] = {
        "width": width, "turned": a.turned, "adjacent": int(a.adjacent), "joined": side_by_side is not None
    }  # fmt: skip
    given = [read("qkv", side_by_side)] if side_by_side else [read("q", q), read("k", k), read("v", v)]
    params = u32(rows=rows, capacity=capacity, heads=a.heads, groups=groups)
    cache: tuple[Binding, ...] = (update("keys", keys, single=True), update("values", values, single=True))
    if rows > 1:
        turned = Scratch((rows, a.heads * width))
        stored = Dispatch(
            "cache_rows", {**variables, "workgroup": WORKGROUP},
            (*given, read("place", place), read("speeds", speeds), *cache, write("turned_q", turned, single=True)),
            params, groups_for(rows * (a.heads + groups) * width, target), "keys and values before attention",
        )  # fmt: skip
        return [stored, attention_over_cache(node, turned, target)]
    most = target.limit("maxComputeInvocationsPerWorkgroup")
    workgroup = _KEYS_OF_SOFTWARE if target.software else min(_KEYS, 1 << most.bit_length() - 1)
    turns = capacity // workgroup * (width + 2 * workgroup * width // 4 // workgroup + 24)
    check_turns(turns, target, f"attention over {capacity} positions in loops")
    variables |= {**workgroup_reduction(target), "workgroup": workgroup}
    bindings = (*given, read("place", place), read("speeds", speeds), *cache, write("y", y))
    why = f"one row, {workgroup} keys at a time, {workgroup_reduction_text(target)}"
    shares = (*params, *u32(share=a.heads // groups), *f32(scale=a.scale))
    return [Dispatch("cached_attention", variables, bindings, shares, groups_for(a.heads, target, 1), why)]
