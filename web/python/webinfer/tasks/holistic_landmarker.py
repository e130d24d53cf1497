"""One person: body, face and hands together. The body says where face and hands are looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.graph.ir import Value
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import RECROP
from webinfer.tasks.base import NO_SIZE, Box, ResultField, ResultSchema, Size, Task, Thing
from webinfer.tasks.crop import Crop, Region
from webinfer.tasks.face_detector import DETECTORS
from webinfer.tasks.face_landmarker import FaceLandmarker, FaceLandmarks
from webinfer.tasks.face_parts import CONTOURS
from webinfer.tasks.finder import RegionFinder
from webinfer.tasks.hand_landmarker import BONES, HandLandmarker, HandLandmarks
from webinfer.tasks.landmarks import LANDMARKS, SCORE, LandmarkModel, Landmarks, LandmarkTask, confidences
from webinfer.tasks.pose_landmarker import LIMBS, PoseLandmarker, PoseLandmarks
from webinfer.tasks.regions import RegionRule
from webinfer.tensor import Tensor

HEAD = range(11)  # of the body's landmarks
HANDS = {"left": (15, 17, 19), "right": (16, 18, 20)}  # wrist, little finger, index finger; the person's own sides
HEAD_TO_REGION = RegionRule(5, 2, scale=3.0)
FACE_TO_REGION = RegionRule(0, 1, scale=2.0, shift=-0.1)  # by the detector's keypoints
HAND_TO_REGION = RegionRule(0, 1, math.pi / 2, scale=2.7, shift=-0.1, around_start=True)
RECROP_TO_REGION = RegionRule(0, 1, -math.pi / 2, shift=-0.1, around_start=True)
LEAST_VISIBLE = 0.1  # of a wrist whose hand is looked for


@dataclass(frozen=True, slots=True)
class PersonLandmarks(Thing):
    """One person: the body, and face and hands where they are seen. A hand's side is the person's own."""

    box: Box
    score: float
    pose: PoseLandmarks
    face: FaceLandmarks | None
    left_hand: HandLandmarks | None
    right_hand: HandLandmarks | None
    id: int | None = None
    image_size: Size = NO_SIZE


def _recropped(builder: GraphBuilder, outputs: Sequence[Value]) -> Mapping[str, Value]:
    """The middle of a hand and a point as far from it as it reaches."""
    points = builder.node("reshape", outputs[0], shape=(2, 2))
    return {LANDMARKS: builder.node("pad", points, before=(0, 0), after=(0, 1)), SCORE: builder.constant([1.0])}


class HandRecropper(LandmarkTask[Region]):
    """Finds the exact region of a hand near to one that is known by and large."""

    name = "hand-recrop"
    result = ResultSchema("landmarks", "regions", "Regions", "Region", ())
    kinds = (LandmarkModel("MediaPipe model of hand regions", RECROP, (4,), _recropped),)
    default_model = "hand_recrop"

    def thing(self, outputs: Mapping[str, Tensor], score: float) -> Region:
        """The region in the model's outputs."""
        return RECROP_TO_REGION.region(Landmarks(outputs[LANDMARKS].flat()).points())

    def following(self, found: Region) -> Region:
        """The region itself."""
        return found


