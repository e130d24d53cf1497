"""WebNN's convolutions: images and filters of any layout."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.webnn.layouts import enter, leave
from webinfer.importers.webnn.operation import Convert, Operation
from webinfer.ops import conv

# Where output channels, rows, columns and input channels stand in a filter of that layout.
FILTERS = {"oihw": (0, 2, 3, 1), "hwio": (3, 0, 1, 2), "ohwi": (0, 1, 2, 3), "ihwo": (3, 1, 2, 0)}
# The same for transposed convolutions, whose filter counts output channels in one group.
TRANSPOSED = {"iohw": (1, 2, 3, 0), "hwoi": (2, 0, 1, 3), "ohwi": (0, 1, 2, 3)}


def _filter(op: Operation, w: Value, layout: str, orders: dict[str, tuple[int, int, int, int]]) -> Value:
    if layout not in orders:
        op.fail(f"filter layout {layout!r} is not one of {sorted(orders)}")
    return op.transpose(w, orders[layout])


def _conv2d(op: Operation) -> Value:
    layout, groups = op.get("inputLayout", "nchw"), op.get("groups", 1)
    x = enter(op, op.value("input"), layout)
    w = _filter(op, op.value("filter"), op.get("filterLayout", "oihw"), FILTERS)
    attrs = conv.Conv2dAttrs(
        tuple(op.get("strides", (1, 1))),
        tuple(op.get("padding", (0, 0, 0, 0))),
        tuple(op.get("dilations", (1, 1))),
        groups,
    )
    kind = conv.CONV2D
    if groups == x.type.shape[3] and w.type.shape[3] == 1 and groups > 1:  # every group is one channel
        kind, attrs = conv.DEPTHWISE_CONV2D, conv.Conv2dAttrs(attrs.stride, attrs.pads, attrs.dilation)
        w = op.transpose(w, (3, 1, 2, 0))
    return leave(op, op.emit(kind, [x, w, op.optional("bias")], attrs), layout)


def _conv_transpose2d(op: Operation) -> Value:
    layout = op.get("inputLayout", "nchw")
    x = enter(op, op.value("input"), layout)
    w = _filter(op, op.value("filter"), op.get("filterLayout", "iohw"), TRANSPOSED)
    stride, dilation = tuple(op.get("strides", (1, 1))), tuple(op.get("dilations", (1, 1)))
    pads, extra = tuple(op.get("padding", (0, 0, 0, 0))), tuple(op.get("outputPadding", (0, 0)))
    if op.get("outputSizes") is not None:
        extra = tuple(
            size - ((n - 1) * s + (k - 1) * d + 1 - before - after)
            for size, n, s, k, d, before, after in zip(
                op.get("outputSizes"),
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
            op.fail(f"output sizes {op.get('outputSizes')} need output padding {extra} within strides {stride}")
    attrs = conv.ConvTranspose2dAttrs(stride, pads, dilation, op.get("groups", 1), extra)
    return leave(op, op.emit(conv.CONV_TRANSPOSE2D, [x, w, op.optional("bias")], attrs), layout)


CONVERTERS: dict[str, Convert] = {
    "conv2d": _conv2d,
    "convTranspose2d": _conv_transpose2d,
}
