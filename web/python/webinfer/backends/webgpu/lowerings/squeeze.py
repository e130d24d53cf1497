"""The dispatch of a squeeze that backends.webgpu.fused_groups found."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Dispatch,
    Scratch,
    Source,
    Target,
    groups_for,
    read,
    read_given,
    workgroup_reduction,
    write,
)
from webinfer.backends.webgpu.lowerings.epilogue import float_weights
from webinfer.backends.webgpu.lowerings.reduce import MANY_GROUPS, SUM
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node, Value
from webinfer.ops.activation import Activation
from webinfer.ops.registry import LARGEST

GROUP = 256  # invocations that work on one image: 128 took 1.04 times as long, 512 as long (H100, 2026-11-28)
# Quads of pixels that each of them reads: beyond, many workgroups add up parts first; 16 took 1.03 times as long (H100,
# 2026-11-28).
TURNS = 32
PART = 64  # pixels of such a part: 32 and 128 took as long (H100, 2026-11-28)


def squeeze(images: Sequence[Value], mean: Node, products: Sequence[Node], target: Target) -> list[Dispatch]:
    """squeeze.wgsl: means, one or two products, their activations; behind reduce_part.wgsl where images are large.

    The means are those of the image, or of the sum of both.
    """
    x, y = mean.required_input(0), products[-1].output
    n, h, w, c = x.type.shape
    pixels = depth = h * w
    before: list[Dispatch] = []
    read_from: Sequence[Source] = images
    if pixels * (c // 4) > TURNS * GROUP:
        part = max(PART, -(-n * pixels * (c // 4) // MANY_GROUPS))
        depth = -(-pixels // part)
        read_from = [Scratch((n, depth, c))]
        before.append(_sums(images, read_from[0], (n, pixels, c), part, target))
    first, deep = products[0], len(products) == 2
    low, high = (first.attrs.activation.bounds or (-math.inf, math.inf)) if deep else (-math.inf, math.inf)
    clamped = math.isfinite(low) or math.isfinite(high)
    co, bias, hidden = y.type.shape[3], first.optional_input(2), first.output.type.shape[3]
    slices = max(1, min(GROUP // hidden, c // 4))
    variables: dict[str, Variable] = {
        "workgroup": GROUP, "channels": c, "hidden": hidden, "deep": deep, "slices": slices, "clamped": clamped,
        "has_b": bias is not None, "has_c": deep and products[1].optional_input(2) is not None,
        "activation": Activation(products[-1].attrs.activation), "added": len(read_from) == 2,
    }  # fmt: skip
    read_by = [*_read_all(read_from), read("w", float_weights(first.required_input(1), target)), *read_given(b=bias)]
    if deep:
        read_by += [read("v", float_weights(products[1].required_input(1), target))]
        read_by += read_given(c=products[1].optional_input(2))
    bounds = f32(low=max(low, -LARGEST), high=min(high, LARGEST)) if clamped else ()
    numbers = (*u32(images=n, depth=depth, co=co), *f32(total=pixels), *bounds)
    why = f"mean of {pixels} pixels and {len(products)} products"
    bindings = (*read_by, write("y", y, single=True))
    return [*before, Dispatch("squeeze", variables, bindings, numbers, groups_for(n, target, 1), why)]


def _read_all(images: Sequence[Source]) -> list[Binding]:
    return [read(name, image) for name, image in zip("xz", images, strict=False)]


def _sums(images: Sequence[Source], y: Source, sizes: tuple[int, int, int], part: int, target: Target) -> Dispatch:
    """reduce_part.wgsl: the sums of so many pixels each; `sizes` are images, pixels and channels."""
    n, pixels, c = sizes
    parts = -(-pixels // part)
    params = u32(count=n * parts * (c // 4), depth=pixels, inner=c, part=part, parts=parts, reduced=pixels)
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "op": SUM, "inner": True, "quads": True, "added": len(images) == 2,
        **workgroup_reduction(target),
    }  # fmt: skip
    groups = groups_for(n * parts * (c // 4), target, 1)
    bindings = (*_read_all(images), write("y", y, single=True))
    return Dispatch("reduce_part", variables, bindings, params, groups, "sums of parts of an image")
