"""Tasks: a picture, a recording, text or bytes in, what is in it out. Pixels and samples are the kernels' work.

`base` is what every task stands on; a task is one file and one row of TASKS. `crop` and `image` say which pixels a
model sees, `picture_input`, `gpu_image` and `workspace` bring them there, `ssd` reads single-shot detectors; `finder`,
`regions` and `landmarks` are for tasks that look twice; `audio` is for those that listen. May import all below the API.
"""

import inspect
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

from webinfer.deprecated import warn
from webinfer.errors import InputError, meant
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
    "GestureRecognizer",
    "GpuMask",
    "HandGesture",
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
    "ZeroShotClassifier",
    "ZeroShotImageClassifier",
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
# Tasks without a page of their own, imported on demand: most are given a model, or take another task's.
GIVEN_MODEL_TASKS = {
    "depth-estimation": ("webinfer.tasks.depth_estimator", "DepthEstimator"),
    "gesture-recognition": ("webinfer.tasks.gesture_recognizer", "GestureRecognizer"),
    "image-embedding": ("webinfer.tasks.image_embedder", "ImageEmbedder"),
    "text-classification": ("webinfer.tasks.text_classifier", "TextClassifier"),
    "zero-shot-classification": ("webinfer.tasks.zero_shot_classifier", "ZeroShotClassifier"),
    "zero-shot-image-classification": ("webinfer.tasks.zero_shot_image_classifier", "ZeroShotImageClassifier"),
}

if TYPE_CHECKING:
    from webinfer.tasks.depth_estimator import DepthEstimator, DepthMap
    from webinfer.tasks.gesture_recognizer import GestureRecognizer, HandGesture
    from webinfer.tasks.image_embedder import ImageEmbedder, ImageEmbedding
    from webinfer.tasks.text_classifier import TextClassifier
    from webinfer.tasks.zero_shot_classifier import ZeroShotClassifier
    from webinfer.tasks.zero_shot_image_classifier import ZeroShotImageClassifier
else:

    def __getattr__(name: str) -> Any:
        if name in ("SoundEvent", "Speech"):
            warn(f"webinfer.tasks.{name}", "AudioSegment")
            return AudioSegment
        results = {"DepthMap": "DepthEstimator", "HandGesture": "GestureRecognizer", "ImageEmbedding": "ImageEmbedder"}
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


