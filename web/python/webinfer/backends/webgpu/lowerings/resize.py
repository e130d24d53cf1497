"""Bilinear resampling of images."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import Dispatch, Target
from webinfer.backends.webgpu.lowerings import described
from webinfer.backends.webgpu.lowerings.conversion import ints
from webinfer.dtypes import DType, round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.expr import formula as f
from webinfer.expr.formula import Formula
from webinfer.expr.kernel import Kernel, Kind, Tensor, axes, lengths, shift_right, sizes
from webinfer.graph.ir import Node
from webinfer.ops.resize import ResizeAttrs

UNIT_BITS = 11  # of weights, as XNNPACK has them
UNIT = 1 << UNIT_BITS


def resize_bilinear(node: Node, target: Target) -> list[Dispatch]:
    """The described kernel, another one for 8-bit tensors.

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
        out += [int(at), round(round_to_f32(at - int(at)) * float(UNIT))]
    return out


def _resize_quantized(node: Node, target: Target) -> Dispatch:
    """Bilinear samples of stored integers with weights of 11 bits, ties up."""
    x, y, a = node.required_input(0), node.output, node.attrs
    if x.type.dtype not in (DType.INT8, DType.UINT8):
        raise UnsupportedOpError([f"resize_bilinear of {x.type}"])
    batch, ih, iw, c = lengths(x.type.shape, batch=1, ih=2, iw=3, c=4)
    oh, ow, pair = sizes(oh=a.size[0], ow=a.size[1], pair=2)
    data, (n, oy, ox, i) = Tensor("x", (batch, ih, iw, c), Kind.NUMBER), axes(n=batch, oy=oh, ox=ow, i=c)
    rows, columns = Tensor("rows", (oh, pair), Kind.INDEX), Tensor("columns", (ow, pair), Kind.INDEX)
    (top, down), (left, across) = (rows[oy, 0], rows[oy, 1]), (columns[ox, 0], columns[ox, 1])
    bottom, right = f.min(top + 1, ih - 1), f.min(left + 1, iw - 1)

    def column(ix: Formula) -> Formula:
        above = data[n, top, ix, i]
        return above * UNIT + (data[n, bottom, ix, i] - above) * down

    first = column(left)
    value = shift_right(first * UNIT + (column(right) - first) * across + UNIT * UNIT // 2, 2 * UNIT_BITS)
    kernel = Kernel("resize_quantized", (data, rows, columns), (n, oy, ox, i), value, Kind.NUMBER)
    taps = [ints(_taps(size, count, a)) for size, count in zip(x.type.shape[1:3], a.size, strict=True)]
    return described.dispatch(kernel, (x, *taps), y, target, "11-bit weights")
