"""Tasks that can be compiled into a package: what goes before and behind the model, and what a player needs of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from webinfer.errors import InputError
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host
from webinfer.models.layouts import HALF_SIGNED, IMAGENET, PictureInput, Pixels
from webinfer.models.registry import known_model
from webinfer.package.landmark_tasks import face_landmarks, gestures, hand_landmarks, holistic, pose_landmarks
from webinfer.package.plain_tasks import files, reading, sentences, texts, voice
from webinfer.package.task_parts import PackagedTask, detections_of, picture_facts, remembering
from webinfer.session.options import real_number, whole_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.tasks.audio import MAX_RATE
from webinfer.tasks.audio_classifier import AudioClassifier, check_sound, labels_of
from webinfer.tasks.background_remover import MATTE, BackgroundRemover, with_matte
from webinfer.tasks.body_segmenter import PART as PART_MAP
from webinfer.tasks.body_segmenter import PARTS, PERSON, WHOSE, BodySegmenter, with_segments
from webinfer.tasks.classifier import CLASSES, SCORES, ImageClassifier, with_best
from webinfer.tasks.crop import Border, InputSpec
from webinfer.tasks.depth_estimator import DEPTH, DepthEstimator, with_depth
from webinfer.tasks.face_detector import DETECTORS, FaceDetector
from webinfer.tasks.face_landmarker import FaceLandmarker
from webinfer.tasks.file_classifier import FileTypeClassifier
from webinfer.tasks.gesture_recognizer import GestureRecognizer
from webinfer.tasks.hand_landmarker import HandLandmarker
from webinfer.tasks.holistic_landmarker import HolisticLandmarker
from webinfer.tasks.image_embedder import EMBEDDING, ImageEmbedder, with_embedding
from webinfer.tasks.landmarks import LANDMARKS, SCORE, SHIFT, TURN
from webinfer.tasks.multi_pose import CONFIDENCES, NAMES, MultiPoseDetector, with_poses
from webinfer.tasks.multi_pose import MOST as MOST_BODIES
from webinfer.tasks.object_detector import ObjectDetector
from webinfer.tasks.object_models import MOST as MOST_OBJECTS
from webinfer.tasks.object_models import YOLO_OVERLAP, with_objects
from webinfer.tasks.object_models import input_spec as objects_spec
from webinfer.tasks.pixels import COLUMNS_USED, ROWS_USED, pixels_of
from webinfer.tasks.pose_landmarker import PoseLandmarker
from webinfer.tasks.segmenter import SelfieSegmenter, segmentation_spec
from webinfer.tasks.sentence_embedder import SentenceEmbedder
from webinfer.tasks.text_classifier import TextClassifier
from webinfer.tasks.text_reader import TextReader
from webinfer.tasks.voice_detector import VoiceActivityDetector
from webinfer.tasks.yolo import PROTOTYPES, ROWS, yolo_of
from webinfer.tasks.yolo_objects import letterbox

READING = (voice, files, sentences, texts, reading, gestures)  # makers that read a model, or files beside it
MOST = 5  # classes that a packaged classifier tells
# The crop's map of tasks whose points the player brings to the picture: points stay in pixels of the input.
UNMOVED = {TURN: [1, 0, 0, 0, 1, 0, 0, 0, 1], SHIFT: [0, 0, 0]}


async def packaged_task(name: str, model: Any, options: Mapping[str, Any], host: Host) -> PackagedTask:
    """The task of this name for a model. Names are those of `tasks.TASKS`, or of their classes as in `face-detector`.

    Raises:  InputError if there is no such task, it cannot be packaged, or it has no such option
    """
    makers: dict[str, Callable[..., PackagedTask | Awaitable[PackagedTask]]] = {
        FaceDetector.name: _faces, "face-detector": _faces,
        ImageClassifier.name: _classes, "image-classifier": _classes,
        SelfieSegmenter.name: _people, "selfie-segmenter": _people,
        BackgroundRemover.name: _foreground, "background-remover": _foreground,
        DepthEstimator.name: _depth, "depth-estimator": _depth,
        ObjectDetector.name: _objects, "object-detector": _objects,
        MultiPoseDetector.name: _poses, "multi-pose-detector": _poses,
        BodySegmenter.name: _bodies, "body-segmenter": _bodies,
        ImageEmbedder.name: _vector, "image-embedder": _vector,
        AudioClassifier.name: _sounds, "audio-classifier": _sounds,
        FaceLandmarker.name: face_landmarks, "face-landmarker": face_landmarks,
        HandLandmarker.name: hand_landmarks, "hand-landmarker": hand_landmarks,
        PoseLandmarker.name: pose_landmarks, "pose-landmarker": pose_landmarks,
        HolisticLandmarker.name: holistic, "holistic-landmarker": holistic,
        GestureRecognizer.name: gestures, "gesture-recognizer": gestures,
        TextReader.name: reading, "text-reader": reading,
        VoiceActivityDetector.name: voice, "voice-activity-detector": voice,
        FileTypeClassifier.name: files, "file-type-classifier": files,
        SentenceEmbedder.name: sentences, "sentence-embedder": sentences,
        TextClassifier.name: texts, "text-classifier": texts,
    }  # fmt: skip
    if name not in makers:
        raise InputError(
            f"task {name!r} cannot be compiled into a package; those that can are {', '.join(sorted(makers))}"
        )
    try:
        made = makers[name](model, host, **options) if makers[name] in READING else makers[name](model, **options)
    except TypeError as error:
        raise InputError(f"task {name!r}: {error}") from None
    return made if isinstance(made, PackagedTask) else await made


def _faces(model: Any, *, min_score: float | None = None) -> PackagedTask:
    if min_score is not None:
        min_score = real_number("min_score", min_score, high=1)

    return detections_of(FaceDetector.name, model, DETECTORS, min_score)


def _classes(
    model: Any, *, labels: Sequence[str] | None = None, values: tuple[float, float] = (-1.0, 1.0),
    keep_aspect: bool = False, most: int = MOST,
) -> PackagedTask:  # fmt: skip
    known = known_model(model)
    names = list(labels if labels is not None else known.labels if known else ())
    source, read = remembering(with_best(model, most, values))

    def facts(graph: Graph) -> Mapping[str, Any]:
        yolo, spec = yolo_of(read), replace(_fitted(graph), keep_aspect=keep_aspect)
        return {
            "picture": picture_facts(graph, spec if yolo is None else replace(spec, keep_aspect=False)),
            "numbers": {},
            "decode": {
                "kind": "categories" if yolo is None else "middle", "scores": SCORES, "classes": CLASSES,
                "labels": names or list(yolo.labels if yolo else ()),
            },
        }  # fmt: skip

    return PackagedTask(ImageClassifier.name, source, facts)


def _people(model: Any) -> PackagedTask:
    def facts(graph: Graph) -> Mapping[str, Any]:
        spec = segmentation_spec(graph.name, graph.inputs[0].type.shape, [v.type.shape for v in graph.outputs])
        return _mask(graph, spec, graph.outputs[0].name)

    return PackagedTask(SelfieSegmenter.name, WithPostprocessing(model, "people", lambda graph: None), facts)


def _foreground(model: Any, *, pixels: Pixels | None = None) -> PackagedTask:
    known = known_model(model)
    source = with_matte(model, pixels or (known.pixels if known else HALF_SIGNED))
    return PackagedTask(BackgroundRemover.name, source, lambda graph: _mask(graph, _stretched(graph), MATTE))


def _depth(model: Any, *, pixels: Pixels | None = None) -> PackagedTask:
    known = known_model(model)
    source = with_depth(model, pixels or (known.pixels if known else IMAGENET))
    return PackagedTask(DepthEstimator.name, source, lambda graph: _mask(graph, _stretched(graph), DEPTH))


def _objects(
    model: Any, *, labels: Sequence[str] | None = None, min_score: float = 0.5, most: int = MOST_OBJECTS,
    overlap: float = YOLO_OVERLAP, pixels: Pixels | None = None, keep_aspect: bool | None = None,
) -> PackagedTask:  # fmt: skip
    known, most = known_model(model), whole_number("most", most, 1, MOST_OBJECTS)
    least = real_number("min_score", min_score, high=1)
    names = list(labels if labels is not None else known.labels if known else ())
    overlap = real_number("overlap", overlap, high=1)
    source, read = remembering(with_objects(model, pixels_of(model, pixels), overlap))

    def facts(graph: Graph) -> Mapping[str, Any]:
        if (yolo := yolo_of(read)) is not None:
            _, height, width, _ = graph.inputs[0].type.shape
            return {
                "picture": picture_facts(graph, letterbox(width, height)),
                "numbers": {"min_score": [least]},
                "constants": {ROWS_USED: [1] * height, COLUMNS_USED: [1] * width},
                "decode": {
                    "kind": "yolo", "task": yolo.task, "output": ROWS, "prototypes": PROTOTYPES,
                    "each": yolo.keypoints[1], "final": bool(yolo.final), "overlap": overlap,
                    "labels": names or list(yolo.labels), "most": most,
                },
            }  # fmt: skip
        output = graph.outputs[0].name
        return {
            "picture": picture_facts(graph, objects_spec(output, graph.inputs[0].type.shape, keep_aspect)),
            "numbers": {"min_score": [least]},
            "decode": {"kind": "objects", "output": output, "labels": names, "most": most},
        }

    return PackagedTask(ObjectDetector.name, source, facts)


def _poses(
    model: Any, *, most: int = MOST_BODIES, min_score: float = 0.25, pixels: Pixels | None = None
) -> PackagedTask:
    most, least = whole_number("most", most, 1, MOST_BODIES), real_number("min_score", min_score, high=1)

    def facts(graph: Graph) -> Mapping[str, Any]:
        return {
            "picture": picture_facts(graph, replace(_fitted(graph), corners=True)),
            "numbers": {"min_score": [least]}, "constants": UNMOVED,
            "decode": {"kind": "poses", **_bodies_in(), "most": most},
        }  # fmt: skip

    return PackagedTask(MultiPoseDetector.name, with_poses(model, pixels_of(model, pixels)), facts)


def _bodies(model: Any, *, threshold: float = 0.7, pixels: Pixels | None = None) -> PackagedTask:
    threshold = real_number("threshold", threshold, high=1)

    def facts(graph: Graph) -> Mapping[str, Any]:
        maps = {"person": PERSON, "part": PART_MAP, "whose": WHOSE}
        return {
            "picture": picture_facts(graph, _fitted(graph)),
            "numbers": {"threshold": [threshold]}, "constants": UNMOVED,
            "decode": {"kind": "bodies", **_bodies_in(), **maps, "parts": PARTS},
        }  # fmt: skip

    return PackagedTask(BodySegmenter.name, with_segments(model, pixels_of(model, pixels)), facts)


def _bodies_in() -> dict[str, Any]:
    """The outputs that `multi_pose.output_poses` makes, and the names of a body's points."""
    return {"landmarks": LANDMARKS, "confidences": CONFIDENCES, "scores": SCORE, "names": NAMES}


