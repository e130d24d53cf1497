"""Convolutions and matrix products of 16-bit data with 8-bit weights: 64-bit sums, as TFLite has them."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node
from webinfer.lowering.affine import is_stored, zeros_of
from webinfer.ops import conv as ops
from webinfer.ops import matmul as matmul_ops

Sizes = dict[str, int]


def _require_symmetric(node: Node) -> None:
    x, w, bias = [*node.inputs, None][:3]
    y = node.output
    if (
        w is None
        or x is None
        or not is_stored(w.type)
        or w.type.dtype is not DType.INT8
        or y.type.dtype is not x.type.dtype
    ):
        raise UnsupportedOpError([f"no integer kernel for int16 data with {w and w.type} and a result of {y.type}"])
    if any(zero for v in (x, w, y) for zero in zeros_of(v.type, 1)):
        raise UnsupportedOpError(["16-bit data have no kernel with zero points"])
    if bias is not None and bias.type.dtype is not DType.INT64:
        raise UnsupportedOpError([f"bias is {bias.type.dtype}, 16-bit data need int64"])
    if any(v is not None for v in node.inputs[3:]):
        raise UnsupportedOpError(["residual and slope are not defined on quantised tensors"])


def short_geometry(node: Node) -> tuple[Sizes, int]:
    """The sizes and steps of the kernels, by name, and the pixels of the result.

    Raises:  UnsupportedOpError for zero points, biases and forms that files do not have
    """
    _require_symmetric(node)
    x, w, y, a = node.required_input(0).type, node.required_input(1).type, node.output.type, node.attrs
    if node.op is matmul_ops.MATMUL:
        if w.rank != 2 or a.transpose_a or not a.transpose_b:
            raise UnsupportedOpError(["products of 16-bit matrices; only by one transposed matrix of weights"])
        n, k = w.shape
        rows = y.size // max(n, 1)
        sizes: Sizes = {"ih": 1, "iw": rows, "ci": k, "kh": 1, "kw": 1, "oh": 1, "ow": rows, "co": n, "groups": 1}
        steps: Sizes = {"w_out": k, "w_tap": k, "stride_h": 1, "stride_w": 1, "dilation_h": 1, "dilation_w": 1}
        return sizes | steps | {"pad_top": 0, "pad_left": 0, "transposed": 0}, rows
    transposed = node.op is ops.CONV_TRANSPOSE2D
    if transposed and a.groups != 1:
        raise UnsupportedOpError(["a transposed convolution of 16-bit data in groups"])
    (images, ih, iw, ci), (_, oh, ow, co), (_, kh, kw, inner) = x.shape, y.shape, w.shape
    depthwise = node.op is ops.DEPTHWISE_CONV2D
    sizes = {
        "ih": ih, "iw": iw, "ci": ci, "kh": kh, "kw": kw, "oh": oh, "ow": ow, "co": co,
        "groups": ci if depthwise else a.groups,
    }  # fmt: skip
    steps = {
        "w_out": 1 if depthwise else kh * kw * inner, "w_tap": co if depthwise else inner,
        "stride_h": a.stride[0], "stride_w": a.stride[1], "dilation_h": a.dilation[0], "dilation_w": a.dilation[1],
        "pad_top": a.pads[0], "pad_left": a.pads[2],
        "transposed": int(transposed),
    }  # fmt: skip
    return sizes | steps, images * oh * ow
