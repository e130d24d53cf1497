"""Lines of text by their corners: which way each is read, its upside-down double, and the order of a page's lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from webinfer.tasks.regions import box_of
from webinfer.tasks.text_models import MASK, SUMS
from webinfer.tasks.text_pixels import Quad
from webinfer.tasks.text_regions import (
    components,
    corners_of,
    grown,
    hull,
    in_reading_order,
    mean_inside,
    smallest_rectangle,
)
from webinfer.tensor import Tensor

# Of a rectangle, by its area over its girth; pixels of its shorter side before it has grown, and in the picture.
GROWTH, SMALLEST, SHORTEST_SIDE = 1.4, 3, 3
ELONGATED = 1.5  # ratio of sides from which the longer one says where the line runs
ALIKE = math.radians(20)  # of directions of lines on one page
STEEP = math.radians(85)  # from here on a line that climbs and one that falls look alike: both are taken as falling


def found_quads(outputs: Mapping[str, Tensor], size: tuple[int, int], min_score: float) -> list[Quad]:
    """The corners of the lines of text that a detector (`text_models.with_map`) found, in pixels of a picture.

    `size` are its width and height. Long lines are read from left to right however they are turned; short ones along
    the direction of the long ones.
    """
    height, width = outputs[MASK].shape
    sums, quads = outputs[SUMS].flat(), list[Quad]()
    for runs in components(outputs[MASK].tobytes(), width):
        region = smallest_rectangle(hull(runs))
        if min(region.width, region.height) < SMALLEST:
            continue
        if mean_inside(corners_of(region), sums, width, height) < min_score:
            continue
        distance = GROWTH * region.width * region.height / (2 * (region.width + region.height))
        region = smallest_rectangle(grown(corners_of(region), distance))
        if min(region.width, region.height) < SMALLEST + 2:
            continue
        to_x, to_y = size[0] / width, size[1] / height
        points = [(_within(x * to_x, size[0]), _within(y * to_y, size[1])) for x, y in corners_of(region)]
        quad = upright((points[0], points[1], points[2], points[3]))
        if min(int(math.dist(quad[0], quad[i])) for i in (1, 3)) > SHORTEST_SIDE:
            quads.append(quad)
    long = [_along_longer_side(quad) for quad in quads if _ratio(quad) >= ELONGATED]
    main = main_direction(long)
    short = [_nearest_to(quad, main) for quad in quads if _ratio(quad) < ELONGATED]
    return long + short


def _within(place: float, size: int) -> float:
    """The nearest whole pixel of so many."""
    return float(min(max(round(place), 0), size - 1))


def upright(quad: Quad) -> Quad:
    """The same corners from the left upper one on, with the clock; of the two on the left it is the upper one."""
    places = sorted(quad, key=lambda corner: corner[0])
    (a, d), (b, c) = (sorted(pair, key=lambda corner: corner[1]) for pair in (places[:2], places[2:]))
    return a, b, c, d


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
