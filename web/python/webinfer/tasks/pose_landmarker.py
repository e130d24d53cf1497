"""33 points of a body, in the picture and in metres, with what is visible of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from webinfer.authoring.builder import GraphBuilder
from webinfer.graph.ir import Value
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import BODY, POSE
from webinfer.tasks.base import NO_SIZE, Box, Size
from webinfer.tasks.crop import Crop, Region
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
from webinfer.tasks.segmenter import Mask
from webinfer.tasks.smoothing import IN_SPACE, OF_REGIONS, ON_SCREEN
from webinfer.tasks.ssd import SsdFamily
from webinfer.tasks.workspace import Workspace
from webinfer.tensor import Tensor

POINTS, ALL = 33, 39  # the last six help to find the body again: the first of them its middle, the second its reach
CELLS, WINDOW = 64, 4  # of the heat map a side; cells on each side of a point that move it
LEAST_HEAT = 0.5
CONFIDENCES, MASK = "confidences", "mask"
SIZES = (5 * ALL, 1, POSE.width * POSE.height, CELLS * CELLS * ALL, 3 * ALL)  # of the outputs, numbers
KERNEL = "f32_mask_to_picture"
LIMBS = (  # face, mouth, trunk, arms with hands, legs with feet
    (8, 6, 5, 4, 0, 1, 2, 3, 7), (10, 9), (11, 12, 24, 23, 11), (11, 13, 15, 17, 19, 15, 21),
    (12, 14, 16, 18, 20, 16, 22), (23, 25, 27, 29, 31, 27), (24, 26, 28, 30, 32, 28),
)  # fmt: skip
BODY_TO_REGION = RegionRule(0, 1, math.pi / 2, scale=1.25, around_start=True)


@dataclass(frozen=True, slots=True)
class PoseLandmarks(LandmarkThing):
    """One body: its landmarks, the box around them, and its score (0..1).

    `world` has the same points in metres from the middle of the hips.
    """

    box: Box
    score: float
    landmarks: Landmarks
    world: Landmarks
    anchors: tuple[tuple[float, float], tuple[float, float]]  # where the next frame is looked at: middle and reach
    id: int | None = None
    image_size: Size = NO_SIZE
    mask: Mask | None = None  # of the body, over all of the picture, where such masks were asked for


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


def _read_with_mask(builder: GraphBuilder, outputs: Sequence[Value]) -> Mapping[str, Value]:
    mask = builder.node("reshape", builder.node("sigmoid", outputs[2]), shape=(POSE.height, POSE.width))
    return {**_read(builder, outputs), MASK: mask}


def _refined(builder: GraphBuilder, points: Value, heat: Value) -> Value:
    """Points moved to the centre of the heat around them, where the map is hot enough.

    Source:  MediaPipe, RefineLandmarksFromHeatmapCalculator (kernel_size 9; with it points are mediapipe 0.10.21's)
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
    """Finds the landmarks of bodies. Create one with `await PoseLandmarker.create()`."""

    name = "pose-landmarks"
    result = landmarks_schema("poses", "Bodies found", "Body", lines=LIMBS)
    family, rule = SsdFamily("MediaPipe pose detector", (BODY,)), BODY_TO_REGION
    kinds: ClassVar[tuple[LandmarkModel, ...]] = (LandmarkModel("MediaPipe pose model", POSE, SIZES, _read),)
    smooths, steady = {"landmarks": ON_SCREEN, "world": IN_SPACE, "anchors": OF_REGIONS}, True
    default_model, default_detector = "pose_landmark_full", "pose_detection"

    @classmethod
    async def create(
        cls,
        model: Any = None,
        *,
        output_segmentation_masks: bool = False,
        detector: Any = None,
        backend: str | Sequence[str] = "auto",
        most: int = 1,
        min_detection_score: float | None = None,
        min_presence_score: float | None = None,
        min_detection_confidence: float | None = None,
        min_tracking_confidence: float | None = None,
        smooth: bool = True,
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> Self:
        """As `LandmarkTask.create`. With `output_segmentation_masks` each body has its `mask`: how likely each pixel of
        the picture belongs to it, as MediaPipe's `enable_segmentation` gives it in pictures.

        Raises:  as `LandmarkTask.create`
        """
        kind: Any = super()
        if output_segmentation_masks and not issubclass(cls, MaskedPoseLandmarker):
            kind = MaskedPoseLandmarker
        task: Self = await kind.create(
            model, detector=detector, backend=backend, most=most, min_detection_score=min_detection_score,
            min_presence_score=min_presence_score, min_detection_confidence=min_detection_confidence,
            min_tracking_confidence=min_tracking_confidence, smooth=smooth, progress=progress, host=host,
        )  # fmt: skip
        return task

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


class MaskedPoseLandmarker(PoseLandmarker):
    """A PoseLandmarker whose bodies have masks; `PoseLandmarker.create` makes it."""

    kinds = (LandmarkModel("MediaPipe pose model", POSE, SIZES, _read_with_mask, "with_mask"),)
    _workspace: Workspace | None = None

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[PoseLandmarks]:
        """The body in the model's outputs, if there is one, with its mask."""
        found = await super().decode(outputs, crop)
        return [replace(one, mask=await self._mask(outputs[MASK], crop)) for one in found]

    async def _mask(self, small: Tensor, crop: Crop) -> Mask:
        if self._workspace is None:
            self._workspace = Workspace(await self.session.host.kernels())
        (width, height), workspace = crop.image_size, self._workspace
        mask = workspace.put(MASK, small.tobytes(), small.nbytes)
        target = workspace.area("picture", 4 * width * height)
        workspace.call(KERNEL, (mask, target, crop.width, crop.height, width, *mask_map(crop)), height)
        return Mask(width, height, workspace.kernels.read(target, 4 * width * height).cast("f"))  # type: ignore[arg-type]

    def close(self) -> None:
        """Frees both models and the kernels' memory; a second call does nothing."""
        super().close()
        if self._workspace is not None:
            self._workspace.close()
            self._workspace = None


def mask_map(crop: Crop) -> tuple[float, ...]:
    """The affine map from pixels of the picture to those of the model's input, corner to corner as MediaPipe has it.

    Picture pixel (x, y) shows the input at (ax * x + ay * y + a0, bx * x + by * y + b0); the order is that.

    Source:  mediapipe/calculators/image/affine_transformation_runner_opencv.cc
    """
    x0, y0 = crop.from_image(0.0, 0.0)
    (x1, y1), (x2, y2) = crop.from_image(1.0, 0.0), crop.from_image(0.0, 1.0)
    across, down = ((x1 - x0, x2 - x0, x0), (y1 - y0, y2 - y0, y0))
    return (*(crop.width * n for n in across), *(crop.height * n for n in down))
