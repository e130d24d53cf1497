"""The dispatches of means with variances that backends.webgpu.fused_groups found."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Dispatch,
    Scratch,
    Source,
    Target,
    groups_for,
    read,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.backends.webgpu.lowerings.reduce import ONE_LOOP, PART, split_depth
from webinfer.codegen.prelude import u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node, Value

LONG = 64  # elements of a line from which a workgroup walks it


def columns_of(x: Value, axes: Sequence[int]) -> tuple[int, int, int] | None:
    """(outer, depth, inner) if the axes are neighbours, long, and not the last ones of x."""
    axes, shape = sorted(axes), x.type.shape
    if not axes or axes != list(range(axes[0], axes[-1] + 1)):
        return None
    outer, inner = math.prod(shape[: axes[0]]), math.prod(shape[axes[-1] + 1 :])
    depth = math.prod(shape[a] for a in axes)
    few = outer * inner * 4 <= depth * ONE_LOOP
    return (outer, depth, inner) if inner > 1 and LONG <= depth <= PART * ONE_LOOP and few else None


def moments(x: Value, mean: Value, node: Node, target: Target) -> list[Dispatch]:
    """moments.wgsl: once, or of parts of the lines and then of these, where lines are long."""
    columns = columns_of(x, node.attrs.axes)
    assert columns is not None
    outer, depth, inner = columns
    across, why = -(-inner // 4), workgroup_reduction_text(target)
    part = split_depth(outer * across, depth)
    parts = -(-depth // part)
    made: list[Dispatch] = []
    sources: list[Source] = [x]
    unit, length, total = 1, depth, depth
    for last in (False, True) if parts > 1 else (True,):
        count = 1 if last else parts
        ends: list[Source] = [mean, node.output] if last else [Scratch((outer, parts, inner)) for _ in range(2)]
        params = u32(
            count=outer * count * across, depth=length, inner=inner, part=length if last else part, parts=count,
            unit=unit, total=total,
        )  # fmt: skip
        variables: dict[str, Variable] = {
            "workgroup": WORKGROUP, "quads": inner % 4 == 0, "joins": len(sources) > 1, "last": last,
            **workgroup_reduction(target),
        }  # fmt: skip
        bindings = [read(name, source) for name, source in zip("xs", sources, strict=False)]
        bindings += [write(name, end, single=True) for name, end in zip(("mean", "spread"), ends, strict=True)]
        groups = groups_for(outer * count * across, target, 1)
        text = f"mean and variance, {'of parts' if not last else 'joined' if sources[1:] else 'at once'}, {why}"
        made.append(Dispatch("moments", variables, tuple(bindings), params, groups, text))
        sources, unit, length = ends, part, parts
    return made
