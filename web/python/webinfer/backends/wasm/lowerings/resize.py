"""Resampling of images: floats and quantised bytes bilinear, every type nearest."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.kernel_constants import RESAMPLE_CORNERS, RESAMPLE_HALF_PIXEL, RESAMPLE_PLAIN
from webinfer.backends.wasm.lowerings.cast import compute_dtype, present
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Op
from webinfer.ops import resize as ops

BILINEAR = {DType.FLOAT32: "f32", DType.INT8: "i8", DType.UINT8: "u8", DType.INT16: "i16"}


def _how(a: ops.ResizeAttrs) -> int:
    """Where output samples lie, as the kernels are told."""
    if a.align_corners:
        return RESAMPLE_CORNERS
    return RESAMPLE_HALF_PIXEL if a.half_pixel_centers else RESAMPLE_PLAIN


def resize_bilinear(node: Node, builder: Builder) -> None:
    x, y = present(node.inputs[0]), node.output
    kind = BILINEAR.get(compute_dtype(x))
    if kind is None:
        raise UnsupportedOpError([f"no bilinear kernel for {x.type}; cast to float32 first"])
    (n, ih, iw, c), (_, oh, ow, _) = x.type.shape, y.type.shape
    args = (builder.ref(x), builder.ref(y), n, ih, iw, c, oh, ow, _how(node.attrs))
    builder.step(f"{kind}_resize_bilinear_nhwc", *args, units=n * oh)


def resize_nearest(node: Node, builder: Builder) -> None:
    x, y = present(node.inputs[0]), node.output
    (n, ih, iw, c), (_, oh, ow, _) = x.type.shape, y.type.shape
    args = (builder.ref(x), builder.ref(y), n, ih, iw, c * compute_dtype(x).itemsize, oh, ow, _how(node.attrs))
    builder.step("b8_resize_nearest_nhwc", *args, units=n * oh)


LOWERINGS: dict[Op, Lower] = {ops.RESIZE_BILINEAR: resize_bilinear, ops.RESIZE_NEAREST: resize_nearest}
