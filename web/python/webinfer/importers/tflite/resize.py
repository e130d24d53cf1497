"""TFLite's resampling of images."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import resize


def _resize_attrs(op: Operation) -> resize.ResizeAttrs:
    size = op.integers(1)
    if len(size) != 2:
        op.fail(f"size is {size}, must be two numbers")
    return resize.ResizeAttrs((size[0], size[1]), op.flag("align_corners"), op.flag("half_pixel_centers"))


def _resize_bilinear(op: Operation) -> Value:
    return op.emit(resize.RESIZE_BILINEAR, [op.value(0)], _resize_attrs(op))


def _resize_nearest(op: Operation) -> Value:
    return op.emit(resize.RESIZE_NEAREST, [op.value(0)], _resize_attrs(op))


CONVERTERS: dict[str, Row] = {
    "RESIZE_BILINEAR": (_resize_bilinear, "ResizeBilinearOptions"),
    "RESIZE_NEAREST_NEIGHBOR": (_resize_nearest, "ResizeNearestNeighborOptions"),
}
