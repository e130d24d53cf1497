"""Resampling of NHWC images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, TensorType
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
        if min(a.size) < 1 or min(x.shape[1:3]) < 1:
            raise ShapeError(f"{name}: cannot resize {x.shape} to {a.size}")
        if a.align_corners and a.half_pixel_centers:
            raise ShapeError(f"{name}: align_corners and half_pixel_centers exclude each other")
        return (TensorType((x.shape[0], *a.size, x.shape[3]), x.dtype, x.quant),)

    return infer


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: ResizeAttrs) -> Cost:
    """About eight operations for each result."""
    return Cost(8 * outputs[0].size, moved_bytes(inputs, outputs))


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
    Op("resize_bilinear", ResizeAttrs, _infer("resize_bilinear"), cost, DOT_PRODUCT, _CASES + _EIGHT_BIT)
)
RESIZE_NEAREST = declare(Op("resize_nearest", ResizeAttrs, _infer("resize_nearest"), cost, EXACT, _CASES + _EIGHT_BIT))
