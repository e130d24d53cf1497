"""Tasks that can be compiled into a package: what goes before and behind the model, and what a player needs of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from webinfer.errors import InputError
from webinfer.graph.ir import Graph
from webinfer.models.layouts import PictureInput
from webinfer.models.registry import known_model
from webinfer.session.options import real_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.tasks import TASKS
from webinfer.tasks.classifier import CLASSES, SCORES, ImageClassifier, with_best
from webinfer.tasks.crop import InputSpec
from webinfer.tasks.face_detector import DETECTORS, FaceDetector
from webinfer.tasks.gpu_image import picture_passes
from webinfer.tasks.ssd import DETECTIONS, MIN_SCORE, input_spec, with_detections

MOST = 5  # classes that a packaged classifier tells


@dataclass(frozen=True, slots=True)
class PackagedTask:
    """A task's part of a package: the model with the nodes of the task, and the facts of a compiled graph of it."""

    name: str
    source: WithPostprocessing
    facts: Callable[[Graph], Mapping[str, Any]]


def packaged_task(name: str, model: Any, options: Mapping[str, Any]) -> PackagedTask:
    """The task of this name for a model. Names are those of `tasks.TASKS`, or of their classes as in `face-detector`.

    Raises:  InputError if there is no such task, it cannot be packaged, or it has no such option
    """
    makers: dict[str, Callable[..., PackagedTask]] = {
        FaceDetector.name: _faces, "face-detector": _faces,
        ImageClassifier.name: _classes, "image-classifier": _classes,
    }  # fmt: skip
    if name not in makers:
        known = "cannot be compiled into a package yet" if name in TASKS else "is unknown"
        raise InputError(f"task {name!r} {known}; those that can are {', '.join(sorted(makers))}")
    try:
        return makers[name](model, **options)
    except TypeError as error:
        raise InputError(f"task {name!r}: {error}") from None


def _faces(model: Any, *, min_score: float | None = None) -> PackagedTask:
    if min_score is not None:
        min_score = real_number("min_score", min_score, high=1)

    def facts(graph: Graph) -> Mapping[str, Any]:
        layout = DETECTORS.layout_of(model, graph.inputs[0].type.shape)
        return {
            "picture": _picture(graph, input_spec(layout)),
            "numbers": {MIN_SCORE: [layout.min_score if min_score is None else min_score]},
            "decode": {"kind": "detections", "output": DETECTIONS, "keypoints": layout.keypoints},
        }

    return PackagedTask(FaceDetector.name, with_detections(model, DETECTORS), facts)


def _classes(
    model: Any, *, labels: Sequence[str] | None = None, values: tuple[float, float] = (-1.0, 1.0),
    keep_aspect: bool = False, most: int = MOST,
) -> PackagedTask:  # fmt: skip
    known = known_model(model)
    names = list(labels if labels is not None else known.labels if known else ())

    def facts(graph: Graph) -> Mapping[str, Any]:
        _, height, width, _ = graph.inputs[0].type.shape
        return {
            "picture": _picture(graph, InputSpec(PictureInput(width, height, 1.0, 0.0), keep_aspect)),
            "numbers": {},
            "decode": {"kind": "categories", "scores": SCORES, "classes": CLASSES, "labels": names},
        }

    return PackagedTask(ImageClassifier.name, with_best(model, most, values), facts)


def _picture(graph: Graph, spec: InputSpec) -> dict[str, Any]:
    """How a picture becomes the first input: size, `offset + scale * pixel`, border; and the passes that do it."""
    passes = {way: asdict(made) for way, made in picture_passes(spec.border, spec.sampling).items()}
    return {
        "input": graph.inputs[0].name, **asdict(spec.picture), "keep_aspect": spec.keep_aspect,
        "border": int(spec.border), "corners": spec.corners,
        "sampling": int(spec.sampling), "passes": passes,
    }  # fmt: skip
