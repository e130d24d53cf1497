"""Drawing over a picture with Pillow: lines with a dark edge, points, labels, tints. Sizes are pixels of the picture.

Drawn at twice the size and scaled down, as Pillow's lines have no soft edges. The measures are those of the pages
(web/static/ui/overlay.js), so that pictures look the same.
"""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.errors import InputError
from webinfer.host.pictures import python_picture

Colour = tuple[int, int, int, int]  # red, green, blue, alpha
Point = tuple[float, float]
EDGE: Colour = (0, 0, 0, 166)  # under every line, so that it shows on any picture
SMOOTH_PIXELS = 6_000_000  # up to which pictures are drawn at twice the size


def module(name: str) -> Any:
    """A module of Pillow.

    Raises:  InputError if Pillow is not installed
    """
    try:
        return importlib.import_module(f"PIL.{name}")
    except ImportError:
        raise InputError("results are drawn with Pillow, which is not installed: pip install pillow") from None


def pillow_image(source: Any) -> Any:
    """An upright RGB image of Pillow: of such an image, a picture file's path or bytes, or an array; black for a size.

    Raises:  InputError if it is none of these
    """
    image = module("Image")
    if isinstance(source, tuple):
        return image.new("RGB", source, (16, 24, 28))
    encoded = isinstance(source, bytes | bytearray | memoryview) and getattr(source, "ndim", 1) == 1
    if not encoded and not isinstance(source, str | os.PathLike):
        opened = source if hasattr(source, "convert") else _of_array(image, source)
        return module("ImageOps").exif_transpose(opened).convert("RGB")
    try:
        opened = image.open(io.BytesIO(bytes(source)) if encoded else source)
        return module("ImageOps").exif_transpose(opened).convert("RGB")
    except (OSError, ValueError) as error:
        raise InputError(f"the image {'' if encoded else source} cannot be read: {error}; use another file") from error


def _of_array(image: Any, source: Any) -> Any:
    python_picture(source, lambda width, height: None)  # None for arrays; other things raise there or below
    try:
        return image.fromarray(source)
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"a {type(source).__name__} cannot be drawn on: {error}; give a Pillow image") from error


