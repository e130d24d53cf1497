"""Lists of boxes without those that overlap a better one: non-maximum suppression, and detectors that end with it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import all_real, declare, moved_bytes, need

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class NonMaxSuppressionAttrs:
    """Boxes of at least `overlap` with a kept one are dropped; with `sigma` the others sink by how far they overlap."""

    limit: int  # boxes that are kept at most
    overlap: float  # intersection over union
    least: float = -math.inf  # only boxes that score more are looked at
    sigma: float = 0.0


@dataclass(frozen=True, slots=True)
class DetectionPostprocessAttrs:
    """Boxes that score at least `least` are looked at; more than `overlap` with a kept one drops a box.

    `regular` judges each class by itself and keeps `per_class` of it; else a box is judged by its best class, and its
    best `per_box` classes are listed.
    """

    limit: int  # boxes that are kept at most
    classes: int
    per_box: int
    per_class: int
    regular: bool
    least: float
    overlap: float
    scale: tuple[float, float, float, float]  # of centre y, x, height and width


def infer_suppression(inputs: Inputs, a: NonMaxSuppressionAttrs) -> tuple[TensorType, ...]:
    """Types of positions, scores and count of the boxes that are kept, best first; zeros behind the last.

    Boxes are judged once for each list of their scores, as those of several classes are.

    Shapes:  boxes [N, 4] (y, x of two opposite corners), scores [N] or [lists, N], float32
             -> positions [limit] int32, scores [limit], count [] int32, or a row of each for each list
    Raises:  ShapeError
    Source:  tensorflow v2.18.0, lite/kernels/non_max_suppression.cc
    """
    name = "non_max_suppression"
    boxes, scores = need(name, "boxes", inputs[0], 2), need(name, "scores", inputs[1])
    if not 1 <= scores.rank <= 2 or boxes.shape != (scores.shape[-1], 4) or a.limit < 0:
        raise ShapeError(
            f"{name}: boxes {boxes.shape}, scores {scores.shape} must be (N, 4) and (N) or (lists, N), {a.limit} >= 0"
        )
    lists = scores.shape[:-1]
    return TensorType((*lists, a.limit), DType.INT32), TensorType((*lists, a.limit)), TensorType(lists, DType.INT32)


def infer_postprocess(inputs: Inputs, a: DetectionPostprocessAttrs) -> tuple[TensorType, ...]:
    """Types of boxes, classes, scores and count of the detections; zeros behind the last.

    Shapes:  raw boxes [1, N, 4 or more] (centre y, x, height, width), scores [1, N, C], anchors [N, 4], all float32
             -> boxes [1, M, 4] (top, left, bottom, right), classes [1, M], scores [1, M], count [1]; M is
             limit * per_box, all float32
    Raises:  ShapeError
    Source:  tensorflow v2.18.0, lite/kernels/detection_postprocess.cc
    """
    name = "detection_postprocess"
    raw, scores, anchors = (
        need(name, *given) for given in zip(("boxes", "scores", "anchors"), inputs, (3, 3, 2), strict=True)
    )
    count = anchors.shape[0]
    if raw.shape[:2] != (1, count) or raw.shape[2] < 4 or scores.shape[:2] != (1, count) or anchors.shape[1] != 4:
        raise ShapeError(
            f"{name}: boxes {raw.shape}, scores {scores.shape}, anchors {anchors.shape} do not fit together"
        )
    if not 1 <= a.classes <= scores.shape[2] or min(a.limit, a.per_box, a.per_class) < 1 or min(a.scale) <= 0:
        raise ShapeError(f"{name}: {a} does not fit scores {scores.shape}; classes, limits and scales must be positive")
    found = a.limit * a.per_box
    return TensorType((1, found, 4)), TensorType((1, found)), TensorType((1, found)), TensorType((1,))


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: NonMaxSuppressionAttrs | DetectionPostprocessAttrs) -> Cost:
    """About twenty operations for each box and each kept one of each list."""
    boxes = inputs[0].shape[-2] if inputs[0] is not None else 0
    lists = outputs[2].size if isinstance(a, NonMaxSuppressionAttrs) else 1
    return Cost(20 * boxes * max(a.limit, 1) * lists, moved_bytes(inputs, outputs))


_MANY = tuple(
    n
    for i in range(600)
    for n in (0.3 * (i % 5), 0.2 * (i % 7), 0.3 * (i % 5) + 0.5 + i % 3, 0.2 * (i % 7) + 0.4 + i % 2)
)
_BOXES = _MANY[:96]
_SCORES = tuple(((i * 7) % 24) / 24 for i in range(24))
_LISTS = (*_SCORES, *(((i * 5) % 24) / 24 for i in range(24)), *[0.25] * 24)
_FLIPPED = tuple(n for i in range(0, 96, 4) for n in (_BOXES[i + 2], _BOXES[i + 1], _BOXES[i], _BOXES[i + 3]))


def _suppressed(
    label: str, *numbers: float, boxes: Sequence[float] = _BOXES, scores: Sequence[float] = _SCORES, lists: int = 0
) -> Case:
    limit, *rest = numbers
    n = len(boxes) // 4
    types = (TensorType((n, 4)), TensorType((lists, n) if lists else (n,)))
    return Case(label, types, NonMaxSuppressionAttrs(int(limit), *rest), values={0: boxes, 1: scores})


NON_MAX_SUPPRESSION = declare(
    Op(
        "non_max_suppression", NonMaxSuppressionAttrs, infer_suppression, cost,
        Tolerance(2e-6, 2e-6, "exponentials of soft scores; no overlap of a case lies near the threshold"),
        (
            _suppressed("hard", 10, 0.45),
            _suppressed("corners in any order", 10, 0.45, boxes=_FLIPPED),
            _suppressed("few and good", 3, 0.8, 0.5),
            _suppressed("all dropped but one", 5, 0.0),
            _suppressed("equal scores", 8, 0.45, scores=[0.5] * 24),
            _suppressed("none", 4, 0.5, 2.0),
            _suppressed("soft", 12, 0.7, 0.1, 0.5),
            _suppressed("three lists, one without a box", 5, 0.45, 0.4, scores=_LISTS, lists=3),
            _suppressed("soft, two lists", 9, 0.7, 0.1, 0.5, scores=_LISTS[:48], lists=2),
            _suppressed("many boxes", 30, 0.93, boxes=_MANY, scores=[((i * 7) % 600) / 600 for i in range(600)]),
        ),
        types=(all_real,),
    )
)  # fmt: skip

_RAW = tuple(n for i in range(30) for n in (i % 5 - 2.0, i % 7 - 3.0, 0.3 * (i % 4), -0.2 * (i % 3)))
_ANCHORS = tuple(n for i in range(30) for n in (0.1 * (i % 6), 0.15 * (i % 4), 0.3 + 0.1 * (i % 2), 0.4))
_CLASSES = tuple(((i * 37) % 120) / 120 for i in range(120))


def _detected(label: str, classes: int, per_box: int, regular: bool, limit: int = 6, least: float = 0.3) -> Case:
    attrs = DetectionPostprocessAttrs(limit, classes, per_box, 4, regular, least, 0.4, (10.0, 10.0, 5.0, 5.0))
    types = (TensorType((1, 30, 4)), TensorType((1, 30, 4)), TensorType((30, 4)))
    return Case(label, types, attrs, constant=(2,), values={0: _RAW, 1: _CLASSES, 2: _ANCHORS})


DETECTION_POSTPROCESS = declare(
    Op(
        "detection_postprocess", DetectionPostprocessAttrs, infer_postprocess, cost,
        Tolerance(2e-6, 2e-6, "exponentials of box sizes; no overlap of a case lies near the threshold"),
        (
            _detected("fast", 4, 1, False),
            _detected("fast, a class is background, two a box", 3, 2, False),
            _detected("fast, more a box than classes", 2, 3, False),
            _detected("regular", 3, 1, True),
            _detected("regular, more than fit", 4, 1, True, 3, 0.0),
            _detected("nothing scores enough", 4, 1, True, 5, 2.0),
        ),
        types=(all_real,),
    )
)  # fmt: skip
