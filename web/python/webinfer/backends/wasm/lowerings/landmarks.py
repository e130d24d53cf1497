"""MediaPipe's operators on landmarks and PoseNet's decoder: one kernel each."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.affine import integers
from webinfer.backends.wasm.lowerings.cast import present
from webinfer.backends.wasm.lowerings.conv import require_float
from webinfer.graph.ir import Node, Op
from webinfer.ops import landmarks as ops
from webinfer.ops import pose

POSE_BYTES = 4 * (3 * pose.KEYPOINTS + 1)  # of kernels_wasm/src/f32_posenet_decode.c


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


def posenet_decoder(node: Node, builder: Builder) -> None:
    require_float(node)
    heat, near, middle = (present(v) for v in node.inputs[:3])
    far, a = [*node.inputs, None][3], node.attrs
    _, h, w, _ = heat.type.shape
    chance = a.score_threshold + 1e-6
    least = math.inf if a.score_threshold >= 1 else -math.log(1.0 / chance - 1.0) if chance > 0 else -math.inf
    scratch = (builder.scratch(4 * h * w * pose.KEYPOINTS), builder.scratch(POSE_BYTES * a.max_detections))
    outputs = [builder.ref(v) for v in node.outputs]
    builder.step(
        "f32_posenet_decode", *map(builder.ref, (heat, near, middle)), builder.ref(far) if far is not None else 0,
        *outputs[:4], outputs[4] if far is not None else 0, *scratch, h, w, a.max_detections, float(a.stride), least,
        a.score_threshold, a.nms_radius,
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {
    ops.LANDMARKS_TO_TRANSFORM_MATRIX: to_matrix,
    pose.POSENET_DECODER: posenet_decoder,
    ops.TRANSFORM_LANDMARKS: transform_landmarks,
    ops.TRANSFORM_TENSOR_BILINEAR: transform_tensor,
}
