"""Non-maximum suppression of one list of boxes, and detectors that end with it."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Dispatch,
    Scratch,
    Source,
    Target,
    check_turns,
    groups_for,
    read,
    update,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import cast_dispatch, in_words
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node
from webinfer.ops.registry import LARGEST
from webinfer.ops.suppression import NonMaxSuppressionAttrs

INVOCATIONS = 256  # WebGPU's limit of a workgroup: half take 1.08 times as long (H100, 2026-11-28)
LEAST_NORMAL = 2.0**-126  # the smallest float32 that is not denormal


def _non_max_suppression(node: Node, target: Target) -> list[Dispatch]:
    """nms.wgsl: one workgroup finds the best box of a list again and again.

    Raises:  UnsupportedOpError if no box is wanted, there is none, or there are too many lists
    """
    boxes, scores = map(node.required_input, range(2))
    n, lists = boxes.type.shape[0], node.outputs[2].type.size
    return [_nms(boxes, scores, (lists, n), node.outputs, node.attrs, target)]


def _nms(
    boxes: Source, scores: Source, shape: tuple[int, int], results: Sequence[Source], a: NonMaxSuppressionAttrs,
    target: Target,
) -> Dispatch:  # fmt: skip
    lists, n = shape
    if min(n, a.limit, lists) < 1 or lists > target.limits["maxComputeWorkgroupsPerDimension"]:
        raise UnsupportedOpError([f"a suppression of {lists} lists of {n} boxes that keeps {a.limit}"])
    check_turns((a.limit + 1) * (2 * -(-n // INVOCATIONS) + 9), target, "a suppression with turns")
    written = (write(name, v, single=True) for name, v in zip(("positions", "kept", "count"), results, strict=True))
    bindings = (
        read("boxes", boxes),
        read("scores", scores),
        update("work", Scratch((lists, n)), single=True),
        *written,
    )
    # ONNX drops what overlaps by more than nothing: by the least float32, which a GPU may take for zero.
    overlap = max(a.overlap, LEAST_NORMAL) if a.overlap > 0 else a.overlap
    params = (
        *u32(lists=lists, n=n, limit=a.limit),
        *f32(overlap=overlap, least=max(a.least, -LARGEST), sigma=a.sigma),
    )
    why = f"{INVOCATIONS} look for each of the best {a.limit}" + (f" of {lists} lists" if lists > 1 else "")
    return Dispatch("nms", {"workgroup": INVOCATIONS}, bindings, params, (lists, 1, 1), why)


def _detection_postprocess(node: Node, target: Target) -> list[Dispatch]:
    """detection_decode.wgsl, nms.wgsl, detection_list.wgsl, where boxes are judged by their best class and told once.

    Raises:  UnsupportedOpError for the other ways
    """
    (raw, scores, anchors), a = map(node.required_input, range(3)), node.attrs
    if a.overlap != a.overlap or a.least != a.least:
        raise UnsupportedOpError(["detections with a threshold that is NaN"])
    if a.regular or a.per_box != 1:
        raise UnsupportedOpError(["detections of each class by itself, or of several classes a box"])
    n, columns = anchors.type.shape[0], scores.type.shape[2]
    boxes, judged, kinds = Scratch((n, 4)), Scratch((n,)), Scratch((n,))
    found = Scratch((a.limit,), DType.INT32), Scratch((a.limit,)), Scratch((1,), DType.INT32)
    # What overlaps more than `overlap` is dropped, what scores `least` stays: nms.wgsl has both the other way.
    bounds = next_f32(a.overlap), -next_f32(-a.least)
    y, labels, told, count = node.outputs
    given = read("raw", raw), read("scores", scores), read("anchors", anchors)
    made = (write("boxes", boxes), write("judged", judged, single=True), write("kinds", kinds, single=True))
    sizes = u32(n=n, raw_width=raw.type.shape[2], columns=columns, first=columns - a.classes, classes=a.classes)
    scale = f32(scale_y=a.scale[0], scale_x=a.scale[1], scale_height=a.scale[2], scale_width=a.scale[3])
    kept = [read(name, v) for name, v in zip(("positions", "kept", "count"), found, strict=True)]
    listed = write("y", y), write("labels", labels, single=True), write("scores", told, single=True)
    every: dict[str, Variable] = {"workgroup": WORKGROUP}
    return [
        Dispatch("detection_decode", every, (*given, *made), (*sizes, *scale), groups_for(n, target)),
        _nms(boxes, judged, (1, n), found, NonMaxSuppressionAttrs(a.limit, *bounds), target),
        Dispatch(
            "detection_list", every, (*kept, read("boxes", boxes), read("kinds", kinds), *listed),
            u32(limit=a.limit), groups_for(a.limit, target),
        ),
        cast_dispatch(found[2], count, target),
    ]  # fmt: skip


def next_f32(x: float) -> float:
    """The next larger float32, that a shader does not take for zero."""
    x = min(max(x, -LARGEST), LARGEST)
    if abs(x) <= LEAST_NORMAL or x == LARGEST:  # both zeros are
        return max(x, LEAST_NORMAL)
    bits: int = struct.unpack("<i", struct.pack("<f", x))[0]
    larger: float = struct.unpack("<f", struct.pack("<i", bits + (1 if bits >= 0 else -1)))[0]
    return larger


non_max_suppression = in_words(_non_max_suppression)
detection_postprocess = in_words(_detection_postprocess)
