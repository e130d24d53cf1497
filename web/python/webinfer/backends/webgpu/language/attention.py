"""Attention over a cache that grows: where a row stands is read from a buffer, so that nothing is planned anew."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Dispatch,
    Target,
    check_turns,
    groups_for,
    read,
    update,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.backends.webgpu.language.products import words
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node

_KEYS = 256  # invocations of a workgroup, each of which takes a key
_KEYS_OF_SOFTWARE = 64


def cached_attention(node: Node, target: Target) -> list[Dispatch]:
    """cached_attention.wgsl; keys and values of several rows are put into the cache by cache_rows.wgsl before."""
    q, k, v, place, speeds, keys, values = map(node.required_input, range(7))
    a, y = node.attrs, node.output
    if values.type.dtype is not DType.FLOAT32:
        raise UnsupportedOpError([f"a cache of {values.type.dtype}; needs float32"])
    groups, capacity, width = values.type.shape
    rows, workgroup = q.type.shape[0], _KEYS_OF_SOFTWARE if target.software else _KEYS
    turns = capacity // workgroup * (width + 2 * workgroup * width // 4 // workgroup + 24)
    check_turns(turns, target, f"attention over {capacity} positions in loops")
    heads: dict[str, Variable] = {"width": width, "turned": a.turned, "adjacent": int(a.adjacent)}
    variables: dict[str, Variable] = {
        **heads, **workgroup_reduction(target), "workgroup": workgroup, "alone": rows == 1
    }  # fmt: skip
    sizes = u32(rows=rows, capacity=capacity)
    place_and_speeds = (read("place", place), read("speeds", speeds))
    params = (*sizes, *u32(heads=a.heads, share=a.heads // groups), *f32(scale=a.scale))
    why = f"{workgroup} keys at a time, {workgroup_reduction_text(target)}"
    spread = groups_for(rows * a.heads, target, 1)
    if rows == 1:
        cache: tuple[Binding, ...] = (update("keys", keys, single=True), update("values", values))
        bindings = (read("q", q), read("k", k), read("v", v), *place_and_speeds, *cache, write("y", y))
        return [Dispatch("cached_attention", variables, bindings, params, spread, f"one row, {why}")]
    cache = (update("keys", keys, single=True), update("values", values, single=True))
    stored = Dispatch(
        "cache_rows", {**heads, "workgroup": WORKGROUP},
        (read("k", k), read("v", v), *place_and_speeds, *cache), (*sizes, *u32(groups=groups)),
        groups_for(k.type.size, target), "keys and values before attention",
    )  # fmt: skip
    bindings = (read("q", q), *place_and_speeds, words("keys", keys), read("values", values), write("y", y))
    return [stored, Dispatch("cached_attention", variables, bindings, params, spread, why)]
