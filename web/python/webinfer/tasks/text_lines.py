"""Lines of text by their corners: which way each is read, its upside-down double, and the order of a page's lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from webinfer.tasks.base import Keypoint
from webinfer.tasks.crop import Crop
from webinfer.tasks.regions import box_of
from webinfer.tasks.text_models import MASK, SUMS
from webinfer.tasks.text_regions import components, corners_of, hull, in_reading_order, mean_inside, smallest_rectangle
from webinfer.tensor import Tensor

GROWTH, SMALLEST = 1.4, 3  # of a rectangle by its area over its girth; pixels of its shorter side
ELONGATED = 1.5  # ratio of sides from which the longer one says where the line runs
ALIKE = math.radians(20)  # of directions of lines on one page
STEEP = math.radians(85)  # from here on a line that climbs and one that falls look alike: both are taken as falling
Quad = tuple[Keypoint, Keypoint, Keypoint, Keypoint]  # from where the text begins: upper left, upper right, lower ones


def found_quads(outputs: Mapping[str, Tensor], crop: Crop, min_score: float) -> list[Quad]:
    """The corners of the lines of text that a detector (`text_models.with_map`) found, in pixels of the picture.

    Long ones are read from left to right however they are turned; short ones along the direction of the long ones.
    """
    width, height = crop.width, crop.height
    sums, quads = outputs[SUMS].flat(), list[Quad]()
    for runs in components(outputs[MASK].tobytes(), width):
        region = smallest_rectangle(hull(runs))
        if min(region.width, region.height) < SMALLEST:
            continue
        if mean_inside(corners_of(region), sums, width, height) < min_score:
            continue
        grown = GROWTH * region.width * region.height / (region.width + region.height)
        region = replace(region, width=region.width + grown, height=region.height + grown)
        a, b, c, d = (crop.to_image(x / width, y / height) for x, y in corners_of(region))
        quads.append((a, b, c, d))
    long = [_along_longer_side(quad) for quad in quads if _ratio(quad) >= ELONGATED]
    main = main_direction(long)
    short = [_nearest_to(quad, main) for quad in quads if _ratio(quad) < ELONGATED]
    return long + short


def turned(quad: Quad, quarters: int) -> Quad:
    """The same corners with the text turned clockwise by so many quarters of a circle."""
    start = quarters % 4
    a, b, c, d = quad[start:] + quad[:start]
    return a, b, c, d


def direction(quad: Quad) -> float:
    """Where the text runs, in radians, clockwise from the right as one sees the picture."""
    (x0, y0), (x1, y1), *_ = quad
    return math.atan2(y1 - y0, x1 - x0)


def main_direction(quads: Sequence[Quad]) -> float:
    """The direction in which most of the length of these lines runs; 0 if there are none."""
    weights = [(direction(quad), math.dist(*quad[:2])) for quad in quads]
    total, main = 0.0, 0.0
    for angle, _ in weights:
        near = [(away, weight) for a, weight in weights if abs(away := math.remainder(a - angle, math.tau)) <= ALIKE]
        if (length := sum(weight for _, weight in near)) > total:
            total, main = length, angle + sum(away * weight for away, weight in near) / length
    return main


def reading_order(quads: Sequence[Quad]) -> list[int]:
    """The order in which lines are read: rows from the top, each from the left, as the page is turned."""
    main = main_direction(quads)
    cos, sin = math.cos(main), math.sin(main)
    boxes = [box_of([(x * cos + y * sin, y * cos - x * sin) for x, y in quad]) for quad in quads]
    return in_reading_order([(b.left, b.top, b.left + b.width, b.top + b.height) for b in boxes])


def _ratio(quad: Quad) -> float:
    """The longer side over the shorter."""
    sides = math.dist(quad[0], quad[1]), math.dist(quad[0], quad[3])
    return max(sides) / min(sides)


def _along_longer_side(quad: Quad) -> Quad:
    """The corners of a line that is read along its longer side, towards the right; downwards if it stands upright."""
    if math.dist(quad[0], quad[3]) > math.dist(quad[0], quad[1]):
        quad = turned(quad, 1)
    return turned(quad, 2) if not -STEEP < direction(quad) <= math.pi - STEEP else quad


def _nearest_to(quad: Quad, main: float) -> Quad:
    """The corners so that the text runs as nearly as it can in that direction."""
    return min((turned(quad, i) for i in range(4)), key=lambda q: abs(math.remainder(direction(q) - main, math.tau)))
