"""Pooling over windows: floats in vectors, maxima of every integer, averages of quantised integers."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.cast import compute_dtype
from webinfer.backends.wasm.lowerings.windows import image_sizes, window, window_of
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Op
from webinfer.kernel_constants import POOL_UNIT_CHANNELS
from webinfer.lowering.affine import stored_bounds
from webinfer.ops import pool as ops
from webinfer.ops.activation import Activation, integer_bounds
from webinfer.plan.blocks import Arguments

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


def _images(node: Node, builder: Builder) -> Arguments:
    """x and y: where they lie, how large they are, how many channels they have."""
    x, y = node.required_input(0), node.outputs[0]
    refs: Arguments = {"x": builder.ref(x), "y": builder.ref(y)}
    return refs | {"c": x.type.shape[3]} | image_sizes(x.type, y.type)


def _pixels(node: Node) -> int:
    n, oh, ow, _ = node.outputs[0].type.shape
    return n * oh * ow


def _float_bounds(node: Node) -> Arguments:
    lowest, highest = _bounds(node)
    return {"lo": lowest, "hi": highest}


def _bounds(node: Node) -> tuple[float, float]:
    activation: Activation = node.attrs.activation
    if activation.bounds is None:
        raise UnsupportedOpError([f"activation {activation} after pooling; apply it as an operator of its own"])
    return activation.bounds


def pool2d(node: Node, builder: Builder) -> None:
    """An average, a root of squares or a maximum of each window."""
    x, a = node.required_input(0), node.attrs
    kind, dtype = KINDS[node.op], compute_dtype(x)
    groups = (_images(node, builder), window_of(node, a.window))
    if dtype is F32:
        blocks = -(-x.type.shape[3] // POOL_UNIT_CHANNELS)
        kernel = f"f32_{kind}_pool2d_nhwc"
        builder.step(kernel, *groups, _float_bounds(node), count_padding=0, units=_pixels(node) * blocks)
        return
    known = SHORT if kind == "max" else {d: SHORT[d] for d in AVERAGED} if kind == "average" and x.type.quant else {}
    if dtype not in known:
        raise UnsupportedOpError([f"no {kind} pooling kernel for {x.type}; cast to float32 first"])
    builder.step(f"{known[dtype]}_{kind}_pool2d_nhwc", *groups, _integer_bounds(node), units=_pixels(node))


def _integer_bounds(node: Node) -> Arguments:
    """The clamp in stored integers; types without a clamping kernel must not need one."""
    type, (low, high) = node.output.type, node.output.type.dtype.range
    lo, hi = stored_bounds(type, node.attrs.activation) if type.quant else integer_bounds(*_bounds(node), low, high)
    if type.dtype not in BOUNDED and (lo, hi) != (low, high):
        raise UnsupportedOpError([f"activation {node.attrs.activation} on {type}; apply it as an operator of its own"])
    return {"lo": lo, "hi": hi} if type.dtype in BOUNDED else {"lo": 0, "hi": 0}


def max_pool_with_argmax2d(node: Node, builder: Builder) -> None:
    """Maxima, and the taps that they stood at."""
    x, a = node.required_input(0), node.attrs
    if compute_dtype(x) is not F32:
        raise UnsupportedOpError([f"no pooling kernel with taps for {x.type}; cast to float32 first"])
    builder.step(
        "f32_max_pool_with_argmax2d_nhwc",
        _images(node, builder), window(a.window, a.stride, (a.pads[0], a.pads[2]), dilation=None), _float_bounds(node),
        taps=builder.ref(node.outputs[1]), by_columns=int(a.by_columns), units=_pixels(node),
    )  # fmt: skip


def max_unpool2d(node: Node, builder: Builder) -> None:
    """Values put back at the taps that they came from; the rest is zero."""
    x, taps, a = node.required_input(0), node.required_input(1), node.attrs
    n, ih, iw, c = x.type.shape
    builder.step(
        f"b{8 * compute_dtype(x).itemsize}_max_unpool2d_nhwc",
        x=builder.ref(x), taps=builder.ref(taps), y=builder.ref(node.output), ih=ih, iw=iw, c=c,
        oh=a.size[0], ow=a.size[1], kh=a.window[0], kw=a.window[1], sh=a.stride[0], sw=a.stride[1],
        pad_top=a.pads[0], pad_left=a.pads[1], units=n,
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {
    ops.AVERAGE_POOL2D: pool2d,
    ops.L2_POOL2D: pool2d,
    ops.MAX_POOL2D: pool2d,
    ops.MAX_POOL_WITH_ARGMAX2D: max_pool_with_argmax2d,
    ops.MAX_UNPOOL2D: max_unpool2d,
}
