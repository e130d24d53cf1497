"""MediaPipe's operators on landmarks: one kernel each."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.affine import integers
from webinfer.backends.wasm.lowerings.products import require_float
from webinfer.graph.ir import Node, Op
from webinfer.ops import landmarks as ops


def to_matrix(node: Node, builder: Builder) -> None:
    """The matrix of the box that landmarks span."""
    require_float(node)
    points, a = node.required_input(0), node.attrs
    height, width = a.size
    builder.step(
        "f32_landmarks_to_matrix",
        points=builder.ref(points), subset=integers(builder, a.subset), matrix=builder.ref(node.output),
        subset_count=len(a.subset), left=a.left, right=a.right, width=width, height=height,
        scale_x=a.scale[0], scale_y=a.scale[1],
        turn_cos=math.cos(a.target_radians), turn_sin=math.sin(a.target_radians),
    )  # fmt: skip


def transform_landmarks(node: Node, builder: Builder) -> None:
    """Landmarks times a matrix."""
    require_float(node)
    points, matrix = node.required_input(0), node.required_input(1)
    depth = points.type.shape[-1]
    builder.step(
        "f32_transform_landmarks",
        points=builder.ref(points), matrix=builder.ref(matrix), y=builder.ref(node.output), depth=depth,
        scale=node.attrs.scale, units=points.type.size // depth,
    )  # fmt: skip


def transform_tensor(node: Node, builder: Builder) -> None:
    """The image that a matrix cuts out of another."""
    require_float(node)
    x, matrix, a = node.required_input(0), node.required_input(1), node.attrs
    _, ih, iw, c = x.type.shape
    builder.step(
        "f32_transform_tensor_bilinear_nhwc",
        x=builder.ref(x), matrix=builder.ref(matrix), y=builder.ref(node.output), ih=ih, iw=iw, c=c,
        oh=a.size[0], ow=a.size[1], half=0.5 if a.half_pixel_centers else 0.0, units=a.size[0],
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {
    ops.LANDMARKS_TO_TRANSFORM_MATRIX: to_matrix,
    ops.TRANSFORM_LANDMARKS: transform_landmarks,
    ops.TRANSFORM_TENSOR_BILINEAR: transform_tensor,
}
