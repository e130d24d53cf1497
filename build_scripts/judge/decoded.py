"""The judges of tasks whose models another runtime runs: its raw outputs, read by the decoders of `published`."""

import asyncio
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from build_scripts.bench.rivals import rivals_step
from build_scripts.judge import published
from build_scripts.judge.rows import Row
from build_scripts.judge.runtimes import litert_run, tfjs_run
from build_scripts.paths import MODELS, ZOO
from build_scripts.setup.task_models import package_step
from build_scripts.steps import run_steps

LEAST, SURE = 0.3, 0.5  # scores that are told, and those above which both must tell the same
NEAR = 0.03  # of these bounds, where rounding decides
LEAST_OVERLAP = 0.9  # of an object's two boxes
FARTHEST = 4.0  # % of a body's longer side, mean of points; the published decoders differ in how they round places
LEAST_MASK, LEAST_PARTS = 0.98, 0.95  # overlap of people's masks, and pixels of both that show the same part
LEAST_PIXELS = 0.01  # of a picture, on which masks of few pixels may differ
LEAST_POINT = 0.5  # score of such a point
Array = np.ndarray[Any, Any]


@dataclass
class Seen:
    """A picture as a model is given it; its pixels lie in the picture `scale` times as far apart, from `origin` on."""

    input: Array  # [height, width, 3], 0..255
    scale: Array
    origin: Array

    def box(self, row: Array) -> Array:
        """A box of the input in pixels of the picture."""
        return np.concatenate([row[i : i + 2] * self.scale + self.origin for i in (0, 2)])


def seen(image: Array, width: int, height: int, keep_aspect: bool, corners: bool = False) -> Seen:
    """The picture stretched to that size, or fitted into it with black beside it; bilinear, without smoothing.

    With `corners` the input's pixel (0, 0) shows the corner of what is seen, not the middle of its first cell.
    """
    size = np.array([image.shape[1], image.shape[0]], float)
    scale = size / (width, height)
    if keep_aspect:
        scale[:] = scale.max()
    origin = (size - scale * (width, height)) / 2
    at = origin + (0.5 - 0.5 * scale if corners else 0)  # Pillow's map is one of corners to corners
    data = (scale[0], 0, at[0], 0, scale[1], at[1])
    planes = [
        Image.fromarray(image[..., c].astype(np.float32)).transform(
            (width, height), Image.Transform.AFFINE, data, Image.Resampling.BILINEAR
        )
        for c in range(3)
    ]
    return Seen(np.stack([np.array(plane) for plane in planes], axis=-1), scale, origin)


@dataclass(frozen=True)
class Judge:
    """A model of ours and who else runs it. `feed` makes its input of 0..255, `read` rows of its outputs."""

    name: str
    size: tuple[int, int]  # width, height
    feed: Callable[[Array], Array]
    read: Callable[[list[Array]], Any]
    keep_aspect: bool = True
    corners: bool = False

    def outputs(self, inputs: list[Array]) -> list[list[Array]] | None:
        """The runtime's outputs for these inputs; None if the model is not at hand."""
        fed = [{"x": np.ascontiguousarray(self.feed(x))} for x in inputs]
        packed, plain = MODELS / f"{self.name}.zip", path_of(self.name)
        if plain is not None:
            return _in_reals(plain, litert_run(plain, fed))
        if not packed.is_file():
            return None
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(packed) as archive:
            archive.extractall(folder)
            return tfjs_run(Path(folder) / "model.json", fed)


def _in_reals(model: Path, runs: list[list[Array]]) -> list[list[Array]]:
    """LiteRT's outputs as real numbers, where the model stores integers for them."""
    from ai_edge_litert.interpreter import Interpreter

    steps = [detail["quantization"] for detail in Interpreter(model_path=str(model)).get_output_details()]

    def in_reals(y: Array, scale: float, zero: int) -> Array:
        return y if y.dtype.kind == "f" else (y.astype(float) - zero) * scale

    return [[in_reals(y, *step) for y, step in zip(run, steps, strict=True)] for run in runs]


def path_of(name: str) -> Path | None:
    """The .tflite of a model that no package brings, in a folder beside the checkout; None if it is not there."""
    places = (MODELS / f"{name}.tflite", *(folder / f"{name}.tflite" for folder in (ZOO, ZOO.with_name("models_more"))))
    return next((place for place in places if place.is_file()), None)


def _post_processed(outputs: list[Array]) -> list[Array]:
    boxes, classes, scores, count = outputs
    return [np.array([*(300 * boxes[0, i][[1, 0, 3, 2]]), scores[0, i], classes[0, i]]) for i in range(int(count[0]))]