class PillowCanvas:
    """A picture that is drawn on; `image()` is the result."""

    def __init__(self, source: Any) -> None:
        self._image, self._draw_module, self._fonts = module("Image"), module("ImageDraw"), module("ImageFont")
        self._base = pillow_image(source)
        self.width, self.height = self._base.size
        self.unit = min(1.6, max(0.5, min(self._base.size) / 480))
        self._factor = 2 if self.width * self.height <= SMOOTH_PIXELS else 1
        size = (self.width * self._factor, self.height * self._factor)
        self._layer = self._image.new("RGBA", size, (0, 0, 0, 0))
        self._draw = self._draw_module.Draw(self._layer)

    def _at(self, points: Sequence[Point]) -> list[Point]:
        return [(x * self._factor, y * self._factor) for x, y in points]

    def line(self, points: Sequence[Point], colour: Colour, width: float, edge: float, closed: bool = False) -> None:
        """A line through points over an edge of `edge` pixels."""
        self.lines([[*points, *points[:1]] if closed else points], colour, width, edge)

    def lines(self, ways: Sequence[Sequence[Point]], colour: Colour, width: float, edge: float) -> None:
        """Lines, each through points, over the edges of all of them."""
        for style, wide in ((EDGE, edge), (colour, width)):
            for way in ways:
                self._draw.line(self._at(way), fill=style, width=max(1, round(wide * self._factor)), joint="curve")

    def box(self, corners: tuple[float, float, float, float], colour: Colour, width: float, edge: float) -> None:
        """A rounded box: left, top, right, bottom."""
        left, top, right, bottom = (value * self._factor for value in corners)
        radius = min(8 * self.unit * self._factor, max(right - left, 0) / 8)
        for style, wide in ((EDGE, edge), (colour, width)):
            out = wide * self._factor / 2
            around = (left - out, top - out, max(right + out, left), max(bottom + out, top))
            self._draw.rounded_rectangle(around, radius, outline=style, width=max(1, round(2 * out)))

    def fill(self, points: Sequence[Point], colour: Colour) -> None:
        """A filled polygon."""
        self._draw.polygon(self._at(points), fill=colour)

    def dot(self, at: Point, radius: float, colour: Colour, rim: Colour | None = None, rim_width: float = 0.0) -> None:
        """A round point with a rim."""
        ((x, y),), r = self._at([at]), radius * self._factor
        box, width = (x - r, y - r, x + r, y + r), max(1, round(rim_width * self._factor)) if rim else 0
        self._draw.ellipse(box, fill=colour, outline=rim, width=width)

    def bar(self, corners: tuple[float, float, float, float], colour: Colour) -> None:
        """A filled rectangle: left, top, right, bottom."""
        self._draw.rectangle(tuple(value * self._factor for value in corners), fill=colour)

    def text(self, at: Point, text: str, size: float, colour: Colour, edge: bool = False) -> None:
        """A line of text, its left end and its middle at a point."""
        ((x, y),), font = self._at([at]), self._font(size)
        outline = {"stroke_width": round(1.5 * self._factor), "stroke_fill": EDGE} if edge else {}
        anchor = {"anchor": "lm"} if hasattr(font, "getmetrics") and hasattr(font, "path") else {}
        self._draw.text((x, y), text, fill=colour, font=font, **anchor, **outline)

    def label(self, text: str, left: float, top: float, colour: Colour, ink: Colour) -> None:
        """A label over a box's upper left corner, inside it where there is no room above."""
        size = 13 * self.unit
        across, down = self._length(text, size) + 12 * self.unit, 20 * self.unit
        x = min(max(0.0, left), max(0.0, self.width - across))
        y = top - down - 4 * self.unit if top >= down + 4 * self.unit else top + 4 * self.unit
        f = self._factor
        self._draw.rounded_rectangle((x * f, y * f, (x + across) * f, (y + down) * f), 5 * self.unit * f, fill=colour)
        self.text((x + 6 * self.unit, y + down / 2), text, size, ink)

    def _length(self, text: str, size: float) -> float:
        return float(self._draw.textlength(text, font=self._font(size))) / self._factor

    def _font(self, size: float) -> Any:
        try:
            return self._fonts.load_default(max(8.0, size * self._factor))
        except TypeError:  # a Pillow before 10.1
            return self._fonts.load_default()

    def cut(self, values: memoryview, size: tuple[int, int]) -> None:
        """Leaves the picture transparent where float32 values are 0, and as it is where they are 1."""
        grey = self._image.frombuffer("F", size, bytes(values), "raw", "F", 0, 1).point(lambda v: v * 255.0 + 0.5)
        base = self._base.convert("RGBA")
        base.putalpha(grey.convert("L").resize(base.size, self._image.Resampling.BILINEAR))
        self._base = base

    def tint(self, values: memoryview, size: tuple[int, int], colour: Colour, sharp: tuple[float, float]) -> None:
        """A colour where float32 values are high: clear at the lower, full at the upper of `sharp`."""
        low, high = sharp
        scale = colour[3] / (high - low)
        grey = self._image.frombuffer("F", size, bytes(values), "raw", "F", 0, 1).point(
            lambda v: v * scale - low * scale
        )
        limit = [min(value, colour[3]) for value in range(256)]
        alpha = grey.convert("L").point(limit).resize(self._layer.size, self._image.Resampling.BILINEAR)
        tinted = self._image.new("RGBA", self._layer.size, (*colour[:3], 0))
        tinted.putalpha(alpha)
        self._layer.alpha_composite(tinted)

    def paint(self, numbers: memoryview, size: tuple[int, int], colours: Mapping[int, Colour]) -> None:
        """A colour for each number of a map of uint8; none for numbers without one."""
        grey = self._image.frombuffer("L", size, bytes(numbers), "raw", "L", 0, 1)
        channels = [grey.point([colours.get(n, (0, 0, 0, 0))[c] for n in range(256)]) for c in range(4)]
        painted = self._image.merge("RGBA", channels).resize(self._layer.size, self._image.Resampling.NEAREST)
        self._layer.alpha_composite(painted)

    def image(self) -> Any:
        """The picture with what was drawn on it."""
        layer = self._layer
        if self._factor > 1:
            layer = layer.resize(self._base.size, self._image.Resampling.LANCZOS)
        drawn = self._base.convert("RGBA")
        drawn.alpha_composite(layer)
        return drawn if self._base.mode == "RGBA" else drawn.convert("RGB")
