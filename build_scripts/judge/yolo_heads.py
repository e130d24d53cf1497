"""The judge of Ultralytics' models: ONNX Runtime's outputs of random ones, decoded in NumPy as their makers say.

Nothing here knows the engine. Pictures are laid into the input as the makers' LetterBox does, and boxes, points and
masks come back to the picture by its inverse.

Source:  docs.ultralytics.com, reference/data/augment (LetterBox), reference/utils/ops (scale_boxes,
         process_mask_native) and reference/utils/nms (non_max_suppression)
"""

import asyncio
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from build_scripts.judge.published import overlap, sigmoid
from build_scripts.judge.rows import Row
from build_scripts.judge.yolo_models import CLASSES, HEADS, HEIGHT, POINTS, WIDTH, Head, exported

GREY, LEAST, OVERLAP, MOST = 114, 0.5, 0.7, 100
SAME = 0.97  # of two boxes or masks of one object
FOUND = 0.99  # of objects that the other side must have: rounding decides pairs that overlap by the limit
FARTHEST = 0.5  # pixels of the input, points of one object
Array = np.ndarray[Any, Any]


@dataclass
class Place:
    """Where a picture lies in the input: `scale` times its size, from `left` and `top` on."""

    scale: float
    left: int
    top: int
    width: int
    height: int

    def back(self, points: Array) -> Array:
        """Points of the input in the picture's pixels."""
        return np.asarray((points - [self.left, self.top]) / self.scale)


@dataclass
class Object:
    """An object of either side: its box in the picture's pixels, or the corners of a turned one, and the rest."""

    kind: int
    score: float
    box: Array
    points: Array | None = None
    mask: Array | None = None  # of the picture's part of the input


def letterboxed(image: Array) -> tuple[Array, Place]:
    """The picture in the middle of the input, [height, width, 3] of 0..255, and where."""
    high, wide = image.shape[:2]
    scale = min(HEIGHT / high, WIDTH / wide)
    width, height = round(wide * scale), round(high * scale)
    left, top = round((WIDTH - width) / 2 - 0.1), round((HEIGHT - height) / 2 - 0.1)
    whole = np.full((HEIGHT, WIDTH, 3), GREY, np.float64)
    whole[top : top + height, left : left + width] = resized(image, width, height)
    return whole, Place(scale, left, top, width, height)


def resized(map: Array, width: int, height: int) -> Array:
    """A map [h, w, …] as large as that, bilinear between centres of cells; the edge goes on."""
    for axis, size in enumerate((height, width)):
        cells = map.shape[axis]
        at = np.clip((np.arange(size) + 0.5) * cells / size - 0.5, 0, cells - 1)
        first = np.minimum(at.astype(int), max(cells - 2, 0))
        part = (at - first).reshape([-1 if i == axis else 1 for i in range(map.ndim)])
        low, high = (np.take(map, np.minimum(first + i, cells - 1), axis).astype(np.float64) for i in (0, 1))
        map = low + (high - low) * part
    return map


def decoded(head: Head, outputs: list[Array], place: Place, image: tuple[int, int]) -> list[Object]:
    """What a model found, best first; `image` is the width and height of the picture."""
    table = outputs[0][0].astype(np.float64)
    rows = _rows(head, table.T if head.layout == "columns" else table)
    if head.layout != "final":
        rows = _kept(rows, head.task == "obb")
    rows = sorted((row for row in rows if row[4] >= LEAST), key=lambda row: -row[4])[:MOST]
    return [_object(head, row, outputs, place, np.array(image, float)) for row in rows]


def _rows(head: Head, table: Array) -> list[Array]:
    """Rows of left, top, right, bottom (of turned boxes centre and sides), score, class, and the rest."""
    if head.layout == "final":
        return list(table)
    first = 4 + (head.layout == "rows")
    scores = table[:, first : first + CLASSES] * (table[:, 4:5] if head.layout == "rows" else 1.0)
    boxes, half = table[:, :4], table[:, 2:4] / 2
    if head.task != "obb":
        boxes = np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], 1)
    best = [scores.max(1, keepdims=True), scores.argmax(1)[:, None]]
    return list(np.concatenate([boxes, *best, table[:, first + CLASSES :]], 1))


def _kept(rows: list[Array], turned: bool) -> list[Array]:
    """Of upright boxes of a class that overlap only the best; of turned ones those that no better one overlaps."""
    kept, seen = list[Array](), list[Array]()
    for row in sorted((row for row in rows if row[4] >= 0.001), key=lambda row: -row[4]):
        others = seen if turned else kept
        alike = _probable_overlap if turned else overlap
        if not any(row[5] == other[5] and alike(row, other) >= OVERLAP for other in others):
            kept.append(row)
        seen.append(row)
    return kept


def _probable_overlap(a: Array, b: Array) -> float:
    """Of two turned boxes: 1 less the Hellinger distance of the normal distributions of their points.

    Source:  J. M. Llerena et al., Probabilistic Intersection-over-Union, 2021
    """
    means, spreads = [], []
    for row in (a, b):
        turn = np.array([[math.cos(row[-1]), -math.sin(row[-1])], [math.sin(row[-1]), math.cos(row[-1])]])
        means.append(row[:2])
        spreads.append(turn @ np.diag(row[2:4] ** 2 / 12) @ turn.T)
    both, gap = (spreads[0] + spreads[1]) / 2, means[0] - means[1]
    far = gap @ np.linalg.solve(both, gap) / 8
    unlike = np.log(np.linalg.det(both) / np.sqrt(np.linalg.det(spreads[0]) * np.linalg.det(spreads[1]))) / 2
    return float(1 - np.sqrt(max(1 - np.exp(-(far + unlike)), 0)))


