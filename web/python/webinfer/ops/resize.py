"""Resampling of NHWC images."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.expr import formula as f
from webinfer.expr.formula import Formula
from webinfer.expr.kernel import Kernel, Kind, Size, Tensor, axes, lengths, real, reals, sizes, whole
from webinfer.graph.dims import has_size, hint_of
from webinfer.graph.ir import Case, Cost, Op, TensorType
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import DOT_PRODUCT, EXACT, declare, eight_bit, moved_bytes, need

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class ResizeAttrs:
    """Where output pixel o samples the input: (o + 0.5)*IH/OH - 0.5 with half pixel centers,
    o*(IH-1)/(OH-1) with aligned corners, else o*IH/OH."""

    size: tuple[int, int]  # (OH, OW)
    align_corners: bool = False
    half_pixel_centers: bool = False


def _infer(name: str):  # type: ignore[no-untyped-def]
    def infer(inputs: Inputs, a: ResizeAttrs) -> tuple[TensorType, ...]:
        x = need(name, "x", inputs[0], 4)
        if any(size < 1 for size in (*a.size, *x.shape[1:3])):
            raise ShapeError(f"{name}: cannot resize {x.shape} to {a.size}")
        if a.align_corners and a.half_pixel_centers:
            raise ShapeError(f"{name}: align_corners and half_pixel_centers exclude each other")
        return (TensorType((x.shape[0], *a.size, x.shape[3]), x.dtype, x.quant),)

    return infer


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: ResizeAttrs) -> Cost:
    """About eight operations for each result."""
    return Cost(8 * outputs[0].size, moved_bytes(inputs, outputs))


def _scale(inputs: int, outputs: int, a: ResizeAttrs) -> float:
    if a.align_corners and outputs > 1:
        return (inputs - 1) / (outputs - 1)
    factor = hint_of(outputs) // hint_of(inputs) if has_size(outputs) else 0
    return 1 / factor if factor and outputs == inputs * factor else inputs / outputs  # the same number


def nearest_numbers(x: TensorType, y: TensorType, a: ResizeAttrs) -> dict[str, float]:
    """Both scales of a nearest resize, and what is added to a position before and after scaling it."""
    scale_h, scale_w = (_scale(x.shape[i], y.shape[i], a) for i in (1, 2))
    before, after = 0.5 if a.half_pixel_centers else 0.0, 0.5 if a.align_corners else 0.0
    return {"scale_h": scale_h, "scale_w": scale_w, "before": before, "after": after}


def nearest(o: Formula, scale: Formula, before: Formula, after: Formula, size: Formula) -> Formula:
    """The index of an axis of this size that a nearest resize takes for its result's index o."""
    return f.clamp(whole(f.floor((real(o) + before) * scale + after)), 0, size - 1)


def _nearest_kernel(inputs: Sequence[TensorType], outputs: Sequence[TensorType], a: ResizeAttrs) -> Kernel:
    (x,), (y,) = inputs, outputs
    scale_h, scale_w, before, after = reals(**nearest_numbers(x, y, a))
    batch, ih, iw, c = lengths(x.shape, batch=1, ih=2, iw=3, c=4)
    oh, ow = sizes(oh=a.size[0], ow=a.size[1])
    data, (n, oy, ox, i) = Tensor("x", (batch, ih, iw, c)), axes(n=batch, oy=oh, ox=ow, i=c)
    iy, ix = (nearest(o, s, before, after, size) for o, s, size in ((oy, scale_h, ih), (ox, scale_w, iw)))
    return Kernel("resize_nearest", (data,), (n, oy, ox, i), data[n, iy, ix, i])


def _bilinear_kernel(inputs: Sequence[TensorType], outputs: Sequence[TensorType], a: ResizeAttrs) -> Kernel:
    (x,), (y,) = inputs, outputs
    scale_h, scale_w = reals(scale_h=_scale(x.shape[1], y.shape[1], a), scale_w=_scale(x.shape[2], y.shape[2], a))
    (offset,) = reals(offset=0.5 if a.half_pixel_centers else 0.0)
    batch, ih, iw, c = lengths(x.shape, batch=1, ih=2, iw=3, c=4)
    oh, ow = sizes(oh=a.size[0], ow=a.size[1])
    data, (n, oy, ox, i) = Tensor("x", (batch, ih, iw, c), Kind.NUMBER), axes(n=batch, oy=oh, ox=ow, i=c)

    def between(o: Formula, scale: Formula, size: Size) -> tuple[Formula, Formula, Formula]:
        """The two neighbours, and the weight of the second."""
        at = (real(o) + offset) * scale - offset
        first = f.clamp(whole(f.floor(at)), 0, size - 1)
        return first, f.min(first + 1, size - 1), f.clamp(at - real(first), 0, 1)

    (top, bottom, down), (left, right, across) = between(oy, scale_h, ih), between(ox, scale_w, iw)
    above = data[n, top, left, i] * (1 - across) + data[n, top, right, i] * across
    below = data[n, bottom, left, i] * (1 - across) + data[n, bottom, right, i] * across
    return Kernel("resize_bilinear", (data,), (n, oy, ox, i), above * (1 - down) + below * down, Kind.NUMBER)


def _case(label: str, shape: tuple[int, ...], *attrs: object) -> Case:
    return Case(label, (TensorType(shape),), ResizeAttrs(*attrs))  # type: ignore[arg-type]


_CASES = (
    _case("twice", (1, 3, 4, 8), (6, 8)),
    _case("twice, half pixel", (1, 3, 4, 8), (6, 8), False, True),
    _case("aligned corners", (1, 3, 4, 8), (7, 9), True),
    _case("odd channels, down", (2, 9, 7, 3), (4, 5), False, True),
    _case("to one pixel", (1, 5, 5, 4), (1, 1), True),
)
_EIGHT_BIT = (
    Case("uint8", (eight_bit((1, 5, 4, 8), 0.05, 0, DType.UINT8),), ResizeAttrs((9, 11)), low=0, high=255),
    Case(
        "uint8, half pixel",
        (eight_bit((1, 5, 4, 8), 0.05, 0, DType.UINT8),),
        ResizeAttrs((13, 7), False, True),
        low=0,
        high=255,
    ),
    Case(
        "int8, aligned, odd channels", (eight_bit((2, 5, 4, 3), 0.05),), ResizeAttrs((7, 9), True), low=-128, high=127
    ),
)
RESIZE_BILINEAR = declare(
    Op(
        "resize_bilinear", ResizeAttrs, _infer("resize_bilinear"), cost, DOT_PRODUCT, _CASES + _EIGHT_BIT,
        kernel=_bilinear_kernel,
    )
)  # fmt: skip
RESIZE_NEAREST = declare(
    Op(
        "resize_nearest", ResizeAttrs, _infer("resize_nearest"), cost, EXACT, _CASES + _EIGHT_BIT,
        kernel=_nearest_kernel,
    )
)  # fmt: skip
