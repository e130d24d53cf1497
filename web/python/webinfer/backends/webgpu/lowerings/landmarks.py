"""MediaPipe's operator that finds the region around landmarks."""

from __future__ import annotations

import math

from webinfer.backends.webgpu.dispatch import Dispatch, Target, read, write
from webinfer.backends.webgpu.lowerings.conversion import in_words, ints
from webinfer.codegen.prelude import f32, u32
from webinfer.graph.ir import Node


def _to_matrix(node: Node, target: Target) -> list[Dispatch]:
    """landmarks_to_transform_matrix.wgsl, one invocation."""
    x, y, a = node.required_input(0), node.output, node.attrs
    height, width = a.size
    params = (
        *u32(left=a.left, right=a.right, count=len(a.subset)),
        *f32(width=width, height=height, scale_x=a.scale[0], scale_y=a.scale[1]),
        *f32(target_cos=math.cos(a.target_radians), target_sin=math.sin(a.target_radians)),
    )
    bindings = (read("x", x), read("subset", ints(a.subset)), write("y", y))
    return [Dispatch("landmarks_to_transform_matrix", {}, bindings, params, (1, 1, 1))]


landmarks_to_transform_matrix = in_words(_to_matrix)
