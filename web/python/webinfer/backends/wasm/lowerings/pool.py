"""Pooling over windows: floats in vectors, maxima of every integer, averages of quantised integers."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.kernel_constants import POOL_UNIT_CHANNELS
from webinfer.backends.wasm.lowerings.cast import compute_dtype, present
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Op
from webinfer.ops import pool as ops
from webinfer.ops.activation import Activation
from webinfer.plan.blocks import Argument

F32 = DType.FLOAT32
KINDS = {
    ops.AVERAGE_POOL2D: "average", ops.L2_POOL2D: "l2", ops.MAX_POOL2D: "max",
}  # fmt: skip
SHORT = {
    DType.INT8: "i8", DType.INT16: "i16", DType.INT32: "i32", DType.INT64: "i64",
    DType.UINT8: "u8", DType.UINT32: "u32", DType.UINT64: "u64",
}  # fmt: skip
AVERAGED = (DType.INT8, DType.UINT8, DType.INT16)
BOUNDED = (DType.INT8, DType.UINT8, DType.INT16)  # types whose kernels clamp


def _window(node: Node) -> tuple[int, ...]:
    (n, ih, iw, c), (_, oh, ow, _) = present(node.inputs[0]).type.shape, node.outputs[0].type.shape
    return (n, ih, iw, c, oh, ow, *node.attrs.window, *node.attrs.stride)


def _pixels(node: Node) -> int:
    n, oh, ow, _ = node.outputs[0].type.shape
    return n * oh * ow


def _float_bounds(node: Node) -> tuple[float, float]:
    activation: Activation = node.attrs.activation
    if activation.bounds is None:
        raise UnsupportedOpError([f"activation {activation} after pooling; apply it as an operator of its own"])
    return activation.bounds


def pool2d(node: Node, builder: Builder) -> None:
    x, y, a = present(node.inputs[0]), node.output, node.attrs
    kind, dtype = KINDS[node.op], compute_dtype(x)
    head = (builder.ref(x), builder.ref(y), *_window(node), *a.dilation, a.pads[0], a.pads[2])
    if dtype is F32:
        blocks = -(-x.type.shape[3] // POOL_UNIT_CHANNELS)
        builder.step(f"f32_{kind}_pool2d_nhwc", *head, 0, *_float_bounds(node), units=_pixels(node) * blocks)
        return
    known = SHORT if kind == "max" else {d: SHORT[d] for d in AVERAGED} if kind == "average" and x.type.quant else {}
    if dtype not in known:
        raise UnsupportedOpError([f"no {kind} pooling kernel for {x.type}; cast to float32 first"])
    builder.step(f"{known[dtype]}_{kind}_pool2d_nhwc", *head, *_integer_bounds(node), units=_pixels(node))


def _integer_bounds(node: Node) -> tuple[int, int]:
    """The clamp in stored integers; types without a clamping kernel must not need one."""
    type, (lowest, highest) = node.output.type, _float_bounds(node)
    low, high = type.dtype.range
    scale, zero = (type.quant.scales[0], (*type.quant.zero_points, 0)[0]) if type.quant else (1.0, 0)
    lo = max(low, zero + round(lowest / scale)) if math.isfinite(lowest) else low
    hi = min(high, zero + round(highest / scale)) if math.isfinite(highest) else high
    if type.dtype not in BOUNDED and (lo, hi) != (low, high):
        raise UnsupportedOpError([f"activation {node.attrs.activation} on {type}; apply it as an operator of its own"])
    return (lo, hi) if type.dtype in BOUNDED else (0, 0)


def max_pool_with_argmax2d(node: Node, builder: Builder) -> None:
    x, a = present(node.inputs[0]), node.attrs
    if compute_dtype(x) is not F32:
        raise UnsupportedOpError([f"no pooling kernel with taps for {x.type}; cast to float32 first"])
    refs: list[Argument] = [builder.ref(x), *map(builder.ref, node.outputs)]
    args = (*_window(node), a.pads[0], a.pads[2], *_float_bounds(node))
    builder.step("f32_max_pool_with_argmax2d_nhwc", *refs, *args, units=_pixels(node))


def max_unpool2d(node: Node, builder: Builder) -> None:
    x, taps, a = present(node.inputs[0]), present(node.inputs[1]), node.attrs
    n, ih, iw, c = x.type.shape
    kernel = f"b{8 * compute_dtype(x).itemsize}_max_unpool2d_nhwc"
    args = (ih, iw, c, *a.size, a.window[1], *a.stride, *a.pads)
    builder.step(kernel, builder.ref(x), builder.ref(taps), builder.ref(node.output), *args, units=n)


LOWERINGS: dict[Op, Lower] = {
    ops.AVERAGE_POOL2D: pool2d,
    ops.L2_POOL2D: pool2d,
    ops.MAX_POOL2D: pool2d,
    ops.MAX_POOL_WITH_ARGMAX2D: max_pool_with_argmax2d,
    ops.MAX_UNPOOL2D: max_unpool2d,
}
