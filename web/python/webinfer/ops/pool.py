"""Pooling over windows of an NHWC image."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.expr.formula import Formula, equal, select
from webinfer.expr.kernel import Axis, Kernel, Kind, Size, Tensor, along, axes, element, largest, lengths, sizes, whole
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.activation import Activation
from webinfer.ops.conv import window_size
from webinfer.ops.registry import DOT_PRODUCT, EXACT, declare, eight_bit, move_cost, moved_bytes, need

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class Pool2dAttrs:
    """Resolved attributes. Every window must touch at least one real pixel.

    `by_columns`: of equal elements max_pool_with_argmax2d names the first column by column, not row by row.
    """

    window: tuple[int, int]  # (KH, KW)
    stride: tuple[int, int] = (1, 1)  # (SH, SW)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  # (top, bottom, left, right)
    dilation: tuple[int, int] = (1, 1)
    activation: Activation = Activation.NONE  # NONE, RELU, RELU6 or RELU_N1_TO_1
    by_columns: bool = False


@dataclass(frozen=True, slots=True)
class MaxUnpool2dAttrs:
    """Undoes max_pool_with_argmax2d: x goes to the tap that won, the rest of y is zero.

    Where windows overlap, the last x in row-major order wins. A tap outside the window or outside y is dropped.
    """

    window: tuple[int, int]
    stride: tuple[int, int]
    pads: tuple[int, int]  # (top, left) of the pooling
    size: tuple[int, int]  # (OH, OW)


def pool_shape(name: str, inputs: Inputs, a: Pool2dAttrs) -> tuple[int, int, int, int]:
    """Shape of y.

    Shapes:  x [N, IH, IW, C] -> y [N, OH, OW, C]
    Raises:  ShapeError if no window fits or a pad is as large as the window.
    """
    x = need(name, "x", inputs[0], 4)
    reach = [(k - 1) * d + 1 for k, d in zip(a.window, a.dilation, strict=True)]
    if max(a.pads[:2]) >= max(reach[0], 1) or max(a.pads[2:]) >= max(reach[1], 1):
        raise ShapeError(f"{name}: pads {a.pads} reach past the window {a.window}: a window could hold only padding")
    oh = window_size(name, x.shape[1], a.pads[0], a.pads[1], a.window[0], a.dilation[0], a.stride[0])
    ow = window_size(name, x.shape[2], a.pads[2], a.pads[3], a.window[1], a.dilation[1], a.stride[1])
    return (x.shape[0], oh, ow, x.shape[3])


def _infer(name: str):  # type: ignore[no-untyped-def]
    def infer(inputs: Inputs, a: Pool2dAttrs) -> tuple[TensorType, ...]:
        x = need(name, "x", inputs[0], 4)
        return (TensorType(pool_shape(name, inputs, a), x.dtype, x.quant),)

    return infer


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: Pool2dAttrs) -> Cost:
    """One operation for each tap of a result."""
    return Cost(outputs[0].size * a.window[0] * a.window[1], moved_bytes(inputs, outputs))


def _cases(low: float) -> tuple[Case, ...]:
    def case(label: str, shape: tuple[int, ...], dtype: DType = DType.FLOAT32, **attrs: object) -> Case:
        return Case(label, (TensorType(shape, dtype),), Pool2dAttrs(**attrs), low=low, high=0.5)  # type: ignore[arg-type]

    return (
        case("plain", (1, 4, 4, 4), window=(2, 2), stride=(2, 2)),
        case("odd size, one-sided pad", (1, 5, 5, 8), window=(2, 2), stride=(2, 2), pads=(0, 1, 0, 1)),
        case("overlapping window", (2, 6, 7, 4), window=(3, 3), stride=(1, 2), pads=(1, 1, 1, 1)),
        case("odd channels", (1, 5, 6, 7), window=(2, 3), stride=(1, 1)),
        case("whole image", (1, 7, 5, 12), window=(7, 5)),
        case("dilated", (1, 8, 8, 4), window=(2, 2), dilation=(3, 2)),
        case("relu", (1, 4, 4, 4), window=(2, 2), activation=Activation.RELU),
    )


def _eight_bit_cases() -> tuple[Case, ...]:
    def case(label: str, shape: tuple[int, ...], dtype: DType, scale: float, zero: int, **attrs: object) -> Case:
        low, high = dtype.range
        return Case(label, (eight_bit(shape, scale, zero, dtype),), Pool2dAttrs(**attrs), low=low, high=high)  # type: ignore[arg-type]

    relu, relu6 = Activation.RELU, Activation.RELU6
    return (
        case("uint8", (1, 7, 6, 16), DType.UINT8, 0.047, 5, window=(3, 3), stride=(2, 2), pads=(1, 1, 1, 0)),
        case("uint8, whole image", (1, 7, 7, 12), DType.UINT8, 0.047, 5, window=(7, 7)),
        case("uint8, relu6, both bounds", (1, 8, 8, 12), DType.UINT8, 0.1, 0, window=(2, 2), activation=relu6),
        case("int8, whole image", (2, 5, 9, 19), DType.INT8, 0.047, -9, window=(5, 9)),
        case("int8, odd channels", (2, 5, 6, 7), DType.INT8, 0.047, 5, window=(2, 3), stride=(1, 2)),
        case("int8, relu", (1, 8, 8, 8), DType.INT8, 0.047, 70, window=(2, 2), stride=(2, 2), activation=relu),
    )


MAX_POOL2D = declare(
    Op("max_pool2d", Pool2dAttrs, _infer("max_pool2d"), cost, EXACT, _cases(-6.0) + _eight_bit_cases())
)
AVERAGE_POOL2D = declare(
    Op("average_pool2d", Pool2dAttrs, _infer("average_pool2d"), cost, DOT_PRODUCT, _cases(-1.0) + _eight_bit_cases())
)
L2_POOL2D = declare(  # sqrt(sum of squares), padding counts as zero
    Op(
        "l2_pool2d", Pool2dAttrs, _infer("l2_pool2d"), cost,
        Tolerance(2e-5, 1e-5, "the order of a float32 sum is free", summed=True), _cases(-1.0),
    )
)  # fmt: skip


def _infer_argmax(inputs: Inputs, a: Pool2dAttrs) -> tuple[TensorType, ...]:
    """Types of the maxima and of the taps that won: ky * KW + kx + 0.1, as float32.

    Source:  MediaPipe's max_pool_argmax.cc, whose taps are floats that readers truncate
    """
    name = "max_pool_with_argmax2d"
    x = need(name, "x", inputs[0], 4)
    if a.dilation != (1, 1):
        raise ShapeError(f"{name}: dilation {a.dilation} must be (1, 1)")
    shape = pool_shape(name, inputs, a)
    return TensorType(shape, x.dtype, x.quant), TensorType(shape)


def _infer_unpool(inputs: Inputs, a: MaxUnpool2dAttrs) -> tuple[TensorType, ...]:
    """Shapes:  x and taps [N, IH, IW, C] -> y [N, OH, OW, C]"""
    x, taps = need("max_unpool2d", "x", inputs[0], 4), need("max_unpool2d", "taps", inputs[1], 4)
    if x.shape != taps.shape or not taps.dtype.is_float:
        raise ShapeError(f"max_unpool2d: x {x} and taps {taps} do not fit; taps are floats")
    if min(*a.window, *a.stride, *a.size) < 1 or min(a.pads) < 0:
        raise ShapeError(f"max_unpool2d: {a} needs positive sizes")
    return (TensorType((x.shape[0], *a.size, x.shape[3]), x.dtype, x.quant),)


def _unpool_kernel(inputs: Sequence[TensorType], outputs: Sequence[TensorType], a: MaxUnpool2dAttrs) -> Kernel:
    batch, ih, iw, c = lengths(inputs[0].shape, batch=1, ih=2, iw=3, c=4)
    oh, ow, kh, kw = sizes(oh=a.size[0], ow=a.size[1], kh=a.window[0], kw=a.window[1])
    top, left, stride_h, stride_w = sizes(top=a.pads[0], left=a.pads[1], stride_h=a.stride[0], stride_w=a.stride[1])
    (places,) = sizes(places=math.prod(inputs[0].shape[1:3]))
    data, taps = Tensor("x", (batch, places, c)), Tensor("taps", (batch, ih, iw, c), Kind.NUMBER)
    (n, oy, ox, i), ky, kx = axes(n=batch, oy=oh, ox=ow, i=c), along("ky", kh), along("kx", kw)

    def source(o: Formula, pad: Size, k: Axis, stride: Size, size: Size) -> tuple[Formula, Formula]:
        """Which input's window has this tap there, and whether there is one."""
        far = o + pad - k
        at = far // stride
        return at, (far >= 0) & equal(at * stride, far) & (at < size)

    (iy, high), (ix, wide) = source(oy, top, ky, stride_h, ih), source(ox, left, kx, stride_w, iw)
    won = equal(whole(taps[n, iy, ix, i]), ky * kw + kx)
    # The last hit in row-major order.
    last = largest(ky, largest(kx, select(won, iy * iw + ix, -1), -1, where=wide), -1, where=high)
    return Kernel("max_unpool2d", (data, taps), (n, oy, ox, i), select(last >= 0, data[n, last, i], element("none", 0)))


