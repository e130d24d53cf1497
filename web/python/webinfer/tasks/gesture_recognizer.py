"""Gestures of hands: MediaPipe's bundles of models, `.task` files, that find hands and tell gestures apart."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from webinfer.errors import ModelFormatError
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.importers import metadata
from webinfer.importers.readers.archive import is_archive, unpack
from webinfer.lazy_dataclass import dataclass
from webinfer.session.loading import fetched_source, load
from webinfer.session.session import Session
from webinfer.tasks.base import ResultField
from webinfer.tasks.hand_landmarker import BONES, POINTS, HandLandmarker, HandLandmarks
from webinfer.tasks.landmarks import landmarks_schema
from webinfer.tasks.picture_input import closed_on_error
from webinfer.tensor import Tensor

# The bundle's files; it holds two bundles.
DETECTOR, LANDMARKER = (f"hand_landmarker.task/hand_{part}.tflite" for part in ("detector", "landmarks_detector"))
EMBEDDER, CANNED, CUSTOM = (
    f"hand_gesture_recognizer.task/{part}.tflite"
    for part in ("gesture_embedder", "canned_gesture_classifier", "custom_gesture_classifier")
)
NONE = "None"  # no gesture
# What MediaPipe's own classifier tells apart, in the order of its guide: the file does not say it.
LABELS = (NONE, "Closed_Fist", "Open_Palm", "Pointing_Up", "Thumb_Down", "Thumb_Up", "Victory", "ILoveYou")
LEAST_SIDE = 1e-5  # kEpsilon of landmarks_to_matrix_calculator.cc


@dataclass(frozen=True, slots=True)
class HandGesture(HandLandmarks):
    """One hand, its landmarks and its gesture, "None" if there is none. `gesture_score` is 0..1."""

    gesture: str = NONE
    gesture_score: float = 0.0


@dataclass(frozen=True, slots=True)
class Classifier:
    """A model that tells gestures apart by a hand's embedding, and the names of its classes."""

    session: Session
    labels: tuple[str, ...]
    least: float = 0.0  # the score from which on a gesture counts

    async def best(self, embedding: Tensor) -> tuple[str, float]:
        """The gesture that is most likely, and its score."""
        scores = next(iter((await self.session.run({self.session.inputs[0].name: embedding})).values())).tolist()
        place = max(range(len(scores)), key=scores.__getitem__)
        return self.labels[place], scores[place]


