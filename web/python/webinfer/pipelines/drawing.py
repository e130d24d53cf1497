"""How each kind of result is drawn over its picture: one function a kind, with the measures of web/static/results.

Results of recordings, texts and files have no picture: they become a chart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webinfer.host.pillow_canvas import EDGE, Colour, PillowCanvas
from webinfer.tasks.base import ResultSchema

TEAL: Colour = (54, 224, 200, 255)
INK: Colour = (6, 48, 43, 255)  # of letters on it
POINT: Colour = (255, 212, 71, 255)
WHITE: Colour = (255, 255, 255, 255)
FIELDS: tuple[Colour, ...] = (TEAL, (255, 180, 84, 255), (138, 180, 255, 255), (255, 142, 196, 255))
MANY = 100  # landmarks from which on they are specks
SEEN = 0.5  # visibility from which on a landmark is drawn
SHARP = (0.25, 0.75)  # probabilities that are background and foreground for sure
ALPHA = 165
BARS = 3  # categories over a picture
CHART = (640, 360)
CUTS_OUT = "background-removal"  # the task whose picture is what is left of it


def drawn(results: Any, picture: Any) -> Any:
    """The picture with the results on it, as an image of Pillow.

    Raises:  InputError if Pillow is not installed, or the picture cannot be drawn on
    """
    canvas = PillowCanvas(CHART if picture is None else picture)
    draw = _cut_out if results.task == CUTS_OUT else KINDS[results.schema.kind]
    draw(canvas, list(results), results.schema)
    return canvas.image()


def _detections(canvas: PillowCanvas, found: Sequence[Any], schema: ResultSchema) -> None:
    unit = canvas.unit
    for i, one in enumerate(found):
        box, colour = one.box, TEAL
        mask = getattr(one, "mask", None)
        if mask is not None:
            canvas.tint(mask.values, (mask.width, mask.height), (*colour[:3], ALPHA), SHARP)
        if corners := getattr(one, "corners", ()):
            canvas.line(list(corners), colour, 2.5 * unit, 5 * unit, closed=True)
        else:
            sides = (box.left, box.top, box.left + box.width, box.top + box.height)
            canvas.box(sides, colour, 2.5 * unit, 5 * unit)
        radius = max(2.5 * unit, min(box.width * 0.024, 6 * unit))
        for x, y in _points(getattr(one, "keypoints", ())):
            canvas.dot((x, y), radius, POINT, EDGE, 1.25 * unit)
        number = f"{i + 1} " if len(found) > 1 else ""
        name = getattr(getattr(one, "category", None), "label", "")
        text = f"{number}{name} {round(one.score * 100)} %".replace("  ", " ").strip()
        canvas.label(text, box.left, box.top, colour, INK)


def _points(keypoints: Any) -> list[tuple[float, float]]:
    """x and y of named points, or of those in a list of x, y and score that are seen."""
    if isinstance(keypoints, Mapping):
        return [(x, y) for x, y in keypoints.values()]
    return [(x, y) for x, y, score in keypoints if score >= SEEN]


def _landmarks(canvas: PillowCanvas, found: Sequence[Any], schema: ResultSchema) -> None:
    fields = [field for field in schema.fields if field.kind == "landmarks" and field.lines]
    for one in found:
        for i, field in enumerate(fields):
            value = getattr(one, field.name, None)
            points = getattr(value, "landmarks", value)
            if points is not None:
                _field(canvas, points, field.lines, FIELDS[i % len(FIELDS)])


def _field(canvas: PillowCanvas, points: Any, lines: Sequence[Sequence[int]], colour: Colour) -> None:
    at = points.points()
    seen = [point.visibility >= SEEN for point in points]
    spread = max((max(side) - min(side) for side in zip(*at, strict=True)), default=0.0)
    thick, many = canvas.unit * min(1.0, max(0.35, spread / 220)), len(at) >= MANY
    wide = thick * (0.7 if many else 1.0)
    if many:
        for point in at:
            canvas.dot(point, max(0.8, spread / 200), (*colour[:3], 217))
    pairs = [pair for chain in lines for pair in itertools.pairwise(chain)]
    ways = [[at[first], at[second]] for first, second in pairs if seen[first] and seen[second]]
    canvas.lines(ways, colour, 2.6 * wide, 5 * wide)
    for point, visible in zip(at, seen, strict=True):
        if visible and not many:
            canvas.dot(point, 3.6 * thick, WHITE, colour, 1.8 * thick)


def _masks(canvas: PillowCanvas, found: Sequence[Any], schema: ResultSchema) -> None:
    for mask in found:
        canvas.tint(mask.values, (mask.width, mask.height), (*TEAL[:3], ALPHA), SHARP)


def _cut_out(canvas: PillowCanvas, found: Sequence[Any], schema: ResultSchema) -> None:
    for matte in found:
        canvas.cut(matte.values, (matte.width, matte.height))


def _bodies(canvas: PillowCanvas, found: Sequence[Any], schema: ResultSchema) -> None:
    names = next((field.names for field in schema.fields if field.name == "parts"), ())
    colours = {number: hue(number, len(names)) for number in range(1, len(names) + 1)}
    for mask in found:
        canvas.paint(mask.parts, (mask.width, mask.height), colours)


def hue(number: int, count: int) -> Colour:
    """A colour of its own for each of `count` numbers: hues that lie far apart for neighbours."""
    turn = (((number - 1) * 0.381966 * (1 if count > 12 else 2.2)) % 1) * 6
    channels = [0.28 + 0.67 * min(1.0, max(0.0, abs((turn + shift) % 6 - 3) - 1)) for shift in (0, 4, 2)]
    red, green, blue = (round(255 * part) for part in channels)
    return (red, green, blue, ALPHA)


def _texts(canvas: PillowCanvas, found: Sequence[Any], schema: ResultSchema) -> None:
    for one in found:
        corners = list(one.quad.values() if isinstance(one.quad, Mapping) else one.quad)
        canvas.fill(corners, (*TEAL[:3], 46))
        canvas.line(corners, TEAL, 1.6 * canvas.unit, 3.2 * canvas.unit, closed=True)


def _categories(canvas: PillowCanvas, found: Sequence[Any], schema: ResultSchema) -> None:
    shares = [(one.label or f"class {getattr(one, 'index', '')}", one.score) for one in found[:BARS]]
    _bars(canvas, shares)


def _bars(canvas: PillowCanvas, shares: Sequence[tuple[str, float]]) -> None:
    """Bars at the lower edge, the first on top."""
    unit = canvas.unit
    line, gap = 24 * unit, 4 * unit
    for i, (label, score) in enumerate(shares):
        top = canvas.height - (len(shares) - i) * (line + gap) - gap
        across = max(0.0, canvas.width - 2 * gap)
        canvas.bar((gap, top, gap + across, top + line), (6, 16, 20, 184))
        canvas.bar((gap, top, gap + across * min(1.0, max(0.0, score)), top + line), (*TEAL[:3], 140))
        canvas.text((gap + 8 * unit, top + line / 2), f"{label}  {100 * score:.1f} %", 13 * unit, WHITE)


def _types(canvas: PillowCanvas, found: Sequence[Any], schema: ResultSchema) -> None:
    _bars(canvas, [(f"{one.label}: {one.description}", one.score) for one in found[:10]])


def _stretches(canvas: PillowCanvas, found: Sequence[Any], schema: ResultSchema) -> None:
    end = max((one.end for one in found), default=1.0) or 1.0
    line, left, across = 24.0, 8.0, canvas.width - 16.0
    rows = max(1, math.floor((canvas.height - 24) / (line + 4)))
    for i, one in enumerate(found[:rows]):
        top, begin, stop = 8 + i * (line + 4), left + across * one.start / end, left + across * one.end / end
        canvas.bar((left, top, left + across, top + line), (6, 16, 20, 184))
        canvas.bar((begin, top, max(stop, begin + 1), top + line), (*TEAL[:3], 140))
        text = f"{getattr(one, 'label', '')} {one.start:.2f} to {one.end:.2f} s, {100 * one.score:.0f} %".strip()
        canvas.text((left + 8, top + line / 2), text, 13, WHITE)


def _vectors(canvas: PillowCanvas, found: Sequence[Any], schema: ResultSchema) -> None:
    shares = [(other.text[:60], found[0].similarity(other)) for other in found[:10]] if found else []
    _bars(canvas, shares)


KINDS: Mapping[str, Callable[[PillowCanvas, Sequence[Any], ResultSchema], None]] = {
    "bodies": _bodies, "categories": _categories, "detections": _detections, "landmarks": _landmarks, "mask": _masks,
    "stretches": _stretches, "texts": _texts, "types": _types, "vectors": _vectors,
}  # fmt: skip
