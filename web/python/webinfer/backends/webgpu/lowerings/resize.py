"""Resampling of images: bilinear and nearest."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Target, groups_for, read, write
from webinfer.backends.webgpu.lowerings.conversion import ints
from webinfer.codegen.elements import bits_of
from webinfer.codegen.prelude import f32, u32
from webinfer.dtypes import DType, round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node
from webinfer.ops.resize import ResizeAttrs


def _scale(inputs: int, outputs: int, align_corners: bool) -> float:
    return (inputs - 1) / (outputs - 1) if align_corners and outputs > 1 else inputs / outputs


def resize_bilinear(node: Node, target: Target) -> list[Dispatch]:
    """resize_bilinear_vec4.wgsl where channels come in quads, else resize_bilinear.wgsl.

    resize_bilinear_quantized.wgsl for 8-bit tensors.

    Raises:  UnsupportedOpError for other integers
    """
    x, y, a = node.required_input(0), node.output, node.attrs
    if not x.type.dtype.is_float:
        return [_resize_quantized(node, target)]
    _, ih, iw, c = x.type.shape
    _, oh, ow, _ = y.type.shape
    params = (
        *u32(count=y.type.size, ih=ih, iw=iw, oh=oh, ow=ow, c=c),
        *f32(scale_h=_scale(ih, oh, a.align_corners), scale_w=_scale(iw, ow, a.align_corners)),
        *f32(offset=0.5 if a.half_pixel_centers else 0.0),
    )
    shader = "resize_bilinear" if c % 4 else "resize_bilinear_vec4"
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch(shader, {"workgroup": WORKGROUP}, (read("x", x), write("y", y)), params, groups)]


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


def resize_nearest(node: Node, target: Target) -> list[Dispatch]:
    """resize_nearest.wgsl, on the bits of the elements."""
    x, y = node.required_input(0), node.output
    _, ih, iw, c = x.type.shape
    _, oh, ow, _ = y.type.shape
    scale_h, scale_w, before, after = nearest_numbers(node)
    params = (
        *u32(count=y.type.size, ih=ih, iw=iw, oh=oh, ow=ow, c=c),
        *f32(scale_h=scale_h, scale_w=scale_w, before=before, after=after),
    )
    bits = bits_of(x.type.dtype)
    groups = groups_for(-(-y.type.size // 4), target)
    bindings = (read("x", x, bits), write("y", y, bits))
    return [Dispatch("resize_nearest", {"workgroup": WORKGROUP}, bindings, params, groups)]


def nearest_numbers(node: Node) -> tuple[float, float, float, float]:
    """Both scales of a nearest resize, and what is added before and after scaling a position."""
    _, ih, iw, _ = node.required_input(0).type.shape
    _, oh, ow, _ = node.output.type.shape
    a: ResizeAttrs = node.attrs
    scales = _scale(ih, oh, a.align_corners), _scale(iw, ow, a.align_corners)
    return (*scales, 0.5 if a.half_pixel_centers else 0.0, 0.5 if a.align_corners else 0.0)
