"""Bilinear resampling of images."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Target, groups_for, read, write
from webinfer.backends.webgpu.lowerings import described
from webinfer.backends.webgpu.lowerings.conversion import ints
from webinfer.codegen.prelude import u32
from webinfer.dtypes import DType, round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node
from webinfer.ops.resize import ResizeAttrs


def resize_bilinear(node: Node, target: Target) -> list[Dispatch]:
    """The described kernel, but resize_bilinear_quantized.wgsl for 8-bit tensors.

    Raises:  UnsupportedOpError for other integers
    """
    if node.required_input(0).type.dtype.is_float:
        return described.lower(node, target)
    return [_resize_quantized(node, target)]


def _taps(size: int, count: int, a: ResizeAttrs) -> list[int]:
    """For each output sample of an axis: its first source sample, and the weight of the second in 2048ths."""
    out: list[int] = []
    aligned = a.align_corners and count > 1
    scale = round_to_f32((size - 1) / (count - 1)) if aligned else round_to_f32(size / count)
    half = 0.5 if a.half_pixel_centers and not aligned else 0.0
    for o in range(count):
        at = min(max(round_to_f32(round_to_f32((o + half) * scale) - half), 0.0), float(size - 1))
        out += [int(at), round(round_to_f32(at - int(at)) * 2048.0)]
    return out


def _resize_quantized(node: Node, target: Target) -> Dispatch:
    x, y, a = node.required_input(0), node.output, node.attrs
    if x.type.dtype not in (DType.INT8, DType.UINT8):
        raise UnsupportedOpError([f"resize_bilinear of {x.type}"])
    _, ih, iw, c = x.type.shape
    _, oh, ow, _ = y.type.shape
    rows, columns = ints(_taps(ih, oh, a)), ints(_taps(iw, ow, a))
    bindings = (read("x", x), read("rows", rows), read("columns", columns), write("y", y))
    params = u32(count=y.type.size, ih=ih, iw=iw, oh=oh, ow=ow, c=c)
    groups = groups_for(-(-y.type.size // 4), target)
    return Dispatch("resize_bilinear_quantized", {"workgroup": WORKGROUP}, bindings, params, groups, "11-bit weights")
