"""Single-shot detectors: raw outputs in, the detections that are left out.

Source: MediaPipe, SsdAnchorsCalculator, TensorsToDetectionsCalculator (reverse_output_order, sigmoid_score) and
NonMaxSuppressionCalculator (WEIGHTED, INTERSECTION_OVER_UNION).
"""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import all_real, declare, moved_bytes, need

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class SsdDetectionsAttrs:
    """Anchors are the centres of cells, row by row, and as large as the model's square input."""

    size: int  # of the input, in pixels
    layers: tuple[tuple[int, int], ...]  # (stride in pixels, anchors a cell), in the order of the anchors
    most: int = 100  # detections
    min_score: float = 0.5
    score_clip: float = 100.0  # logits are clipped to +- this
    suppression: float = 0.3  # intersection over union above which detections are averaged

    @property
    def anchors(self) -> int:
        """Anchors of all layers."""
        return sum(cells * cells * count for cells, count in self.grids)

    @property
    def grids(self) -> tuple[tuple[int, int], ...]:
        """(cells a side, anchors a cell) of each layer."""
        return tuple((-(-self.size // stride), count) for stride, count in self.layers)


def infer(inputs: Inputs, a: SsdDetectionsAttrs) -> tuple[TensorType, ...]:
    """Type of the detections, best first: left, top, right, bottom, K keypoints (x, y) in 0..1 of the input, score.

    Overlapping ones are one, averaged by score, with the best one's score. Rows behind the last are zero; detections
    score more than that. A `min_score` input that is not above zero stands for the attribute; NaN logits are none.

    Shapes:  boxes [1, A, 4 + 2 * K] (centre x, y, width, height, keypoints, in pixels from the anchor),
             scores [1, A, 1] (logits), min_score [1] -> [1, most, 5 + 2 * K]; all float32
    """
    name = "ssd_detections"
    boxes, scores = need(name, "boxes", inputs[0], 3), need(name, "scores", inputs[1], 3)
    least = need(name, "min_score", inputs[2], 1)
    if a.size < 1 or not a.layers or min(min(layer) for layer in a.layers) < 1 or a.most < 1:
        raise ShapeError(f"{name}: size, strides, anchors and detections of {a} must be positive")
    if boxes.shape[:2] != (1, a.anchors) or boxes.shape[2] < 4 or boxes.shape[2] % 2:
        raise ShapeError(f"{name}: boxes are {boxes}, need (1, {a.anchors}, 4 + 2 * keypoints)")
    if scores.shape != (1, a.anchors, 1) or least.shape != (1,):
        raise ShapeError(f"{name}: scores are {scores}, min_score is {least}; need (1, {a.anchors}, 1) and (1)")
    if not all(x.dtype.is_float for x in (boxes, scores, least)):
        raise ShapeError(f"{name}: {boxes}, {scores} and {least} must be float32")
    return (TensorType((1, a.most, boxes.shape[2] + 1), boxes.dtype),)


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: SsdDetectionsAttrs) -> Cost:
    """About ten operations for each anchor."""
    return Cost(10 * a.anchors, moved_bytes(inputs, outputs))


def _inputs(anchors: int, keypoints: int) -> tuple[TensorType, ...]:
    return TensorType((1, anchors, 4 + 2 * keypoints)), TensorType((1, anchors, 1)), TensorType((1,))


_TWO = ((8, 2), (16, 6))  # 42 anchors at a size of 24
_LARGE = tuple(n for i in range(42) for n in (i % 5 - 2.0, i % 7 - 3.0, 9.0 + i % 4, 8.0 + i % 3, 1.0 * i, 2.0 - i))
_SPREAD = tuple(((i * 29) % 42) / 8 - 2.5 for i in range(42))

SSD_DETECTIONS = declare(
    Op(
        "ssd_detections", SsdDetectionsAttrs, infer, cost,
        Tolerance(2e-5, 2e-5, "sigmoids and sums of products; the threshold and the overlaps have no tie near"),
        (
            Case("two layers", _inputs(42, 1), SsdDetectionsAttrs(24, _TWO, 9),
                values={0: _LARGE, 1: _SPREAD, 2: (0.0,)}),
            Case("more than fit, no keypoints", _inputs(25, 0), SsdDetectionsAttrs(18, ((4, 1),), 3, 0.75),
                low=1.0, high=9.0, values={2: (0.25,)}),
            Case("everything at once", _inputs(42, 1), SsdDetectionsAttrs(24, _TWO, 4, suppression=-1.0),
                values={0: _LARGE, 1: _SPREAD, 2: (1e-30,)}),
            Case("nothing", _inputs(42, 2), SsdDetectionsAttrs(24, _TWO, 5), low=-9.0, high=-1.0, values={2: (0.9,)}),
        ),
        types=(all_real,),
    )
)  # fmt: skip