def _vector(
    model: Any, *, features: bool = False, pixels: Pixels | None = None, keep_aspect: bool = False
) -> PackagedTask:
    def facts(graph: Graph) -> Mapping[str, Any]:
        spec = replace(_fitted(graph), keep_aspect=keep_aspect)
        return {"picture": picture_facts(graph, spec), "numbers": {}, "decode": {"kind": "vector", "output": EMBEDDING}}

    return PackagedTask(ImageEmbedder.name, with_embedding(model, pixels_of(model, pixels), features), facts)


def _sounds(
    model: Any, *, labels: Sequence[str] | None = None, rate: int = 16000, min_score: float = 0.3
) -> PackagedTask:
    rate, least = whole_number("rate", rate, 1000, MAX_RATE), real_number("min_score", min_score, high=1)

    def facts(graph: Graph) -> Mapping[str, Any]:
        check_sound(graph.name, [v.type for v in graph.inputs], [v.type for v in graph.outputs])
        (heard,), (scores,) = graph.inputs, graph.outputs
        names = labels_of(graph.name, scores.type.shape[-1], labels, read)
        return {
            "sound": {"input": heard.name, "window": heard.type.shape[-1], "rate": rate},
            "numbers": {"min_score": [least]},
            "decode": {"kind": "sounds", "scores": scores.name, "labels": names},
        }

    source, read = remembering(WithPostprocessing(model, "sounds", reads_metadata=True))
    return PackagedTask(AudioClassifier.name, source, facts)


def _fitted(graph: Graph) -> InputSpec:
    """A picture whose values are pixels, fitted into the input with black around it."""
    _, height, width, _ = graph.inputs[0].type.shape
    return InputSpec(PictureInput(width, height, 1.0, 0.0))


def _stretched(graph: Graph) -> InputSpec:
    """A picture whose values are pixels, stretched to the input, continued at its edges."""
    _, height, width, _ = graph.inputs[0].type.shape
    return InputSpec(PictureInput(width, height, 1.0, 0.0), keep_aspect=False, border=Border.EDGE)


def _mask(graph: Graph, spec: InputSpec, output: str) -> Mapping[str, Any]:
    """A map of the model's own size, which lies over all of the picture."""
    return {"picture": picture_facts(graph, spec), "numbers": {}, "decode": {"kind": "mask", "output": output}}
