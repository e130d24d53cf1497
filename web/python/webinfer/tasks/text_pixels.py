"""Pictures as the models of text want to see them: cut and stretched to the pixel as PaddleOCR's code does with OpenCV.

Source:  rapidocr 3.10: utils/process_img.py, ch_ppocr_det/utils.py, ch_ppocr_rec/main.py; OpenCV 5
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from webinfer.dtypes import DType
from webinfer.host.pictures import PixelLayout
from webinfer.tasks.base import Keypoint
from webinfer.tasks.image import Picture
from webinfer.tasks.sampled import check_bytes
from webinfer.tasks.workspace import Workspace
from webinfer.tensor import Tensor

FLATTEST, LOWEST = 8, 30  # a picture that is wider than this many times its height, or lower, gets black around
CUT, RESIZE = "u8_cut_quad", "u8_resize_to_planes"
Quad = tuple[Keypoint, Keypoint, Keypoint, Keypoint]


class Normalisation(NamedTuple):
    """Mean and deviation of blue, green and red, of values in 0..1."""

    means: tuple[float, float, float]
    deviations: tuple[float, float, float]


class _Placed(NamedTuple):
    """A picture in kernel memory. `red` is the address of the first pixel's; steps are bytes."""

    red: int
    width: int
    height: int
    row: int
    pixel: int
    channel: int

    def turned(self, quarters: int) -> _Placed:
        """The same seen turned against the clock by so many quarters of a circle."""
        picture = self
        for _ in range(quarters % 4):
            red, width, height, row, pixel, channel = picture
            picture = _Placed(red + (width - 1) * pixel, height, width, -pixel, row, channel)
        return picture

    def reversed_channels(self) -> _Placed:
        """The same with blue first."""
        return self._replace(red=self.red + 2 * self.channel, channel=-self.channel)


class TextPixels:
    """Makes the inputs of models of text in kernel memory of its own. What it returns are copies."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def page(self, picture: Picture, width: int, height: int, numbers: Normalisation) -> Tensor:
        """The input of a detector: a picture with the black of `padding`, stretched to this size.

        Shapes:  [1, 3, height, width], blue first
        """
        return self._planes(self._page(picture), width, height, width, numbers)

    def lines(self, picture: Picture, quads: Sequence[Quad]) -> list[Picture]:
        """What these quadrilaterals of a picture with the black of `padding` show, each as large as its longer sides.

        Each begins with its left upper corner and goes around with the clock.
        """
        page = self._page(picture)
        return [self._cut(page, quad) for quad in quads]

    def line(self, picture: Picture, quarters: int, height: int, width: int, used: int, by: Normalisation) -> Tensor:
        """The input of a reader: a line of `lines`, turned against the clock, stretched to the first `used` columns.

        Shapes:  [1, 3, height, width], blue first; columns that are not used are 0
        """
        found = self._put("line", picture).turned(quarters)
        return self._planes(found, width, height, used, by)

    def close(self) -> None:
        """Frees the memory; a second call does nothing."""
        self._workspace.close()

    def _put(self, name: str, picture: Picture) -> _Placed:
        width, height, steps = picture.width, picture.height, picture.steps
        begins, end, data = 0, check_bytes(picture), picture.pixels
        if not hasattr(data, "byteLength"):
            begins, end = steps.span(width, range(height))
            data = memoryview(data).cast("B")[begins:end]
        address = self._workspace.put(name, data, end - begins)
        return _Placed(address + steps.first - begins, width, height, steps.row, steps.pixel, steps.channel)

    def _page(self, picture: Picture) -> _Placed:
        page, black = self._put("page", picture), padding(picture.width, picture.height)
        if not black:
            return page
        row, rows = 3 * page.width, page.height + 2 * black
        padded = self._workspace.put("padded", bytes(row * rows), row * rows)
        numbers = (*page[:1], padded + black * row, *page[1:], page.width, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        self._workspace.call(CUT, numbers, page.height)  # pixel by pixel
        return _Placed(padded, page.width, rows, row, 3, 1)

    def _cut(self, page: _Placed, quad: Quad) -> Picture:
        a, b, c, d = quad
        width, height = int(max(math.dist(a, b), math.dist(c, d))), int(max(math.dist(a, d), math.dist(b, c)))
        target = self._workspace.area("cut", 3 * width * height)
        numbers = (page.red, target, *page[1:], width, *projective(quad, width, height))
        self._workspace.call(CUT, numbers, height)
        pixels = self._workspace.kernels.read(target, 3 * width * height)
        return Picture(width, height, pixels, PixelLayout(0, 3 * width, 3, 1))

    def _planes(self, picture: _Placed, width: int, height: int, used: int, by: Normalisation) -> Tensor:
        seen, nbytes = picture.reversed_channels(), 12 * width * height
        target = self._workspace.area("planes", nbytes)
        scales = [1 / (255 * deviation) for deviation in by.deviations]
        offsets = [-mean / deviation for mean, deviation in zip(*by, strict=True)]
        self._workspace.call(RESIZE, (seen.red, target, *seen[1:], width, height, used, *scales, *offsets), height)
        return Tensor(self._workspace.kernels.read(target, nbytes), (1, 3, height, width), DType.FLOAT32)


def padding(width: int, height: int) -> int:
    """The rows of black above and below a picture that is very wide or very low; 0 for others."""
    if height > LOWEST and width <= FLATTEST * height:
        return 0
    return abs(2 * max(width // FLATTEST, LOWEST) - height) // 2


def projective(quad: Quad, width: int, height: int) -> tuple[float, ...]:
    """The map from pixels of a picture of this size to those of the one in which a quadrilateral lies.

    The numbers are those of u8_cut_quad.c: ax, ay, a0, bx, by, b0, wx, wy. Corners of the one go to the other's.

    Source:  Heckbert, Fundamentals of Texture Mapping and Image Warping (1989), 2.2.3
    """
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = quad
    dx1, dx2, dx3 = x1 - x2, x3 - x2, x0 - x1 + x2 - x3
    dy1, dy2, dy3 = y1 - y2, y3 - y2, y0 - y1 + y2 - y3
    whole = dx1 * dy2 - dx2 * dy1
    g, h = (dx3 * dy2 - dx2 * dy3) / whole, (dx1 * dy3 - dx3 * dy1) / whole
    across, down = (x1 - x0 + g * x1, y1 - y0 + g * y1), (x3 - x0 + h * x3, y3 - y0 + h * y3)
    return (
        across[0] / width, down[0] / height, x0, across[1] / width, down[1] / height, y0, g / width, h / height,
    )  # fmt: skip
