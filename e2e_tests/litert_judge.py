"""The box of the sample photo's face from LiteRT's outputs: an expectation that owes nothing to webinfer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

SIZE = 128  # pixels a side of the model's input
GRIDS = ((16, 2), (8, 6))  # cells a side, anchors a cell
MIN_SCORE = 0.5
SIDES = ("left", "top", "width", "height")


def _anchor_centres() -> np.ndarray:
    """Centres of all 896 anchors as x, y in 0..1, row by row."""
    grids = []
    for cells, anchors in GRIDS:
        y, x = np.mgrid[:cells, :cells].reshape(2, -1)
        grids.append(np.repeat((np.stack([x, y], 1) + 0.5) / cells, anchors, 0))
    return np.concatenate(grids)


def _input(photo: Path) -> np.ndarray:
    """The photo at a quarter of its size, in -1..1: every fourth pixel, as MediaPipe's graph on a CPU samples it."""
    pixels = np.asarray(Image.open(photo).convert("RGB"), np.float32)
    assert pixels.shape == (4 * SIZE, 4 * SIZE, 3)
    return (pixels[::4, ::4] / 127.5 - 1)[None]


def litert_face(model: Path, photo: Path) -> tuple[dict[str, float], float]:
    """(box in pixels of the photo, score) of its one face: the weighted mean of what passes the threshold."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(model))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], _input(photo))
    interpreter.invoke()
    outputs = {d["shape"][-1]: interpreter.get_tensor(d["index"])[0] for d in interpreter.get_output_details()}
    scores = 1 / (1 + np.exp(-np.clip(outputs[1][:, 0].astype(np.float64), -100, 100)))
    centres, sizes = outputs[16][:, :2] / SIZE + _anchor_centres(), outputs[16][:, 2:4] / SIZE
    good = scores >= MIN_SCORE
    corner, size = (np.average(v[good], 0, scores[good]) for v in (centres - sizes / 2, sizes))
    pixels = np.concatenate([corner, size]) * 4 * SIZE
    return dict(zip(SIDES, map(float, pixels), strict=True)), float(scores.max())
