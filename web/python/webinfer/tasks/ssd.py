"""Single-shot detectors: models whose graphs end in detections, few and final, instead of raw outputs.

Decoding and suppression (ops/detection.py) are part of the plan: on a GPU they run in the same submit, and a few
kilobytes are read back.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, TensorType, Value, apply
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import SsdLayout
from webinfer.models.registry import known_model
from webinfer.ops.detection import SSD_DETECTIONS, SsdDetectionsAttrs
from webinfer.session.loading import load
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import Detection
from webinfer.tasks.crop import InputSpec
from webinfer.tensor import Tensor

BOXES, SCORES, MIN_SCORE, DETECTIONS = "boxes", "scores", "min_score", "detections"
EXTENSION = "detections"
SUPPRESSION = 0.3  # MediaPipe's
MIN_POSITIVE = 2.0**-126  # a minimum score of 0 would select the operator's own
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SsdFamily:
    """Models that differ in their numbers only; `title` says what they are, for people."""

    title: str
    layouts: tuple[SsdLayout, ...]

    def layout_of(self, source: Any, shape: Shape) -> SsdLayout:
        """The layout of a loaded model of this family: a known model's own, else the one that takes this input."""
        known = known_model(source)
        candidates = [a for a in self.layouts if known is None or known.output in (a, None)]
        return next(layout for layout in candidates if _input_shape(layout) == shape)

    def recognise(self, name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> SsdLayout:
        """The layout of a model with these inputs and raw outputs.

        Raises:  ModelFormatError if the family has none that fits
        """
        for layout in self.layouts:
            anchors = attributes(layout).anchors
            parts = {(1, anchors, _numbers(layout)), (1, anchors, 1)}
            if list(inputs) == [_input_shape(layout)] and {*outputs} == parts:
                return layout
        sizes = [f"{a.input.width}x{a.input.height} with {attributes(a).anchors} anchors" for a in self.layouts]
        raise ModelFormatError(f"{name!r} is not a {self.title}: inputs {list(inputs)}; known: {', '.join(sizes)}")


def attributes(layout: SsdLayout, suppression: float = SUPPRESSION) -> SsdDetectionsAttrs:
    """The operator that decodes raw outputs of this layout."""
    return SsdDetectionsAttrs(layout.input.width, layout.layers, suppression=suppression)


def input_spec(layout: SsdLayout) -> InputSpec:
    """How MediaPipe's graphs on a CPU lay a picture into the input of such a model."""
    return InputSpec.of_mediapipe(layout.input)


def with_detections(model: Any, family: SsdFamily, suppression: float = SUPPRESSION) -> WithPostprocessing:
    """The model with its detections as the only output, and with the minimum score as a second input.

    Detections that overlap by more than `suppression` (intersection over union) are one.
    """

    def extend(graph: Graph) -> None:
        shapes = [[v.type.shape for v in values] for values in (graph.inputs, graph.outputs)]
        layout = family.recognise(graph.name, *shapes)
        raw = {_part(v.type.shape): v for v in graph.outputs}
        least = Value(MIN_SCORE, TensorType((1,)))
        node = apply(SSD_DETECTIONS, [raw[BOXES], raw[SCORES], least], attributes(layout, suppression), DETECTIONS)
        graph.inputs.append(least)
        graph.nodes.append(node)
        graph.outputs = node.outputs

    return WithPostprocessing(model, EXTENSION if suppression == SUPPRESSION else f"{EXTENSION}at{suppression}", extend)


class SsdDecoder:
    """Decodes raw outputs of a model that was loaded as it is, on wasm. `with_detections` is the short way."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @classmethod
    async def create(cls, model: Session, family: SsdFamily, suppression: float = SUPPRESSION) -> SsdDecoder:
        """A decoder of that model's outputs.

        Raises:  ModelFormatError if the model does not belong to the family
        """
        layout = family.recognise(model.name, [i.shape for i in model.inputs], [o.shape for o in model.outputs])
        options, builder = attributes(layout, suppression), GraphBuilder(DETECTIONS)
        shapes = {BOXES: (1, options.anchors, _numbers(layout)), SCORES: (1, options.anchors, 1), MIN_SCORE: (1,)}
        inputs = [builder.input(name, shape) for name, shape in shapes.items()]
        builder.output(builder.node(SSD_DETECTIONS.name, *inputs, **asdict(options)), DETECTIONS)
        return cls(await load(builder, backend="wasm", host=model.host))

    async def decode(self, outputs: Mapping[str, Tensor], least: bytes) -> dict[str, Tensor]:
        """What a model `with_detections` gives where this one gave `outputs`."""
        raw = {_part(tensor.shape): tensor for tensor in outputs.values()}
        return await self._session.run({**raw, MIN_SCORE: least})

    def close(self) -> None:
        """Lets the memory go."""
        self._session.close()


def least_score(min_score: float) -> bytes:
    """The input MIN_SCORE of a model `with_detections`."""
    return struct.pack("<f", max(min_score, MIN_POSITIVE))


def detections(outputs: Mapping[str, Tensor]) -> list[Detection]:
    """What a run of a model `with_detections` found, best first."""
    tensor = outputs[DETECTIONS]
    _, most, width = tensor.shape
    values = tensor.flat()
    count = next((row for row in range(most) if not values[row * width + width - 1] > 0), most)
    return [_detection(values[row * width : (row + 1) * width].tolist()) for row in range(count)]


def _detection(row: Sequence[float]) -> Detection:
    points = tuple(zip(row[4:-1:2], row[5:-1:2], strict=True))
    return Detection(row[0], row[1], row[2], row[3], row[-1], points)


def _input_shape(layout: SsdLayout) -> Shape:
    return (1, layout.input.height, layout.input.width, 3)


def _numbers(layout: SsdLayout) -> int:
    """Numbers in a raw box: centre, size, keypoints."""
    return 4 + 2 * len(layout.keypoints)


def _part(shape: Sequence[int]) -> str:
    """Which of the two raw outputs has this shape."""
    return SCORES if shape[-1:] == (1,) else BOXES
