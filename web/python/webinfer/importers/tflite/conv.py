"""TFLite's convolutions: SAME and VALID become explicit pads here."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.core.geometry import transposed_pads
from webinfer.importers.core.limits import MAX_REACH
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import conv


def _conv_attrs(op: Operation, x: Value, w: Value, groups: int) -> conv.Conv2dAttrs:
    if w.type.rank != 4:
        op.fail(f"weights have shape {w.type.shape}, need rank 4")
    sh, sw, dh, dw = op.positive("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")
    if max(w.type.shape[1] * dh, w.type.shape[2] * dw) > MAX_REACH:
        op.fail(f"a window of {w.type.shape[1:3]} with dilation {(dh, dw)} reaches too far")
    pads = op.pads(x, w.type.shape[1:3], (sh, sw), (dh, dw))
    return conv.Conv2dAttrs((sh, sw), pads, (dh, dw), groups, op.fused_clamp(), op.out_type())


def _nothing(op: Operation, x: Value, w: Value, channels: int) -> Value | None:
    """The result of windows that are larger than x."""
    if w.type.rank != 4:
        return None
    sh, sw, dh, dw = op.positive("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")
    return op.without_windows(x, w.type.shape[1:3], (sh, sw), (dh, dw), channels)


def _conv2d(op: Operation) -> Value:
    x = op.value(0)
    w = op.weights(1, x)
    channels, per_group = x.type.shape[-1] if x.type.rank else 0, w.type.shape[-1] if w.type.rank else 0
    if per_group < 1 or channels % per_group:
        op.fail(f"weights {w.type.shape} do not divide the channels of x {x.type.shape}")
    if (nothing := _nothing(op, x, w, w.type.shape[0])) is not None:
        return nothing
    attrs = _conv_attrs(op, x, w, max(channels // per_group, 1))
    return op.emit(conv.CONV2D, [op.rounded(x, 1, 1), w, op.bias(2, x, w.type.shape[0])], attrs)


def _depthwise(op: Operation) -> Value:
    x = op.value(0)
    w = op.weights(1, x)
    if (nothing := _nothing(op, x, w, w.type.shape[-1] if w.type.rank else 0)) is not None:
        return nothing
    return op.emit(conv.DEPTHWISE_CONV2D, [op.rounded(x, 1, 1), w, op.bias(2, x)], _conv_attrs(op, x, w, 1))


def _transpose_conv(op: Operation) -> Value:
    shape, x = op.integers(0), op.value(2)
    w = op.weights(1, x)
    if len(shape) != 4 or x.type.rank != 4 or w.type.rank != 4 or min(shape) < 1:
        op.fail(f"result {shape}, x {x.type.shape}, weights {w.type.shape} must have rank 4")
    sh, sw = op.positive("stride_h", "stride_w")
    same = op.same()
    top, bottom, extra_h = transposed_pads(op, same, x.type.shape[1], shape[1], w.type.shape[1], sh)
    left, right, extra_w = transposed_pads(op, same, x.type.shape[2], shape[2], w.type.shape[2], sw)
    attrs = conv.ConvTranspose2dAttrs(
        (sh, sw), (top, bottom, left, right), output_padding=(extra_h, extra_w),
        activation=op.fused_clamp(), out_type=op.out_type(),
    )  # fmt: skip
    y = op.emit(conv.CONV_TRANSPOSE2D, [op.rounded(x, 1, 1), w, op.bias(3, x, w.type.shape[0])], attrs)
    if y.type.shape != tuple(shape):
        op.fail(f"the result is to be {shape}, x and weights make {y.type.shape}")
    return y


CONVERTERS: dict[str, Row] = {
    "CONV_2D": (_conv2d, "Conv2DOptions"),
    "DEPTHWISE_CONV_2D": (_depthwise, "DepthwiseConv2DOptions"),
    "TRANSPOSE_CONV": (_transpose_conv, "TransposeConvOptions"),
}
