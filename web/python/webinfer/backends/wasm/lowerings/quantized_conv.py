"""Convolutions and matrix products of 8-bit tensors: exact integer sums, one rounding at the end."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings import quantized_winograd
from webinfer.backends.wasm.lowerings.affine import EIGHT_BIT, byte_zero, flip_of, result_args
from webinfer.backends.wasm.lowerings.each_product import batch_of, each_product, matrices_of
from webinfer.backends.wasm.lowerings.matmul import transposed
from webinfer.backends.wasm.lowerings.movement import fill, strided_copy
from webinfer.backends.wasm.lowerings.quantized_weights import ONE, Weights, pack
from webinfer.backends.wasm.lowerings.short_products import with_short_data
from webinfer.backends.wasm.lowerings.windows import geometry_of, window, window_of
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Op, Value
from webinfer.kernel_constants import (
    Q8_COLUMNS,
    Q8_MAX_TAPS,
    Q8_ROWS,
    Q8_TAPS_3X3_S1,
    Q8_TAPS_3X3_S2,
)
from webinfer.lowering.affine import is_stored
from webinfer.ops import conv as ops
from webinfer.ops import matmul as matmul_ops
from webinfer.ops import stored_matmul as stored_matmul_ops
from webinfer.ops.strides import StridedCopy, coalesce, row_major
from webinfer.plan.blocks import Arguments, Ref

_TAPS_3X3 = {1: Q8_TAPS_3X3_S1, 2: Q8_TAPS_3X3_S2}  # by stride


def require_bytes(node: Node) -> None:
    """Raises UnsupportedOpError unless data, weights and result are 8-bit and the bias is int32."""
    x, w, bias = [*node.inputs, None][:3]
    y = node.output
    for value in (x, w, y):
        if value is None or not is_stored(value.type) or value.type.dtype not in EIGHT_BIT:
            raise UnsupportedOpError([f"no integer kernel for {value and value.type}; data and weights must be 8-bit"])
    if bias is not None and bias.type.dtype is not DType.INT32:
        raise UnsupportedOpError([f"bias is {bias.type.dtype}, integer kernels need int32"])
    if any(v is not None for v in node.inputs[3:]):
        raise UnsupportedOpError(["residual and slope are not defined on quantised tensors"])


def _convolve(
    node: Node,
    builder: Builder,
    geometry: Arguments,
    pixels: int,
    source: Ref,
    target: Ref,
    packed: Ref,
    ci: int,
    co: int,
) -> None:
    """One dense convolution of `ci` channels into `co`; `geometry` has images, window and channels of whole pixels."""
    x = node.required_input(0).type
    builder.step(
        "q8_conv2d_nhwc", geometry, result_args(node.output.type, node.attrs.activation),
        x=source, x_zero=byte_zero(x), x_flip=flip_of(x), ci=ci, w=packed, y=target, co=co,
        units=-(-pixels // Q8_ROWS),
    )  # fmt: skip
    builder.because(f"8-bit, {Q8_ROWS}x{Q8_COLUMNS} tile, {builder.isa} build")


def conv2d(node: Node, builder: Builder) -> None:
    """A convolution, group by group."""
    require_bytes(node)
    x, y, a = node.required_input(0), node.output, node.attrs
    co, kh, kw, ci = node.required_input(1).type.shape
    if quantized_winograd.pays(node, builder):
        return quantized_winograd.convolve(node, builder)
    strides: Arguments = {"x_stride": x.type.shape[3], "y_stride": co}
    geometry = geometry_of(node, (kh, kw)) | strides
    pixels, part, depth = math.prod(y.type.shape[:-1]), co // a.groups, kh * kw * ci
    for g in range(a.groups):
        weights = Weights(part, kh * kw, ci, depth, ci, 1, g * part * depth, g * part)
        packed = pack(node, builder, weights)
        _convolve(node, builder, geometry, pixels, builder.ref(x) + g * ci, builder.ref(y) + g * part, packed, ci, part)


def depthwise_conv2d(node: Node, builder: Builder) -> None:
    """A depthwise convolution; inputs with several outputs are copied first."""
    require_bytes(node)
    x, y, a = node.required_input(0), node.output, node.attrs
    _, kh, kw, co = node.required_input(1).type.shape
    (n, ih, iw, ci), (_, oh, ow, _) = x.type.shape, y.type.shape
    if kh * kw > Q8_MAX_TAPS:
        raise UnsupportedOpError([f"8-bit depthwise window {kh}x{kw}; at most {Q8_MAX_TAPS} taps"])
    source = builder.ref(x)
    if co != ci:  # each output channel gets its own copy of its input channel
        source = builder.scratch(n * ih * iw * co)
        wide = (n * ih * iw * ci, co // ci)
        strided_copy(builder, StridedCopy(0, wide, 0, (1, 0), 0, row_major(wide)), builder.ref(x), source, 1)
    fast = (kh, kw) == (3, 3) and (a.stride[1] == 1 or (a.stride[1], a.dilation[1]) == (2, 1))
    order = _TAPS_3X3[a.stride[1]] if fast else ()
    packed = pack(node, builder, Weights(co, kh * kw, 1, 1, co, 0, order=order, dense=False))
    padding = bytes([byte_zero(x.type) ^ flip_of(x.type)]) * (co * (iw if fast else 1) + Q8_COLUMNS)
    windows = window_of(node, (kh, kw))
    if fast:  # what the kernel's name says is not an argument
        windows = {name: value for name, value in windows.items() if name not in ("kh", "kw", "sw")}
    builder.step(
        f"q8_depthwise_nhwc_3x3_s{a.stride[1]}" if fast else "q8_depthwise_nhwc",
        windows, result_args(y.type, a.activation),
        x=source, x_flip=flip_of(x.type), ih=ih, iw=iw, w=packed, y=builder.ref(y), oh=oh, ow=ow, c=co,
        pad=builder.table(("padding", padding), padding), units=n * oh,
    )  # fmt: skip


def conv_transpose2d(node: Node, builder: Builder) -> None:
    """A convolution over the image with zeros between its pixels, the window turned round."""
    require_bytes(node)
    x, y, a = node.required_input(0), node.output, node.attrs
    part, kh, kw, channels = node.required_input(1).type.shape
    n, oh, ow, co = y.type.shape
    ih, iw = oh + (kh - 1) * a.dilation[0], ow + (kw - 1) * a.dilation[1]
    spread = _spread(builder, x, a, (ih, iw), (kh, kw))
    sizes: Arguments = {"n": n, "ih": ih, "iw": iw, "x_stride": channels, "oh": oh, "ow": ow, "y_stride": co}
    geometry = sizes | window((kh, kw), (1, 1), (0, 0), a.dilation)
    ci, depth = channels // a.groups, kh * kw * channels
    for g in range(a.groups):
        last_tap = (kh * kw - 1) * channels
        weights = Weights(part, kh * kw, ci, depth, -channels, 1, last_tap + g * ci, 0)
        packed = pack(_group(node, g, part), builder, weights)
        _convolve(node, builder, geometry, n * oh * ow, spread + g * ci, builder.ref(y) + g * part, packed, ci, part)


def _group(node: Node, group: int, part: int) -> Node:
    """The node as one group's packing sees it. All groups share the weights' scales, not the bias."""
    if (group == 0 and node.attrs.groups == 1) or len(node.inputs) < 3 or node.inputs[2] is None:
        return node
    raise UnsupportedOpError([f"8-bit transposed convolution with bias in {node.attrs.groups} groups of {part}"])


def _spread(
    builder: Builder, x: Value, a: ops.ConvTranspose2dAttrs, size: tuple[int, int], kernel: tuple[int, int]
) -> Ref:
    """x's pixels `stride` apart in an image of zeros, placed so that a plain convolution reads them."""
    n, ih, iw, c = x.type.shape
    target = builder.scratch(n * size[0] * size[1] * c)
    zero = byte_zero(x.type) - flip_of(x.type)
    fill(builder, target, x.type.dtype, zero, n * size[0] * size[1] * c)
    spans = []
    for axis, count in enumerate((ih, iw)):
        start = (kernel[axis] - 1) * a.dilation[axis] - a.pads[2 * axis]
        step = a.stride[axis]
        first = max(0, -(start // step)) if start < 0 else 0
        last = min(count, (size[axis] - 1 - start) // step + 1)
        spans.append((first, max(last - first, 0), start + first * step))
    (y0, rows, top), (x0, columns, left) = spans
    if not rows or not columns:
        return target
    strides = (size[0] * size[1] * c, a.stride[0] * size[1] * c, a.stride[1] * c, 1)
    part = StridedCopy(
        0, (n, rows, columns, c), (y0 * iw + x0) * c, row_major(x.type.shape), (top * size[1] + left) * c, strides
    )
    strided_copy(builder, coalesce(part), builder.ref(x), target, 1)
    return target


def matmul(node: Node, builder: Builder) -> None:
    """Matrix products: 1x1 convolutions of images one pixel high."""
    require_bytes(node)
    a, b, y, attrs = node.required_input(0), node.required_input(1), node.output, node.attrs
    m, k, n = matmul_ops.matrix_sizes([None if v is None else v.type for v in node.inputs], attrs)
    source = transposed(builder, a, 1) if attrs.transpose_a else builder.ref(a)
    steps = (k, 1) if attrs.transpose_b else (1, n)
    batch, weights = batch_of(a.type.shape, b.type.shape, y.type.shape), Weights(n, 1, k, steps[0], 0, steps[1])
    packed = pack(node, builder, weights, matrices_of(b.type.shape) if batch.shape else ONE)
    rows = m if batch.shape else y.type.size // max(n, 1)
    each_product(
        builder, batch, "q8_conv2d_nhwc", {"a": "x", "b": "w", "y": "y"},
        {"a": (source, m * k), "b": (packed, weights.packed_bytes), "y": (builder.ref(y), m * n)},
        window((1, 1), (1, 1), (0, 0)), result_args(y.type, attrs.activation),
        n=1, ih=1, iw=rows, x_stride=k, oh=1, ow=rows, y_stride=n, x_zero=byte_zero(a.type), x_flip=flip_of(a.type),
        ci=k, co=n, units=-(-rows // Q8_ROWS),
    )  # fmt: skip
    builder.because(f"8-bit, {Q8_ROWS}x{Q8_COLUMNS} tile, {builder.isa} build")


def stored_matmul(node: Node, builder: Builder) -> None:
    """A product of bytes that gives floats."""
    x, y, a = node.required_input(0), node.output, node.attrs
    k, n = x.type.shape[-1], y.type.shape[-1]
    steps = (k, 1) if a.transpose_b else (1, n)
    packed, rows = pack(node, builder, Weights(n, 1, k, steps[0], 0, steps[1])), y.type.size // max(n, 1)
    lo, hi = a.activation.bounds
    builder.step(
        "q8_matmul_f32",
        x=builder.ref(x), w=packed, bias=builder.optional_ref(node.optional_input(2)), y=builder.ref(y), rows=rows, k=k,
        n=n, x_flip=flip_of(x.type), lo=lo, hi=hi, units=-(-rows // Q8_ROWS),
    )  # fmt: skip
    builder.because(f"8-bit, {Q8_ROWS}x{Q8_COLUMNS} tile, {builder.isa} build")


PLAIN: dict[Op, Lower] = {stored_matmul_ops.STORED_MATMUL: stored_matmul}
QUANTIZED: dict[Op, Lower] = {
    ops.CONV2D: with_short_data(conv2d),
    ops.CONV_TRANSPOSE2D: with_short_data(conv_transpose2d),
    ops.DEPTHWISE_CONV2D: with_short_data(depthwise_conv2d),
    matmul_ops.MATMUL: with_short_data(matmul),
}
