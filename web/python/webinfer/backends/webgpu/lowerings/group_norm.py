"""The dispatches of group norms of images, which backends.webgpu.fused_groups found."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Dispatch,
    Scratch,
    Target,
    groups_for,
    read,
    read_given,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.backends.webgpu.lowerings.moments import parts_of_moments
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Value
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.activation import Activation

ACTIVATIONS = frozenset({Activation.NONE, Activation.RELU, Activation.RELU6, Activation.SILU})


@dataclass(frozen=True, slots=True)
class GroupNorm:
    """y = activation(group norm of x * scale + bias).

    Shapes:  x, y [N, ..., C]; scale, bias C elements or absent
    """

    x: Value
    y: Value
    scale: Value | None
    bias: Value | None
    groups: int
    epsilon: float
    activation: Activation

    def __call__(self, target: Target) -> Sequence[Dispatch]:
        """Moments of the channels of parts of an image; then those of the groups; then every element."""
        shape = self.x.type.shape
        return self.of_images(shape[0], math.prod(shape[1:-1]), shape[-1], target)

    def of_images(self, images: int, pixels: int, channels: int, target: Target) -> Sequence[Dispatch]:
        """The same of x and y as images of these sizes."""
        first, part, (means, squares) = parts_of_moments(self.x, (images, pixels, channels), target)
        mean, factor = Scratch((images, channels)), Scratch((images, channels))
        joins: dict[str, Variable] = {
            "workgroup": WORKGROUP, "scaled": self.scale is not None, **workgroup_reduction(target),
        }  # fmt: skip
        sizes = u32(
            images=images, groups=self.groups, channels=channels, parts=-(-pixels // part), part=part, pixels=pixels
        )
        ends = (write("mean", mean, single=True), write("factor", factor, single=True))
        bindings = (read("x", means), read("s", squares), *read_given(scale=self.scale), *ends)
        grid = groups_for(images * self.groups, target, 1)
        why = f"a workgroup a group, {workgroup_reduction_text(target)}"
        joined = Dispatch("group_moments", joins, bindings, (*sizes, *f32(epsilon=self.epsilon)), grid, why)
        variables: dict[str, Variable] = {
            "workgroup": WORKGROUP, "activation": self.activation, "shifted": self.bias is not None,
        }  # fmt: skip
        given = (read("x", self.x), read("mean", mean), read("factor", factor), *read_given(bias=self.bias))
        count = images * pixels * channels // 4
        lengths = u32(count=count, c4=channels // 4, image=pixels * channels // 4)
        last = Dispatch(
            "group_norm", variables, (*given, write("y", self.y)), lengths, groups_for(count, target), "four at a time"
        )
        return [first, joined, last]
