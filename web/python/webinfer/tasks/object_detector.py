"""Objects in a picture: a box around each, and what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.errors import InputError
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import Pixels
from webinfer.models.registry import known_model
from webinfer.session.options import real_number, whole_number
from webinfer.session.session import Session
from webinfer.tasks.base import NO_SIZE, Box, Detection, Keypoint, ResultField, ResultSchema, Size, Thing
from webinfer.tasks.classifier import Category
from webinfer.tasks.crop import Crop, InputSpec
from webinfer.tasks.object_models import MOST, OBJECTS, ROW, YOLO_OVERLAP, input_spec, with_objects
from webinfer.tasks.picture_input import PictureFeeder, closed_on_error
from webinfer.tasks.pixels import opened, pixels_of
from webinfer.tasks.segmenter import Mask
from webinfer.tasks.tracking import TrackingTask
from webinfer.tasks.yolo import yolo_of
from webinfer.tasks.yolo_objects import YoloFound, YoloReader, letterbox, used
from webinfer.tensor import Tensor


@dataclass(frozen=True, slots=True)
class DetectedObject(Thing):
    """One object: its box, its category and its score (0..1)."""

    box: Box
    score: float
    category: Category
    id: int | None = None
    image_size: Size = NO_SIZE
    mask: Mask | None = None  # over all of the picture, of models that segment
    keypoints: tuple[tuple[float, float, float], ...] = ()  # x, y, score, of models of poses
    corners: tuple[Keypoint, ...] = ()  # of a turned box, clockwise; `box` is the upright one around it
    rotation: float = 0.0  # of a turned box, in radians, clockwise


class ObjectDetector(TrackingTask[DetectedObject]):
    """Finds objects. Create one with `await ObjectDetector.create()`."""

    name = "object-detection"
    extension = OBJECTS
    result = ResultSchema(
        "detections", "objects", "Objects found", "Object",
        (
            ResultField("box", "box", "px"), ResultField("score", "number", "0..1"),
            ResultField("category", "category", ""),
        ),
    )  # fmt: skip

    def __init__(self, session: Session, spec: InputSpec, feeder: PictureFeeder, labels: Sequence[str]) -> None:
        super().__init__(session, spec, feeder)
        self.min_score, self.most = 0.5, MOST
        self._labels, self._allow, self._deny = labels, frozenset[str](), frozenset[str]()
        self._yolo: YoloReader | None = None

    @classmethod
    async def create(
        cls,
        model: Any = "nanodet",
        *,
        labels: Sequence[str] | None = None,
        most: int = MOST,
        min_score: float = 0.5,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        overlap: float = YOLO_OVERLAP,
        pixels: Pixels | None = None,
        keep_aspect: bool | None = None,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> ObjectDetector:
        """Creates a detector. `model` is a known name, bytes, a path or a URL of an SSD with its post-processing
        or with TensorFlow's anchors, a CenterNet that ends in a table of boxes, a NanoDet, or a YOLO (5 to 26) that
        Ultralytics exported to ONNX or TFLite: its metadata say whether it detects, segments, or finds poses or turned
        boxes, and what its classes are called. Of its boxes of a class that overlap by more than `overlap` the best is
        told.

        `labels` are the names of the classes; None: those of a known model. `allow` names the only ones that are told,
        `deny` those that are not. At most `most` objects are told, best first, with a score of `min_score` or more.
        `pixels` say what a float model wants for a picture's colours; None: as a known model does, else -1..1. The
        picture is fitted into the model's input with `keep_aspect`, else stretched to it; None: as the model's makers
        do, who fit it for NanoDet and CenterNet.

        Raises:  InputError if an option is out of range, both lists are given, or a list names what is not a label;
                 what `webinfer.load` raises; ModelFormatError if the model is none of these
        """
        most, min_score = whole_number("most", most, 1, MOST), real_number("min_score", min_score, high=1)
        known = known_model(model)
        names = (known.labels if known else ()) if labels is None else tuple(labels)
        _check_lists(names or (*allow, *deny), allow, deny)  # without names yet, the file may hold them
        source = with_objects(model, pixels_of(model, pixels), real_number("overlap", overlap, high=1))
        session, _, feeder = await opened(source, False, backend, progress, host)
        with closed_on_error(session):
            yolo = yolo_of(session.metadata)
            names = yolo.labels if yolo is not None and labels is None else names
            _check_lists(names, allow, deny)
        spec = input_spec(session.outputs[0].name, session.inputs[0].shape, keep_aspect)
        detector = cls(session, spec, feeder, names)
        if yolo is not None:
            detector.spec = letterbox(spec.picture.width, spec.picture.height)
            detector._yolo = YoloReader(yolo, overlap, session.host)
        detector.min_score, detector.most = min_score, most
        detector._allow, detector._deny = frozenset(allow), frozenset(deny)
        return detector

    async def detect(self, image: Any) -> list[DetectedObject]:
        """The objects in an image, best first. The image is anything that `webinfer.tasks.image.read_image` accepts.

        Raises:  InputError if it is none of these or has no pixels
        """
        return await self.run(image)

    def more_inputs(self, crop: Crop) -> Mapping[str, Any]:
        """The model's inputs besides the picture: of a YOLO, where that lies."""
        return used(crop) if self._yolo is not None else {}

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[DetectedObject]:
        """The objects in the model's table, best first."""
        if self._yolo is not None:
            objects = await self._yolo.found(outputs, crop, self._is_told, self.most)
            return [self._of_yolo(found) for found in objects]
        (table,) = outputs.values()
        numbers = table.flat().tolist()
        rows = [numbers[i : i + ROW] for i in range(0, len(numbers), ROW)]
        found = [self._object(row, crop) for row in sorted(rows, key=lambda r: -r[4]) if self._is_told(row[4], row[5])]
        return found[: self.most]

    def _is_told(self, score: float, kind: float) -> bool:
        label = self._label(kind)
        allowed = label in self._allow if self._allow else label not in self._deny
        return score > 0 and score >= self.min_score and allowed

    def _object(self, row: Sequence[float], crop: Crop) -> DetectedObject:
        left, top, right, bottom, score, kind = row
        box = Detection(left, top, right, bottom, score, ()).box(crop)
        return DetectedObject(box, score, Category(int(kind), self._label(kind), score))

    def _of_yolo(self, found: YoloFound) -> DetectedObject:
        category = Category(found.kind, self._label(found.kind), found.score)
        return DetectedObject(
            found.box, found.score, category,
            mask=found.mask, keypoints=found.keypoints, corners=found.corners, rotation=found.rotation,
        )  # fmt: skip

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        super().close()
        if self._yolo is not None:
            self._yolo.close()

    def _label(self, kind: float) -> str:
        return self._labels[int(kind)] if 0 <= kind < len(self._labels) else ""


def _check_lists(labels: Sequence[str], allow: Sequence[str], deny: Sequence[str]) -> None:
    if allow and deny:
        raise InputError("allow and deny are both given; give the one that is shorter")
    if unknown := [name for name in (*allow, *deny) if name not in labels]:
        raise InputError(
            f"{unknown[0]!r} is not a label of the model; it has {', '.join(filter(None, labels)) or 'none'}"
        )
