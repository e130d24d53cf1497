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

LONG = 64  # elements of a line from which a workgroup walks it: a guess, no graph of 277 has lines of 32 to 256


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
    ends = (mean, node.output)
    if _part(columns) == columns[1]:
        return [_moments((x,), ends, columns, columns[1], target)]
    first, part, parts = parts_of_moments(x, columns, target)
    outer, depth, inner = columns
    return [first, _moments(parts, ends, (outer, -(-depth // part), inner), 0, target, unit=part, total=depth)]


def parts_of_moments(
    x: Value, columns: tuple[int, int, int], target: Target
) -> tuple[Dispatch, int, tuple[Scratch, Scratch]]:
    """The moments of parts of lines, how many elements a part has, and means [outer, parts, inner] and sums of squared
    deviations.
    """
    outer, depth, inner = columns
    part = _part(columns)
    means, squares = (Scratch((outer, -(-depth // part), inner)) for _ in range(2))
    return _moments((x,), (means, squares), columns, part, target), part, (means, squares)


def _part(columns: tuple[int, int, int]) -> int:
    outer, depth, inner = columns
    return split_depth(outer * -(-inner // 4), depth)


def _moments(
    sources: Sequence[Source],
    ends: Sequence[Source],
    columns: tuple[int, int, int],
    part: int,
    target: Target,
    unit: int = 1,
    total: int = 0,
) -> Dispatch:
    """A walk along lines, or along their parts, which stand for `unit` of `total` elements each.

    Ends that are values get the moments of whole lines.
    """
    outer, depth, inner = columns
    across, part = -(-inner // 4), part or depth
    parts, last, joins = -(-depth // part), isinstance(ends[0], Value), len(sources) > 1
    count = outer * parts * across
    params = u32(count=count, depth=depth, inner=inner, part=part, parts=parts, unit=unit, total=total or depth)
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "quads": inner % 4 == 0, "joins": joins, "last": last, **workgroup_reduction(target),
    }  # fmt: skip
    bindings = [read(name, source) for name, source in zip("xs", sources, strict=False)]
    bindings += [write(name, end, single=True) for name, end in zip(("mean", "spread"), ends, strict=True)]
    text = f"mean and variance, {'of parts' if not last else 'joined' if joins else 'at once'}"
    why = f"{text}, {workgroup_reduction_text(target)}"
    return Dispatch("moments", variables, tuple(bindings), params, groups_for(count, target, 1), why)
