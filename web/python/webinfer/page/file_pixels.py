"""Results in pixels of the user's file, where the page gave a smaller copy of it: no model looks at so many pixels."""

from __future__ import annotations

import array
import dataclasses
from collections.abc import Mapping
from typing import Any

from webinfer.tasks.base import Box
from webinfer.tasks.landmarks import Landmarks

POINTS = frozenset({"keypoints", "corners", "quad", "anchors"})  # fields of points: x, y and perhaps more
IN_METRES = "world"


def in_file_pixels(found: Any, across: float, down: float) -> Any:
    """What was found in a copy, in pixels of the file that is `across` times as wide and `down` times as high.

    Masks stay as they are: they have a size of their own and lie over all of the picture.
    """
    if isinstance(found, Box):
        return Box(found.left * across, found.top * down, found.width * across, found.height * down)
    if isinstance(found, Landmarks):
        xyz = array.array("f", found.xyz)
        for axis, factor in enumerate((across, down, across)):  # depths are in pixels of the width
            xyz[axis::3] = array.array("f", (n * factor for n in xyz[axis::3]))
        return Landmarks(xyz, found.confidences)
    if isinstance(found, list):
        return [in_file_pixels(one, across, down) for one in found]
    if not dataclasses.is_dataclass(found) or isinstance(found, type):
        return found
    changed = {}
    for name in (field.name for field in dataclasses.fields(found) if field.name != IN_METRES):
        value = getattr(found, name)
        changed[name] = _points(value, across, down) if name in POINTS else in_file_pixels(value, across, down)
    return dataclasses.replace(found, **changed)


def _points(points: Any, across: float, down: float) -> Any:
    """Points by name or in a row, each with its x and y in pixels of the file."""
    if isinstance(points, Mapping):
        return {name: _point(point, across, down) for name, point in points.items()}
    return tuple(_point(point, across, down) for point in points)


def _point(point: Any, across: float, down: float) -> tuple[float, ...]:
    x, y, *more = point
    return (x * across, y * down, *more)
