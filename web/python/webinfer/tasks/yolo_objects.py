"""What Ultralytics' models found, in pixels of the picture: boxes, masks, key points, turned boxes."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence

from webinfer.authoring.builder import GraphBuilder
from webinfer.host.interface import Host
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import PictureInput
from webinfer.tasks.base import Box, Keypoint
from webinfer.tasks.crop import Border, Crop, InputSpec, Region
from webinfer.tasks.last_plan import LastPlan
from webinfer.tasks.pixels import COLUMNS_USED, ROWS_USED
from webinfer.tasks.regions import box_of
from webinfer.tasks.segmenter import Mask
from webinfer.tasks.text_regions import corners_of
from webinfer.tasks.yolo import PROTOTYPES, ROWS, Yolo
from webinfer.tensor import Tensor

TOGETHER = 8  # masks that are made in one run
HALF = 0.1  # taken off half a pixel of filling, so that the odd pixel goes to the right and to the bottom


@dataclass(frozen=True, slots=True)
class Letterbox(InputSpec):
    """A whole picture in the middle of the model's input, its aspect kept, grey around it; in whole pixels."""

    def crop(self, region: Region | None, image_size: tuple[int, int] = (1, 1)) -> Crop:
        """The map between the model's input and a region of a picture of this size; None: all of it."""
        region = region or Region.whole(*image_size)
        place = placed(region, self.picture.width, self.picture.height)
        across, down = region.width / place.width, region.height / place.height
        width, height = self.picture.width, self.picture.height
        right = (width / 2 - place.left - place.width / 2) * across  # of the region's centre that of the input
        below = (height / 2 - place.top - place.height / 2) * down
        cos, sin = math.cos(region.rotation), math.sin(region.rotation)
        x, y = region.x + cos * right - sin * below, region.y + sin * right + cos * below
        return Crop(
            Region(x, y, width * across, height * down, region.rotation), width, height, False, region, image_size
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a picture lies in a model's input, in whole pixels of that."""

    left: int
    top: int
    width: int
    height: int


def placed(region: Region, width: int, height: int) -> Place:
    """Where a region lies in an input of this size."""
    scale = min(width / region.width, height / region.height)
    wide, high = max(round(region.width * scale), 1), max(round(region.height * scale), 1)
    left, top = (round((all - part) / 2 - HALF) for all, part in ((width, wide), (height, high)))
    return Place(left, top, wide, high)


def to_picture(crop: Crop, x: float, y: float) -> Keypoint:
    """Picture pixels of a point in 0..1 of the model's input.

    As the makers do, by the scale before sides are rounded to whole pixels of the input: a point at the far edge lies
    up to half a pixel of the input beside the one that `crop` shows there.

    Source:  docs.ultralytics.com, reference/utils/ops (scale_boxes)
    """
    region = crop.asked or crop.region
    place, scale = placed(region, crop.width, crop.height), min(crop.width / region.width, crop.height / region.height)
    right = (x * crop.width - place.left) / scale - region.width / 2
    down = (y * crop.height - place.top) / scale - region.height / 2
    cos, sin = math.cos(region.rotation), math.sin(region.rotation)
    return region.x + cos * right - sin * down, region.y + sin * right + cos * down


def letterbox(width: int, height: int) -> Letterbox:
    """How a picture is laid into an input of this size."""
    return Letterbox(PictureInput(width, height, 1.0, 0.0), keep_aspect=False, border=Border.EDGE)


def used(crop: Crop) -> dict[str, array[float]]:
    """The model's inputs that say where the picture lies."""
    place = placed(crop.asked or crop.region, crop.width, crop.height)

    def line(first: int, count: int, size: int) -> array[float]:
        return array("f", [0.0]) * first + array("f", [1.0]) * count + array("f", [0.0]) * (size - first - count)

    return {
        ROWS_USED: line(place.top, place.height, crop.height),
        COLUMNS_USED: line(place.left, place.width, crop.width),
    }


@dataclass(frozen=True, slots=True)
class YoloFound:
    """One object as its model tells it: the box, clipped to the picture, and what else the model's task gives."""

    box: Box
    score: float
    kind: int
    mask: Mask | None = None
    keypoints: tuple[tuple[float, float, float], ...] = ()  # x, y, score
    corners: tuple[Keypoint, ...] = ()  # of a turned box, clockwise
    rotation: float = 0.0


class YoloReader:
    """Makes objects of the outputs of a model with `yolo.extend_with_rows`."""

    def __init__(self, yolo: Yolo, overlap: float, host: Host) -> None:
        self.yolo, self._overlap = yolo, overlap
        self._masks = LastPlan(host, _mask_graph)

    async def found(
        self, outputs: Mapping[str, Tensor], crop: Crop, is_told: Callable[[float, float], bool], most: int
    ) -> list[YoloFound]:
        """At most `most` objects, best first, whose score and class are told."""
        numbers, columns = outputs[ROWS].flat().tolist(), outputs[ROWS].shape[1]
        rows: list[Sequence[float]] = [numbers[i : i + columns] for i in range(0, len(numbers), columns)]
        rows = sorted((row for row in rows if is_told(row[4], row[5])), key=lambda row: -row[4])
        if self.yolo.task == "obb":
            rows = rows if self.yolo.final else _apart(rows, self._overlap)
            return [_turned(row, crop) for row in rows[:most]]
        rows = rows[:most]
        masks: list[Mask | None] = [None] * len(rows)
        if PROTOTYPES in outputs and rows:
            masks = [*await self._all_masks(rows, outputs[PROTOTYPES], crop)]
        return [_upright(row, crop, self.yolo, mask) for row, mask in zip(rows, masks, strict=True)]

    async def _all_masks(self, rows: Sequence[Sequence[float]], prototypes: Tensor, crop: Crop) -> list[Mask]:
        place, masks = placed(crop.asked or crop.region, crop.width, crop.height), list[Mask]()
        kind = (prototypes.shape, (crop.width, crop.height), place)
        for start in range(0, len(rows), TOGETHER):
            some = rows[start : start + TOGETHER]
            spare = TOGETHER - len(some)
            coefficients = array("f", [n for row in some for n in row[6:]]) + array("f", [0.0]) * (
                spare * prototypes.shape[3]
            )
            across = [
                _inside(row[0] * crop.width - place.left, row[2] * crop.width - place.left, place.width) for row in some
            ]
            down = [
                _inside(row[1] * crop.height - place.top, row[3] * crop.height - place.top, place.height)
                for row in some
            ]
            inputs = {
                "coefficients": coefficients, "prototypes": prototypes,
                "across": _joined(across, spare * place.width), "down": _joined(down, spare * place.height),
            }  # fmt: skip
            values = (await self._masks.run(kind, inputs))["masks"].flat()
            size = place.width * place.height
            masks += [Mask(place.width, place.height, values[i * size : (i + 1) * size]) for i in range(len(some))]
        return masks

    def close(self) -> None:
        """Lets the memory go; a second call does nothing."""
        self._masks.close()


def _joined(lines: Sequence[array[float]], spare: int) -> array[float]:
    whole = array("f")
    for line in lines:
        whole += line
    return whole + array("f", [0.0]) * spare


def _inside(first: float, last: float, size: int) -> array[float]:
    """A 1 for each of so many pixels that begins between two edges, as the makers crop masks."""
    begin = min(max(math.ceil(first), 0), size)
    end = min(max(math.ceil(last), begin), size)
    return array("f", [0.0]) * begin + array("f", [1.0]) * (end - begin) + array("f", [0.0]) * (size - end)


def _mask_graph(kind: tuple[tuple[int, ...], tuple[int, int], Place]) -> GraphBuilder:
    """Masks as large as the picture in the model's input: sums of prototypes, larger, 0..1, nothing outside of boxes.

    Source:  D. Bolya et al., YOLACT: Real-time Instance Segmentation, 2019, section 3.2 (mask assembly)
    """
    (_, rows, columns, count), (width, height), place = kind
    builder = GraphBuilder("masks")
    node = builder.node
    coefficients = builder.input("coefficients", (TOGETHER, count))
    prototypes = builder.input("prototypes", (1, rows, columns, count))
    across = builder.input("across", (TOGETHER, 1, place.width))
    down = builder.input("down", (TOGETHER, place.height, 1))
    flat = node("reshape", prototypes, shape=(rows * columns, count))
    sums = node("matmul", flat, node("transpose", coefficients, perm=(1, 0)))
    sums = node("reshape", sums, shape=(1, rows, columns, TOGETHER))
    large = node("resize_bilinear", sums, size=(height, width), half_pixel_centers=True)
    part = node(
        "slice", large,
        starts=(0, place.top, place.left, 0), sizes=(1, place.height, place.width, TOGETHER), steps=(1, 1, 1, 1),
    )  # fmt: skip
    part = node("reshape", node("transpose", part, perm=(3, 0, 1, 2)), shape=(TOGETHER, place.height, place.width))
    masks = node("mul", node("sigmoid", part), node("mul", across, down))
    builder.output(masks, "masks")
    return builder


def _upright(row: Sequence[float], crop: Crop, yolo: Yolo, mask: Mask | None) -> YoloFound:
    whole = crop.asked or crop.region
    left, top = _clipped(to_picture(crop, row[0], row[1]), whole)
    right, bottom = _clipped(to_picture(crop, row[2], row[3]), whole)
    points = list[tuple[float, float, float]]()
    if yolo.task == "pose":
        each = yolo.keypoints[1]
        for i in range(6, len(row), each):
            x, y = _clipped(to_picture(crop, row[i], row[i + 1]), whole)
            points.append((x, y, row[i + 2] if each > 2 else 1.0))
    return YoloFound(Box(left, top, right - left, bottom - top), row[4], int(row[5]), mask, tuple(points))


def _clipped(point: Keypoint, whole: Region) -> Keypoint:
    """The nearest point of an upright region."""
    (x, y), halves = point, (whole.width / 2, whole.height / 2)
    return (
        min(max(x, whole.x - halves[0]), whole.x + halves[0]),
        min(max(y, whole.y - halves[1]), whole.y + halves[1]),
    )


def _turned(row: Sequence[float], crop: Crop) -> YoloFound:
    x, y, width, height, score, kind, turn = row
    inside = corners_of(Region(x, y, width, height, turn))
    corners = tuple(to_picture(crop, u / crop.width, v / crop.height) for u, v in inside)
    return YoloFound(box_of(corners), score, int(kind), corners=corners, rotation=turn)


def _apart(rows: Sequence[Sequence[float]], overlap: float) -> list[Sequence[float]]:
    """The turned boxes, best first, without those that a better one of their class overlaps, whether kept or not."""
    shapes = [_gaussian(row) for row in rows]
    return [
        row for i, row in enumerate(rows)
        if not any(rows[j][5] == row[5] and _alike(shapes[j], shapes[i]) >= overlap for j in range(i))
    ]  # fmt: skip


def _gaussian(row: Sequence[float]) -> tuple[float, float, float, float, float]:
    """Centre and covariance (of x, of y, of both) of a turned box's points."""
    x, y, width, height, *_, turn = row
    cos, sin, a, b = math.cos(turn), math.sin(turn), width * width / 12, height * height / 12
    return x, y, a * cos * cos + b * sin * sin, a * sin * sin + b * cos * cos, (a - b) * cos * sin


def _alike(one: Sequence[float], other: Sequence[float]) -> float:
    """How far two turned boxes overlap, 0..1: 1 less the Hellinger distance of their normal distributions.

    Source:  J. M. Llerena et al., Probabilistic Intersection-over-Union for Training and Evaluation of Oriented Object
             Detectors, 2021, equations 4 to 8
    """
    (x0, y0, a0, b0, c0), (x1, y1, a1, b1, c1) = one, other
    a, b, c, dx, dy = a0 + a1, b0 + b1, c0 + c1, x1 - x0, y1 - y0
    area = a * b - c * c
    if area <= 0:
        return 0.0
    far = (a * dy * dy + b * dx * dx - 2 * c * dx * dy) / (4 * area)
    unlike = math.log(max(area / (4 * math.sqrt(max((a0 * b0 - c0 * c0) * (a1 * b1 - c1 * c1), 1e-14))), 1.0)) / 2
    return 1 - math.sqrt(1 - math.exp(-(far + unlike)))
