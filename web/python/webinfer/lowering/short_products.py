"""Convolutions and matrix products of 16-bit data with 8-bit weights: 64-bit sums, as TFLite has them."""

from __future__ import annotations

from webinfer.dtypes import DType, round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node
from webinfer.lowering.affine import fixed_factor, is_stored, narrow_factor, scale_of, zeros_of
from webinfer.ops import conv as ops
from webinfer.ops import matmul as matmul_ops

Sizes = dict[str, int]
HALVES_UP, HALVES_AWAY = 1, 2  # how sums of 32 bits are rounded; 0: they have 64


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
    if bias is not None and bias.type.dtype not in (DType.INT32, DType.INT64):
        raise UnsupportedOpError([f"bias is {bias.type.dtype}, 16-bit data need int32 or int64"])
    if any(v is not None for v in node.inputs[3:]):
        raise UnsupportedOpError(["residual and slope are not defined on quantised tensors"])


def rounding_of(node: Node) -> int:
    """How sums are scaled. TFLite's kernels have 32 bits beside a bias of int32, matrix products also without one."""
    bias, is_product = node.optional_input(2), node.op is matmul_ops.MATMUL and not is_of_short_matrices(node)
    if bias.type.dtype is not DType.INT32 if bias is not None else not is_product:
        return 0
    return HALVES_AWAY if node.op is ops.CONV_TRANSPOSE2D else HALVES_UP


def product_factors(node: Node) -> list[tuple[int, int]]:
    """What sums of each channel are multiplied by, as `rounding_of` the node wants it: x's scale times w's over y's.

    Matrix products round less than the others: with 64 bits they multiply by more of the factor, with 32 bits they
    round the product of two scales.
    """
    x, w, y = node.required_input(0).type, node.required_input(1).type, node.output.type
    assert w.quant is not None
    channels, narrow = y.shape[-1] if y.shape else 1, rounding_of(node) > 0
    scales = [scale_of(x) * round_to_f32(s) for s in w.quant.scales]
    is_product = node.op is matmul_ops.MATMUL and not is_of_short_matrices(node)
    if len(scales) == 1:
        scales = [round_to_f32(scales[0]) if narrow and is_product else scales[0]] * channels
    factors = [scale / scale_of(y) for scale in scales]
    if narrow:
        return list(map(narrow_factor, factors))
    bits = min(31, 62 - (22 + x.shape[-1].bit_length())) if is_product else 15  # what 64 bits hold beside the sums
    return [fixed_factor(factor, bits) for factor in factors]


def is_of_short_matrices(node: Node) -> bool:
    """Whether the node multiplies two matrices of int16."""
    return node.op is matmul_ops.MATMUL and node.required_input(1).type.dtype is DType.INT16


def short_matrices(node: Node) -> tuple[Sizes, tuple[int, int]]:
    """The sizes and steps of a product of int16 matrices, by name, and the multiplier and shift of its sums.

    Raises:  UnsupportedOpError for zero points, a bias and several scales
    """
    x, w, y, a = node.required_input(0), node.required_input(1), node.output, node.attrs
    if y.type.dtype is not DType.INT16 or any(zero for v in (x, w, y) for zero in zeros_of(v.type, 1)):
        raise UnsupportedOpError([f"a product of {x.type} and {w.type} that gives {y.type}; int16 without zero points"])
    if any(v is not None for v in node.inputs[2:]) or w.type.quant is None or len(w.type.quant.scales) > 1:
        raise UnsupportedOpError(["a bias or a scale for each column beside two matrices of int16"])
    m, k, n = matmul_ops.matrix_sizes([x.type, w.type], a)
    row, step = (1, m) if a.transpose_a else (k, 1)
    column, w_step = (k, 1) if a.transpose_b else (1, n)
    sizes = {"k": k, "n": n, "x_row": row, "x_step": step, "w_column": column, "w_step": w_step}
    return sizes, product_factors(node)[0]


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