def _table(outputs: list[Array]) -> list[Array]:
    """CenterNet may tell an object twice, as the engine does: both are told."""
    return list(next(o for o in outputs if o.shape[-1] == 6)[0])


def _nanodet(outputs: list[Array]) -> list[Array]:
    levels = sorted({o.shape[1] for o in outputs})
    scores, distances = (
        [next(o[0] for o in outputs if o.shape[1:] == (level, width)) for level in levels] for width in (80, 44)
    )
    return published.nanodet(scores, distances, 416, LEAST, 0.6)


def _standardised(x: Array) -> Array:
    values = (x[..., ::-1] - [103.53, 116.28, 123.675]) / [57.375, 57.12, 58.395]
    return np.asarray(values.transpose(2, 0, 1)[None], np.float32)


def _posenet(forward: Array, heat: Array, backward: Array, short: Array) -> Any:
    scores = published.sigmoid(heat[0])
    maps = published.PoseMaps(scores, short[0], forward[0], backward[0], 16)
    return maps.poses(16, 0.1, 20.0)


def _posenet_quantized(outputs: list[Array]) -> Any:
    heat, short, both = outputs[:3]
    return _posenet(both[..., :32], heat, both[..., 32:], short)


def _movenet(outputs: list[Array]) -> Any:
    table = outputs[0].reshape(-1, 17, 3).astype(np.float64)
    side = 192 if len(table) else 0
    return [(float(rows[:, 2].mean()), rows[:, :2] * side, rows[:, 2]) for rows in table]


def _movenet_several(outputs: list[Array]) -> Any:
    rows = outputs[0][0].astype(np.float64)
    return [(float(row[55]), row[:51].reshape(17, 3)[:, :2] * 256, row[:51].reshape(17, 3)[:, 2]) for row in rows]


def _bytes(x: Array) -> Array:
    return np.floor(x + 0.5).astype(np.uint8)[None]


def _whole(x: Array) -> Array:
    return x.astype(np.int32)[None]


def _signed(x: Array) -> Array:
    return (x / 127.5 - 1).astype(np.float32)[None]


OBJECTS = (
    Judge("ssd_mobilenet_v1_coco_quant_postprocess", (300, 300), _bytes, _post_processed, keep_aspect=False),
    Judge("centernet", (512, 512), lambda x: x.astype(np.float32)[None], _table),
    Judge("nanodet", (416, 416), _standardised, _nanodet, corners=True),
)
POSES = (
    Judge("posenet_075_353_481_quant", (481, 353), _bytes, _posenet_quantized, corners=True),
    Judge("posenet", (385, 385), _signed, lambda outputs: _posenet(*outputs), corners=True),
    Judge("movenet_lightning", (192, 192), _whole, _movenet, corners=True),
    Judge("movenet_multipose", (256, 256), _whole, _movenet_several, corners=True),
)

BODIES = Judge("bodypix_075_720_1280_quant", (720, 1280), _bytes, lambda outputs: outputs)


def rows(photos: list[Path], backend: str) -> list[Row]:
    """What these tasks find in photos, beside their judges; models that are not at hand have no row."""
    run_steps([package_step("tfjs"), rivals_step()])
    images = {photo.name: np.array(Image.open(photo).convert("RGB")) for photo in photos}
    return (
        [row for judge in OBJECTS for row in _objects(judge, images, backend)]
        + [row for judge in POSES for row in _poses(judge, images, backend)]
        + list(_bodies(BODIES, images, backend))
    )


def _pairs(maker: Any, judge: Judge, images: Mapping[str, Array], backend: str) -> Iterator[tuple[str, Seen, Any, Any]]:
    """Of each photo its name, what the model sees of it, and what the judge and our task find."""
    views = [seen(image, *judge.size, judge.keep_aspect, judge.corners) for image in images.values()]
    outputs = judge.outputs([view.input for view in views])
    if outputs is not None:
        ours = asyncio.run(_found(maker, judge, list(images.values()), backend))
        yield from zip(images, views, map(judge.read, outputs), ours, strict=True)


async def _found(maker: Any, judge: Judge, images: list[Array], backend: str) -> list[Any]:
    model = path_of(judge.name) or judge.name
    if judge is BODIES:
        with await maker.create(model, backend=backend, threshold=SURE) as task:
            return [await task.segment(image) for image in images]
    with await maker.create(model, backend=backend, min_score=0.0) as task:
        return [await task.detect(image) for image in images]


