"""Where the second of two models looks: a turned square around keypoints of the first one or of the last frame."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.lazy_dataclass import dataclass
from webinfer.tasks.base import Box
from webinfer.tasks.crop import Region

Points = Sequence[tuple[float, float]]  # x, y in pixels of the picture


@dataclass(frozen=True, slots=True)
class RegionRule:
    """How a region lies around keypoints; `scale` times the longer side of their box, square.

    Units:  radians; the shift is in heights of the box, downwards as the region is turned
    """

    start: int  # of the keypoint from which the direction is taken
    end: int
    upright: float = 0.0  # angle of that direction where nothing is turned, counted from right to up
    scale: float = 1.0
    shift: float = 0.0
    around_start: bool = False  # the box is centred at `start` and reaches to `end`

    def region(self, points: Points, box: Box | None = None) -> Region:
        """The region for these keypoints; the box is that of all of them if none is given."""
        (x0, y0), (x1, y1) = points[self.start], points[self.end]
        turn = self.upright - math.atan2(y0 - y1, x1 - x0)
        turn -= 2 * math.pi * math.floor((turn + math.pi) / (2 * math.pi))
        if self.around_start:
            reach = 2 * math.hypot(x1 - x0, y1 - y0)
            box = Box(x0 - reach / 2, y0 - reach / 2, reach, reach)
        return _square(box or box_of(points), turn, self.scale, self.shift)

    def turned(self, points: Points, towards: tuple[float, float]) -> Region:
        """As `region`, in the direction of a point besides, around the box that the others have when turned upright."""
        plain = self.region([*points, towards])
        cos, sin = math.cos(plain.rotation), math.sin(plain.rotation)
        box = box_of([(cos * x + sin * y, cos * y - sin * x) for x, y in points])
        x, y = box.left + box.width / 2, box.top + box.height / 2
        left, top = cos * x - sin * y - box.width / 2, sin * x + cos * y - box.height / 2
        return _square(Box(left, top, box.width, box.height), plain.rotation, self.scale, self.shift)


def box_of(points: Points) -> Box:
    """The upright box around points."""
    across, down = zip(*points, strict=True)
    left, top = min(across), min(down)
    return Box(left, top, max(across) - left, max(down) - top)


def overlap(a: Region, b: Region) -> float:
    """Intersection over union of two regions, taken as upright squares."""
    across = min(a.x + a.width / 2, b.x + b.width / 2) - max(a.x - a.width / 2, b.x - b.width / 2)
    down = min(a.y + a.height / 2, b.y + b.height / 2) - max(a.y - a.height / 2, b.y - b.height / 2)
    common = max(across, 0.0) * max(down, 0.0)
    return common / (a.width * a.height + b.width * b.height - common)


def _square(box: Box, turn: float, scale: float, shift: float) -> Region:
    x, y, down = box.left + box.width / 2, box.top + box.height / 2, shift * box.height
    side = max(box.width, box.height) * scale
    return Region(x - down * math.sin(turn), y + down * math.cos(turn), side, side, turn)
