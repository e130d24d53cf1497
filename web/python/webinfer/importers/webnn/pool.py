"""WebNN's pooling."""

from __future__ import annotations

import math

from webinfer.graph.ir import Op, Value
from webinfer.importers.webnn.layouts import enter, leave
from webinfer.importers.webnn.operation import Convert, Operation
from webinfer.ops import pool


def _pool(kind: Op) -> Convert:
    def convert(op: Operation) -> Value:
        layout = op.get("layout", "nchw")
        x = enter(op, op.value("input"), layout)
        window = tuple(op.get("windowDimensions", x.type.shape[1:3]))
        stride, dilation = tuple(op.get("strides", (1, 1))), tuple(op.get("dilations", (1, 1)))
        pads = list(op.get("padding", (0, 0, 0, 0)))
        up = op.get("outputShapeRounding", op.get("roundingType", "floor")) == "ceil"
        for axis in (0, 1):
            reach, size = (window[axis] - 1) * dilation[axis] + 1, x.type.shape[1 + axis]
            before, after = pads[2 * axis : 2 * axis + 2]
            steps = (size + before + after - reach) / stride[axis]
            count = (math.ceil(steps) if up else math.floor(steps)) + 1
            if op.get("outputSizes") is not None:
                count = op.get("outputSizes")[axis]
            # The last window decides how far the padding at the end reaches.
            pads[2 * axis + 1] = max(after, (count - 1) * stride[axis] + reach - size - before)
        attrs = pool.Pool2dAttrs(window, stride, tuple(pads), dilation)
        return leave(op, op.emit(kind, [x], attrs), layout)

    return convert


CONVERTERS: dict[str, Convert] = {
    "averagePool2d": _pool(pool.AVERAGE_POOL2D),
    "l2Pool2d": _pool(pool.L2_POOL2D),
    "maxPool2d": _pool(pool.MAX_POOL2D),
}
