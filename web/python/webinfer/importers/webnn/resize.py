"""WebNN's resampling of images."""

from __future__ import annotations

import math

from webinfer.graph.ir import Value
from webinfer.importers.webnn.operation import Convert, Operation
from webinfer.ops import resize


def _resample2d(op: Operation) -> Value:
    """Two axes become rows and columns, then the half-pixel rule holds."""
    x, axes = op.value("input"), list(op.get("axes", (2, 3)))
    rest = [i for i in range(4) if i not in axes]
    if x.type.rank != 4 or len(set(axes)) != 2 or len(rest) != 2:
        op.fail(f"axes {axes} are not two axes of {x.type.shape}")
    order = [rest[0], *axes, rest[1]]
    scales, shape = op.get("scales", (1.0, 1.0)), x.type.shape
    sizes = op.get("sizes", [math.floor(shape[axis] * scale) for axis, scale in zip(axes, scales, strict=True)])
    kind = resize.RESIZE_BILINEAR if op.get("mode", "nearest-neighbor") == "linear" else resize.RESIZE_NEAREST
    y = op.emit(kind, [op.transpose(x, order)], resize.ResizeAttrs(tuple(sizes), half_pixel_centers=True))
    return op.transpose(y, [order.index(i) for i in range(4)])


CONVERTERS: dict[str, Convert] = {
    "resample2d": _resample2d,
}
