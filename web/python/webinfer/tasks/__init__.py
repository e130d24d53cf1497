"""Tasks: a picture, a recording, text or bytes in, what is in it out. Pixels and samples are the kernels' work.

`base` is what every task stands on; a task is one file and one row of TASKS. `crop` and `image` say which pixels a
model sees, `picture_input`, `gpu_image` and `workspace` bring them there, `ssd` reads single-shot detectors; `finder`,
`regions` and `landmarks` are for tasks that look twice; `audio` is for those that listen. May import all below the API.
"""

import inspect
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from webinfer.deprecated import warn
from webinfer.errors import InputError
from webinfer.host.interface import Host
from webinfer.tasks.audio import AudioSegment
from webinfer.tasks.audio_classifier import AudioClassifier
from webinfer.tasks.background_remover import BackgroundRemover
from webinfer.tasks.base import Box, Task
from webinfer.tasks.body_segmenter import BodyMask, BodySegmenter
from webinfer.tasks.classifier import Category, ImageClassifier
from webinfer.tasks.face_detector import Face, FaceDetector
from webinfer.tasks.face_landmarker import FaceLandmarker, FaceLandmarks
from webinfer.tasks.file_classifier import FileRules, FileType, FileTypeClassifier
from webinfer.tasks.gpu_mask import GpuMask, MaskLook, MaskPainter
from webinfer.tasks.hand_landmarker import HandLandmarker, HandLandmarks
from webinfer.tasks.holistic_landmarker import HolisticLandmarker, PersonLandmarks
from webinfer.tasks.landmark_names import BodyLandmark, HandLandmark, PoseLandmark
from webinfer.tasks.landmarks import Landmark, Landmarks
from webinfer.tasks.multi_pose import BodyPose, MultiPoseDetector
from webinfer.tasks.names import task_name
from webinfer.tasks.object_detector import DetectedObject, ObjectDetector
from webinfer.tasks.pose_landmarker import PoseLandmarker, PoseLandmarks
from webinfer.tasks.segmenter import Mask, SelfieSegmenter
from webinfer.tasks.sentence_embedder import Embedding, SentenceEmbedder
from webinfer.tasks.task_pipeline import Pipeline
from webinfer.tasks.text_reader import TextLine, TextReader
from webinfer.tasks.voice_detector import VoiceActivityDetector

__all__ = [
    "TASKS",
    "AudioClassifier",
    "AudioSegment",
    "BackgroundRemover",
    "BodyLandmark",
    "BodyMask",
    "BodyPose",
    "BodySegmenter",
    "Box",
    "Category",
    "DepthEstimator",
    "DepthMap",
    "DetectedObject",
    "Embedding",
    "Face",
    "FaceDetector",
    "FaceLandmarker",
    "FaceLandmarks",
    "FileRules",
    "FileType",
    "FileTypeClassifier",
    "GpuMask",
    "HandLandmark",
    "HandLandmarker",
    "HandLandmarks",
    "HolisticLandmarker",
    "ImageClassifier",
    "ImageEmbedder",
    "ImageEmbedding",
    "Landmark",
    "Landmarks",
    "Mask",
    "MaskLook",
    "MaskPainter",
    "MultiPoseDetector",
    "ObjectDetector",
    "PersonLandmarks",
    "Pipeline",
    "PoseLandmark",
    "PoseLandmarker",
    "PoseLandmarks",
    "SelfieSegmenter",
    "SentenceEmbedder",
    "TextClassifier",
    "TextLine",
    "TextReader",
    "VoiceActivityDetector",
    "pipeline",
]


# Tasks by name, as pages and the registry of models name them.
TASKS: dict[str, type[Task[Any]]] = {
    task.name: task
    for task in (
        BackgroundRemover, BodySegmenter, FaceDetector, FaceLandmarker, HandLandmarker, HolisticLandmarker,
        ImageClassifier, MultiPoseDetector, ObjectDetector, PoseLandmarker, SelfieSegmenter,
        AudioClassifier, FileTypeClassifier, SentenceEmbedder, TextReader, VoiceActivityDetector,
    )
}  # fmt: skip

LATE_TASKS = {"text-generation": "webinfer.language.generator"}  # of rooms that are imported when they are asked for
# Tasks that no published model is made for: they are given one, or take another task's, and are imported on demand.
GIVEN_MODEL_TASKS = {
    "depth-estimation": ("webinfer.tasks.depth_estimator", "DepthEstimator"),
    "image-embedding": ("webinfer.tasks.image_embedder", "ImageEmbedder"),
    "text-classification": ("webinfer.tasks.text_classifier", "TextClassifier"),
}

if TYPE_CHECKING:
    from webinfer.tasks.depth_estimator import DepthEstimator, DepthMap
    from webinfer.tasks.image_embedder import ImageEmbedder, ImageEmbedding
    from webinfer.tasks.text_classifier import TextClassifier
else:

    def __getattr__(name: str) -> Any:
        if name in ("SoundEvent", "Speech"):
            warn(f"webinfer.tasks.{name}", "AudioSegment")
            return AudioSegment
        results = {"DepthMap": "DepthEstimator", "ImageEmbedding": "ImageEmbedder"}
        for module, task in GIVEN_MODEL_TASKS.values():
            if task == results.get(name, name):
                return getattr(import_module(module), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def task_class(name: str) -> type[Task[Any]]:
    """The class of a task that TASKS or GIVEN_MODEL_TASKS names."""
    if name in TASKS:
        return TASKS[name]
    module, task = GIVEN_MODEL_TASKS[name]
    found: type[Task[Any]] = getattr(import_module(module), task)
    return found


def pipeline(task: str, model: Any = None, **options: Any) -> Any:
    """The task of this name. In a script: `webinfer.pipeline("object-detection")("photo.jpg")`.

    In async code: `task = await webinfer.pipeline("object-detection")`, then `await task("photo.jpg")`.
    Names are ours, Hugging Face's or MediaPipe's. "text-generation" streams without being awaited as well:
    `async for piece in pipeline(…).stream(messages)`.

    `model` is the task's own where none is given; `options` are those of the task's `create`.

    Raises:  InputError if there is no such task or it has no such option; what its `create` raises when it is opened
    """
    name = task_name(task, (*TASKS, *GIVEN_MODEL_TASKS, *LATE_TASKS))
    late = LATE_TASKS.get(name)
    if late is not None:
        return import_module(late).PendingGenerator(model, options)
    _check_options(name, options)
    return Pipeline(name, partial(_created, name, model, options))


async def _created(task: str, model: Any, options: dict[str, Any], host: Host | None) -> Any:
    create = task_class(task).create
    if host is not None and "host" in inspect.signature(create).parameters:
        options = {"host": host, **options}
    return await (create(**options) if model is None else create(model, **options))


def _check_options(task: str, options: dict[str, Any]) -> None:
    known = inspect.signature(task_class(task).create).parameters
    if unknown := [name for name in options if name not in known]:
        raise InputError(f"{task} has no option {unknown[0]!r}; it has {', '.join(known)}")
