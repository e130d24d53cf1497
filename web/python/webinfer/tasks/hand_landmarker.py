"""21 points of a hand, in the picture and in metres, and which hand it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from webinfer.authoring.builder import GraphBuilder
from webinfer.graph.ir import Value
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import HAND, PALM
from webinfer.tasks.base import NO_SIZE, Box, ResultField, Size
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
from webinfer.tasks.smoothing import IN_SPACE, ON_SCREEN
from webinfer.tasks.ssd import SsdFamily
from webinfer.tensor import Tensor

POINTS = 21
DEPTH = 2.5  # pixels of a step of the third coordinate
LEFT = "left"  # the output that says how likely a hand is a left one
PALM_TO_REGION = RegionRule(0, 2, math.pi / 2, scale=2.6, shift=-0.5)
# Of a frame before: wrist, thumb and the first two joints of each finger; the direction is that from the wrist to the
# middle of the fingers' first joints.
STABLE = (0, 1, 2, 3, 5, 6, 9, 10, 13, 14, 17, 18)
BONES = ((0, 1, 2, 3, 4), (0, 5, 6, 7, 8), (9, 10, 11, 12), (13, 14, 15, 16), (0, 17, 18, 19, 20), (5, 9, 13, 17))
KNUCKLES = {4: 0.25, 6: 0.5, 8: 0.25}  # of STABLE: index, middle and ring finger; their shares in the direction's end
HAND_TO_REGION = RegionRule(0, len(STABLE), math.pi / 2, scale=2.0, shift=-0.1)


@dataclass(frozen=True, slots=True)
class HandLandmarks(LandmarkThing):
    """One hand: its landmarks from the wrist to the tip of the little finger, and which hand it is.

    `world` has the same points in metres from the hand's centre. `handedness` is "Left" or "Right" if the picture is
    mirrored, as a selfie camera shows it; `handedness_score` is its score, `score` that of the hand (0..1).
    """

    box: Box
    score: float
    handedness: str
    handedness_score: float
    landmarks: Landmarks
    world: Landmarks
    id: int | None = None
    image_size: Size = NO_SIZE


def _read(builder: GraphBuilder, outputs: Sequence[Value]) -> Mapping[str, Value]:
    points, score, left, world = outputs
    return {
        LANDMARKS: builder.node("mul", builder.node("reshape", points, shape=(POINTS, 3)), [1.0, 1.0, DEPTH]),
        SCORE: score,
        LEFT: left,
        WORLD: rotated(builder, world, POINTS),
    }


class HandLandmarker(LandmarkTask[HandLandmarks]):
    """Finds the landmarks of hands. Create one with `await HandLandmarker.create(most=2)`."""

    name = "hand-landmarks"
    result = landmarks_schema("hands", "Hands found", "Hand", ResultField("handedness", "text", ""), lines=BONES)
    family, rule = SsdFamily("MediaPipe palm detector", (PALM,)), PALM_TO_REGION
    kinds = (LandmarkModel("MediaPipe hand model", HAND, (3 * POINTS, 1, 1, 3 * POINTS), _read),)
    smooths: ClassVar = {"landmarks": ON_SCREEN, "world": IN_SPACE}
    default_model, default_detector = "hand_landmark_full", "palm_detection_full"

    def thing(self, outputs: Mapping[str, Tensor], score: float) -> HandLandmarks:
        """The hand in the model's outputs."""
        landmarks, left = Landmarks(outputs[LANDMARKS].flat()), float(outputs[LEFT].flat()[0])
        side, sure = ("Left", left) if left > 0.5 else ("Right", 1 - left)
        return HandLandmarks(landmarks.box, score, side, sure, landmarks, Landmarks(outputs[WORLD].flat()))

    def following(self, found: HandLandmarks) -> Region:
        """The region around the joints that move least when fingers do."""
        points = found.landmarks.points(STABLE)
        x, y = (sum(share * points[place][axis] for place, share in KNUCKLES.items()) for axis in (0, 1))
        return HAND_TO_REGION.turned(points, (x, y))
