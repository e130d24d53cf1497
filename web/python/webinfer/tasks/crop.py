"""Which part of a picture a model sees: a rectangle of it, turned as needed, and the way back to its pixels."""

from __future__ import annotations

import enum
import math
from dataclasses import replace

from webinfer.kernel_constants import BORDER_BLACK, BORDER_REPEAT, SAMPLING_EXACT, SAMPLING_FIXED
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import PictureInput


class Border(enum.IntEnum):
    """What a model sees where its crop reaches past the picture; the numbers are the picture kernel's."""

    BLACK = BORDER_BLACK
    EDGE = BORDER_REPEAT  # the nearest pixel of the picture


class Sampling(enum.IntEnum):
    """How pixels between those of the picture are made; the numbers are the picture kernel's."""

    EXACT = SAMPLING_EXACT  # bilinear in float32
    FIXED = SAMPLING_FIXED  # to 1/32 pixel and whole numbers, as OpenCV makes them


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle of a picture, turned about its centre; it may reach past the picture's edge.

    Units:  pixels of the picture, where its left upper corner is 0, 0; radians, clockwise as one sees the picture
    """

    x: float  # of the centre
    y: float
    width: float
    height: float
    rotation: float = 0.0

    @classmethod
    def whole(cls, width: int, height: int) -> Region:
        """All of a picture of this size."""
        return cls(width / 2, height / 2, width, height)

    def with_aspect(self, aspect: float) -> Region:
        """The smallest region with the same centre that covers this one and is `aspect` times as wide as high."""
        return replace(self, width=max(self.width, self.height * aspect), height=max(self.height, self.width / aspect))


@dataclass(frozen=True, slots=True)
class Crop:
    """A region of a picture that fills a model's input: the affine map between the two, both ways."""

    region: Region
    width: int  # of the model's input, pixels
    height: int
    corners: bool = False  # the input's first pixel shows the region's corner, not the middle of its first cell
    asked: Region | None = None  # what was to be seen, where the region is larger; None: the region
    image_size: tuple[int, int] = (1, 1)  # width and height of the picture, pixels

    @classmethod
    def fit(cls, picture_width: int, picture_height: int, width: int, height: int) -> Crop:
        """The whole picture, centred in the input with its aspect kept."""
        return cls(Region.whole(picture_width, picture_height).with_aspect(width / height), width, height)

    def to_image(self, x: float, y: float) -> tuple[float, float]:
        """Picture pixels of a point given in 0..1 of the model's input."""
        r = self.region
        right, down = (x - 0.5) * r.width, (y - 0.5) * r.height
        cos, sin = math.cos(r.rotation), math.sin(r.rotation)
        return r.x + cos * right - sin * down, r.y + sin * right + cos * down

    def from_image(self, x: float, y: float) -> tuple[float, float]:
        """The point in 0..1 of the model's input of a point given in picture pixels."""
        r = self.region
        right, down = x - r.x, y - r.y
        cos, sin = math.cos(r.rotation), math.sin(r.rotation)
        return (cos * right + sin * down) / r.width + 0.5, (cos * down - sin * right) / r.height + 0.5

    def matrix(self) -> tuple[float, float, float, float, float, float]:
        """The affine map from centres of input pixels to centres of picture pixels: ax, ay, a0, bx, by, b0.

        Input pixel (i, j) shows the picture at (ax * i + ay * j + a0, bx * i + by * j + b0), where whole numbers are
        the centres of pixels.
        """
        r = self.region
        cos, sin = math.cos(r.rotation), math.sin(r.rotation)
        across, down = r.width / self.width, r.height / self.height  # picture pixels an input pixel
        first = 0.0 if self.corners else 0.5
        left, top = self.to_image(first / self.width, first / self.height)
        return cos * across, -sin * down, left - first, sin * across, cos * down, top - first


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The picture that a task's model sees: size and range of its values, and how a region is laid into it."""

    picture: PictureInput
    keep_aspect: bool = True  # False: a region is stretched to the input's shape
    border: Border = Border.BLACK
    corners: bool = False  # see Crop
    sampling: Sampling = Sampling.EXACT

    @classmethod
    def of_mediapipe(
        cls, picture: PictureInput, *, keep_aspect: bool = True, border: Border = Border.BLACK
    ) -> InputSpec:
        """A picture as MediaPipe's graphs on a CPU lay it in: by OpenCV's warpPerspective, from corner to corner.

        Source:  mediapipe/calculators/tensor/image_to_tensor_converter_opencv.cc
        """
        return cls(picture, keep_aspect, border, corners=True, sampling=Sampling.FIXED)

    def crop(self, region: Region | None, image_size: tuple[int, int] = (1, 1)) -> Crop:
        """The map between the model's input and a region of a picture of this size; None: all of it."""
        region = region or Region.whole(*image_size)
        width, height = self.picture.width, self.picture.height
        fitted = region.with_aspect(width / height) if self.keep_aspect else region
        return Crop(fitted, width, height, self.corners, region, image_size)


Size = tuple[int, int, int, int]  # width and height of what a model saw, and of its middle that was asked for


def sizes(crop: Crop) -> Size:
    """What maps of a crop are made as large as, in whole pixels."""
    regions = crop.region, crop.asked or crop.region
    (wide, high), (width, height) = ((max(1, round(r.width)), max(1, round(r.height))) for r in regions)
    return max(wide, width), max(high, height), width, height
