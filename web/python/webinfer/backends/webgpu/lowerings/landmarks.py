"""MediaPipe's operators for attention on landmarks. Each becomes the shader of its own name."""

from __future__ import annotations

import math

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Target, groups_for, read, write
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


def _tensor(node: Node, target: Target) -> list[Dispatch]:
    """transform_tensor_bilinear.wgsl."""
    x, matrix, y, a = node.required_input(0), node.required_input(1), node.output, node.attrs
    _, ih, iw, c = x.type.shape
    params = (*u32(count=y.type.size, ih=ih, iw=iw, ow=a.size[1], c=c), *f32(half=0.5 if a.half_pixel_centers else 0.0))
    bindings = (read("x", x), read("matrix", matrix), write("y", y))
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch("transform_tensor_bilinear", {"workgroup": WORKGROUP}, bindings, params, groups)]


def _landmarks(node: Node, target: Target) -> list[Dispatch]:
    """transform_landmarks.wgsl."""
    x, matrix, y, a = node.required_input(0), node.required_input(1), node.output, node.attrs
    params = (*u32(count=y.type.size, numbers=x.type.shape[-1]), *f32(scale=a.scale))
    bindings = (read("x", x), read("matrix", matrix), write("y", y))
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch("transform_landmarks", {"workgroup": WORKGROUP}, bindings, params, groups)]


landmarks_to_transform_matrix = in_words(_to_matrix)
transform_landmarks = in_words(_landmarks)
transform_tensor_bilinear = in_words(_tensor)
