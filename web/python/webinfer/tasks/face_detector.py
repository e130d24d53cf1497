"""Faces in an image: box, score and six keypoints, in pixels of the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from webinfer.errors import InputError
from webinfer.host import current
from webinfer.host.gpu import GpuTensor
from webinfer.host.interface import Host, Progress
from webinfer.session.session import Session, load
from webinfer.tasks.gpu_image import gpu_pictures, place_image
from webinfer.tasks.image import Letterbox, prepare_image, read_image
from webinfer.tasks.ssd import MIN_SCORE, Detection, SsdDecoder, detections, least_score, with_detections
from webinfer.tasks.workspace import Workspace

KEYPOINTS = ("right_eye", "left_eye", "nose_tip", "mouth", "right_ear", "left_ear")


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels of the image; it may reach past the image's edge."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Face:
    """One face. Keypoint names are from the person's own side: `right_eye` is theirs."""

    box: Box
    score: float
    keypoints: dict[str, tuple[float, float]]


class FaceDetector:
    """Finds faces with a BlazeFace model. Make one with `await FaceDetector.create()`."""

    def __init__(self, session: Session, workspace: Workspace, min_score: float, decoder: SsdDecoder | None) -> None:
        self.session, self.min_score = session, min_score
        self.straight = True  # on webgpu pictures go to the GPU as they are where that is possible, not through memory
        self.times = {"prepare_ms": 0.0, "infer_ms": 0.0, "decode_ms": 0.0}
        self._workspace, self._decoder = workspace, decoder
        self._input, self._side = session.inputs[0].name, session.inputs[0].shape[1]

    @classmethod
    async def create(
        cls,
        model: Any = "blazeface_short_range",
        *,
        backend: str | Sequence[str] = "auto",
        min_score: float = 0.5,
        decode_apart: bool = False,
        strict: bool = False,
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> FaceDetector:
        """A detector that is ready: its first detection is as fast as the next.

        `model` is any BlazeFace face detector: a known name, bytes, a path or a URL. Boxes are decoded and suppressed
        within the inference, on the backend that runs it; `decode_apart` reads the model's raw outputs back and does it
        on wasm afterwards, which is there to be compared.

        Raises:  InputError if `min_score` is not in 0..1; what `webinfer.load` raises;
                 ModelFormatError if the model is not a BlazeFace face detector
        """
        if not 0.0 <= min_score <= 1.0:
            raise InputError(f"min_score is {min_score}, needs a number from 0 to 1")
        host = host or current()
        source = model if decode_apart else with_detections(model)
        session = await load(source, backend=backend, strict=strict, progress=progress, host=host)
        try:
            decoder = await SsdDecoder.create(session) if decode_apart else None
            detector = cls(session, Workspace(await host.kernels()), min_score, decoder)
            await session.warmup()
        except BaseException:
            session.close()
            raise
        return detector

    async def detect(self, image: Any) -> list[Face]:
        """The faces in an image, best score first.

        `image` is anything `webinfer.tasks.image.read_image` takes: a Pillow image, an H x W x 3 or
        H x W x 4 array of uint8, or in the browser ImageData, ImageBitmap, VideoFrame or a canvas.

        Raises:  InputError if it is none of these or has no pixels
        """
        clock = self.session.host.now_ms
        start = clock()
        tensor, box = self._prepared(image)
        prepared = clock()
        least, decoder = least_score(self.min_score), self._decoder
        try:
            outputs = await self.session.run({self._input: tensor} | ({} if decoder else {MIN_SCORE: least}))
        finally:
            if isinstance(tensor, GpuTensor):
                tensor.close()
        inferred = clock()
        if decoder is not None:
            outputs = await decoder.decode(outputs, least)
        faces = [_to_pixels(d, box) for d in detections(outputs)]
        end = clock()
        self.times = {"prepare_ms": prepared - start, "infer_ms": inferred - prepared, "decode_ms": end - inferred}
        return faces

    def _prepared(self, image: Any) -> tuple[GpuTensor | memoryview, Letterbox]:
        """The model's input, on the GPU if it can be made there, and where the image lies in it."""
        side, norm = self._side, {"scale": 2 / 255, "offset": -1.0}
        pictures = gpu_pictures(self.session) if self.straight else None
        if pictures is not None and (size := pictures.size(image)) is not None:
            box = Letterbox.fit(*size, side, side)
            tensor = place_image(pictures, image, box, size, **norm)
            if tensor is not None:
                return tensor, box
        picture = read_image(image, self.session.host)
        box = Letterbox.fit(picture.width, picture.height, side, side)
        return prepare_image(self._workspace, picture, box, **norm), box

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        self.session.close()
        self._workspace.close()
        if self._decoder is not None:
            self._decoder.close()

    def __enter__(self) -> FaceDetector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _to_pixels(d: Detection, box: Letterbox) -> Face:
    left, top = box.to_image(d.left, d.top)
    right, bottom = box.to_image(d.right, d.bottom)
    points = {name: box.to_image(*point) for name, point in zip(KEYPOINTS, d.keypoints, strict=True)}
    return Face(Box(left, top, right - left, bottom - top), min(max(d.score, 0.0), 1.0), points)
