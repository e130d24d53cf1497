"""Bodies of several people at once: 17 points each, with PoseNet or MoveNet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import Pixels
from webinfer.session.options import real_number, whole_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import NO_SIZE, Box, Size
from webinfer.tasks.crop import Crop, InputSpec
from webinfer.tasks.landmarks import (
    LANDMARKS,
    SCORE,
    SHIFT,
    TURN,
    Landmarks,
    LandmarkThing,
    crop_inputs,
    landmarks_schema,
)
from webinfer.tasks.picture_input import PictureFeeder
from webinfer.tasks.pixels import is_picture, opened, picture_size, pixels_of, real, take_pixels
from webinfer.tasks.tracking import TrackingTask
from webinfer.tensor import Tensor

POSES, CONFIDENCES = "poses", "confidences"
POINTS = 17
MOST = 16  # bodies that PoseNet's decoder looks for
LEAST = 0.1  # score of a point that may start a body, and of a body
RADIUS = 20.0  # pixels of the input, within which two bodies' points are one
LINKS = 16  # of the skeleton; PoseNet has offsets along them, both ways
PARTS = ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
NAMES = ("nose", *(f"{side}_{part}" for part in PARTS for side in ("left", "right")))  # from the person's own side
LIMBS = ((3, 1, 0, 2, 4), (9, 7, 5, 6, 8, 10), (5, 11, 12, 6), (11, 13, 15), (12, 14, 16))


@dataclass(frozen=True, slots=True)
class BodyPose(LandmarkThing):
    """One body: its 17 landmarks in the order of `NAMES`, the box around them, and the model's score (0..1).

    A landmark's `visibility` is the score of that point.
    """

    box: Box
    score: float
    landmarks: Landmarks
    id: int | None = None
    image_size: Size = NO_SIZE


@dataclass(frozen=True, slots=True)
class Poses:
    """Bodies of a graph: y and x of their points in pixels of the input [N, 17, 2], and scores [N, 17] and [N]."""

    points: Value
    confidences: Value
    scores: Value


def with_poses(model: Any, pixels: Pixels) -> WithPostprocessing:
    """The model with pixels of 0..255 and the crop's map as inputs, and with bodies in the picture as outputs."""

    def extend(graph: Graph) -> None:
        builder, types = GraphBuilder(graph.name), [v.type for v in graph.outputs]
        picture = len(graph.inputs) == 1 and is_picture(graph.inputs[0].type)
        found = _found(builder, graph) if picture else None
        if found is None:
            raise ModelFormatError(
                f"{graph.name!r} is not a multi-pose model: inputs {[v.type.shape for v in graph.inputs]}, outputs "
                f"{[t.shape for t in types]}; known are PoseNet (heat maps, offsets, displacements; or decoded poses) "
                "and MoveNet"
            )
        take_pixels(graph, pixels)
        output_poses(builder, found)
        builder.extend(graph)

    return WithPostprocessing(model, f"{POSES}of{pixels}", extend)


def _found(builder: GraphBuilder, graph: Graph) -> Poses | None:
    """The bodies that a known kind of model puts out."""
    height, width, _ = picture_size(graph.inputs[0].type)
    outputs = real(builder, graph.outputs)
    shapes = [v.type.shape for v in outputs]
    if len(shapes) == 1 and shapes[0][-2:] == (POINTS, 3):
        return _rows(builder, outputs[0], (height, width), shapes[0][-3])
    if len(shapes) == 1 and shapes[0][2:] == (3 * POINTS + 5,):
        return _rows(builder, outputs[0], (height, width), shapes[0][1])
    if len(shapes) >= 4 and shapes[0][2:] == (POINTS, 2) and shapes[1] == shapes[0][:3] and shapes[2] == shapes[0][:2]:
        return Poses(*outputs[:3])
    found = posenet(builder, outputs, height, LEAST)
    return found and found[0]


def _rows(builder: GraphBuilder, rows: Value, size: tuple[int, int], count: int) -> Poses:
    """Of MoveNet: y, x and score of each point; of several people also the box and a score of each."""
    node = builder.node
    width = rows.type.size // count
    rows = node("reshape", rows, shape=(count, width))
    table = node("slice", rows, starts=(0, 0), sizes=(count, 3 * POINTS), steps=(1, 1))
    table = node("reshape", table, shape=(count * POINTS, 3))
    points, confidences = (
        node("slice", table, starts=(0, start), sizes=(count * POINTS, n), steps=(1, 1))
        for start, n in ((0, 2), (2, 1))
    )
    points = node("mul", points, [float(side) for side in size])
    confidences = node("reshape", confidences, shape=(count, POINTS))
    if width == 3 * POINTS:
        return Poses(points, confidences, node("reduce_mean", confidences, axes=(1,)))
    return Poses(points, confidences, node("slice", rows, starts=(0, width - 1), sizes=(count, 1), steps=(1, 1)))


