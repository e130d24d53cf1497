"""Single-shot detections: one kernel decodes, one suppresses."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.affine import integers
from webinfer.backends.wasm.lowerings.products import require_float
from webinfer.graph.ir import Node, Op
from webinfer.ops import detection as ops


def ssd_detections(node: Node, builder: Builder) -> None:
    """Candidates above a score, then those that suppression keeps."""
    require_float(node)
    (boxes, scores, asked), a = map(node.required_input, range(3)), node.attrs
    raw = boxes.type.shape[2]
    candidates, count = builder.scratch(4 * (raw + 1) * a.anchors), builder.scratch(4)
    layers = integers(builder, [n for grid in a.grids for n in grid])
    builder.step(
        "f32_ssd_decode",
        boxes=builder.ref(boxes), scores=builder.ref(scores), layers=layers, asked=builder.ref(asked),
        candidates=candidates, count=count, layer_count=len(a.layers), size=a.size, keypoints=(raw - 4) // 2,
        anchors=a.anchors, score_clip=a.score_clip, min_score=a.min_score,
    )  # fmt: skip
    builder.step(
        "f32_weighted_nms",
        candidates=candidates, count=count, kept=builder.ref(node.output), width=raw + 1, room=a.anchors,
        limit=a.most, suppression=a.suppression,
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {ops.SSD_DETECTIONS: ssd_detections}
