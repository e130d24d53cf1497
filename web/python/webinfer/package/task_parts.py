"""What tasks in packages are made of: facts of a picture's way into a model, and models that look first for another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any

from webinfer.graph.ir import Graph
from webinfer.lazy_dataclass import dataclass
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.tasks.crop import InputSpec
from webinfer.tasks.gpu_image import picture_passes
from webinfer.tasks.ssd import DETECTIONS, MIN_SCORE, SsdFamily, input_spec, with_detections


@dataclass(frozen=True, slots=True)
class PackagedTask:
    """A task's part of a package: the model with the nodes of the task, and the facts of a compiled graph of it.

    `parts` are models, or tasks with models of their own, which are packages within the package; `files` are bytes that
    the player reads. `reading` are options of `webinfer.load`; `sizes` those of inputs that stay open, of each plan.
    """

    name: str
    source: Any  # what `webinfer.load` takes
    facts: Callable[[Graph], Mapping[str, Any]] | None = None  # None: the player runs it as a plain model
    parts: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    sizes: Sequence[Mapping[str, Sequence[int]]] = ()


def detections_of(name: str, model: Any, family: SsdFamily, min_score: float | None = None) -> PackagedTask:
    """A single-shot detector; None: the minimum score of its layout."""

    def facts(graph: Graph) -> Mapping[str, Any]:
        layout = family.layout_of(model, graph.inputs[0].type.shape)
        return {
            "picture": picture_facts(graph, input_spec(layout)),
            "numbers": {MIN_SCORE: [layout.min_score if min_score is None else min_score]},
            "decode": {"kind": "detections", "output": DETECTIONS, "keypoints": layout.keypoints},
        }

    return PackagedTask(name, with_detections(model, family), facts)


def remembering(source: WithPostprocessing) -> tuple[WithPostprocessing, dict[str, str]]:
    """The source, and the metadata of its file when it has been loaded: a compiled graph no longer knows them."""
    read = dict[str, str]()

    def extend(graph: Graph) -> None:
        read.update(graph.metadata)
        source.extend(graph)

    return replace(source, extend=extend), read


def picture_facts(graph: Graph, spec: InputSpec) -> dict[str, Any]:
    """How a picture becomes the first input: size, `offset + scale * pixel`, border; and the passes that do it."""
    passes = {way: asdict(made) for way, made in picture_passes(spec.border, spec.sampling).items()}
    return {
        "input": graph.inputs[0].name, **asdict(spec.picture), "keep_aspect": spec.keep_aspect,
        "border": int(spec.border), "corners": spec.corners,
        "sampling": int(spec.sampling), "passes": passes,
    }  # fmt: skip
