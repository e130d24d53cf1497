"""Faces in an image: box, score and six keypoints, in pixels of the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import BLAZEFACE, SsdLayout
from webinfer.session.loading import load
from webinfer.session.options import real_number, threshold
from webinfer.session.session import Session
from webinfer.tasks.base import NO_SIZE, Box, Detection, ResultField, ResultSchema, Size, Thing
from webinfer.tasks.crop import Crop
from webinfer.tasks.picture_input import PictureFeeder, closed_on_error
from webinfer.tasks.ssd import (
    EXTENSION,
    MIN_SCORE,
    SUPPRESSION,
    SsdDecoder,
    SsdFamily,
    detections,
    input_spec,
    least_score,
    with_detections,
)
from webinfer.tasks.tracking import TrackingTask
from webinfer.tensor import Tensor

DETECTORS = SsdFamily("BlazeFace face detector", BLAZEFACE)


@dataclass(frozen=True, slots=True)
class Face(Thing):
    """One face. Left and right in keypoint names are the person's own."""

    box: Box
    score: float
    keypoints: dict[str, tuple[float, float]]
    id: int | None = None
    image_size: Size = NO_SIZE


class FaceDetector(TrackingTask[Face]):
    """Finds faces with a BlazeFace model. Create one with `await FaceDetector.create()`."""

    name = "face-detection"
    extension = EXTENSION
    result = ResultSchema(
        "detections", "faces", "Faces found", "Face",
        (
            ResultField("box", "box", "px"), ResultField("score", "number", "0..1"),
            ResultField("keypoints", "points", "px"),
        ),
    )  # fmt: skip

    def __init__(
        self,
        session: Session,
        feeder: PictureFeeder,
        layout: SsdLayout,
        min_score: float,
        decoder: SsdDecoder | None,
    ) -> None:
        super().__init__(session, input_spec(layout), feeder)
        self.min_score = min_score
        self._layout, self._decoder = layout, decoder

    @classmethod
    async def create(
        cls,
        model: Any = "blazeface_short_range",
        *,
        backend: str | Sequence[str] = "auto",
        min_score: float | None = None,
        min_detection_confidence: float | None = None,
        min_suppression_threshold: float = SUPPRESSION,
        decode_apart: bool = False,
        strict: bool = False,
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> FaceDetector:
        """Creates a detector, warmed up: its first detection is as fast as later ones.

        `model` is any BlazeFace face detector: a known name, bytes, a path or a URL. Boxes are decoded and suppressed
        within the inference, on the backend that runs it; `decode_apart` reads the model's raw outputs back and does it
        on wasm afterwards, which is there to be compared.

        `min_score` is the confidence threshold; None is MediaPipe's: 0.5 for the short range model, 0.6 for full range.
        `min_detection_confidence` is MediaPipe's name for it. Boxes that overlap by more than
        `min_suppression_threshold` are taken for one face.

        Raises:  InputError if `min_score` is not in 0..1; what `webinfer.load` raises;
                 ModelFormatError if the model is not a BlazeFace face detector
        """
        min_score = threshold({"min_score": min_score, "min_detection_confidence": min_detection_confidence}, None)
        suppression = real_number("min_suppression_threshold", min_suppression_threshold, high=1)
        host = host or current()
        source = model if decode_apart else with_detections(model, DETECTORS, suppression)
        session = await load(source, backend=backend, strict=strict, progress=progress, host=host)
        with closed_on_error(session):
            decoder = await SsdDecoder.create(session, DETECTORS, suppression) if decode_apart else None
            layout = DETECTORS.layout_of(model, session.inputs[0].shape)
            least = layout.min_score if min_score is None else min_score
            detector = cls(session, await PictureFeeder.create(session), layout, least, decoder)
            await session.warmup()
        return detector

    @property
    def min_score(self) -> float:
        """The minimum score of reported faces; changes apply from the next picture on."""
        return self._min_score

    @min_score.setter
    def min_score(self, value: float) -> None:
        self._min_score = real_number("min_score", value, high=1)

    async def detect(self, image: Any) -> list[Face]:
        """The faces in an image, best score first.

        `image` is anything `webinfer.tasks.image.read_image` takes: a Pillow image, an H x W x 3 or
        H x W x 4 array of uint8, or in the browser ImageData, ImageBitmap, VideoFrame or a canvas.

        Raises:  InputError if it is none of these or has no pixels
        """
        return await self.run(image)

    def more_inputs(self, crop: Crop) -> Mapping[str, Any]:
        """The minimum score; changes apply from the next picture on."""
        return {} if self._decoder else {MIN_SCORE: least_score(self.min_score)}

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[Face]:
        """The faces in the model's outputs."""
        if self._decoder is not None:
            outputs = await self._decoder.decode(outputs, least_score(self.min_score))
        return [self._face(detection, crop) for detection in detections(outputs)]

    def _face(self, detection: Detection, crop: Crop) -> Face:
        points = [crop.to_image(*point) for point in detection.keypoints]
        score = min(max(detection.score, 0.0), 1.0)
        return Face(detection.box(crop), score, dict(zip(self._layout.keypoints, points, strict=True)))

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        super().close()
        if self._decoder is not None:
            self._decoder.close()
