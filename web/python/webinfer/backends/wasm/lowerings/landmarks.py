"""MediaPipe's operators on landmarks: one kernel each."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.affine import integers
from webinfer.backends.wasm.lowerings.cast import present
from webinfer.backends.wasm.lowerings.conv import require_float
from webinfer.graph.ir import Node, Op
from webinfer.ops import landmarks as ops


def to_matrix(node: Node, builder: Builder) -> None:
    require_float(node)
    points, a = present(node.inputs[0]), node.attrs
    height, width = a.size
    turn = (math.cos(a.target_radians), math.sin(a.target_radians))
    refs = (builder.ref(points), integers(builder, a.subset), builder.ref(node.output))
    builder.step("f32_landmarks_to_matrix", *refs, len(a.subset), a.left, a.right, width, height, *a.scale, *turn)


def transform_landmarks(node: Node, builder: Builder) -> None:
    require_float(node)
    points, matrix = present(node.inputs[0]), present(node.inputs[1])
    depth = points.type.shape[-1]
    refs = (builder.ref(points), builder.ref(matrix), builder.ref(node.output))
    builder.step("f32_transform_landmarks", *refs, depth, node.attrs.scale, units=points.type.size // depth)


def transform_tensor(node: Node, builder: Builder) -> None:
    require_float(node)
    x, matrix, a = present(node.inputs[0]), present(node.inputs[1]), node.attrs
    _, ih, iw, c = x.type.shape
    refs = (builder.ref(x), builder.ref(matrix), builder.ref(node.output))
    half = 0.5 if a.half_pixel_centers else 0.0
    builder.step("f32_transform_tensor_bilinear_nhwc", *refs, ih, iw, c, *a.size, half, units=a.size[0])


LOWERINGS: dict[Op, Lower] = {
    ops.LANDMARKS_TO_TRANSFORM_MATRIX: to_matrix,
    ops.TRANSFORM_LANDMARKS: transform_landmarks,
    ops.TRANSFORM_TENSOR_BILINEAR: transform_tensor,
}
