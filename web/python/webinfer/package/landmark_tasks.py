"""Landmarks in packages: a detector as a package within the package, and the rule that turns its finds into regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

from webinfer.graph.ir import Graph
from webinfer.host.interface import Host
from webinfer.package.task_parts import PackagedTask, detections_of, picture_facts
from webinfer.session.loading import fetched_source
from webinfer.session.options import real_number, whole_number
from webinfer.tasks.crop import InputSpec
from webinfer.tasks.face_detector import DETECTORS
from webinfer.tasks.face_landmarker import CORNERS, EYES_TO_REGION, FaceLandmarker
from webinfer.tasks.gesture_recognizer import (
    CANNED,
    CUSTOM,
    EMBEDDER,
    LANDMARKER,
    GestureRecognizer,
    bundled_files,
    classifier_of,
)
from webinfer.tasks.gesture_recognizer import DETECTOR as BUNDLED_DETECTOR
from webinfer.tasks.hand_landmarker import HAND_TO_REGION as JOINTS_TO_REGION
from webinfer.tasks.hand_landmarker import KNUCKLES, LEFT, STABLE, HandLandmarker
from webinfer.tasks.holistic_landmarker import (
    FACE_TO_REGION,
    HAND_TO_REGION,
    HEAD_TO_REGION,
    RECROP_TO_REGION,
    HandRecropper,
    HolisticLandmarker,
)
from webinfer.tasks.landmarks import LANDMARKS, MOST, ROTATION, SCORE, SHIFT, TURN, WORLD, LandmarkTask, with_landmarks
from webinfer.tasks.pose_landmarker import (
    BODY_TO_REGION,
    CONFIDENCES,
    MASK,
    POINTS,
    MaskedPoseLandmarker,
    PoseLandmarker,
)
from webinfer.tasks.regions import RegionRule

DETECTOR = "detector"
UNTURNED = {TURN: [1, 0, 0, 0, 1, 0, 0, 0, 1], SHIFT: [0, 0, 0], ROTATION: [1, 0, 0, 0, 1, 0, 0, 0, 1]}


def _follow(task: type[LandmarkTask[Any]], rule: RegionRule, points: Sequence[int], **more: Any) -> Mapping[str, Any]:
    """How a film's next frame is looked at, as the task's `following` says, and what is smooth in it.

    `points` are landmarks of the model, those that the region lies around; `more` says what besides.
    """
    smooths = {name: asdict(cutoff) for name, cutoff in task.smooths.items()}
    return {"rule": asdict(rule), "points": list(points), "smooths": smooths, "steady": task.steady, **more}


OF_FACES = {"follow": _follow(FaceLandmarker, EYES_TO_REGION, CORNERS, boxed=True)}
OF_HANDS = {
    "world": WORLD, "left": LEFT,
    "follow": _follow(HandLandmarker, JOINTS_TO_REGION, STABLE, towards=list(KNUCKLES.items())),
}  # fmt: skip
OF_BODIES = {
    "world": WORLD, "confidences": CONFIDENCES, "points": POINTS,
    "follow": _follow(PoseLandmarker, BODY_TO_REGION, (POINTS, POINTS + 1)),
}  # fmt: skip


def face_landmarks(model: Any, **options: Any) -> PackagedTask:
    """Landmarks of faces, as `FaceLandmarker` finds them."""
    return _landmarks(FaceLandmarker, OF_FACES, model, **options)


def hand_landmarks(model: Any, **options: Any) -> PackagedTask:
    """Landmarks of hands, as `HandLandmarker` finds them."""
    return _landmarks(HandLandmarker, OF_HANDS, model, **options)


def pose_landmarks(model: Any, *, output_segmentation_masks: bool = False, **options: Any) -> PackagedTask:
    """Landmarks of bodies, as `PoseLandmarker` finds them."""
    return _bodies({}, model, output_segmentation_masks, **options)


def _bodies(told: Mapping[str, Any], model: Any, masks: bool, **options: Any) -> PackagedTask:
    if masks:
        return _landmarks(MaskedPoseLandmarker, {**OF_BODIES, **told, "mask": MASK}, model, **options)
    return _landmarks(PoseLandmarker, {**OF_BODIES, **told}, model, **options)


def holistic(
    model: Any, *, pose_detector: Any = None, face: Any = "face_mesh", face_detector: Any = "blazeface_short_range",
    hand: Any = HandLandmarker.default_model, hand_recrop: Any = HandRecropper.default_model,
    output_segmentation_masks: bool = False, **options: Any,
) -> PackagedTask:  # fmt: skip
    """Body, face and hands of one person, as `HolisticLandmarker` finds them; `model` is the body's."""
    if "most" in options:
        raise TypeError("holistic() got an unexpected keyword argument 'most'")
    rules = {"head": HEAD_TO_REGION, "face": FACE_TO_REGION, "hand": HAND_TO_REGION, "recrop": RECROP_TO_REGION}
    told = {"kind": "holistic", "rules": {name: asdict(rule) for name, rule in rules.items()}}
    body = _bodies(told, model, output_segmentation_masks, detector=pose_detector, **options)
    parts = {
        "face": _points(FaceLandmarker, OF_FACES, face), "faces": detections_of("faces", face_detector, DETECTORS),
        "hand": _points(HandLandmarker, OF_HANDS, hand), "hands": _points(HandRecropper, {}, hand_recrop),
    }  # fmt: skip
    return replace(body, name=HolisticLandmarker.name, parts={**body.parts, **parts})


