"""Single-shot detectors: models whose graphs end in detections, few and final, instead of raw outputs.

Decoding and suppression (ops/detection.py) are part of the plan: on a GPU they run in the same submit, and a few
kilobytes are read back.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, TensorType, Value, apply
from webinfer.ops.detection import SSD_DETECTIONS, SsdDetectionsAttrs
from webinfer.session.plan_cache import Extended
from webinfer.session.session import Session, load
from webinfer.tensor import Tensor

BOXES, SCORES, MIN_SCORE, DETECTIONS = "boxes", "scores", "min_score", "detections"
EXTENSION = "detections"
COORDINATES = 16  # numbers a raw box of a face holds: centre, size, six keypoints
LEAST = 2.0**-126  # a least score of 0 would stand for the operator's own
Shape = tuple[int, ...]

SHORT_RANGE = SsdDetectionsAttrs(128, ((8, 2), (16, 6)))
BACK = SsdDetectionsAttrs(256, ((16, 2), (32, 6)))
FULL_RANGE = SsdDetectionsAttrs(192, ((4, 1),))
VARIANTS = (SHORT_RANGE, BACK, FULL_RANGE)


@dataclass(frozen=True, slots=True)
class Detection:
    """One detection in coordinates of the model's input, 0..1: box corners, keypoints, score."""

    left: float
    top: float
    right: float
    bottom: float
    score: float
    keypoints: tuple[tuple[float, float], ...]


def with_detections(model: Any) -> Extended:
    """The model with its detections as the only output, and with the least score as a second input."""
    return Extended(model, EXTENSION, _extend)


def _extend(graph: Graph) -> None:
    options = _recognise(graph.name, [v.type.shape for v in graph.inputs], [v.type.shape for v in graph.outputs])
    raw = {_part(v.type.shape): v for v in graph.outputs}
    least = Value(MIN_SCORE, TensorType((1,)))
    node = apply(SSD_DETECTIONS, [raw[BOXES], raw[SCORES], least], options, DETECTIONS)
    graph.inputs.append(least)
    graph.nodes.append(node)
    graph.outputs = node.outputs


class SsdDecoder:
    """Decodes raw outputs of a model that was loaded as it is, on wasm. `with_detections` is the short way."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @classmethod
    async def create(cls, model: Session) -> SsdDecoder:
        """A decoder of that model's outputs.

        Raises:  ModelFormatError if it is not a BlazeFace face detector
        """
        options = _recognise(model.name, [i.shape for i in model.inputs], [o.shape for o in model.outputs])
        builder = GraphBuilder(DETECTIONS)
        shapes = {BOXES: (1, options.anchors, COORDINATES), SCORES: (1, options.anchors, 1), MIN_SCORE: (1,)}
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
    return struct.pack("<f", max(min_score, LEAST))


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


def _part(shape: Sequence[int]) -> str:
    """Which of the two raw outputs has this shape."""
    return SCORES if shape[-1:] == (1,) else BOXES


def _recognise(name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> SsdDetectionsAttrs:
    """How the raw outputs of a model with these inputs and outputs are laid out."""
    for options in VARIANTS:
        parts = {(1, options.anchors, COORDINATES), (1, options.anchors, 1)}
        if list(inputs) == [(1, options.size, options.size, 3)] and {*outputs} == parts:
            return options
    known = ", ".join(f"{o.size}x{o.size} with {o.anchors} anchors" for o in VARIANTS)
    raise ModelFormatError(f"{name!r} is not a BlazeFace face detector: inputs {list(inputs)}; known are {known}")
