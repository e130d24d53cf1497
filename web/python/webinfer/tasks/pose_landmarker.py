"""33 points of a body, in the picture and in metres, with what is visible of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webinfer.authoring.builder import GraphBuilder
from webinfer.graph.ir import Value
from webinfer.models.layouts import BODY, POSE
from webinfer.tasks.base import NO_SIZE, Box, Size
from webinfer.tasks.crop import Region
from webinfer.tasks.landmarks import (
    LANDMARKS,
    SCORE,
    WORLD,
    LandmarkModel,
    Landmarks,
    LandmarkTask,
    LandmarkThing,
    landmarks_schema,
    rotated,
)
from webinfer.tasks.regions import RegionRule
from webinfer.tasks.smoothing import IN_SPACE, OF_REGIONS, ON_SCREEN
from webinfer.tasks.ssd import SsdFamily
from webinfer.tensor import Tensor

POINTS, ALL = 33, 39  # the last six help to find the body again: the first of them its middle, the second its reach
CELLS, WINDOW = 64, 3  # of the heat map a side; cells on each side of a point that move it
LEAST_HEAT = 0.5
CONFIDENCES = "confidences"
LIMBS = (  # face, mouth, trunk, arms with hands, legs with feet
    (8, 6, 5, 4, 0, 1, 2, 3, 7), (10, 9), (11, 12, 24, 23, 11), (11, 13, 15, 17, 19, 15, 21),
    (12, 14, 16, 18, 20, 16, 22), (23, 25, 27, 29, 31, 27), (24, 26, 28, 30, 32, 28),
)  # fmt: skip
BODY_TO_REGION = RegionRule(0, 1, math.pi / 2, scale=1.25, around_start=True)


@dataclass(frozen=True, slots=True)
class PoseLandmarks(LandmarkThing):
    """One body: its landmarks, the box around them, and how sure the model is that it is one (0..1).

    `world` are the same points in metres around the middle of the hips.
    """

    box: Box
    score: float
    landmarks: Landmarks
    world: Landmarks
    anchors: tuple[tuple[float, float], tuple[float, float]]  # where the next frame is looked at: middle and reach
    id: int | None = None
    image_size: Size = NO_SIZE


def _read(builder: GraphBuilder, outputs: Sequence[Value]) -> Mapping[str, Value]:
    points, score, _, heat, world = outputs
    table = builder.node("reshape", points, shape=(ALL, 5))
    parts = [
        builder.node("slice", table, starts=(0, start), sizes=(ALL, count), steps=(1, 1))
        for start, count in ((0, 2), (2, 1), (3, 2))
    ]
    across = _refined(builder, parts[0], heat)
    return {
        LANDMARKS: builder.node("concat", across, parts[1], axis=1),
        CONFIDENCES: builder.node("sigmoid", parts[2]),
        SCORE: score,
        WORLD: rotated(builder, world, ALL),
    }


def _refined(builder: GraphBuilder, points: Value, heat: Value) -> Value:
    """Points moved to the centre of the heat around them, where the map is hot enough.

    Source:  MediaPipe, RefineLandmarksFromHeatmapCalculator (kernel_size 7)
    Shapes:  points [39, 2] in pixels of the input, heat [1, 64, 64, 39] (logits) -> [39, 2]
    """
    node, side = builder.node, POSE.width
    hot = node("reshape", node("sigmoid", heat), shape=(CELLS * CELLS, ALL))
    places = [builder.constant([float(i) for i in row], (CELLS * CELLS, 1)) for row in _cells()]
    scaled = node("mul", points, builder.constant(CELLS / side))
    inside, near = [], []
    for axis, cells in enumerate(places):
        at = node("reshape", node("slice", scaled, starts=(0, axis), sizes=(ALL, 1), steps=(1, 1)), shape=(1, ALL))
        cell = node("floor", node("relu", at))  # what is less than one cell outside counts as inside
        near.append(node("less_equal", node("abs", node("sub", cells, cell)), builder.constant(float(WINDOW))))
        away = node("abs", node("sub", at, builder.constant((CELLS - 1) / 2)))
        inside.append(node("less", away, builder.constant((CELLS + 1) / 2)))
    hot = node("where", node("logical_and", *near), hot, builder.constant(0.0))
    total, most = (node(op, hot, axes=(0,), keep_dims=True) for op in ("reduce_sum", "reduce_max"))
    enough = node("logical_and", *inside)
    enough = node("logical_and", enough, node("greater_equal", most, builder.constant(LEAST_HEAT)))
    moved = [
        node("div", node("reduce_sum", node("mul", hot, cells), axes=(0,), keep_dims=True), total) for cells in places
    ]
    found = node("concat", *(node("reshape", m, shape=(ALL, 1)) for m in moved), axis=1)
    found = node("mul", found, builder.constant(side / CELLS))
    refined: Value = node("where", node("reshape", enough, shape=(ALL, 1)), found, points)
    return refined


def _cells() -> tuple[list[int], list[int]]:
    """Column and row of each cell of the heat map, row by row."""
    return [i % CELLS for i in range(CELLS * CELLS)], [i // CELLS for i in range(CELLS * CELLS)]


class PoseLandmarker(LandmarkTask[PoseLandmarks]):
    """Finds the landmarks of bodies. Make one with `await PoseLandmarker.create()`."""

    name = "pose-landmarks"
    result = landmarks_schema("poses", "Bodies found", "Body", lines=LIMBS)
    family, rule = SsdFamily("MediaPipe pose detector", (BODY,)), BODY_TO_REGION
    kinds = (
        LandmarkModel(
            "MediaPipe pose model", POSE,
            (5 * ALL, 1, POSE.width * POSE.height, CELLS * CELLS * ALL, 3 * ALL), _read,
        ),
    )  # fmt: skip
    smooths, steady = {"landmarks": ON_SCREEN, "world": IN_SPACE, "anchors": OF_REGIONS}, True
    default_model, default_detector = "pose_landmark_full", "pose_detection"

    def thing(self, outputs: Mapping[str, Tensor], score: float) -> PoseLandmarks:
        """The body in the model's outputs."""
        xyz, confidences = outputs[LANDMARKS].flat(), outputs[CONFIDENCES].flat()[: 2 * POINTS]
        middle, reach = Landmarks(xyz[3 * POINTS :]).points((0, 1))
        landmarks = Landmarks(xyz[: 3 * POINTS], confidences)
        world = Landmarks(outputs[WORLD].flat()[: 3 * POINTS], confidences)
        return PoseLandmarks(landmarks.box, score, landmarks, world, (middle, reach))

    def extent(self, found: PoseLandmarks) -> float:
        """Twice as far as the body reaches from its middle."""
        return 2 * math.dist(*found.anchors)

    def following(self, found: PoseLandmarks) -> Region:
        """The region around the body's middle, as far as it reaches."""
        return BODY_TO_REGION.region(found.anchors)
