"""TensorFlow's convolutions, pools and matrix products, with what is fused into them."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.graph.ir import Op, Value
from webinfer.importers.core import volumes
from webinfer.importers.core.einsum import einsum
from webinfer.importers.core.geometry import check_window, transposed_pads
from webinfer.importers.core.limits import MAX_REACH
from webinfer.importers.core.whole_product import whole_product
from webinfer.importers.tfjs.elementwise import ACTIVATIONS, number, real
from webinfer.importers.tfjs.operation import Convert, Operation
from webinfer.importers.tfjs.windows import pads_of, volume, without_windows
from webinfer.ops import conv, matmul, pool
from webinfer.ops import elementwise as ew


def _image(op: Operation, key: int = 0) -> Value:
    op.channels_last()
    x = real(op, key)
    if x.type.rank != 4:
        op.fail(f"input {key} has shape {x.type.shape}, needs rank 4")
    return x


def _attrs(op: Operation, x: Value, w: Value, groups: int = 1) -> conv.Conv2dAttrs:
    """Weights [KH, KW, ...]"""
    stride, dilation = op.window("strides"), op.window("dilations")
    window = w.type.shape[:2]
    if max(window[0] * dilation[0], window[1] * dilation[1]) > MAX_REACH:
        op.fail(f"a window of {window} with dilation {dilation} reaches too far")
    return conv.Conv2dAttrs(stride, pads_of(op, x, window, stride, dilation), dilation, groups)


def _nothing(op: Operation, x: Value, w: Value, channels: int) -> Value | None:
    return without_windows(op, x, w.type.shape[:2], op.window("strides"), op.window("dilations"), channels)


def _filter(op: Operation, key: int = 1) -> Value:
    w = real(op, key)
    if w.type.rank != 4:
        op.fail(f"weights have shape {w.type.shape}, need rank 4")
    return w


def _fused(op: Operation, channels: int) -> tuple[Value | None, list[str]]:
    """The bias as one row, if there is one, and what follows it."""
    words = op.words("fused_ops")
    if words[:1] != ["BiasAdd"] or op.count < 3:
        return None, words
    return _bias(op, channels), words[1:]


def _bias(op: Operation, channels: int) -> Value:
    bias = real(op, 2)
    if bias.type.size != channels:
        op.refuse(f"a bias of {bias.type.shape} for {channels} channels")
    return op.reshape(bias, (channels,))


def _activated(op: Operation, y: Value, words: Sequence[str]) -> Value:
    """What is fused behind the bias. Prelu takes its slopes from the last input."""
    for word in words:
        if word == "Prelu":
            y = op.binary(ew.PRELU, y, real(op, op.count - 1))
        elif word in ACTIVATIONS:
            y = ACTIVATIONS[word](op, y)
        else:
            op.refuse(f"fused {word}")
    return y


def _conv2d(op: Operation) -> Value:
    """Weights [KH, KW, CI, CO]"""
    x, w = _image(op), _filter(op)
    inner, outer = w.type.shape[2:]
    if inner < 1 or x.type.shape[3] % inner:
        op.fail(f"weights {w.type.shape} do not divide the channels of x {x.type.shape}")
    if (nothing := _nothing(op, x, w, outer)) is not None:
        return nothing
    attrs = _attrs(op, x, w, max(x.type.shape[3] // inner, 1))
    bias, words = _fused(op, outer)
    return _activated(op, op.emit(conv.CONV2D, [x, op.transpose(w, (3, 0, 1, 2)), bias], attrs), words)


def _conv1d(op: Operation) -> Value:
    """A row [N, W, C] as an image of one line, weights [KW, CI, CO]."""
    op.channels_last()
    x, w = real(op, 0), real(op, 1)
    if x.type.rank != 3 or w.type.rank != 3:
        op.fail(f"x {x.type.shape} and weights {w.type.shape} must have rank 3")
    wide, line = op.reshape(w, (1, *w.type.shape)), op.reshape(x, (x.type.shape[0], 1, *x.type.shape[1:]))
    (stride,) = check_window(op, {"stride": op.number("stride", 1)})
    (dilation,) = check_window(op, {"dilation": op.number("dilation", 1)})
    pads = pads_of(op, line, wide.type.shape[:2], (1, stride), (1, dilation))
    attrs = conv.Conv2dAttrs((1, stride), pads, (1, dilation))
    y = op.emit(conv.CONV2D, [line, op.transpose(wide, (3, 0, 1, 2)), None], attrs)
    return op.reshape(y, (y.type.shape[0], *y.type.shape[2:]))


def _depthwise(op: Operation) -> Value:
    """Weights [KH, KW, C, M]: M results of each channel."""
    x, w = _image(op), _filter(op)
    high, wide, channels, times = w.type.shape
    if channels != x.type.shape[3]:
        op.fail(f"weights {w.type.shape} do not fit x {x.type.shape}")
    if (nothing := _nothing(op, x, w, channels * times)) is not None:
        return nothing
    attrs = _attrs(op, x, w)
    bias, words = _fused(op, channels * times)
    y = op.emit(conv.DEPTHWISE_CONV2D, [x, op.reshape(w, (1, high, wide, channels * times)), bias], attrs)
    return _activated(op, y, words)


def _transposed(op: Operation) -> Value:
    """The image whose convolution has the size of input 2; weights [KH, KW, CO, CI]."""
    shape, x, w = op.integers(0), _image(op, 2), _filter(op)
    if len(shape) != 4 or min(shape[1:]) < 1 or op.window("dilations") != (1, 1):
        op.refuse(f"a result of shape {shape}, dilations {op.vector('dilations')}")
    high, wide = op.window("strides")
    same = op.chosen("padding", ("SAME", "VALID")) == "SAME"
    top, bottom, extra_h = transposed_pads(op, same, x.type.shape[1], shape[1], w.type.shape[0], high)
    left, right, extra_w = transposed_pads(op, same, x.type.shape[2], shape[2], w.type.shape[1], wide)
    attrs = conv.ConvTranspose2dAttrs((high, wide), (top, bottom, left, right), output_padding=(extra_h, extra_w))
    y = op.emit(conv.CONV_TRANSPOSE2D, [x, op.transpose(w, (2, 0, 1, 3)), None], attrs)
    if y.type.shape[1:] != shape[1:]:
        op.fail(f"the result is to be {shape}, x and weights make {y.type.shape}")
    return y


def _pool(target: Op) -> Convert:
    def convert(op: Operation) -> Value:
        x, window, stride = _image(op), op.window("ksize"), op.window("strides")
        if (nothing := without_windows(op, x, window, stride)) is not None:
            return nothing
        return op.emit(target, [x], pool.Pool2dAttrs(window, stride, pads_of(op, x, window, stride)))

    return convert


def _volume(op: Operation) -> Value:
    op.channels_last()
    x = real(op, 0)
    if x.type.rank != 5:
        op.fail(f"x has shape {x.type.shape}, needs rank 5")
    return x


def _conv3d(op: Operation) -> Value:
    """Weights [KD, KH, KW, CI, CO]"""
    x, w = _volume(op), real(op, 1)
    if w.type.rank != 5 or w.type.shape[3] != x.type.shape[4]:
        op.fail(f"weights {w.type.shape} do not fit x {x.type.shape}")
    stride, dilation = op.window3("strides"), op.window3("dilations")
    if (nothing := without_windows(op, x, w.type.shape[:3], stride, dilation, w.type.shape[4])) is not None:
        return nothing
    x, pads = volume(op, x, w.type.shape[:3], stride, dilation)
    return volumes.convolve(op, x, op.transpose(w, (4, 0, 1, 2, 3)), None, stride, pads, dilation)


def _pool3d(target: Op) -> Convert:
    def convert(op: Operation) -> Value:
        x, window, stride = _volume(op), op.window3("ksize"), op.window3("strides")
        if (nothing := without_windows(op, x, window, stride)) is not None:
            return nothing
        x, pads = volume(op, x, window, stride, (1, 1, 1))
        return volumes.pooled(op, target, x, window, stride, pads, (1, 1, 1))

    return convert


def product(op: Operation, a: Value, b: Value, transpose_a: bool, transpose_b: bool, bias: Value | None) -> Value:
    """a times b, plus a row."""
    return op.emit(matmul.MATMUL, [a, b, bias], matmul.MatmulAttrs(transpose_a, transpose_b))


def _matmul(op: Operation) -> Value:
    first, second = (f"adj_{n}" if op.name.startswith("Batch") else f"transpose_{m}" for n, m in ("xa", "yb"))
    turned = op.flag(second)
    if _are_whole(op) and op.count == 2 and min(x.type.rank for x in op.values()) >= 2:
        return whole_product(op, number(op, 0), number(op, 1), op.flag(first), turned)
    a, b = real(op, 0), real(op, 1)
    columns = b.type.shape[-2 if turned else -1] if b.type.rank > 1 else 0
    bias, words = _fused(op, columns)
    if not words and bias is None and op.name == "_FusedMatMul" and op.count == 3:
        bias = _bias(op, columns)  # which TensorFlow.js adds though `fused_ops` does not name it
    return _activated(op, product(op, a, b, op.flag(first), turned, bias), words)


def _are_whole(op: Operation) -> bool:
    """Whether no input is of floats: TensorFlow.js gives a product of such in int32."""
    return not any(x.type.dtype.is_float for x in op.values())


def _einsum(op: Operation) -> Value:
    read = number if _are_whole(op) else real
    return einsum(op, op.word("equation"), [read(op, i) for i in range(op.count)])


CONVERTERS: dict[str, Convert] = {
    "AvgPool": _pool(pool.AVERAGE_POOL2D),
    "AvgPool3D": _pool3d(pool.AVERAGE_POOL2D),
    "BatchMatMul": _matmul,
    "BatchMatMulV2": _matmul,
    "Conv1D": _conv1d,
    "Conv2D": _conv2d,
    "Conv2DBackpropInput": _transposed,
    "Conv2dTranspose": _transposed,
    "Conv3D": _conv3d,
    "DepthwiseConv2d": _depthwise,
    "DepthwiseConv2dNative": _depthwise,
    "Einsum": _einsum,
    "FusedDepthwiseConv2dNative": _depthwise,
    "MatMul": _matmul,
    "MaxPool": _pool(pool.MAX_POOL2D),
    "MaxPool3D": _pool3d(pool.MAX_POOL2D),
    "_FusedConv2D": _conv2d,
    "_FusedMatMul": _matmul,
}
