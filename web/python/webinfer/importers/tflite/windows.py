"""Convolutions and pooling: SAME and VALID become explicit pads here."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Value
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.importers.tflite.schema import PADDINGS
from webinfer.ops import conv, pool
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation

MAX_STEP = 65536
MAX_REACH = 2**24
_CLAMPS = (Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)
_CONV = (*_CLAMPS, Activation.TANH)


def positive(op: Operation, *names: str) -> tuple[int, ...]:
    """The options, each at least 1 and small enough for the kernels' 32-bit arithmetic."""
    numbers = tuple(op.number(name) for name in names)
    for name, number in zip(names, numbers, strict=True):
        if not 1 <= number <= MAX_STEP:
            raise ModelFormatError(f"{op.info}: {name} is {number}, allowed are 1 to {MAX_STEP}")
    return numbers


def same_pads(size: int, window: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """Padding before and after one axis so that ceil(size / stride) windows fit."""
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + (window - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def _pads(
    op: Operation, x: Value, window: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...] = (1, 1)
) -> tuple[int, int, int, int]:
    if x.type.rank != 4:
        raise ModelFormatError(f"{op.info}: x has shape {x.type.shape}, needs rank 4")
    if _padding(op) == "VALID":
        return (0, 0, 0, 0)
    top, bottom = same_pads(x.type.shape[1], window[0], stride[0], dilation[0])
    left, right = same_pads(x.type.shape[2], window[1], stride[1], dilation[1])
    return (top, bottom, left, right)


def _padding(op: Operation) -> str:
    code = op.number("padding")
    if not 0 <= code < len(PADDINGS):
        raise ModelFormatError(f"{op.info}: padding is {code}, must be 0 (SAME) or 1 (VALID)")
    return PADDINGS[code]


def weights_of(op: Operation, x: Value, w: Value) -> Value:
    """Weights in the type that x needs: beside a float x, quantised or float16 weights become float."""
    if x.type.dtype is DType.FLOAT32:
        return op.as_float(w)
    if not op.quantized(x):
        op.refuse(f"x of type {x.type.dtype}")
    op.quantized(w)
    return w


def bias_of(op: Operation, i: int, x: Value) -> Value | None:
    """The bias as one row, in the type that x needs."""
    bias = op.optional(i)
    if bias is None:
        return None
    if x.type.dtype is DType.FLOAT32:
        bias = op.as_float(bias)
    elif bias.type.dtype not in (DType.INT32, DType.INT64):
        raise ModelFormatError(f"{op.info}: bias is {bias.type.dtype}, needs int32 or int64 beside {x.type.dtype}")
    return op.reshape(bias, (bias.type.size,)) if bias.type.rank != 1 else bias


def _conv_attrs(op: Operation, x: Value, w: Value, groups: int) -> conv.Conv2dAttrs:
    if w.type.rank != 4:
        raise ModelFormatError(f"{op.info}: weights have shape {w.type.shape}, need rank 4")
    sh, sw, dh, dw = positive(op, "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")
    if max(w.type.shape[1] * dh, w.type.shape[2] * dw) > MAX_REACH:
        raise ModelFormatError(f"{op.info}: a window of {w.type.shape[1:3]} with dilation {(dh, dw)} reaches too far")
    pads = _pads(op, x, w.type.shape[1:3], (sh, sw), (dh, dw))
    allowed = _CONV if op.out_type() is None else _CLAMPS
    return conv.Conv2dAttrs((sh, sw), pads, (dh, dw), groups, op.activation(allowed), op.out_type())


def _conv2d(op: Operation) -> Value:
    x = op.value(0)
    w = weights_of(op, x, op.value(1))
    channels, per_group = x.type.shape[-1] if x.type.rank else 0, w.type.shape[-1] if w.type.rank else 0
    if per_group < 1 or channels % per_group:
        raise ModelFormatError(f"{op.info}: weights {w.type.shape} do not divide the channels of x {x.type.shape}")
    attrs = _conv_attrs(op, x, w, max(channels // per_group, 1))
    return op.emit(conv.CONV2D, [x, w, bias_of(op, 2, x)], attrs)


def _depthwise(op: Operation) -> Value:
    x = op.value(0)
    w = weights_of(op, x, op.value(1))
    return op.emit(conv.DEPTHWISE_CONV2D, [x, w, bias_of(op, 2, x)], _conv_attrs(op, x, w, 1))


def _transposed_pads(op: Operation, size: int, outputs: int, window: int, stride: int) -> tuple[int, int, int]:
    """What to cut before and after one axis of a full transposed convolution, and what to add after it.

    Source:  tensorflow v2.18, lite/kernels/padding.h: the padding of the convolution from y to x
    Raises:  ModelFormatError if that convolution would not make x's size
    """
    same = _padding(op) == "SAME"
    windows = -(-outputs // stride) if same else (outputs + stride - window) // stride
    if windows != size:
        raise ModelFormatError(
            f"{op.info}: a result of {outputs} along an axis belongs to an x of {windows}, not {size}"
        )
    before = max((windows - 1) * stride + window - outputs, 0) // 2
    after = (size - 1) * stride + window - before - outputs
    return before, max(after, 0), max(-after, 0)


def _transpose_conv(op: Operation) -> Value:
    shape, x = op.integers(0), op.value(2)
    w = weights_of(op, x, op.value(1))
    if len(shape) != 4 or x.type.rank != 4 or w.type.rank != 4 or min(shape) < 1:
        raise ModelFormatError(f"{op.info}: result {shape}, x {x.type.shape}, weights {w.type.shape} must have rank 4")
    sh, sw = positive(op, "stride_h", "stride_w")
    top, bottom, extra_h = _transposed_pads(op, x.type.shape[1], shape[1], w.type.shape[1], sh)
    left, right, extra_w = _transposed_pads(op, x.type.shape[2], shape[2], w.type.shape[2], sw)
    allowed = _CONV if op.out_type() is None else _CLAMPS
    attrs = conv.ConvTranspose2dAttrs(
        (sh, sw), (top, bottom, left, right), output_padding=(extra_h, extra_w),
        activation=op.activation(allowed), out_type=op.out_type(),
    )  # fmt: skip
    y = op.emit(conv.CONV_TRANSPOSE2D, [x, w, bias_of(op, 3, x)], attrs)
    if y.type.shape != tuple(shape):
        raise ModelFormatError(f"{op.info}: the result is to be {shape}, x and weights make {y.type.shape}")
    return y


def _pool_attrs(op: Operation, x: Value, activation: Activation) -> pool.Pool2dAttrs:
    kh, kw, sh, sw = positive(op, "filter_height", "filter_width", "stride_h", "stride_w")
    return pool.Pool2dAttrs((kh, kw), (sh, sw), _pads(op, x, (kh, kw), (sh, sw)), activation=activation)


def _max_pool(op: Operation) -> Value:
    x = op.value(0)
    return op.emit(pool.MAX_POOL2D, [x], _pool_attrs(op, x, op.activation(_CLAMPS)))


def _average_pool(op: Operation) -> Value:
    x = op.value(0)
    return op.emit(pool.AVERAGE_POOL2D, [x], _pool_attrs(op, x, op.activation(_CLAMPS)))


def _l2_pool(op: Operation) -> Value:
    """The root of the mean square, padding not counted."""
    x, activation = op.value(0), op.activation(_CLAMPS)
    if x.type.dtype is not DType.FLOAT32:
        op.refuse(f"x of type {x.type.dtype}")
    squares = op.emit(ew.SQUARE, [x], ew.UnaryAttrs())
    mean = op.emit(pool.AVERAGE_POOL2D, [squares], _pool_attrs(op, x, Activation.NONE))
    root = op.emit(ew.SQRT, [mean], ew.UnaryAttrs())
    return activate(op, root, activation)


_NODES = {
    Activation.RELU: ew.RELU, Activation.RELU6: ew.RELU6, Activation.RELU_N1_TO_1: ew.RELU_N1_TO_1,
    Activation.TANH: ew.TANH,
}  # fmt: skip


def activate(op: Operation, x: Value, activation: Activation) -> Value:
    """A fused activation as a node of its own, for operators that carry none."""
    return x if activation is Activation.NONE else op.emit(_NODES[activation], [x], ew.UnaryAttrs())


CONVERTERS: dict[str, Row] = {
    "AVERAGE_POOL_2D": (_average_pool, "Pool2DOptions"),
    "CONV_2D": (_conv2d, "Conv2DOptions"),
    "DEPTHWISE_CONV_2D": (_depthwise, "DepthwiseConv2DOptions"),
    "L2_POOL_2D": (_l2_pool, "Pool2DOptions"),
    "MAX_POOL_2D": (_max_pool, "Pool2DOptions"),
    "TRANSPOSE_CONV": (_transpose_conv, "TransposeConvOptions"),
}