async def gestures(model: Any, host: Host, *, custom_gestures: bool = False, **options: Any) -> PackagedTask:
    """Hands and their gestures, as `GestureRecognizer` tells them; `model` is a bundle of models."""
    classifiers = {CUSTOM: "custom", CANNED: "canned"} if custom_gestures else {CANNED: "canned"}
    needed = (BUNDLED_DETECTOR, LANDMARKER, EMBEDDER, *classifiers)
    files = bundled_files(*(await fetched_source(model, host, None))[:2], needed)
    told = list[dict[str, Any]]()
    for name, part in classifiers.items():
        one = await classifier_of(files[name], name, host)
        one.session.close()
        told.append({"part": part, "labels": one.labels, "least": one.least})
    options.setdefault("detector", files[BUNDLED_DETECTOR])
    found = _landmarks(HandLandmarker, {**OF_HANDS, "gestures": told}, files[LANDMARKER], **options)
    parts = {"embedder": files[EMBEDDER], **{part: files[name] for name, part in classifiers.items()}}
    return replace(found, name=GestureRecognizer.name, parts={**found.parts, **parts})


def _landmarks(
    task: type[LandmarkTask[Any]], told: Mapping[str, Any], model: Any, *, detector: Any = None, most: int = 1,
    min_detection_score: float = 0.5, min_presence_score: float = 0.5, smooth: bool = True,
) -> PackagedTask:  # fmt: skip
    """A task of landmarks with its detector; `told` as for `_points`."""
    numbers = {
        "most": [whole_number("most", most, 1, MOST)],
        "min_detection_score": [real_number("min_detection_score", min_detection_score, high=1)],
        "min_presence_score": [real_number("min_presence_score", min_presence_score, high=1)],
        "smooth": [int(smooth)],
    }
    finder = detections_of(DETECTOR, task.default_detector if detector is None else detector, task.family)
    return _points(task, {"rule": asdict(task.rule), **told}, model, numbers, {DETECTOR: finder})


def _points(
    task: type[LandmarkTask[Any]], told: Mapping[str, Any], model: Any,
    numbers: Mapping[str, Any] = MappingProxyType({}), parts: Mapping[str, Any] = MappingProxyType({}),
) -> PackagedTask:  # fmt: skip
    """A model of landmarks; `told` names the outputs that its results have besides landmarks and score."""

    def facts(graph: Graph) -> Mapping[str, Any]:
        _, height, width, _ = graph.inputs[0].type.shape
        kind = next(k for k in task.kinds if (k.input.height, k.input.width) == (height, width))
        inputs = {value.name for value in graph.inputs}
        return {
            "picture": picture_facts(graph, InputSpec.of_mediapipe(kind.input, border=task.border)),
            "numbers": dict(numbers),
            "constants": {name: values for name, values in UNTURNED.items() if name in inputs},
            "decode": {"kind": "landmarks", "landmarks": LANDMARKS, "score": SCORE, **told},
        }

    return PackagedTask(task.name, with_landmarks(model, task.kinds), facts, parts)