class HolisticLandmarker(Task[PersonLandmarks]):
    """Finds body, face and hands of one person. Create one with `await HolisticLandmarker.create()`."""

    name, takes, extension = "holistic-landmarks", "picture", LANDMARKS
    result = ResultSchema(
        "landmarks", "people", "People found", "Person",
        (
            ResultField("box", "box", "px"), ResultField("score", "number", "0..1"),
            ResultField("pose", "landmarks", "px", LIMBS), ResultField("face", "landmarks", "px", CONTOURS),
            *(ResultField(f"{side}_hand", "landmarks", "px", BONES) for side in HANDS),
        ),
    )  # fmt: skip

    def __init__(
        self,
        pose: PoseLandmarker,
        face: FaceLandmarker,
        faces: RegionFinder,
        hand: HandLandmarker,
        hands: HandRecropper,
    ) -> None:
        super().__init__(pose.session)
        self._pose, self._face, self._faces, self._hand, self._hands = pose, face, faces, hand, hands
        self._before: dict[str, Region] = {}  # of the frame before: where face and hands are next
        self._id: int | None = None  # of the body that they belong to

    @classmethod
    async def create(
        cls,
        model: Any = None,
        *,
        pose_detector: Any = None,
        face: Any = None,
        face_detector: Any = "blazeface_short_range",
        hand: Any = None,
        hand_recrop: Any = None,
        output_segmentation_masks: bool = False,
        backend: str | Sequence[str] = "auto",
        min_detection_score: float | None = None,
        min_presence_score: float | None = None,
        min_detection_confidence: float | None = None,
        min_tracking_confidence: float | None = None,
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> HolisticLandmarker:
        """Creates a task. `model` is the pose model; it and the others are known names, bytes, paths or URLs.

        What scores less than `min_detection_score` is not looked at, what has landmarks that score less than
        `min_presence_score` is not told; both are 0.5 where they are not given, and may be called as MediaPipe does,
        `min_detection_confidence` and `min_tracking_confidence`. With `output_segmentation_masks` the `pose` has a
        `mask`, as `PoseLandmarker` tells it.

        Raises:  InputError for an option out of range; what `webinfer.load` raises; ModelFormatError if a model is not
                 of its kind
        """
        least, told = confidences(
            min_detection_score, min_presence_score, min_detection_confidence, min_tracking_confidence
        )
        host = host or current()
        with ExitStack() as opened:
            pose = await PoseLandmarker.create(
                model, output_segmentation_masks=output_segmentation_masks, detector=pose_detector, backend=backend,
                min_detection_score=least, min_presence_score=told, progress=progress, host=host,
            )  # fmt: skip
            opened.callback(pose.close)
            body = pose.session
            same: dict[str, Any] = {"backend": body.same_backend, "progress": progress, "host": host, "beside": body}
            mesh = await FaceLandmarker.opened("face_mesh" if face is None else face, **same)
            opened.callback(mesh.close)
            points = await HandLandmarker.opened(hand, **same)
            opened.callback(points.close)
            hands = await HandRecropper.opened(hand_recrop, **same)
            opened.callback(hands.close)
            faces = await RegionFinder.create(face_detector, DETECTORS, FACE_TO_REGION, **same)
            opened.pop_all()
        faces.min_score, mesh.min_score, points.min_score = least, told, told
        return cls(pose, mesh, faces, points, hands)

    async def run(self, image: Any, /) -> list[PersonLandmarks]:
        """As `detect`."""
        self._before = {}
        return await self._person(image, self._pose.detect)

    async def detect(self, image: Any) -> list[PersonLandmarks]:
        """The person in an image, or nobody, independently of earlier images.

        `image` is anything `webinfer.tasks.image.read_image` takes.

        Raises:  InputError if it is none of these or has no pixels
        """
        return await self.run(image)

    async def detect_for_video(self, frame: Any, time_ms: float | None = None) -> list[PersonLandmarks]:
        """The person in the next frame of a video. `time_ms` is its timestamp; None: now.

        The body is followed without its detector, face and hands without theirs while they are where the body has them.
        """
        return await self._person(frame, partial(self._pose.detect_for_video, time_ms=time_ms))

    def reset(self) -> None:
        """Forgets the person of the previous frame."""
        self._pose.reset()
        self._before = {}

    async def _person(self, image: Any, look: Any) -> list[PersonLandmarks]:
        clock = self.session.host.now_ms
        start, before, self._before = clock(), self._before, {}
        picture = await self._pose.read(image)
        found = await look(picture)
        prepare_ms = self._pose.times["prepare_ms"]
        if not found or found[0].id != self._id:
            before = {}  # another person, or a film that begins anew
        self._id = found[0].id if found else None
        people = [await self._whole(picture, pose, before) for pose in found]
        self._took(start, start + prepare_ms, clock())
        return people

    async def _whole(self, picture: Any, pose: PoseLandmarks, before: Mapping[str, Region]) -> PersonLandmarks:
        head = HEAD_TO_REGION.region(pose.landmarks.points(HEAD))
        parts = {"face": partial(self._part, "face", self._face, picture, head, before)}
        for side, places in HANDS.items():
            if pose.landmarks[places[0]].visibility > LEAST_VISIBLE:
                near = hand_region(pose.landmarks.points(places))
                parts[side] = partial(self._part, side, self._hand, picture, near, before)
        found = dict(zip(parts, await self._pose.together(picture, *parts.values()), strict=True))
        face, left, right = (found.get(name) for name in ("face", *HANDS))
        return PersonLandmarks(pose.box, pose.score, pose, face, left, right, pose.id, pose.image_size)

    async def _part(
        self, name: str, task: LandmarkTask[Any], picture: Any, near: Region, before: Mapping[str, Region]
    ) -> Any:
        """The face or a hand near to where the body has it: where it was in the frame before, or where it is found."""
        region = before.get(name)
        if region is None or not _inside(region, near):
            region = await (self._face_region if task is self._face else self._hand_region)(picture, near)
        (found,) = (await task.run(picture, region) if region else []) or [None]
        if found is not None:
            self._before[name] = task.following(found)
        return found

    async def _face_region(self, picture: Any, near: Region) -> Region | None:
        faces = await self._faces.found(picture, near)
        return FACE_TO_REGION.region(faces[0][0]) if faces else None

    async def _hand_region(self, picture: Any, near: Region) -> Region | None:
        (region,) = await self._hands.run(picture, near)
        return region

    def close(self) -> None:
        """Frees all models and the kernels' memory; a second call does nothing."""
        for part in (self._pose, self._face, self._faces, self._hand, self._hands):
            part.close()


def hand_region(points: Sequence[tuple[float, float]]) -> Region:
    """Where a hand is, by and large, for the body's wrist, little finger and index finger."""
    (wx, wy), (lx, ly), (ix, iy) = points
    middle = (2 * ix + lx) / 3, (2 * iy + ly) / 3
    return HAND_TO_REGION.region((middle, (2 * middle[0] - wx, 2 * middle[1] - wy)))


def _inside(region: Region, near: Region) -> bool:
    """Whether a region's middle lies in another one."""
    x, y = Crop(near, 1, 1).from_image(region.x, region.y)
    return 0 <= x <= 1 and 0 <= y <= 1
