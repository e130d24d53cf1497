"""Resampling of images: floats and quantised bytes bilinear, every type nearest."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.cast import compute_dtype
from webinfer.backends.wasm.lowerings.windows import image_sizes
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Op, Value
from webinfer.kernel_constants import RESAMPLE_CORNERS, RESAMPLE_HALF_PIXEL, RESAMPLE_PLAIN
from webinfer.ops import resize as ops

BILINEAR = {DType.FLOAT32: "f32", DType.INT8: "i8", DType.UINT8: "u8", DType.INT16: "i16"}


def _how(a: ops.ResizeAttrs) -> int:
    """Where output samples lie, as the kernels are told."""
    if a.align_corners:
        return RESAMPLE_CORNERS
    return RESAMPLE_HALF_PIXEL if a.half_pixel_centers else RESAMPLE_PLAIN


def _rows(y: Value) -> int:
    return y.type.shape[0] * y.type.shape[1]


def resize_bilinear(node: Node, builder: Builder) -> None:
    """Pixels between pixels, mixed by distance."""
    x, y = node.required_input(0), node.output
    kind = BILINEAR.get(compute_dtype(x))
    if kind is None:
        raise UnsupportedOpError([f"no bilinear kernel for {x.type}; cast to float32 first"])
    builder.step(
        f"{kind}_resize_bilinear_nhwc", image_sizes(x.type, y.type),
        x=builder.ref(x), y=builder.ref(y), c=x.type.shape[3], how=_how(node.attrs), units=_rows(y),
    )  # fmt: skip


def resize_nearest(node: Node, builder: Builder) -> None:
    """The nearest pixel, of any type."""
    x, y = node.required_input(0), node.output
    c_bytes = x.type.shape[3] * compute_dtype(x).itemsize
    builder.step(
        "b8_resize_nearest_nhwc", image_sizes(x.type, y.type),
        x=builder.ref(x), y=builder.ref(y), c_bytes=c_bytes, how=_how(node.attrs), units=_rows(y),
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {ops.RESIZE_BILINEAR: resize_bilinear, ops.RESIZE_NEAREST: resize_nearest}
