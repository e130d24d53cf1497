"""PoseNet's decoder: one kernel."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.products import require_float
from webinfer.graph.ir import Node, Op
from webinfer.kernel_constants import POSE_FLOATS
from webinfer.ops import pose


def posenet_decoder(node: Node, builder: Builder) -> None:
    """Poses, and with long offsets a mask for each."""
    require_float(node)
    heat, near, middle = map(node.required_input, range(3))
    far, a = node.optional_input(3), node.attrs
    _, h, w, _ = heat.type.shape
    chance = a.score_threshold + 1e-6
    least = math.inf if a.score_threshold >= 1 else -math.log(1.0 / chance - 1.0) if chance > 0 else -math.inf
    heap, found = builder.scratch(4 * h * w * pose.KEYPOINTS), builder.scratch(4 * POSE_FLOATS * a.max_detections)
    points, scores, poses, count = map(builder.ref, node.outputs[:4])
    builder.step(
        "f32_posenet_decode",
        heat=builder.ref(heat), near=builder.ref(near), middle=builder.ref(middle), far=builder.optional_ref(far),
        points=points, scores=scores, poses=poses, count=count,
        masks=builder.ref(node.outputs[4]) if far is not None else None,
        heap=heap, found=found, h=h, w=w, most=a.max_detections, stride=float(a.stride), least=least,
        threshold=a.score_threshold, radius=a.nms_radius,
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {pose.POSENET_DECODER: posenet_decoder}
