"""Where text is in a map of its probability: pixels that hang together, the smallest rectangle around them, a mean.

Pixels are met as runs, each found by one call of `bytes.find`; Python looks at the ends of runs, not at pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from webinfer.tasks.crop import Region

Point = tuple[float, float]
Run = tuple[int, int, int]  # row, first and last pixel
ARC_TOLERANCE = 0.25  # pixels between a round corner and the shape that stands for it


def components(mask: bytes, width: int) -> list[list[Run]]:
    """The runs of ones that touch, by their corners too, together."""
    runs, parents = list[Run](), list[int]()

    def root(run: int) -> int:
        while parents[run] != run:
            parents[run] = run = parents[parents[run]]
        return run

    above = range(0)
    for y, start in enumerate(range(0, len(mask), width)):
        begin, near, stop = len(runs), above.start, start + width
        at = mask.find(1, start, stop)
        while at >= 0:
            end = mask.find(0, at, stop)
            end = stop if end < 0 else end
            first, last, here = at - start, end - start - 1, len(runs)
            runs.append((y, first, last))
            parents.append(here)
            while near < above.stop and runs[near][2] < first - 1:
                near += 1
            touching = near
            while touching < above.stop and runs[touching][1] <= last + 1:
                parents[root(touching)] = root(here)
                touching += 1
            at = mask.find(1, end, stop)
        above = range(begin, len(runs))
    groups: dict[int, list[Run]] = {}
    for place, run in enumerate(runs):
        groups.setdefault(root(place), []).append(run)
    return list(groups.values())


def hull(runs: Sequence[Run]) -> list[Point]:
    """The corners of the smallest convex shape around the ends of runs, in turn."""
    return hull_of([(float(x), float(y)) for y, first, last in runs for x in (first, last)])


def hull_of(found: Iterable[Point]) -> list[Point]:
    """The corners of the smallest convex shape around points, in turn."""
    points = sorted(set(found))
    if len(points) < 3:
        return points
    sides = []
    for side in (points, points[::-1]):
        line = list[Point]()
        for point in side:
            while len(line) > 1 and _turn(line[-2], line[-1], point) <= 0:
                line.pop()
            line.append(point)
        sides += line[:-1]
    return sides


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def smallest_rectangle(corners: Sequence[Point]) -> Region:
    """The smallest rectangle around a convex shape; one of its sides lies along the shape's. Turned by 45° at most."""
    best, least = Region(*corners[0], 0, 0), math.inf
    for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
        angle = math.remainder(math.atan2(y1 - y0, x1 - x0), math.pi / 2)
        cos, sin = math.cos(angle), math.sin(angle)
        along, across = [x * cos + y * sin for x, y in corners], [y * cos - x * sin for x, y in corners]
        width, height = max(along) - min(along), max(across) - min(across)
        if width * height < least:
            least, u, v = width * height, min(along) + width / 2, min(across) + height / 2
            best = Region(u * cos - v * sin, u * sin + v * cos, width, height, angle)
    return best


def corners_of(region: Region) -> list[Point]:
    """The corners of a region: left upper, right upper, right lower, left lower, as it is turned."""
    cos, sin = math.cos(region.rotation), math.sin(region.rotation)
    halves = [(x * region.width / 2, y * region.height / 2) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return [(region.x + cos * x - sin * y, region.y + sin * x + cos * y) for x, y in halves]


def grown(corners: Sequence[Point], distance: float) -> list[Point]:
    """The corners of a convex shape whose sides were moved outwards, its corners made round, on whole pixels.

    `corners` go around with the clock as one sees the picture; their fractions are cut off first.

    Source:  Clipper 6.4.2, ClipperOffset with jtRound and an arc tolerance of 0.25, as pyclipper calls it
    """
    path = list(dict.fromkeys((float(int(x)), float(int(y))) for x, y in corners))
    if len(path) < 3:
        return path
    steps = math.pi / math.acos(1 - min(ARC_TOLERANCE, distance / 4) / distance)
    steps = min(steps, distance * math.pi)
    sin, cos, found = math.sin(math.tau / steps), math.cos(math.tau / steps), list[Point]()
    edges = zip(path, [*path[1:], path[0]], strict=True)
    normals = [((b[1] - a[1]) / math.dist(a, b), (a[0] - b[0]) / math.dist(a, b)) for a, b in edges]
    for (x, y), (kx, ky), (jx, jy) in zip(path, [normals[-1], *normals[:-1]], normals, strict=True):
        turn, arc = max(-1.0, min(kx * jy - jx * ky, 1.0)), [(kx, ky)]
        if abs(turn * distance) >= 1:
            angle = math.atan2(turn, kx * jx + ky * jy)
            for _ in range(max(_rounded(steps / math.tau * abs(angle)), 1) - 1):
                kx, ky = kx * cos - sin * ky, kx * sin + ky * cos
                arc.append((kx, ky))
            arc.append((jx, jy))
        found += [(float(_rounded(x + u * distance)), float(_rounded(y + v * distance))) for u, v in arc]
    return hull_of(found)


def _rounded(value: float) -> int:
    """The nearest whole number, halves away from 0, as C programs round."""
    return int(value - 0.5 if value < 0 else value + 0.5)


def mean_inside(corners: Sequence[Point], sums: Sequence[float], width: int, height: int) -> float:
    """The mean of a map inside a convex shape. `sums` are the map's sums along each row, up to and with each pixel."""
    total, count = 0.0, 0
    top, bottom = min(y for _, y in corners), max(y for _, y in corners)
    for y in range(max(math.floor(top), 0), min(math.floor(bottom), height - 1) + 1):
        level, met = max(float(y), top), list[float]()
        for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
            if min(y0, y1) <= level <= max(y0, y1):
                met += [x0, x1] if y0 == y1 else [x0 + (level - y0) * (x1 - x0) / (y1 - y0)]
        first, last = max(round(min(met)), 0), min(round(max(met)), width - 1)
        if first <= last:
            total += sums[y * width + last] - (sums[y * width + first - 1] if first else 0.0)
            count += last - first + 1
    return total / count if count else 0.0


def in_reading_order(boxes: Sequence[tuple[float, float, float, float]]) -> list[int]:
    """The order of boxes (left, top, right, bottom) as they are read: rows from the top, each from the left.

    A box belongs to a row if its middle lies within half of the smaller height of the middle of the row's first.
    """
    rows: list[tuple[float, float, list[int]]] = []
    for place in sorted(range(len(boxes)), key=lambda i: (boxes[i][1] + boxes[i][3], boxes[i][0])):
        _, top, _, bottom = boxes[place]
        middle, height = (top + bottom) / 2, bottom - top
        if rows and abs(middle - rows[-1][0]) <= min(height, rows[-1][1]) / 2:
            rows[-1][2].append(place)
        else:
            rows.append((middle, height, [place]))
    return [place for *_, row in rows for place in sorted(row, key=lambda i: boxes[i][0])]
