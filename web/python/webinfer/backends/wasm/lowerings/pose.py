"""PoseNet's decoder: one kernel."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.kernel_constants import POSE_FLOATS
from webinfer.backends.wasm.lowerings.cast import present
from webinfer.backends.wasm.lowerings.conv import require_float
from webinfer.graph.ir import Node, Op
from webinfer.ops import pose


def posenet_decoder(node: Node, builder: Builder) -> None:
    require_float(node)
    heat, near, middle = (present(v) for v in node.inputs[:3])
    far, a = [*node.inputs, None][3], node.attrs
    _, h, w, _ = heat.type.shape
    chance = a.score_threshold + 1e-6
    least = math.inf if a.score_threshold >= 1 else -math.log(1.0 / chance - 1.0) if chance > 0 else -math.inf
    scratch = (builder.scratch(4 * h * w * pose.KEYPOINTS), builder.scratch(4 * POSE_FLOATS * a.max_detections))
    outputs = [builder.ref(v) for v in node.outputs]
    builder.step(
        "f32_posenet_decode", *map(builder.ref, (heat, near, middle)), builder.ref(far) if far is not None else 0,
        *outputs[:4], outputs[4] if far is not None else 0, *scratch, h, w, a.max_detections, float(a.stride), least,
        a.score_threshold, a.nms_radius,
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {pose.POSENET_DECODER: posenet_decoder}
