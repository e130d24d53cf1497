"""Convolutions: dense and grouped, depthwise, transposed.

Weights are stored as TFLite stores them: dense and transposed [CO, KH, KW, CI/groups], depthwise [1, KH, KW, CO].
The optional inputs carry what fusion puts there: `residual` is added before the activation and may
have fewer channels than y (the rest counts as zero); `slope` belongs to Activation.PRELU.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, Quantization, TensorType
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.activation import Activation
from webinfer.ops.registry import DOT_PRODUCT, PRODUCT, declare, eight_bit, moved_bytes, need

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class Conv2dAttrs:
    """Resolved attributes; `out_type` overrides the result's type for quantised tensors.

    `exact`: the operands are whole numbers, and float32 holds every sum of their products. Backends then choose no
    transform that rounds in between (Winograd's) and no float16.
    """

    stride: tuple[int, int] = (1, 1)  # (SH, SW)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  # (top, bottom, left, right)
    dilation: tuple[int, int] = (1, 1)  # (DH, DW)
    groups: int = 1
    activation: Activation = Activation.NONE
    out_type: tuple[DType, Quantization | None] | None = None
    exact: bool = False


@dataclass(frozen=True, slots=True)
class ConvTranspose2dAttrs:
    """Attributes of conv_transpose2d; `out_type` overrides the result's type for quantised tensors."""

    stride: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  # cut from the full result
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    output_padding: tuple[int, int] = (0, 0)  # added at bottom and right
    activation: Activation = Activation.NONE
    out_type: tuple[DType, Quantization | None] | None = None


def window_size(op: str, size: int, before: int, after: int, kernel: int, dilation: int, stride: int) -> int:
    """Outputs along one axis.

    Raises:  ShapeError if a size is not positive or no window fits.
    """
    if min(kernel, dilation, stride) < 1 or min(before, after) < 0:
        raise ShapeError(
            f"{op}: window {kernel}, dilation {dilation} and stride {stride} must be positive, "
            f"pads {before}, {after} not negative"
        )
    reach = (kernel - 1) * dilation + 1
    out = (size + before + after - reach) // stride + 1
    if size + before + after < reach or out < 1:
        raise ShapeError(f"{op}: window reach {reach} does not fit input {size} with pads {before}, {after}")
    return out


def result_type(shape: tuple[int, ...], x: TensorType, out: tuple[DType, Quantization | None] | None) -> TensorType:
    """The type of a result that may be requantised."""
    return TensorType(shape, x.dtype, x.quant) if out is None else TensorType(shape, *out)


def _check_extras(op: str, inputs: Inputs, y: TensorType, channels: int, activation: Activation) -> None:
    bias, residual, slope = (list(inputs[2:5]) + [None] * 3)[:3]
    if bias is not None and bias.size != channels:
        raise ShapeError(f"{op}: bias {bias.shape} needs {channels} elements")
    if residual is not None and (residual.shape[:-1] != y.shape[:-1] or residual.shape[-1] > channels):
        raise ShapeError(f"{op}: residual {residual.shape} does not fit result {y.shape}")
    if (slope is None) == (activation is Activation.PRELU):
        raise ShapeError(f"{op}: slope and activation prelu must be used together, activation is {activation}")
    if slope is not None and slope.size != channels:
        raise ShapeError(f"{op}: slope {slope.shape} needs {channels} elements")


def infer_conv2d(inputs: Inputs, a: Conv2dAttrs) -> tuple[TensorType, ...]:
    """Type of y.

    Shapes:  x [N, IH, IW, CI], w [CO, KH, KW, CI/groups], bias [CO], residual [N, OH, OW, <=CO] -> y [N, OH, OW, CO]
    Raises:  ShapeError if channels, groups or window do not fit.
    """
    x, w = need("conv2d", "x", inputs[0], 4), need("conv2d", "w", inputs[1], 4)
    co, kh, kw, ci = w.shape
    if a.groups < 1 or ci * a.groups != x.shape[3] or co % a.groups:
        raise ShapeError(f"conv2d: weights {w.shape} with {a.groups} groups do not fit input {x.shape}")
    oh = window_size("conv2d", x.shape[1], a.pads[0], a.pads[1], kh, a.dilation[0], a.stride[0])
    ow = window_size("conv2d", x.shape[2], a.pads[2], a.pads[3], kw, a.dilation[1], a.stride[1])
    y = result_type((x.shape[0], oh, ow, co), x, a.out_type)
    _check_extras("conv2d", inputs, y, co, a.activation)
    return (y,)


def infer_depthwise(inputs: Inputs, a: Conv2dAttrs) -> tuple[TensorType, ...]:
    """Type of y.

    Shapes:  x [N, IH, IW, CI], w [1, KH, KW, CO] with CO a multiple of CI -> y [N, OH, OW, CO]
    Raises:  ShapeError if channels or window do not fit.
    """
    name = "depthwise_conv2d"
    x, w = need(name, "x", inputs[0], 4), need(name, "w", inputs[1], 4)
    one, kh, kw, co = w.shape
    if one != 1 or x.shape[3] < 1 or co % x.shape[3]:
        raise ShapeError(f"{name}: weights {w.shape} do not fit input {x.shape}")
    oh = window_size(name, x.shape[1], a.pads[0], a.pads[1], kh, a.dilation[0], a.stride[0])
    ow = window_size(name, x.shape[2], a.pads[2], a.pads[3], kw, a.dilation[1], a.stride[1])
    y = result_type((x.shape[0], oh, ow, co), x, a.out_type)
    _check_extras(name, inputs, y, co, a.activation)
    return (y,)


def infer_transpose(inputs: Inputs, a: ConvTranspose2dAttrs) -> tuple[TensorType, ...]:
    """Type of y.

    Shapes:  x [N, IH, IW, CI], w [CO/groups, KH, KW, CI] -> y [N, OH, OW, CO],
             OH = (IH-1)*SH + (KH-1)*DH + 1 - top - bottom + output_padding
    Raises:  ShapeError if channels do not fit or nothing is left.
    """
    name = "conv_transpose2d"
    x, w = need(name, "x", inputs[0], 4), need(name, "w", inputs[1], 4)
    per_group, kh, kw, ci = w.shape
    if a.groups < 1 or ci != x.shape[3] or ci % a.groups:
        raise ShapeError(f"{name}: weights {w.shape} with {a.groups} groups do not fit input {x.shape}")
    if min(*a.stride, *a.dilation, kh, kw) < 1:
        raise ShapeError(f"{name}: stride {a.stride}, dilation {a.dilation} and window {(kh, kw)} must be positive")
    if min(*a.pads, *a.output_padding) < 0 or any(n < 1 for n in x.shape[1:3]):
        raise ShapeError(f"{name}: pads {a.pads}, output padding {a.output_padding} do not fit input {x.shape}")
    oh = (x.shape[1] - 1) * a.stride[0] + (kh - 1) * a.dilation[0] + 1 - a.pads[0] - a.pads[1] + a.output_padding[0]
    ow = (x.shape[2] - 1) * a.stride[1] + (kw - 1) * a.dilation[1] + 1 - a.pads[2] - a.pads[3] + a.output_padding[1]
    if oh < 1 or ow < 1:
        raise ShapeError(f"{name}: result would be {oh} x {ow}; pads {a.pads} cut everything off")
    y = result_type((x.shape[0], oh, ow, per_group * a.groups), x, a.out_type)
    _check_extras(name, inputs, y, per_group * a.groups, a.activation)
    return (y,)


def _conv_cost(taps: int, inputs: Inputs, outputs: Sequence[TensorType]) -> Cost:
    return Cost(2 * taps * outputs[0].size, moved_bytes(inputs, outputs))


def cost_conv2d(inputs: Inputs, outputs: Sequence[TensorType], a: Conv2dAttrs) -> Cost:
    """Two operations for each tap and input channel of a result."""
    _, kh, kw, ci = need("conv2d", "w", inputs[1]).shape
    return _conv_cost(kh * kw * ci, inputs, outputs)


def cost_depthwise(inputs: Inputs, outputs: Sequence[TensorType], a: Conv2dAttrs) -> Cost:
    """Two operations for each tap of a result."""
    _, kh, kw, _ = need("depthwise_conv2d", "w", inputs[1]).shape
    return _conv_cost(kh * kw, inputs, outputs)


def cost_transpose(inputs: Inputs, outputs: Sequence[TensorType], a: ConvTranspose2dAttrs) -> Cost:
    """Two operations for each element of x and each weight that it meets."""
    x, w = need("conv_transpose2d", "x", inputs[0]), need("conv_transpose2d", "w", inputs[1])
    return Cost(2 * x.size * (w.size // max(w.shape[3], 1)), moved_bytes(inputs, outputs))


def _t(*shape: int) -> TensorType:
    return TensorType(shape)


def _conv_case(label: str, x: TensorType, w: TensorType, *extras: TensorType | None, **attrs: object) -> Case:
    inputs = (x, w, *extras)
    weights = tuple(i for i in (1, 2, 4) if i < len(inputs) and inputs[i] is not None)
    return Case(label, inputs, Conv2dAttrs(**attrs), constant=weights)  # type: ignore[arg-type]


def quantized_conv_case(
    label: str, x: tuple[int, ...], w: tuple[int, ...], dtype: DType, axis: int | None, channels: int,
    attrs: type = Conv2dAttrs, **extra: object,
) -> Case:  # fmt: skip
    """An 8-bit case; `axis` is the weights' channel axis where each channel has a scale of its own."""
    x_type = eight_bit(x, 0.047, 3, dtype)
    if axis is None:
        w_type = eight_bit(w, 0.0113, -7 if dtype is DType.UINT8 else 0, dtype)
    else:
        scales = tuple(0.006 + 0.0011 * (i % 7) for i in range(channels))
        w_type = TensorType(w, dtype, Quantization(scales, (0,) * channels, axis))
    y = eight_bit((), 0.093, -11, dtype)
    inputs = (x_type, w_type, TensorType((channels,), DType.INT32))
    low, high = (0, 255) if dtype is DType.UINT8 else (-127, 127)
    return Case(label, inputs, attrs(out_type=(dtype, y.quant), **extra), low=low, high=high, constant=(1, 2))


def short_conv_case(
    label: str, x: tuple[int, ...], w: tuple[int, ...], axis: int, channels: int,
    attrs: Callable[..., object] = Conv2dAttrs, bias: DType = DType.INT64, **extra: object,
) -> Case:  # fmt: skip
    """A case of 16-bit data and 8-bit weights; `bias` is its type."""
    scales = tuple(0.006 + 0.0011 * (i % 7) for i in range(channels))
    x_type, y = TensorType(x, DType.INT16, Quantization((0.00031,), (0,))), Quantization((0.00047,), (0,))
    w_type = TensorType(w, DType.INT8, Quantization(scales, (0,) * channels, axis))
    inputs = (x_type, w_type, TensorType((channels,), bias))
    return Case(label, inputs, attrs(out_type=(DType.INT16, y), **extra), low=-9000, high=9000, constant=(1, 2))


CONV2D = declare(
    Op(
        "conv2d", Conv2dAttrs, infer_conv2d, cost_conv2d, DOT_PRODUCT,
        (
            _conv_case("1x1", _t(1, 6, 5, 8), _t(16, 1, 1, 8), _t(16)),
            _conv_case("1x1, odd channels", _t(1, 3, 5, 7), _t(5, 1, 1, 7), _t(5)),
            _conv_case("1x1, no bias, batch 2", _t(2, 3, 3, 4), _t(4, 1, 1, 4)),
            _conv_case("1x1, a tail in every direction", _t(1, 7, 5, 19), _t(37, 1, 1, 19), _t(37)),
            _conv_case("1x1, many channels", _t(1, 6, 7, 64), _t(96, 1, 1, 64), _t(96)),
            _conv_case("3x3 same", _t(1, 7, 6, 4), _t(8, 3, 3, 4), _t(8), pads=(1, 1, 1, 1)),
            short_conv_case("int16", (2, 7, 6, 4), (6, 3, 3, 4), 0, 6, pads=(1, 1, 1, 1), stride=(2, 1)),
            short_conv_case("int16, bias of int32", (1, 5, 6, 9), (6, 3, 3, 9), 0, 6, bias=DType.INT32, stride=(1, 2)),
            short_conv_case("int16, groups, many channels", (1, 3, 4, 600), (4, 1, 2, 300), 0, 4, groups=2),
            _conv_case("3x3, a tail in every direction", _t(1, 6, 7, 33), _t(45, 3, 3, 33), _t(45), pads=(1, 1, 1, 1)),
            _conv_case("3x3, odd channels", _t(1, 5, 5, 3), _t(7, 3, 3, 3), _t(7), pads=(1, 1, 1, 1)),
            _conv_case("5x5 stride 2, one-sided pad", _t(1, 9, 9, 3), _t(24, 5, 5, 3), _t(24), stride=(2, 2),
                pads=(1, 2, 1, 2)),
            dataclasses.replace(_conv_case("6x6 stride 2 from a picture", _t(2, 24, 20, 3), _t(18, 6, 6, 3), _t(18),
                stride=(2, 2), pads=(2, 3, 2, 2), activation=Activation.RELU), low=-1.0, high=1.0),
            _conv_case("stride 2 by 1", _t(1, 8, 5, 4), _t(4, 2, 3, 4), _t(4), stride=(2, 1)),
            _conv_case("dilated", _t(1, 9, 8, 4), _t(8, 3, 3, 4), _t(8), dilation=(2, 3), pads=(2, 2, 3, 3)),
            _conv_case("groups", _t(1, 5, 4, 8), _t(6, 3, 3, 4), _t(6), groups=2, pads=(1, 1, 1, 1)),
            _conv_case("one pixel", _t(1, 1, 1, 12), _t(20, 1, 1, 12), _t(20)),
            _conv_case("relu", _t(1, 4, 5, 8), _t(12, 1, 1, 8), _t(12), activation=Activation.RELU),
            _conv_case("relu6, both bounds", _t(1, 7, 6, 8), _t(12, 3, 3, 8), _t(12), activation=Activation.RELU6),
            _conv_case("silu, 3x3", _t(1, 6, 7, 8), _t(9, 3, 3, 8), _t(9), activation=Activation.SILU),
            _conv_case("prelu", _t(1, 4, 5, 8), _t(12, 1, 1, 8), _t(12), None, _t(12), activation=Activation.PRELU),
            _conv_case("hard_swish", _t(1, 4, 5, 4), _t(8, 1, 1, 4), _t(8), activation=Activation.HARD_SWISH),
            _conv_case("sigmoid", _t(1, 4, 5, 4), _t(8, 1, 1, 4), _t(8), activation=Activation.SIGMOID),
            _conv_case("silu", _t(1, 4, 5, 4), _t(13, 1, 1, 4), _t(13), None, activation=Activation.SILU),
            _conv_case("residual, relu", _t(1, 4, 5, 8), _t(12, 1, 1, 8), _t(12), _t(1, 4, 5, 12),
                activation=Activation.RELU),
            _conv_case("narrow residual", _t(1, 4, 5, 8), _t(12, 1, 1, 8), _t(12), _t(1, 4, 5, 8),
                activation=Activation.RELU),
            _conv_case("narrow odd residual, 3x3", _t(1, 4, 5, 8), _t(13, 3, 3, 8), _t(13), _t(1, 4, 5, 6),
                pads=(1, 1, 1, 1)),
            quantized_conv_case("uint8, 1x1", (1, 5, 6, 16), (24, 1, 1, 16), DType.UINT8, None, 24),
            quantized_conv_case("uint8, 3x3 same, relu6", (1, 6, 5, 8), (8, 3, 3, 8), DType.UINT8, None, 8,
                pads=(1, 1, 1, 1), activation=Activation.RELU6),
            quantized_conv_case("uint8, image, odd channels", (1, 9, 9, 3), (21, 3, 3, 3), DType.UINT8, None,
                21, stride=(2, 2), pads=(0, 1, 0, 1)),
            quantized_conv_case("int8, a scale for each channel", (1, 5, 6, 16), (24, 1, 1, 16), DType.INT8, 0,
                24, activation=Activation.RELU),
            quantized_conv_case("int8, 3x3, odd channels", (2, 5, 4, 7), (5, 3, 3, 7), DType.INT8, 0, 5,
                pads=(1, 1, 1, 1)),
            quantized_conv_case("int8, dilated groups", (1, 7, 7, 8), (6, 3, 3, 4), DType.INT8, None, 6,
                groups=2, dilation=(2, 2), pads=(2, 2, 2, 2)),
        ),
        types=PRODUCT,
    )
)  # fmt: skip

DEPTHWISE_CONV2D = declare(
    Op(
        "depthwise_conv2d", Conv2dAttrs, infer_depthwise, cost_depthwise, DOT_PRODUCT,
        (
            _conv_case("3x3 same", _t(1, 7, 6, 8), _t(1, 3, 3, 8), _t(8), pads=(1, 1, 1, 1)),
            short_conv_case("int16", (1, 7, 6, 3), (1, 3, 3, 6), 3, 6, pads=(1, 0, 1, 1), dilation=(1, 2)),
            _conv_case("3x3 stride 2, one-sided pad", _t(1, 8, 8, 24), _t(1, 3, 3, 24), _t(24), stride=(2, 2),
                pads=(0, 1, 0, 1)),
            _conv_case("5x5", _t(1, 9, 10, 12), _t(1, 5, 5, 12), _t(12), pads=(2, 2, 2, 2)),
            _conv_case("5x5 stride 2", _t(1, 9, 10, 12), _t(1, 5, 5, 12), _t(12), stride=(2, 2), pads=(1, 2, 1, 2)),
            _conv_case("odd channels", _t(1, 5, 5, 7), _t(1, 3, 3, 7), _t(7), pads=(1, 1, 1, 1)),
            _conv_case("multiplier 2", _t(1, 5, 5, 4), _t(1, 3, 3, 8), _t(8), pads=(1, 1, 1, 1)),
            _conv_case("multiplier 3 from one channel", _t(1, 5, 5, 1), _t(1, 3, 3, 3), _t(3)),
            _conv_case("dilated, batch 2", _t(2, 9, 9, 4), _t(1, 3, 3, 4), _t(4), dilation=(2, 2), pads=(2, 2, 2, 2)),
            _conv_case("no bias, 2x4 window", _t(1, 6, 6, 4), _t(1, 2, 4, 4)),
            _conv_case("relu6", _t(1, 6, 6, 8), _t(1, 3, 3, 8), _t(8), pads=(1, 1, 1, 1), activation=Activation.RELU6),
            _conv_case("prelu", _t(1, 6, 6, 8), _t(1, 3, 3, 8), _t(8), None, _t(8), activation=Activation.PRELU),
            _conv_case("residual, relu", _t(1, 9, 10, 8), _t(1, 3, 3, 8), _t(8), _t(1, 9, 10, 8), pads=(1, 1, 1, 1),
                activation=Activation.RELU),
            _conv_case("narrow odd residual, sigmoid", _t(1, 6, 9, 12), _t(1, 3, 3, 12), _t(12), _t(1, 6, 9, 6),
                pads=(1, 1, 1, 1), activation=Activation.SIGMOID),
            _conv_case("silu, dilated", _t(1, 11, 10, 12), _t(1, 3, 3, 12), _t(12), dilation=(2, 2), pads=(2, 2, 2, 2),
                activation=Activation.SILU),
            _conv_case("1x1, a factor and a summand, relu", _t(2, 5, 6, 12), _t(1, 1, 1, 12), _t(12),
                activation=Activation.RELU),
            _conv_case("1x1, prelu", _t(1, 3, 4, 24), _t(1, 1, 1, 24), _t(24), None, _t(24),
                activation=Activation.PRELU),
            _conv_case("1x1, 3 channels, sigmoid", _t(2, 3, 7, 3), _t(1, 1, 1, 3), _t(3),
                activation=Activation.SIGMOID),
            _conv_case("1x1, a stride and padding that keep the size", _t(1, 4, 4, 8), _t(1, 1, 1, 8), _t(8),
                stride=(2, 2), pads=(2, 2, 2, 2)),
            _conv_case("1x1, odd channels, prelu", _t(1, 3, 5, 5), _t(1, 1, 1, 5), _t(5), None, _t(5),
                activation=Activation.PRELU),
            quantized_conv_case("uint8, 3x3 same", (1, 6, 5, 16), (1, 3, 3, 16), DType.UINT8, None, 16,
                pads=(1, 1, 1, 1), activation=Activation.RELU6),
            quantized_conv_case("uint8, stride 2, odd channels", (1, 7, 8, 5), (1, 3, 3, 5), DType.UINT8, None,
                5, stride=(2, 2), pads=(1, 1, 0, 1)),
            quantized_conv_case("int8, a scale for each channel", (1, 6, 6, 8), (1, 3, 3, 8), DType.INT8, 3, 8,
                pads=(1, 1, 1, 1)),
            quantized_conv_case("int8, multiplier 2, dilated", (1, 9, 7, 4), (1, 3, 3, 8), DType.INT8, None, 8,
                dilation=(2, 1), pads=(2, 2, 1, 1)),
            _conv_case("map smaller than the window", _t(1, 2, 2, 8), _t(1, 5, 5, 8), _t(8), pads=(2, 2, 2, 2)),
        ),
        types=PRODUCT,
    )
)  # fmt: skip


def _transpose_case(label: str, x: TensorType, w: TensorType, *extras: TensorType | None, **attrs: object) -> Case:
    weights = (1, *(i for i, extra in enumerate(extras, 2) if extra is not None))
    return Case(label, (x, w, *extras), ConvTranspose2dAttrs(**attrs), constant=weights)  # type: ignore[arg-type]


CONV_TRANSPOSE2D = declare(
    Op(
        "conv_transpose2d", ConvTranspose2dAttrs, infer_transpose, cost_transpose, DOT_PRODUCT,
        (
            short_conv_case("int16, bias of int32", (1, 3, 4, 8), (6, 3, 3, 8), 0, 6, ConvTranspose2dAttrs,
                bias=DType.INT32, stride=(1, 2)),
            short_conv_case("int16, 3x3 stride 2, cut", (1, 3, 4, 8), (6, 3, 3, 8), 0, 6, ConvTranspose2dAttrs,
                stride=(2, 2), pads=(0, 1, 1, 0)),
            _transpose_case("2x2 stride 2", _t(1, 4, 5, 64), _t(1, 2, 2, 64), _t(1), stride=(2, 2)),
            _transpose_case("2x2 stride 2 to one channel, prelu", _t(2, 3, 11, 8), _t(1, 2, 2, 8), _t(1), None, _t(1),
                stride=(2, 2), activation=Activation.PRELU),
            _transpose_case("2x2 stride 2, prelu", _t(1, 4, 5, 12), _t(8, 2, 2, 12), _t(8), None, _t(8), stride=(2, 2),
                activation=Activation.PRELU),
            _transpose_case("3x2 stride 4 by 3, relu", _t(2, 3, 5, 8), _t(3, 3, 2, 8), _t(3), stride=(4, 3),
                output_padding=(1, 1), activation=Activation.RELU),
            _transpose_case("3x3 stride 4, prelu", _t(1, 5, 4, 68), _t(3, 3, 3, 68), _t(3), None, _t(3), stride=(4, 4),
                output_padding=(1, 1), activation=Activation.PRELU),
            _transpose_case("3x3 stride 4, no bias, tanh", _t(1, 3, 4, 8), _t(9, 3, 3, 8), stride=(4, 4),
                output_padding=(1, 1), activation=Activation.TANH),
            _transpose_case("3x3 stride 2, cut", _t(1, 3, 4, 8), _t(6, 3, 3, 8), _t(6), stride=(2, 2), pads=(0,
                1, 0, 1)),
            _transpose_case("3x3 stride 1, no bias", _t(2, 3, 3, 4), _t(4, 3, 3, 4), pads=(1, 1, 1, 1)),
            _transpose_case("groups", _t(1, 3, 3, 4), _t(3, 2, 2, 4), stride=(2, 2), groups=2),
            quantized_conv_case("uint8", (1, 4, 3, 8), (6, 3, 3, 8), DType.UINT8, None, 6,
                ConvTranspose2dAttrs, stride=(2, 2), pads=(0, 1, 0, 1)),
            quantized_conv_case("int8, a scale for each channel", (1, 3, 3, 8), (5, 2, 2, 8), DType.INT8, 0, 5,
                ConvTranspose2dAttrs, stride=(2, 2)),
            _transpose_case("dilated, padded output", _t(1, 3, 3, 4), _t(5, 2, 3, 4), stride=(2, 3),
                dilation=(2, 2), output_padding=(1, 1)),
        ),
        types=PRODUCT,
    )
)  # fmt: skip
