"""PoseNet's decoder: local maxima, a walk along the skeleton from each, ranks, masks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Dispatch,
    Scratch,
    Target,
    groups_for,
    read,
    update,
    write,
)
from webinfer.codegen.prelude import f32, u32
from webinfer.dtypes import round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node
from webinfer.ops.pose import EDGES, KEYPOINTS, PosenetDecoderAttrs
from webinfer.ops.registry import LARGEST

RECORD = 1 + 3 * KEYPOINTS  # numbers of a pose in _posenet.wgsl: its score, keypoints' scores, (y, x) of each
RECORDS = {"keypoints": KEYPOINTS, "record": RECORD}  # the numbers of _posenet.wgsl
NEVER = LARGEST  # heat that no cell has


def posenet_decoder(node: Node, target: Target) -> Sequence[Dispatch]:
    """posenet_candidates, posenet_search and posenet_rank; posenet_masks where long offsets are given as fourth input.

    Raises:  UnsupportedOpError unless inputs have 32 bits
    """
    heat, short, middle, a = node.required_input(0), node.required_input(1), node.required_input(2), node.attrs
    if any(v is not None and v.type.dtype.itemsize != 4 for v in node.inputs):
        raise UnsupportedOpError([f"posenet_decoder of {heat.type}; it is defined for float32"])
    _, h, w, _ = heat.type.shape
    candidates = Scratch(heat.type.shape)
    poses = Scratch((1 + (a.max_detections + 1) * RECORD,))  # one more: a pose is written before it is judged
    radius = round_to_f32(round_to_f32(a.nms_radius) / a.stride)
    cell = f32(cell=round_to_f32(1.0 / a.stride))
    judge = (
        *u32(max_detections=a.max_detections),
        *f32(squared_radius=round_to_f32(radius * radius), threshold=a.score_threshold),
    )
    every = {"workgroup": WORKGROUP, "keypoints": KEYPOINTS}
    search = (
        read("candidates", candidates), read("heat", heat), read("short", short), read("middle", middle),
        update("poses", poses, single=True),
    )  # fmt: skip
    keypoints, scores, pose_scores, found = node.outputs[:4]
    results = (
        read("poses", poses), write("keypoints", keypoints, single=True), write("scores", scores, single=True),
        write("pose_scores", pose_scores, single=True), write("found", found),
    )  # fmt: skip
    count = heat.type.size
    dispatches = [
        Dispatch(
            "posenet_candidates", every, (read("x", heat), write("y", candidates)),
            (*u32(count=count, h=h, w=w), *f32(least=_least_heat(a))), groups_for(-(-count // 4), target),
        ),
        Dispatch(
            "posenet_search", every | RECORDS | {"edges": EDGES}, search,
            (*u32(count=count, h=h, w=w), *judge, *cell), (1, 1, 1),
        ),
        Dispatch("posenet_rank", RECORDS, results, (*judge, *f32(stride=a.stride)), (1, 1, 1)),
    ]  # fmt: skip
    longs = node.optional_input(3)
    if longs is not None:
        bindings = (
            read("x", longs), read("keypoints", keypoints), read("found", found),
            write("y", node.outputs[4], single=True),
        )  # fmt: skip
        params = (*u32(h=h, w=w, max_detections=a.max_detections), *cell, *f32(stride=a.stride))
        dispatches.append(Dispatch("posenet_masks", every, bindings, params, groups_for(h * w, target)))
    assert keypoints.type.shape[2] == KEYPOINTS
    return dispatches


def _least_heat(a: PosenetDecoderAttrs) -> float:
    """The logit of the score threshold: no candidate has less heat."""
    if a.score_threshold >= 1:
        return NEVER
    ratio = 1.0 / (max(a.score_threshold, 0.0) + 1e-6) - 1.0
    return round_to_f32(-math.log(ratio)) if ratio > 0 else NEVER