def _ties(by_columns: bool) -> Case:
    """Windows with equal elements, padded ones too."""
    attrs = Pool2dAttrs((3, 2), (2, 1), (1, 0, 1, 0), by_columns=by_columns)
    values: dict[int, Sequence[float]] = {0: [float(i * i % 7 % 3) for i in range(6 * 5 * 5)]}
    return Case(f"ties, by {'columns' if by_columns else 'rows'}", (TensorType((1, 6, 5, 5)),), attrs, values=values)


_TAPS = tuple(n + 0.1 for n in (0, 3, 1, 2, 2, 1, 0, 0, 3, 3, 1, 2, 0, 1, 2, 3, 1, 0))
MAX_POOL_WITH_ARGMAX2D = declare(
    Op(
        "max_pool_with_argmax2d",
        Pool2dAttrs,
        _infer_argmax,
        cost,
        EXACT,
        (*(c for c in _cases(-6.0) if c.label != "dilated"), _ties(False), _ties(True)),
    )
)
MAX_UNPOOL2D = declare(
    Op(
        "max_unpool2d", MaxUnpool2dAttrs, _infer_unpool, move_cost, EXACT,
        (
            Case("windows side by side", (TensorType((1, 3, 2, 3)), TensorType((1, 3, 2, 3))),
                MaxUnpool2dAttrs((2, 2), (2, 2), (0, 0), (6, 4)), values={1: _TAPS}),
            Case("overlapping windows, padded", (TensorType((1, 3, 3, 2)), TensorType((1, 3, 3, 2))),
                MaxUnpool2dAttrs((2, 2), (1, 1), (1, 1), (3, 3)), values={1: _TAPS}),
        ),
        kernel=_unpool_kernel,
    )
)  # fmt: skip
