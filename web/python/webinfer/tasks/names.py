"""The names that tasks have elsewhere: Hugging Face's pipelines, MediaPipe's tasks, our classes and pages."""

from __future__ import annotations

from collections.abc import Collection

from webinfer.errors import InputError, meant

ALIASES = {
    "image-classification": "classification", "image-classifier": "classification",
    "object-detector": "object-detection", "face-detector": "face-detection",
    "face-landmarker": "face-landmarks", "face-landmark-detection": "face-landmarks", "face-mesh": "face-landmarks",
    "hand-landmarker": "hand-landmarks", "hand-landmark-detection": "hand-landmarks", "hands": "hand-landmarks",
    "pose-landmarker": "pose-landmarks", "pose-estimation": "pose-landmarks", "keypoint-detection": "pose-landmarks",
    "holistic-landmarker": "holistic-landmarks", "holistic": "holistic-landmarks",
    "multi-pose-detector": "multi-pose", "people": "multi-pose",
    "image-segmentation": "segmentation", "image-segmenter": "segmentation", "selfie-segmentation": "segmentation",
    "selfie-segmenter": "segmentation", "body-segmenter": "body-segmentation", "body-parts": "body-segmentation",
    "background-remover": "background-removal", "ocr": "text", "image-to-text": "text", "text-recognition": "text",
    "text-reader": "text", "audio-classifier": "audio-classification", "sounds": "audio-classification",
    "voice-activity-detection": "voice-activity", "voice-activity-detector": "voice-activity", "vad": "voice-activity",
    "feature-extraction": "sentence-embedding", "sentence-similarity": "sentence-embedding",
    "text-embedder": "sentence-embedding", "sentence-embedder": "sentence-embedding",
    "file-type-classifier": "file-type", "file-type-detection": "file-type", "chat": "text-generation",
    "gesture-recognizer": "gesture-recognition",
    "depth-estimator": "depth-estimation", "image-embedder": "image-embedding",
    "image-feature-extraction": "image-embedding", "text-classifier": "text-classification",
    "sentiment-analysis": "text-classification", "zero-shot-classifier": "zero-shot-classification",
    "zero-shot-image-classifier": "zero-shot-image-classification",
}  # fmt: skip


def task_name(given: str, known: Collection[str]) -> str:
    """The task's own name, for that or another one that people know; spelling of case and dashes is free.

    Raises:  InputError with the nearest names if there is no such task
    """
    plain = "".join(
        f"-{c.lower()}" if c.isupper() and i and given[i - 1].islower() else c.lower() for i, c in enumerate(given)
    )
    plain = plain.replace("_", "-").replace(" ", "-").strip("-")
    name = ALIASES.get(plain, plain)
    if name in known:
        return name
    near = meant(plain, [*known, *ALIASES])
    raise InputError(f"there is no task {given!r}; there are {', '.join(sorted(known))}{near}")