# The class that a name stands for, so that editors and type checkers know what `await pipeline(name)` gives.
if TYPE_CHECKING:

    @overload
    def pipeline(
        task: Literal["audio-classification", "audio-classifier", "sounds"], model: Any = None, **options: Any
    ) -> Pipeline[AudioClassifier]: ...
    @overload
    def pipeline(
        task: Literal["background-removal", "background-remover"], model: Any = None, **options: Any
    ) -> Pipeline[BackgroundRemover]: ...
    @overload
    def pipeline(
        task: Literal["body-segmentation", "body-parts", "body-segmenter"], model: Any = None, **options: Any
    ) -> Pipeline[BodySegmenter]: ...
    @overload
    def pipeline(
        task: Literal["classification", "image-classification", "image-classifier"], model: Any = None, **options: Any
    ) -> Pipeline[ImageClassifier]: ...
    @overload
    def pipeline(
        task: Literal["depth-estimation", "depth-estimator"], model: Any = None, **options: Any
    ) -> Pipeline[DepthEstimator]: ...
    @overload
    def pipeline(
        task: Literal["face-detection", "face-detector"], model: Any = None, **options: Any
    ) -> Pipeline[FaceDetector]: ...
    @overload
    def pipeline(
        task: Literal["face-landmarks", "face-landmark-detection", "face-landmarker", "face-mesh"],
        model: Any = None,
        **options: Any,
    ) -> Pipeline[FaceLandmarker]: ...
    @overload
    def pipeline(
        task: Literal["file-type", "file-type-classifier", "file-type-detection"], model: Any = None, **options: Any
    ) -> Pipeline[FileTypeClassifier]: ...
    @overload
    def pipeline(
        task: Literal["gesture-recognition", "gesture-recognizer"], model: Any = None, **options: Any
    ) -> Pipeline[GestureRecognizer]: ...
    @overload
    def pipeline(
        task: Literal["hand-landmarks", "hand-landmark-detection", "hand-landmarker", "hands"],
        model: Any = None,
        **options: Any,
    ) -> Pipeline[HandLandmarker]: ...
    @overload
    def pipeline(
        task: Literal["holistic-landmarks", "holistic", "holistic-landmarker"], model: Any = None, **options: Any
    ) -> Pipeline[HolisticLandmarker]: ...
    @overload
    def pipeline(
        task: Literal["image-embedding", "image-embedder", "image-feature-extraction"],
        model: Any = None,
        **options: Any,
    ) -> Pipeline[ImageEmbedder]: ...
    @overload
    def pipeline(
        task: Literal["multi-pose", "multi-pose-detector", "people"], model: Any = None, **options: Any
    ) -> Pipeline[MultiPoseDetector]: ...
    @overload
    def pipeline(
        task: Literal["object-detection", "object-detector"], model: Any = None, **options: Any
    ) -> Pipeline[ObjectDetector]: ...
    @overload
    def pipeline(
        task: Literal["pose-landmarks", "keypoint-detection", "pose-estimation", "pose-landmarker"],
        model: Any = None,
        **options: Any,
    ) -> Pipeline[PoseLandmarker]: ...
    @overload
    def pipeline(
        task: Literal[
            "segmentation", "image-segmentation", "image-segmenter", "selfie-segmentation", "selfie-segmenter"
        ],
        model: Any = None,
        **options: Any,
    ) -> Pipeline[SelfieSegmenter]: ...
    @overload
    def pipeline(
        task: Literal[
            "sentence-embedding", "feature-extraction", "sentence-embedder", "sentence-similarity", "text-embedder"
        ],
        model: Any = None,
        **options: Any,
    ) -> Pipeline[SentenceEmbedder]: ...
    @overload
    def pipeline(
        task: Literal["text", "image-to-text", "ocr", "text-reader", "text-recognition"],
        model: Any = None,
        **options: Any,
    ) -> Pipeline[TextReader]: ...
    @overload
    def pipeline(
        task: Literal["text-classification", "sentiment-analysis", "text-classifier"], model: Any = None, **options: Any
    ) -> Pipeline[TextClassifier]: ...
    @overload
    def pipeline(
        task: Literal["voice-activity", "vad", "voice-activity-detection", "voice-activity-detector"],
        model: Any = None,
        **options: Any,
    ) -> Pipeline[VoiceActivityDetector]: ...
    @overload
    def pipeline(
        task: Literal["zero-shot-classification", "zero-shot-classifier"], model: Any = None, **options: Any
    ) -> Pipeline[ZeroShotClassifier]: ...
    @overload
    def pipeline(
        task: Literal["zero-shot-image-classification", "zero-shot-image-classifier"],
        model: Any = None,
        **options: Any,
    ) -> Pipeline[ZeroShotImageClassifier]: ...
    @overload
    def pipeline(task: str, model: Any = None, **options: Any) -> Any: ...


def pipeline(task: str, model: Any = None, **options: Any) -> Any:
    """Returns a task by name. In a script: `webinfer.pipeline("object-detection")("photo.jpg")`.

    In async code: `task = await webinfer.pipeline("object-detection")`, then `await task("photo.jpg")`.
    The names used by Hugging Face and MediaPipe work too. "text-generation" can also stream without being awaited:
    `async for piece in pipeline(…).stream(messages)`.

    Without `model`, the task's default model is used; `options` are passed to the task's `create`.

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
    parameters = inspect.signature(create).parameters
    if host is not None and "host" in parameters:
        options = {"host": host, **options}
    given = {*options, *(("model",) if model is not None else ())}
    needed = [name for name, one in parameters.items() if one.default is one.empty and one.kind != one.VAR_KEYWORD]
    if missing := [name for name in needed if name not in given]:
        raise InputError(f"{task} has no {' and no '.join(missing)} of its own; give {', '.join(missing)} to pipeline")
    return await (create(**options) if model is None else create(model, **options))


def _check_options(task: str, options: dict[str, Any]) -> None:
    known = inspect.signature(task_class(task).create).parameters
    if unknown := [name for name in options if name not in known]:
        raise InputError(f"{task} has no option {unknown[0]!r}; it has {', '.join(known)}{meant(unknown[0], known)}")