class GestureRecognizer(HandLandmarker):
    """Finds hands and recognizes their gestures. Create one with `await GestureRecognizer.create(most=2)`."""

    name = "gesture-recognition"
    result = landmarks_schema(
        "hands", "Hands found", "Hand", ResultField("gesture", "label", ""),
        ResultField("gesture_score", "number", "0..1"), ResultField("handedness", "text", ""), lines=BONES,
    )  # fmt: skip

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._embedder: Session | None = None
        self._classifiers: list[Classifier] = []  # in the order in which they are asked

    @classmethod
    async def create(
        cls,
        model: Any = "gesture_recognizer",
        *,
        custom_gestures: bool = False,
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
        """Creates a recognizer. `model` is a bundle as MediaPipe's Model Maker writes it: a known name, bytes, a
        path or a URL.

        With `custom_gestures` the bundle's own classifier is asked first, as in MediaPipe; else only the one that knows
        LABELS. `detector` is another one than the bundle's. The rest is as for `HandLandmarker`.

        Raises:  ModelFormatError if something is missing in the bundle; what `HandLandmarker.create` raises
        """
        host = host or current()
        needed = (DETECTOR, LANDMARKER, EMBEDDER, CANNED, *((CUSTOM,) if custom_gestures else ()))
        files = bundled_files(*(await fetched_source(model, host, progress))[:2], needed)
        task = await super().create(
            files[LANDMARKER], detector=files[DETECTOR] if detector is None else detector, backend=backend, most=most,
            min_detection_score=min_detection_score, min_presence_score=min_presence_score,
            min_detection_confidence=min_detection_confidence, min_tracking_confidence=min_tracking_confidence,
            smooth=smooth, progress=progress, host=host,
        )  # fmt: skip
        try:
            task._embedder = await load(files[EMBEDDER], backend="wasm", host=host)
            for name in (CUSTOM, CANNED) if custom_gestures else (CANNED,):
                task._classifiers.append(await classifier_of(files[name], name, host))
        except BaseException:
            task.close()
            raise
        return task

    def thing(self, outputs: Mapping[str, Tensor], score: float) -> HandGesture:
        """The hand in the model's outputs; its gesture is told later."""
        hand = super().thing(outputs, score)
        return HandGesture(hand.box, hand.score, hand.handedness, hand.handedness_score, hand.landmarks, hand.world)

    async def run(self, image: Any, region: Any = None) -> list[HandLandmarks]:
        """As `detect`; in a region of the image the detector is not asked."""
        return [await self.recognize(hand) for hand in await super().run(image, region)]

    async def detect_for_video(self, frame: Any, time_ms: float | None = None) -> list[HandLandmarks]:
        """Like `HandLandmarker.detect_for_video`, with gestures.

        Raises:  as `HandLandmarker.detect_for_video`
        """
        return [await self.recognize(hand) for hand in await super().detect_for_video(frame, time_ms)]

    async def recognize(self, hand: HandLandmarks) -> HandLandmarks:
        """The hand with the first gesture that a classifier sees, by its landmarks alone.

        `hand` has the picture's size, as `HandLandmarker` and `detect` tell it.

        Source:  mediapipe/tasks/cc/vision/gesture_recognizer: hand_gesture_recognizer_graph.cc and its calculators
        """
        left = hand.handedness_score if hand.handedness == "Left" else 1 - hand.handedness_score
        width, height = hand.image_size
        longer = max(width, height)
        assert self._embedder is not None
        outputs = await self._embedder.run(
            {
                "hand": as_object(hand.landmarks.xyz, (longer, longer, width)),
                "handedness": array("f", [left]),
                "world_hand": as_object(hand.world.xyz, (1, 1, 1)),
            }
        )
        (embedding,) = outputs.values()
        every = [(one.least, *await one.best(embedding)) for one in self._classifiers]
        found = [(label, score) for least, label, score in every if score >= least] or [(NONE, 0.0)]
        label, score = next((row for row in found if row[0] != NONE), found[0])
        return replace(hand, gesture=label, gesture_score=score)  # type: ignore[call-arg]

    def close(self) -> None:
        """Frees all models and the kernels' memory; a second call does nothing."""
        super().close()
        for one in self._classifiers:
            one.session.close()
        if self._embedder is not None:
            self._embedder.close()


def as_object(xyz: Sequence[float], units: tuple[float, float, float]) -> array[float]:
    """Points from the first of them on, in parts of the longer side of the box around them; `units` divide them first.

    Source:  mediapipe/tasks/cc/vision/gesture_recognizer/calculators/landmarks_to_matrix_calculator.cc
    """
    axes = [[(value - xyz[axis]) / units[axis] for value in xyz[axis::3]] for axis in range(3)]
    side = max(max(axis) - min(axis) for axis in axes[:2]) + LEAST_SIDE
    return array("f", [axes[axis][point] / side for point in range(POINTS) for axis in range(3)])


def bundled_files(data: memoryview, title: str, needed: Sequence[str]) -> Mapping[str, memoryview]:
    """The files of a bundle, all those that are needed among them."""
    files = unpack(data, title) if is_archive(data) else {}
    if missing := [name for name in needed if name not in files]:
        found = ", ".join(sorted(files)) or "no files"
        raise ModelFormatError(f"{title!r} is not a bundle for gestures: it needs {missing[0]}, it has {found}")
    return files


async def classifier_of(data: memoryview, name: str, host: Host) -> Classifier:
    """The classifier in a file of the bundle."""
    told = metadata(data, name)
    labels = tuple(told.get("labels.txt", "\n".join(LABELS)).splitlines())
    session = await load(data, backend="wasm", host=host)
    with closed_on_error(session):
        classes = session.outputs[0].shape[-1]
        if classes != len(labels):
            raise ModelFormatError(f"{name} has {classes} gestures, but names for {len(labels)}")
    return Classifier(session, labels, float(told.get("score_threshold", 0)))