def output_poses(builder: GraphBuilder, found: Poses) -> None:
    """Makes bodies outputs, their points in pixels of the picture, of which the crop's map becomes an input."""
    flat = builder.node("reshape", found.points, shape=(found.scores.type.size * POINTS, 2))
    deep = builder.node("matmul", flat, builder.constant([0.0, 1.0, 0.0, 1.0, 0.0, 0.0], (2, 3)))  # y, x -> x, y, 0
    turn, shift = builder.input(TURN, (3, 3)), builder.input(SHIFT, (1, 3))
    builder.output(builder.node("add", builder.node("matmul", deep, turn), shift), LANDMARKS)
    builder.output(found.confidences, CONFIDENCES)
    builder.output(found.scores, SCORE)


def posenet(
    builder: GraphBuilder, outputs: Sequence[Value], height: int, least: float, long: Value | None = None
) -> tuple[Poses, Value] | None:
    """The decoded bodies of PoseNet's maps, and with `long` offsets their masks; None if a map is missing.

    Maps are heat [1, h, w, 17], short offsets [.., 34], and middle offsets [.., 64] or [.., 32] along the skeleton and
    back, in this order.
    """
    by_channels: dict[int, list[Value]] = {}
    for value in outputs:
        if value.type.rank == 4:
            by_channels.setdefault(value.type.shape[3], []).append(value)
    heat, short = by_channels.get(POINTS), by_channels.get(2 * POINTS)
    both, each = by_channels.get(4 * LINKS), by_channels.get(2 * LINKS, [])
    if not heat or not short or not (both or len(each) == 2):
        return None
    middle = both[0] if both else builder.node("concat", *each, axis=3)
    cells = heat[0].type.shape[1]
    maps = [heat[0], short[0], middle, *([] if long is None else [long])]
    found = builder.node(
        "posenet_decoder", *maps, max_detections=MOST, score_threshold=least, stride=round((height - 1) / (cells - 1)),
        nms_radius=RADIUS,
    )  # fmt: skip
    return Poses(*found[:3]), found[-1]


class MultiPoseDetector(TrackingTask[BodyPose]):
    """Finds the bodies of several people. Create one with `await MultiPoseDetector.create()`."""

    name = "multi-pose"
    extension = POSES
    result = landmarks_schema("poses", "Bodies found", "Body", lines=LIMBS)

    def __init__(self, session: Session, spec: InputSpec, feeder: PictureFeeder) -> None:
        super().__init__(session, spec, feeder)
        self.min_score, self.most = 0.25, MOST

    @classmethod
    async def create(
        cls,
        model: Any = "movenet_multipose",
        *,
        most: int = MOST,
        min_score: float = 0.25,
        pixels: Pixels | None = None,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> MultiPoseDetector:
        """Creates a detector. `model` is a known name, bytes, a path or a URL of a PoseNet or a MoveNet.

        `most` bodies are told at most, best first, each with a score of `min_score` or more. `pixels` say what a float
        model wants for a picture's colours; None: as a known model does, else -1..1.

        Raises:  InputError if an option is out of range; what `webinfer.load` raises; ModelFormatError if the model is
                 neither
        """
        most, min_score = whole_number("most", most, 1, MOST), real_number("min_score", min_score, high=1)
        source = with_poses(model, pixels_of(model, pixels))
        session, spec, feeder = await opened(source, True, backend, progress, host)
        # By corners, as tf.image.resizeBilinear samples in the code that TensorFlow.js publishes with these models.
        detector = cls(session, replace(spec, corners=True), feeder)
        detector.min_score, detector.most = min_score, most
        return detector

    async def detect(self, image: Any) -> list[BodyPose]:
        """The bodies in an image, best first. The image is anything that `webinfer.tasks.image.read_image` accepts.

        Raises:  InputError if it is none of these or has no pixels
        """
        return await self.run(image)

    def more_inputs(self, crop: Crop) -> Mapping[str, Any]:
        """The crop's map."""
        return crop_inputs(self.session, crop)

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[BodyPose]:
        """The bodies in the model's outputs, best first."""
        found = [body for body in bodies_in(outputs) if body.score > 0 and body.score >= self.min_score]
        return sorted(found, key=lambda body: -body.score)[: self.most]


def bodies_in(outputs: Mapping[str, Tensor]) -> list[BodyPose]:
    """All bodies of outputs that `output_poses` made; those that are none score nothing."""
    xyz, sure, scores = (outputs[name].flat().tolist() for name in (LANDMARKS, CONFIDENCES, SCORE))
    found = []
    for i, score in enumerate(scores):
        each = [c for c in sure[POINTS * i : POINTS * (i + 1)] for _ in range(2)]  # is visible, and there
        landmarks = Landmarks(xyz[3 * POINTS * i : 3 * POINTS * (i + 1)], each)
        found.append(BodyPose(landmarks.box, score, landmarks))
    return found
