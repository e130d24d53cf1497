"""Single-shot detections: decoding and suppression by one workgroup, so that little is read back."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import Dispatch, Target, read, write
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import DIMS, f32, u32, u32x8
from webinfer.dtypes import round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node

SHARE = 32  # anchors that an invocation of ssd_detections.wgsl can look after: bits of its word
WORKGROUPS = (64, 128, 256)  # invocations: on a CPU every barrier costs, on a GPU every load


def ssd_detections(node: Node, target: Target) -> Sequence[Dispatch]:
    """ssd_detections.wgsl, one workgroup.

    Raises:  UnsupportedOpError unless inputs have 32 bits, or for more anchors or layers than the shader holds
    """
    boxes, scores, asked, a = node.required_input(0), node.required_input(1), node.required_input(2), node.attrs
    if any(v is not None and v.type.dtype.itemsize != 4 for v in node.inputs):
        raise UnsupportedOpError([f"ssd_detections of {boxes.type}; it is defined for float32"])
    fitting = [size for size in WORKGROUPS if a.anchors <= SHARE * size]
    if not fitting or len(a.layers) > DIMS:
        most = f"{SHARE * WORKGROUPS[-1]} anchors in {DIMS} layers"
        raise UnsupportedOpError([f"ssd_detections of {a.anchors} anchors in {len(a.layers)} layers; at most {most}"])
    workgroup = fitting[0 if target.software else -1]
    sizes = [cells * cells * count for cells, count in a.grids]
    firsts = [sum(sizes[:layer]) for layer in range(len(sizes))]
    bindings = (
        read("boxes", boxes), read("scores", scores, Element.BITS32), read("asked", asked),
        write("y", node.output, single=True),
    )  # fmt: skip
    params = (
        *u32(anchors=a.anchors, most=a.most, layers=len(a.layers)),
        *u32x8(first=firsts, cells=[cells for cells, _ in a.grids], per_cell=[count for _, count in a.grids]),
        *f32(
            inverse=round_to_f32(1.0 / a.size),
            score_clip=a.score_clip,
            min_score=a.min_score,
            suppression=a.suppression,
        ),
    )
    variables = {"workgroup": workgroup, "raw": boxes.type.shape[2], "words": -(-a.anchors // 32)}
    return [Dispatch("ssd_detections", variables, bindings, params, (1, 1, 1))]
