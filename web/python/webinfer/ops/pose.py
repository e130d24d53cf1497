"""PoseNet's decoder: heat maps and offsets in, people's keypoints out.

Source: google-coral/libcoral, coral/posenet/posenet_decoder.cc (the custom operator PosenetDecoderOp).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import all_real, declare, moved_bytes, need

Inputs = Sequence[TensorType | None]
KEYPOINTS, EDGES = 17, 16


@dataclass(frozen=True, slots=True)
class PosenetDecoderAttrs:
    """Bounds of the search for poses, and the scale of the maps."""

    max_detections: int
    score_threshold: float  # of a keypoint that may start a pose, in units of the heat map
    stride: int  # image pixels per heat-map cell
    nms_radius: float  # image pixels


def infer(inputs: Inputs, a: PosenetDecoderAttrs) -> tuple[TensorType, ...]:
    """Types of keypoints (y, x in image pixels), keypoint scores, pose scores, pose count and,
    with long offsets, instance masks. All float32.

    Shapes:  heat maps [1, H, W, 17] (logits), short offsets [1, H, W, 34], middle offsets [1, H, W, 64],
             long offsets [1, H, W, 34] or absent; offsets in image pixels, y before x
             -> [1, D, 17, 2], [1, D, 17], [1, D], [1] and [1, D, H, W]
    """
    name = "posenet_decoder"
    heat = need(name, "heat maps", inputs[0], 4)
    parts = [("heat maps", 0, KEYPOINTS), ("short offsets", 1, 2 * KEYPOINTS), ("middle offsets", 2, 4 * EDGES)]
    longs = len(inputs) > 3 and inputs[3] is not None
    for what, i, channels in parts + ([("long offsets", 3, 2 * KEYPOINTS)] if longs else []):
        x = need(name, what, inputs[i], 4)
        if x.shape != (1, *heat.shape[1:3], channels) or not x.dtype.is_float:
            raise ShapeError(f"{name}: {what} are {x}, need float32 {(1, *heat.shape[1:3], channels)}")
    has_numbers = math.isfinite(a.score_threshold) and 0 <= a.nms_radius < math.inf
    if a.max_detections < 1 or a.stride < 1 or not has_numbers or min(heat.shape) < 1:
        raise ShapeError(f"{name}: {a} does not fit heat maps {heat.shape}")
    d = a.max_detections
    shapes: list[tuple[int, ...]] = [(1, d, KEYPOINTS, 2), (1, d, KEYPOINTS), (1, d), (1,)]
    if longs:
        shapes.append((1, d, *heat.shape[1:3]))
    return tuple(TensorType(shape) for shape in shapes)


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: PosenetDecoderAttrs) -> Cost:
    """About eight operations for each element of the heat maps."""
    return Cost(need("posenet_decoder", "heat maps", inputs[0]).size * 8, moved_bytes(inputs, outputs))


def _inputs(h: int, w: int, longs: bool) -> tuple[TensorType, ...]:
    channels = (KEYPOINTS, 2 * KEYPOINTS, 4 * EDGES, 2 * KEYPOINTS)
    return tuple(TensorType((1, h, w, c)) for c in channels[: 4 if longs else 3])


POSENET_DECODER = declare(
    Op(
        "posenet_decoder", PosenetDecoderAttrs, infer, cost,
        Tolerance(1e-3, 1e-3, "exponentials and bilinear samples along a chain of some ten steps"),
        (
            Case("poses", _inputs(9, 7, False), PosenetDecoderAttrs(5, 0.5, 16, 20.0), low=-3.0, high=3.0),
            Case("no pose", _inputs(5, 5, False), PosenetDecoderAttrs(3, 1.0, 16, 10.0), low=-9.0, high=-3.0),
            Case("masks", _inputs(8, 9, True), PosenetDecoderAttrs(4, 0.5, 16, 10.0), low=-3.0, high=3.0),
        ),
        types=(all_real,),
    )
)  # fmt: skip
