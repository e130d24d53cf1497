"""What all tasks on pictures share: the input they declare, what they find, and the way from one to the other.

A task is one file: a class below `PictureTask` that names itself, says what its model wants to see (`InputSpec`), how
outputs become results (`decode`), and how results are shown (`ResultSchema`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from webinfer.host.interface import Progress
from webinfer.session.session import Session
from webinfer.tasks.crop import Crop, InputSpec, Region
from webinfer.tasks.picture_input import PictureFeeder
from webinfer.tensor import Tensor

Found = TypeVar("Found")
Keypoint = tuple[float, float]  # x, y


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels of the image; it may reach past the image's edge."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Detection:
    """One detection in coordinates of the model's input, 0..1: box corners, score, keypoints."""

    left: float
    top: float
    right: float
    bottom: float
    score: float
    keypoints: tuple[Keypoint, ...]

    def box(self, crop: Crop) -> Box:
        """The box in pixels of the image that was cropped: the upright one around it where the crop is turned."""
        region = crop.region
        cos, sin = abs(math.cos(region.rotation)), abs(math.sin(region.rotation))
        across, down = (self.right - self.left) * region.width, (self.bottom - self.top) * region.height
        width, height = cos * across + sin * down, sin * across + cos * down
        x, y = crop.to_image((self.left + self.right) / 2, (self.top + self.bottom) / 2)
        return Box(x - width / 2, y - height / 2, width, height)


@dataclass(frozen=True, slots=True)
class ResultField:
    """A field of each thing found: its name, its kind ("box", "number", "points") and its unit."""

    name: str
    kind: str
    unit: str


@dataclass(frozen=True, slots=True)
class ResultSchema:
    """How a page shows what a task found: web/static/results/<kind>.js draws it.

    `name` is the field of the page's machine-readable result and the id of its list.
    """

    kind: str
    name: str
    title: str  # before the number of things found
    label: str  # of each thing, before its number
    fields: tuple[ResultField, ...]


class PictureTask(ABC, Generic[Found]):
    """A picture in, a list of what is in it out. Subclasses declare `name` and `result`, and implement `decode`.

    `times` has the milliseconds of the last picture: prepare_ms, infer_ms, decode_ms.
    """

    name: ClassVar[str]  # by which pages and `models.registry` know the task
    result: ClassVar[ResultSchema]
    extension: ClassVar[str] = ""  # of the plans of its models (session.plan_cache)

    def __init__(self, session: Session, spec: InputSpec, feeder: PictureFeeder) -> None:
        self.session, self.spec = session, spec
        self.times = {"prepare_ms": 0.0, "infer_ms": 0.0, "decode_ms": 0.0}
        self._feeder = feeder

    @property
    def straight(self) -> bool:
        """Whether pictures go to the GPU as they are where that is possible, not through memory."""
        return self._feeder.straight

    @straight.setter
    def straight(self, value: bool) -> None:
        self._feeder.straight = value

    @classmethod
    @abstractmethod
    async def create(
        cls, model: Any, *, backend: str | Sequence[str] = "auto", progress: Progress | None = None
    ) -> Self:
        """The task with a model, ready: its first picture takes as long as the next."""

    def more_inputs(self, crop: Crop) -> Mapping[str, Any]:
        """The model's inputs besides the picture, for a crop of it."""
        return {}

    @abstractmethod
    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[Found]:
        """What the model's outputs mean, in pixels of the image."""

    async def run(self, image: Any, region: Region | None = None) -> list[Found]:
        """What is found in a region of an image; None: in all of it.

        `image` is anything `webinfer.tasks.image.read_image` takes: a Pillow image, an H x W x 3 or
        H x W x 4 array of uint8, or in the browser ImageData, ImageBitmap, VideoFrame or a canvas.

        Raises:  InputError if it is none of these or has no pixels; what `Session.run` raises
        """
        clock = self.session.host.now_ms
        start = clock()
        outputs, crop, prepare_ms = await self._feeder.run(image, region, self.spec, self.more_inputs)
        inferred = clock()
        found = await self.decode(outputs, crop)
        infer_ms = inferred - start - prepare_ms
        self.times = {"prepare_ms": prepare_ms, "infer_ms": infer_ms, "decode_ms": clock() - inferred}
        return found

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        self.session.close()
        self._feeder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
