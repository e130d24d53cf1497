"""What a picture shows: the most likely classes of any image classification model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, TensorType
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import Pixels
from webinfer.models.registry import known_model
from webinfer.session.options import real_number, whole_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import PictureTask, ResultField, ResultSchema, files_beside
from webinfer.tasks.crop import Crop, InputSpec, Region
from webinfer.tasks.picture_input import PictureFeeder, closed_on_error
from webinfer.tasks.pixels import is_picture, opened, take_pixels
from webinfer.tasks.yolo import UNIT, yolo_of
from webinfer.tensor import Tensor

SCORES, CLASSES = "scores", "classes"
MOST = 100
WIDEST = 1e6  # of what a model may want for white


@dataclass(frozen=True, slots=True)
class Category:
    """A class: its number, its label ("" if the model has none) and its score."""

    index: int
    label: str
    score: float


@dataclass(frozen=True, slots=True)
class Middle(InputSpec):
    """The largest region in the middle of a picture that has the shape of the model's input."""

    def crop(self, region: Region | None, image_size: tuple[int, int] = (1, 1)) -> Crop:
        """The map between the model's input and the middle of a region; None: of all of the picture."""
        region = region or Region.whole(*image_size)
        width, height = self.picture.width, self.picture.height
        scale = min(region.width / width, region.height / height)
        seen = replace(region, width=scale * width, height=scale * height)
        return Crop(seen, width, height, self.corners, seen, image_size)


def with_best(model: Any, most: int, values: tuple[float, float]) -> WithPostprocessing:
    """The model with pixels of 0..255 as its input, and its `most` best classes as its outputs.

    `values` are what a float model wants for 0 and for 255; a quantised one says it itself.
    """
    pixels = Pixels(*values)

    def extend(graph: Graph) -> None:
        types = [v.type for v in (*graph.inputs, *graph.outputs)]
        if len(graph.inputs) != 1 or len(graph.outputs) != 1 or not _fits(*types):
            raise ModelFormatError(
                f"{graph.name!r} is not an image classifier: its inputs and outputs are {list(map(str, types))}; "
                "needed are a picture [1, height, width, 3] and one tensor of scores"
            )
        tail, (scores,) = GraphBuilder(graph.name), graph.outputs
        yolo = yolo_of(graph.metadata)
        if yolo is not None and yolo.task != "classify":
            raise ModelFormatError(f"{graph.name!r} is for {yolo.task!r} by its metadata; make an ObjectDetector")
        take_pixels(graph, pixels if yolo is None else UNIT)
        if not scores.type.dtype.is_float:
            scores = tail.node("dequantize", scores, dtype=DType.FLOAT32)
        classes = scores.type.size
        found = tail.node("top_k", tail.node("reshape", scores, shape=(1, classes)), k=min(most, classes))
        for value, name in zip(found, (SCORES, CLASSES), strict=True):
            tail.output(value, name)
        tail.extend(graph)

    return WithPostprocessing(model, f"best{most}of{pixels}", extend, reads_metadata=True)


def _fits(picture: TensorType, scores: TensorType) -> bool:
    return is_picture(picture) and (scores.dtype.is_float or scores.quant is not None)


class ImageClassifier(PictureTask[Category]):
    """Classifies pictures. Create one with `await ImageClassifier.create()`."""

    name = "classification"
    result = ResultSchema(
        "categories", "categories", "Categories", "Category",
        (ResultField("label", "label", ""), ResultField("score", "number", "0..1")),
    )  # fmt: skip

    def __init__(self, session: Session, spec: InputSpec, feeder: PictureFeeder, labels: Sequence[str]) -> None:
        super().__init__(session, spec, feeder)
        self._labels = labels

    @classmethod
    async def create(
        cls,
        model: Any = "mobilenet_v2_100_224_quant",
        *,
        labels: Sequence[str] = (),
        most: int = 5,
        values: tuple[float, float] = (-1.0, 1.0),
        keep_aspect: bool = False,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> ImageClassifier:
        """Creates a classifier. `model` is a known name, bytes, a path or a URL of a model with one output.

        `labels` are the names of the classes, in the order of the scores; a known model has its own.
        `values` are what a float model wants for black and for white. The picture is stretched to the model's input,
        or with `keep_aspect` fitted into it. Classifiers that Ultralytics exported say themselves what they want, and
        see the middle of the picture.

        Raises:  InputError if an option is out of range; ModelFormatError if the model does not take one picture and
                 give one tensor of scores; what `webinfer.load` raises
        """
        most = whole_number("most", most, 1, MOST)
        black, white = (real_number("values", value, WIDEST, low=-WIDEST) for value in values)
        source, known, host = with_best(model, most, (black, white)), known_model(model), host or current()
        if known is not None and known.beside and not labels:
            (names,) = await files_beside(model, host, "labels=…")
            labels = names.decode().splitlines()
        session, spec, feeder = await opened(source, keep_aspect, backend, progress, host)
        with closed_on_error(session):
            if (yolo := yolo_of(session.metadata)) is not None:
                labels, spec = labels or yolo.labels, Middle(spec.picture, keep_aspect=False)
        return cls(session, spec, feeder, labels)

    async def classify(self, image: Any) -> list[Category]:
        """The classes of an image, best first. The image is anything that `webinfer.tasks.image.read_image` accepts.

        Raises:  InputError if it is none of these or has no pixels
        """
        return await self.run(image)

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[Category]:
        """The classes in the model's outputs."""
        scores, places = (outputs[name].flat().tolist() for name in (SCORES, CLASSES))
        return [Category(i, self._label(i), score) for i, score in zip(places, scores, strict=True)]

    def _label(self, index: int) -> str:
        return self._labels[index] if index < len(self._labels) else ""