def _objects(judge: Judge, images: Mapping[str, Array], backend: str) -> Iterator[Row]:
    """Every object that one of us is sure of, and the worst overlap of its box with the other's."""
    from webinfer.tasks import ObjectDetector

    for photo, view, theirs, mine in _pairs(ObjectDetector, judge, images, backend):
        a = [(o.category.index, o.score, _corners(o.box)) for o in mine if o.score >= LEAST]
        b = [(int(row[5]), row[4], view.box(row)) for row in theirs if row[4] >= LEAST]
        worst = min([1.0, *_overlaps(a, b), *_overlaps(b, a)])
        ours, judged = (sum(score >= SURE for _, score, _ in side) for side in (a, b))
        doubtful = sum(abs(score - SURE) < NEAR for _, score, _ in (*a, *b))
        right = worst >= LEAST_OVERLAP and abs(ours - judged) <= doubtful
        yield Row(f"objects {judge.name}", photo, ours, judged, f"{worst:.4f} IoU at least", right)


def _corners(box: Any) -> Array:
    return np.array([box.left, box.top, box.left + box.width, box.top + box.height])


def _overlaps(some: list[Any], others: list[Any]) -> Iterator[float]:
    """How well each sure object of one side is found again on the other."""
    for kind, score, box in some:
        if score >= SURE:
            yield max((published.overlap(box, other) for k, _, other in others if k == kind), default=0.0)


def _poses(judge: Judge, images: Mapping[str, Array], backend: str) -> Iterator[Row]:
    """Every body that the judge is sure of, and the mean distance of the points that both are sure of."""
    from webinfer.tasks import MultiPoseDetector

    for photo, view, theirs, ours in _pairs(MultiPoseDetector, judge, images, backend):
        told = [(points[:, ::-1] * view.scale + view.origin, sure) for score, points, sure in theirs if score >= LEAST]
        worst = max((_gap(points, sure, ours) for points, sure in told), default=0.0)
        count = sum(body.score >= LEAST for body in ours)
        doubtful = sum(abs(body.score - LEAST) < NEAR for body in ours)
        right = worst <= FARTHEST and abs(count - len(told)) <= doubtful
        yield Row(f"poses {judge.name}", photo, count, len(told), f"{worst:.2f} % of the size", right)


def _bodies(judge: Judge, images: Mapping[str, Array], backend: str) -> Iterator[Row]:
    """How the masks of people overlap, and where they do, on how many pixels both see the same part of a body."""
    from webinfer.tasks import BodySegmenter

    for photo, view, theirs, ours in _pairs(BodySegmenter, judge, images, backend):
        height, width = images[photo].shape[:2]
        maps = {map.shape[-1]: map[0] for map in theirs if map.shape[-1] != 34}
        short = next(map[0] for map in theirs if map.shape[-1] == 34)  # long offsets come behind them
        whole = [round(side * scale) for side, scale in zip(judge.size, view.scale, strict=True)]
        left, top = (whole[0] - width) // 2, (whole[1] - height) // 2
        cut = (whole[1], whole[0]), slice(top, top + height), slice(left, left + width)
        a = np.array(ours.values).reshape(height, width) >= SURE
        b = published.sigmoid(published.enlarged(maps[1][..., 0], *cut)) >= SURE
        best, parts = np.full((height, width), -np.inf), np.zeros((height, width), int)
        for part in range(24):
            heat = published.enlarged(maps[24][..., part], *cut)
            parts[heat > best], best = part + 1, np.maximum(best, heat)
        both, same = a & b, parts == np.array(ours.parts).reshape(height, width)
        shared = float((same & both).sum() / both.sum()) if both.any() else 1.0
        masks = float(both.sum() / (a | b).sum()) if (a | b).any() else 1.0
        few = (a ^ b).mean() < LEAST_PIXELS
        found = published.PoseMaps(published.sigmoid(maps[17]), short, maps[64][..., :32], maps[64][..., 32:], 16)
        scores = [score for score, _, _ in found.poses(16, 0.2, 20.0)], [body.score for body in ours.bodies]
        people, mine = (sum(score >= LEAST for score in side) for side in scores)
        told = f"{masks:.4f} IoU, {100 * shared:.1f} % of the parts"
        doubtful = sum(abs(score - LEAST) < NEAR for side in scores for score in side)
        right = (few or masks >= LEAST_MASK) and shared >= LEAST_PARTS and abs(people - mine) <= doubtful
        yield Row(f"bodies {judge.name}", photo, mine, people, told, right)


def _gap(points: Array, sure: Array, ours: list[Any]) -> float:
    gaps = []
    for body in ours:
        mine = np.array(body.landmarks.points())
        both = (sure >= LEAST_POINT) & ([mark.visibility >= LEAST_POINT for mark in body.landmarks])
        if both.any():
            size = max(body.box.width, body.box.height)
            gaps.append(100 * float(np.hypot(*(mine - points)[both].T).mean()) / size)
    return min(gaps, default=100.0)
