"""Single-shot detections: one kernel decodes, one suppresses."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.affine import integers
from webinfer.backends.wasm.lowerings.cast import present
from webinfer.backends.wasm.lowerings.conv import require_float
from webinfer.graph.ir import Node, Op
from webinfer.ops import detection as ops


def ssd_detections(node: Node, builder: Builder) -> None:
    require_float(node)
    (boxes, scores, asked), a = map(present, node.inputs), node.attrs
    raw = boxes.type.shape[2]
    candidates, count = builder.scratch(4 * (raw + 1) * a.anchors), builder.scratch(4)
    layers = integers(builder, [n for grid in a.grids for n in grid])
    refs = (builder.ref(boxes), builder.ref(scores), layers, builder.ref(asked), candidates, count)
    sizes = (len(a.layers), a.size, (raw - 4) // 2)
    builder.step("f32_ssd_decode", *refs, *sizes, a.score_clip, a.min_score)
    builder.step("f32_weighted_nms", candidates, count, builder.ref(node.output), raw + 1, a.most, a.suppression)


LOWERINGS: dict[Op, Lower] = {ops.SSD_DETECTIONS: ssd_detections}