def _object(head: Head, row: Array, outputs: list[Array], place: Place, size: Array) -> Object:
    kind, score = int(row[5]), float(row[4])
    if head.task == "obb":
        across = np.array([math.cos(row[6]), math.sin(row[6])]) * row[2] / 2
        down = np.array([-math.sin(row[6]), math.cos(row[6])]) * row[3] / 2
        corners = np.array([-across - down, across - down, across + down, down - across]) + row[:2]
        return Object(kind, score, place.back(corners))
    found = Object(kind, score, np.clip(place.back(row[:4].reshape(2, 2)), 0, size).ravel())
    if head.task == "pose":
        points = row[6:].reshape(POINTS, 3)
        found.points = np.concatenate([np.clip(place.back(points[:, :2]), 0, size), points[:, 2:]], 1)
    if head.task == "segment":
        sums = np.tensordot(row[6:], outputs[1][0], 1)
        large = resized(sums, WIDTH, HEIGHT)
        ys, xs = np.mgrid[:HEIGHT, :WIDTH]
        inside = (xs >= row[0]) & (xs < row[2]) & (ys >= row[1]) & (ys < row[3])
        cut = slice(place.top, place.top + place.height), slice(place.left, place.left + place.width)
        found.mask = ((sigmoid(large) > 0.5) & inside)[cut]
    return found


def rows(photos: list[Path], backend: str) -> list[Row]:
    """A row for each head: all objects of all photos on both sides."""
    import onnxruntime

    images = [np.array(Image.open(photo).convert("RGB")) for photo in photos]
    found = []
    for seed, head in enumerate(HEADS):
        model = exported(head, seed)
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        theirs = []
        for image in images:
            given, place = letterboxed(image)
            outputs = session.run(None, {"images": (given / 255).transpose(2, 0, 1)[None].astype(np.float32)})
            theirs.append(decoded(head, outputs, place, image.shape[1::-1]))
        ours = asyncio.run(_ours(model, images, backend))
        found.append(_compared(head, ours, theirs))
    return found


async def _ours(model: bytes, images: list[Array], backend: str) -> list[list[Object]]:
    from webinfer.tasks import ObjectDetector

    with await ObjectDetector.create(model, backend=backend, min_score=LEAST, most=MOST) as task:
        found = [await task.detect(image) for image in images]
    return [[_of(one) for one in some] for some in found]


def _of(one: Any) -> Object:
    box = one.box
    sides = np.array([box.left, box.top, box.left + box.width, box.top + box.height])
    mask = None if one.mask is None else np.array(one.mask.values).reshape(one.mask.height, one.mask.width) > 0.5
    points = np.array(one.keypoints) if one.keypoints else None
    return Object(one.category.index, one.score, np.array(one.corners) if one.corners else sides, points, mask)


def _compared(head: Head, ours: list[list[Object]], theirs: list[list[Object]]) -> Row:
    hits, worst, away, masks = [0, 0], 0.0, 0.0, [1.0]
    for mine, judged in zip(ours, theirs, strict=True):
        for side, (some, others) in enumerate(((judged, mine), (mine, judged))):
            for one in some:
                match = max(others, key=lambda other: _alike(one, other), default=None)
                if match is None or _alike(one, match) < SAME:
                    continue
                hits[side] += 1
                worst = max(worst, abs(one.score - match.score))
                if one.points is not None and match.points is not None:
                    away = max(away, float(np.abs(one.points[:, :2] - match.points[:, :2]).max()))
                if one.mask is not None and match.mask is not None:
                    both, either = (one.mask & match.mask).sum(), (one.mask | match.mask).sum()
                    masks.append(float(both / either) if either else 1.0)
    counts = sum(map(len, theirs)), sum(map(len, ours))
    share = min(hit / max(count, 1) for hit, count in zip(hits, counts, strict=True))
    told = f"{100 * share:.1f} % found on both sides; scores within {worst:.4f}"
    told += f"; points within {away:.2f} px" if head.task == "pose" else ""
    told += f"; masks {np.median(masks):.4f} IoU" if head.task == "segment" else ""
    right = share >= FOUND and worst <= 0.02 and away <= 5 * FARTHEST and float(np.median(masks)) >= SAME
    return Row(f"yolo {head.task} {head.layout}", f"{len(ours)} pictures", counts[1], counts[0], told, right)


def _alike(one: Object, other: Object) -> float:
    if one.kind != other.kind:
        return 0.0
    if one.box.shape == (4,):
        same = np.abs(one.box - other.box).max() < 1e-3  # a box in the filling is empty when it was clipped
        return 1.0 if same else overlap(one.box, other.box)
    size = float(np.abs(np.diff(one.box, axis=0)).max())
    return 1 - float(np.abs(one.box - other.box).max()) / size
