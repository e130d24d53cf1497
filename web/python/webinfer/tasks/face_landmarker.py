"""468 points of a face, or 478 with lips and eyes as the attention model refines them and both irises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webinfer.authoring.builder import GraphBuilder
from webinfer.graph.ir import Value
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import FACE_MESH
from webinfer.tasks.base import NO_SIZE, Box, Size
from webinfer.tasks.crop import Region
from webinfer.tasks.face_detector import DETECTORS
from webinfer.tasks.face_geometry import Matrix, transformation_matrix
from webinfer.tasks.face_parts import CONTOURS, EYES, IRIS_POINTS, PARTS
from webinfer.tasks.landmarks import (
    LANDMARKS,
    SCORE,
    LandmarkModel,
    Landmarks,
    LandmarkTask,
    LandmarkThing,
    landmarks_schema,
)
from webinfer.tasks.regions import RegionRule
from webinfer.tensor import Tensor

POINTS = 468
CORNERS = (33, 263)  # outer corners of the eyes, from left to right in the picture
EYES_TO_REGION = RegionRule(0, 1, scale=1.5)


@dataclass(frozen=True, slots=True)
class FaceLandmarks(LandmarkThing):
    """One face: its landmarks, the box around them, and its score (0..1)."""

    box: Box
    score: float
    landmarks: Landmarks
    id: int | None = None
    image_size: Size = NO_SIZE

    @property
    def transformation_matrix(self) -> Matrix:
        """The face's position and rotation relative to the camera: MediaPipe's facial transformation matrix, 4 x 4.

        It brings MediaPipe's canonical face, in centimetres, to a camera at 0, 0, 0 that looks along -z and has a
        vertical field of view of 63 degrees. The left three columns are rotation times scale, the last the place.
        """
        return transformation_matrix(self.normalized_landmarks.xyz, self.image_size)


def _plain(builder: GraphBuilder, outputs: Sequence[Value]) -> Mapping[str, Value]:
    points = builder.node("reshape", outputs[0], shape=(POINTS, 3))
    return {LANDMARKS: points, SCORE: builder.node("sigmoid", outputs[1])}


def _refined(builder: GraphBuilder, outputs: Sequence[Value]) -> Mapping[str, Value]:
    """Points of lips, eyes and irises take x and y of their own outputs; an iris is as deep as its eye."""
    mesh, *parts, flag = outputs
    mesh = builder.node("reshape", mesh, shape=(POINTS, 3))
    flat, deep = (
        builder.node("slice", mesh, starts=(0, s), sizes=(POINTS, n), steps=(1, 1)) for s, n in ((0, 2), (2, 1))
    )
    pairs = [builder.node("reshape", part, shape=(part.type.size // 2, 2)) for part in parts]
    places = list(range(POINTS + 2 * IRIS_POINTS))
    first = POINTS
    for part in PARTS:
        for i, place in enumerate(part):
            places[place] = first + i
        first += len(part)
    chosen = builder.constant(places, dtype="int32")
    across = builder.node("gather", builder.node("concat", flat, *pairs, axis=0), chosen, axis=0)
    depths = [deep]
    for eye in EYES:
        around = builder.node("gather", deep, builder.constant(list(eye), dtype="int32"), axis=0)
        mean = builder.node("reduce_mean", around, axes=(0,), keep_dims=True)
        depths.append(builder.node("expand", mean, shape=(IRIS_POINTS, 1)))
    depth = builder.node("concat", *depths, axis=0)
    return {LANDMARKS: builder.node("concat", across, depth, axis=1), SCORE: builder.node("sigmoid", flag)}


class FaceLandmarker(LandmarkTask[FaceLandmarks]):
    """Finds the landmarks of faces. Create one with `await FaceLandmarker.create()`.

    `model="face_mesh_attention"` gives 478 landmarks: 468 to 472 and 473 to 477 are the irises.
    """

    name = "face-landmarks"
    result = landmarks_schema("faces", "Faces found", "Face", lines=CONTOURS)
    family, rule = DETECTORS, EYES_TO_REGION
    kinds = (
        LandmarkModel("face mesh", FACE_MESH, (3 * POINTS, 1), _plain),
        LandmarkModel("face mesh", FACE_MESH, (3 * POINTS, *(2 * len(part) for part in PARTS), 1), _refined),
    )
    default_model, default_detector = "face_mesh_attention", "blazeface_short_range"

    def thing(self, outputs: Mapping[str, Tensor], score: float) -> FaceLandmarks:
        """The face in the model's outputs."""
        landmarks = Landmarks(outputs[LANDMARKS].flat())
        return FaceLandmarks(landmarks.box, score, landmarks)

    def following(self, found: FaceLandmarks) -> Region:
        """The region around the landmarks, turned as the eyes are."""
        return EYES_TO_REGION.region(found.landmarks.points(CORNERS), found.box)
