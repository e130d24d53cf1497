"""Boxes without those that overlap a better one: one step each."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.affine import floats
from webinfer.backends.wasm.lowerings.products import require_float
from webinfer.graph.ir import Node, Op
from webinfer.ops import suppression as ops


def non_max_suppression(node: Node, builder: Builder) -> None:
    """One step, shared by lists of scores."""
    require_float(node)
    (boxes, scores), a = map(node.required_input, range(2)), node.attrs
    positions, kept, count = map(builder.ref, node.outputs)
    n = boxes.type.shape[0]
    builder.step(
        "f32_nms", units=node.outputs[2].type.size,
        boxes=builder.ref(boxes), scores=builder.ref(scores), work=builder.scratch(8 * scores.type.size),
        positions=positions, kept=kept, count=count, n=n, limit=a.limit, overlap=a.overlap,
        least=a.least, sigma=a.sigma,
    )  # fmt: skip


def detection_postprocess(node: Node, builder: Builder) -> None:
    """One step from raw boxes to detections."""
    require_float(node)
    (raw, scores, anchors), a = map(node.required_input, range(3)), node.attrs
    boxes, labels, kept, count = map(builder.ref, node.outputs)
    n = anchors.type.shape[0]
    builder.step(
        "f32_detection_postprocess",
        raw=builder.ref(raw), scores=builder.ref(scores), anchors=builder.ref(anchors), scale=floats(builder, a.scale),
        work=builder.scratch(24 * n + 8 * a.limit), boxes=boxes, labels=labels, kept=kept, count=count, n=n,
        raw_width=raw.type.shape[2], columns=scores.type.shape[2], classes=a.classes, limit=a.limit, per_box=a.per_box,
        per_class=a.per_class, regular=int(a.regular), least=a.least, overlap=a.overlap,
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {
    ops.DETECTION_POSTPROCESS: detection_postprocess,
    ops.NON_MAX_SUPPRESSION: non_max_suppression,
}
