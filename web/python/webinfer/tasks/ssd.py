"""Single-shot detectors: anchors, decoding and non-maximum suppression, as kernels compute them.

Source: MediaPipe's face detection graphs (SsdAnchorsCalculator, TensorsToDetectionsCalculator,
NonMaxSuppressionCalculator with WEIGHTED averaging).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from webinfer.tasks.workspace import Workspace
from webinfer.tensor import Tensor

MAX_DETECTIONS = 100


@dataclass(frozen=True, slots=True)
class SsdOptions:
    """How a detector's raw outputs are laid out. Sizes in pixels of the model's square input."""

    size: int  # input width and height
    layers: tuple[tuple[int, int], ...]  # (stride in pixels, anchors a cell), strides in order
    keypoints: int = 6
    score_clip: float = 100.0
    suppression: float = 0.3  # intersection over union above which detections are averaged

    @property
    def anchors(self) -> int:
        """Anchors of all layers."""
        return sum((-(-self.size // stride)) ** 2 * count for stride, count in self.layers)

    @property
    def coordinates(self) -> int:
        """Numbers a raw box holds: centre, size, keypoints."""
        return 4 + 2 * self.keypoints


@dataclass(frozen=True, slots=True)
class Detection:
    """One detection in coordinates of the model's input, 0..1: box corners, keypoints, score."""

    left: float
    top: float
    right: float
    bottom: float
    score: float
    keypoints: tuple[tuple[float, float], ...]


SHORT_RANGE = SsdOptions(128, ((8, 2), (16, 6)))
BACK = SsdOptions(256, ((16, 2), (32, 6)))
FULL_RANGE = SsdOptions(192, ((4, 1),))


class SsdDecoder:
    """Turns raw outputs into detections, in the kernels' memory."""

    def __init__(self, workspace: Workspace, options: SsdOptions) -> None:
        self._workspace, self._options = workspace, options
        pairs = [n for layer in options.layers for n in layer]
        self._layers = workspace.put("layers", struct.pack(f"<{len(pairs)}i", *pairs), 4 * len(pairs))

    def decode(self, boxes: Tensor, scores: Tensor, min_score: float) -> list[Detection]:
        """Detections of at least `min_score` after suppression, best first.

        Shapes:  boxes float32 [1, anchors, 4 + 2 * keypoints], scores (logits) float32 [1, anchors, 1]
        """
        o, w, kernels = self._options, self._workspace, self._workspace.kernels
        width = o.coordinates + 1
        raw = w.put("boxes", boxes.tobytes(), boxes.nbytes)
        logits = w.put("scores", scores.tobytes(), scores.nbytes)
        candidates = w.area("candidates", 4 * width * o.anchors)
        kept = w.area("kept", 4 * width * MAX_DETECTIONS)
        count = w.area("count", 4)
        kernels.call(
            "f32_ssd_decode",
            raw,
            logits,
            self._layers,
            candidates,
            count,
            len(o.layers),
            o.size,
            o.keypoints,
            o.score_clip,
            min_score,
        )
        kernels.call("f32_weighted_nms", candidates, kept, count, width, MAX_DETECTIONS, o.suppression)
        found = int.from_bytes(kernels.read(count, 4), "little")
        values = struct.unpack(f"<{found * width}f", kernels.read(kept, 4 * found * width)) if found else ()
        return [_detection(values[i : i + width]) for i in range(0, len(values), width)]


def _detection(row: Sequence[float]) -> Detection:
    points = tuple(zip(row[4:-1:2], row[5:-1:2], strict=True))
    return Detection(row[0], row[1], row[2], row[3], row[-1], points)
