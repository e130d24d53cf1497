"""Constants whose stored bytes are not their tensor: narrower types, sparse storage."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Stored, Target, groups_for, read, write
from webinfer.backends.webgpu.lowerings.elementwise import CastRule
from webinfer.codegen.prelude import f32, u32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Value


def expand(value: Value, target: Target) -> Sequence[Dispatch]:
    """Dispatches that write a constant's tensor from its stored bytes."""
    assert value.constant is not None
    if value.constant.sparsity is not None:
        raise UnsupportedOpError([f"constant {value.name!r} is stored sparse"])
    params = (*u32(count=value.type.size), *f32(low=0.0, high=0.0))
    bindings = (read("x", Stored(value)), write("y", value))
    groups = groups_for(-(-value.type.size // 4), target)
    return [Dispatch("cast", {"workgroup": WORKGROUP, "rule": CastRule.PLAIN}, bindings, params, groups, "stored narrower")]
