"""WebNN operators on images: convolutions, pooling, resampling. Everything becomes NHWC."""

from __future__ import annotations

import math

from webinfer.errors import ShapeError
from webinfer.graph.ir import Op, Value
from webinfer.importers.webnn.reader import Call, Handler, Reader
from webinfer.ops import conv, pool, resize

TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)
# Where output channels, rows, columns and input channels stand in a filter of that layout.
FILTERS = {"oihw": (0, 2, 3, 1), "hwio": (3, 0, 1, 2), "ohwi": (0, 1, 2, 3), "ihwo": (3, 1, 2, 0)}
# The same for transposed convolutions, whose filter counts output channels in one group.
TRANSPOSED = {"iohw": (1, 2, 3, 0), "hwoi": (2, 0, 1, 3), "ohwi": (0, 1, 2, 3)}


def _enter(r: Reader, x: Value, layout: str) -> Value:
    if layout not in ("nchw", "nhwc"):
        raise ShapeError(f"layout {layout!r} is neither nchw nor nhwc")
    return r.transpose(x, TO_NHWC) if layout == "nchw" else x


def _leave(r: Reader, y: Value, layout: str) -> Value:
    return r.transpose(y, TO_NCHW) if layout == "nchw" else y


def _filter(r: Reader, w: Value, layout: str, orders: dict[str, tuple[int, int, int, int]]) -> Value:
    if layout not in orders:
        raise ShapeError(f"filter layout {layout!r} is not one of {sorted(orders)}")
    return r.transpose(w, orders[layout])


def conv2d(r: Reader, c: Call) -> Value:
    layout, groups = c.get("inputLayout", "nchw"), c.get("groups", 1)
    x = _enter(r, r.value(c, "input"), layout)
    w = _filter(r, r.value(c, "filter"), c.get("filterLayout", "oihw"), FILTERS)
    attrs = conv.Conv2dAttrs(
        tuple(c.get("strides", (1, 1))),
        tuple(c.get("padding", (0, 0, 0, 0))),
        tuple(c.get("dilations", (1, 1))),
        groups,
    )
    op = conv.CONV2D
    if groups == x.type.shape[3] and w.type.shape[3] == 1 and groups > 1:  # every group is one channel
        op, attrs = conv.DEPTHWISE_CONV2D, conv.Conv2dAttrs(attrs.stride, attrs.pads, attrs.dilation)
        w = r.transpose(w, (3, 1, 2, 0))
    return _leave(r, r.emit(op, [x, w, r.optional(c, "bias")], attrs), layout)


def conv_transpose2d(r: Reader, c: Call) -> Value:
    layout = c.get("inputLayout", "nchw")
    x = _enter(r, r.value(c, "input"), layout)
    w = _filter(r, r.value(c, "filter"), c.get("filterLayout", "iohw"), TRANSPOSED)
    stride, dilation = tuple(c.get("strides", (1, 1))), tuple(c.get("dilations", (1, 1)))
    pads, extra = tuple(c.get("padding", (0, 0, 0, 0))), tuple(c.get("outputPadding", (0, 0)))
    if c.get("outputSizes") is not None:
        extra = tuple(
            size - ((n - 1) * s + (k - 1) * d + 1 - before - after)
            for size, n, s, k, d, before, after in zip(
                c.get("outputSizes"),
                x.type.shape[1:3],
                stride,
                w.type.shape[1:3],
                dilation,
                pads[::2],
                pads[1::2],
                strict=True,
            )
        )
        if any(not 0 <= p < s for p, s in zip(extra, stride, strict=True)):
            raise ShapeError(f"output sizes {c.get('outputSizes')} need output padding {extra} within strides {stride}")
    attrs = conv.ConvTranspose2dAttrs(stride, pads, dilation, c.get("groups", 1), extra)
    return _leave(r, r.emit(conv.CONV_TRANSPOSE2D, [x, w, r.optional(c, "bias")], attrs), layout)


def _pool(op: Op) -> Handler:
    def handler(r: Reader, c: Call) -> Value:
        layout = c.get("layout", "nchw")
        x = _enter(r, r.value(c, "input"), layout)
        window = tuple(c.get("windowDimensions", x.type.shape[1:3]))
        stride, dilation = tuple(c.get("strides", (1, 1))), tuple(c.get("dilations", (1, 1)))
        pads = list(c.get("padding", (0, 0, 0, 0)))
        up = c.get("outputShapeRounding", c.get("roundingType", "floor")) == "ceil"
        for axis in (0, 1):
            reach, size = (window[axis] - 1) * dilation[axis] + 1, x.type.shape[1 + axis]
            before, after = pads[2 * axis : 2 * axis + 2]
            steps = (size + before + after - reach) / stride[axis]
            count = (math.ceil(steps) if up else math.floor(steps)) + 1
            if c.get("outputSizes") is not None:
                count = c.get("outputSizes")[axis]
            # The last window decides how far the padding at the end reaches.
            pads[2 * axis + 1] = max(after, (count - 1) * stride[axis] + reach - size - before)
        attrs = pool.Pool2dAttrs(window, stride, tuple(pads), dilation)
        return _leave(r, r.emit(op, [x], attrs), layout)

    return handler


def resample2d(r: Reader, c: Call) -> Value:
    """Two axes become rows and columns, then the half-pixel rule holds."""
    x, axes = r.value(c, "input"), list(c.get("axes", (2, 3)))
    rest = [i for i in range(4) if i not in axes]
    if x.type.rank != 4 or len(set(axes)) != 2 or len(rest) != 2:
        raise ShapeError(f"axes {axes} are not two axes of {x.type.shape}")
    order = [rest[0], *axes, rest[1]]
    scales, shape = c.get("scales", (1.0, 1.0)), x.type.shape
    sizes = c.get("sizes", [math.floor(shape[axis] * scale) for axis, scale in zip(axes, scales, strict=True)])
    op = resize.RESIZE_BILINEAR if c.get("mode", "nearest-neighbor") == "linear" else resize.RESIZE_NEAREST
    y = r.emit(op, [r.transpose(x, order)], resize.ResizeAttrs(tuple(sizes), half_pixel_centers=True))
    return r.transpose(y, [order.index(i) for i in range(4)])


HANDLERS: dict[str, Handler] = {
    "averagePool2d": _pool(pool.AVERAGE_POOL2D),
    "conv2d": conv2d,
    "convTranspose2d": conv_transpose2d,
    "l2Pool2d": _pool(pool.L2_POOL2D),
    "maxPool2d": _pool(pool.MAX_POOL2D),
    "resample2d": resample2d,
}
