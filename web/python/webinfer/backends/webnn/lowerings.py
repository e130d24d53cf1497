"""How each operator becomes calls of MLGraphBuilder. Images are NHWC, as everywhere in the engine."""

from __future__ import annotations

import struct
from typing import Any

from webinfer.backends.webnn.emitter import Emitter, Lower, Operand, type_of
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Op
from webinfer.ops import OPS, conv, gather, matmul, pool, reduce, resize, softmax
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops.activation import Activation

UNARY: dict[Op, str] = {
    ew.ABS: "abs", ew.CEIL: "ceil", ew.COS: "cos", ew.ERF: "erf", ew.EXP: "exp", ew.FLOOR: "floor", ew.GELU: "gelu",
    ew.HARD_SWISH: "hardSwish", ew.IDENTITY: "identity", ew.LOG: "log", ew.NEG: "neg", ew.RECIPROCAL: "reciprocal",
    ew.RELU: "relu", ew.ROUND_EVEN: "roundEven", ew.SIGMOID: "sigmoid", ew.SIGN: "sign", ew.SIN: "sin",
    ew.SOFTPLUS: "softplus", ew.SOFTSIGN: "softsign", ew.SQRT: "sqrt", ew.TAN: "tan", ew.TANH: "tanh",
}  # fmt: skip
PARAMETRIC: dict[Op, tuple[str, str, str]] = {
    ew.CLAMP: ("clamp", "minValue", "maxValue"), ew.ELU: ("elu", "alpha", ""),
    ew.HARD_SIGMOID: ("hardSigmoid", "alpha", "beta"), ew.LEAKY_RELU: ("leakyRelu", "alpha", ""),
    ew.LINEAR: ("linear", "alpha", "beta"),
}  # fmt: skip
BINARY: dict[Op, str] = {
    ew.ADD: "add", ew.DIV: "div", ew.MAXIMUM: "max", ew.MINIMUM: "min", ew.MUL: "mul", ew.POW: "pow",
    ew.PRELU: "prelu", ew.SUB: "sub",
}  # fmt: skip
COMPARISON: dict[Op, str] = {
    ew.EQUAL: "equal", ew.GREATER: "greater", ew.GREATER_EQUAL: "greaterOrEqual", ew.LESS: "lesser",
    ew.LESS_EQUAL: "lesserOrEqual", ew.NOT_EQUAL: "notEqual",
}  # fmt: skip
LOGICAL: dict[Op, str] = {ew.LOGICAL_AND: "logicalAnd", ew.LOGICAL_OR: "logicalOr", ew.LOGICAL_XOR: "logicalXor"}
REDUCTION = {
    reduce.REDUCE_L1: "reduceL1", reduce.REDUCE_L2: "reduceL2", reduce.REDUCE_LOG_SUM: "reduceLogSum",
    reduce.REDUCE_LOG_SUM_EXP: "reduceLogSumExp", reduce.REDUCE_MAX: "reduceMax", reduce.REDUCE_MEAN: "reduceMean",
    reduce.REDUCE_MIN: "reduceMin", reduce.REDUCE_PRODUCT: "reduceProduct", reduce.REDUCE_SUM: "reduceSum",
    reduce.REDUCE_SUM_SQUARE: "reduceSumSquare",
}  # fmt: skip
POOLS = {pool.AVERAGE_POOL2D: "averagePool2d", pool.L2_POOL2D: "l2Pool2d", pool.MAX_POOL2D: "maxPool2d"}
MODES = {"constant": "constant", "edge": "edge", "reflect": "reflection", "symmetric": "symmetric"}
ACTIVATIONS = {
    Activation.RELU: "relu", Activation.HARD_SWISH: "hardSwish", Activation.SIGMOID: "sigmoid", Activation.TANH: "tanh",
}  # fmt: skip


def _inputs(e: Emitter, node: Node) -> list[Operand]:
    return [e.operand(value) for value in node.inputs if value is not None]


def _activated(e: Emitter, y: Operand, node: Node, slope: Operand | None = None) -> Operand:
    kind = node.attrs.activation
    if kind is Activation.NONE:
        return y
    if kind in ACTIVATIONS:
        return e.call(ACTIVATIONS[kind], y)
    if kind is Activation.PRELU:
        return e.call("prelu", y, slope)
    if kind is Activation.SILU:
        return e.call("mul", y, e.call("sigmoid", y))
    low, high = kind.bounds
    return e.call("clamp", y, minValue=low, maxValue=high)


def _unary(e: Emitter, node: Node) -> Operand:
    return e.call(UNARY[node.op], *_inputs(e, node))


def _parametric(e: Emitter, node: Node) -> Operand:
    method, *names = PARAMETRIC[node.op]
    given: dict[str, Any] = {
        name: number for name, number in zip(names, (node.attrs.a, node.attrs.b), strict=True) if name
    }
    return e.call(method, *_inputs(e, node), **given)


def _clamped(e: Emitter, node: Node) -> Operand:
    low, high = (0.0, 6.0) if node.op is ew.RELU6 else (-1.0, 1.0)
    return e.call("clamp", *_inputs(e, node), minValue=low, maxValue=high)


def _binary(e: Emitter, node: Node) -> Operand:
    return _activated(e, e.call(BINARY[node.op], *_inputs(e, node)), node)


def _comparison(e: Emitter, node: Node) -> Operand:
    return e.call({**COMPARISON, **LOGICAL}[node.op], *_inputs(e, node), gives="uint8")


def _square(e: Emitter, node: Node) -> Operand:
    (x,) = _inputs(e, node)
    return e.call("mul", x, x)


def _where(e: Emitter, node: Node) -> Operand:
    condition, yes, no = _inputs(e, node)
    return e.call("where", condition, yes, no, gives=yes.dtype)


def _cast(e: Emitter, node: Node) -> Operand:
    x, y = node.required_input(0).type.dtype, node.output.type.dtype
    if y.value == "bool" or (x.is_float and not y.is_float):
        raise UnsupportedOpError([f"a cast of {x} to {y}: WebNN leaves open what becomes of numbers beyond the type"])
    return e.cast(_inputs(e, node)[0], type_of(node.output.type))


def _dequantize(e: Emitter, node: Node) -> Operand:
    """(stored - zero point) * scale, with one scale or one for each position of an axis."""
    x, value = e.operand(node.required_input(0)), node.required_input(0)
    quant = value.type.quant
    if quant is None:
        return e.cast(x, type_of(node.output.type))
    shape = [1] * value.type.rank
    if quant.axis is not None:
        shape[quant.axis] = len(quant.scales)
    count, letter = len(quant.scales), value.type.dtype.letter
    points = quant.zero_points * (count // len(quant.zero_points))
    scale = e.numbers(struct.pack(f"<{count}f", *quant.scales), tuple(shape), "float32")
    zero = e.numbers(struct.pack(f"<{count}{letter}", *points), tuple(shape), x.dtype)
    return e.call("dequantizeLinear", x, scale, zero, gives="float32")


def _with_residual(e: Emitter, y: Operand, node: Node) -> Operand:
    """What fusion put into a convolution: a residual, which may have fewer channels, and an activation."""
    residual, slope = node.optional_input(3), node.optional_input(4)
    if residual is not None:
        x = e.operand(residual)
        missing = node.output.type.shape[3] - residual.type.shape[3]
        if missing:
            x = e.call("pad", x, [0, 0, 0, 0], [0, 0, 0, missing])
        y = e.call("add", y, x)
    if slope is None:
        return _activated(e, y, node)
    flat = e.call("reshape", e.operand(slope), [slope.type.size])
    return _activated(e, y, node, flat)


def _window(node: Node) -> dict[str, Any]:
    a = node.attrs
    return {"padding": list(a.pads), "strides": list(a.stride), "dilations": list(a.dilation)}


def _bias(e: Emitter, node: Node) -> dict[str, Operand]:
    bias = node.optional_input(2)
    if bias is None:
        return {}
    found = e.operand(bias)
    return {"bias": found if bias.type.rank == 1 else e.call("reshape", found, [bias.type.size])}


def _conv2d(e: Emitter, node: Node) -> Operand:
    x, w = (e.operand(node.required_input(i)) for i in (0, 1))
    more: dict[str, Any] = {
        "groups": node.attrs.groups,
        "inputLayout": "nhwc",
        "filterLayout": "ohwi",
        **_bias(e, node),
    }
    return _with_residual(e, e.call("conv2d", x, w, **_window(node), **more), node)


def _depthwise(e: Emitter, node: Node) -> Operand:
    x, w = (e.operand(node.required_input(i)) for i in (0, 1))
    groups = node.required_input(0).type.shape[3]
    more: dict[str, Any] = {"groups": groups, "inputLayout": "nhwc", "filterLayout": "ihwo", **_bias(e, node)}
    return _with_residual(e, e.call("conv2d", x, w, **_window(node), **more), node)


def _transposed(e: Emitter, node: Node) -> Operand:
    x, w = (e.operand(node.required_input(i)) for i in (0, 1))
    w = e.call("transpose", w, permutation=[3, 1, 2, 0])  # to the input's channels, height, width, channels of a group
    w = e.call("transpose", w, permutation=[0, 3, 1, 2])
    more: dict[str, Any] = {
        "groups": node.attrs.groups,
        "inputLayout": "nhwc",
        "filterLayout": "iohw",
        **_bias(e, node),
    }
    extra: dict[str, Any] = {"outputPadding": list(node.attrs.output_padding)}
    return _with_residual(e, e.call("convTranspose2d", x, w, **_window(node), **more, **extra), node)


def _pool(e: Emitter, node: Node) -> Operand:
    sizes: dict[str, Any] = {"windowDimensions": list(node.attrs.window), "layout": "nhwc"}
    return _activated(e, e.call(POOLS[node.op], *_inputs(e, node), **_window(node), **sizes), node)


def _matmul(e: Emitter, node: Node) -> Operand:
    a, b = (e.operand(node.required_input(i)) for i in (0, 1))
    for x, i, turned in ((a, 0, node.attrs.transpose_a), (b, 1, node.attrs.transpose_b)):
        rank = node.required_input(i).type.rank
        if rank < 2:
            raise UnsupportedOpError([f"a matrix product of rank {rank}"])
        if turned:
            x = e.call("transpose", x, permutation=[*range(rank - 2), rank - 1, rank - 2])
            a, b = (x, b) if i == 0 else (a, x)
    y = e.call("matmul", a, b)
    for i in (2, 3):
        extra = node.optional_input(i)
        y = y if extra is None else e.call("add", y, e.operand(extra))
    return _activated(e, y, node)


def _reduction(e: Emitter, node: Node) -> Operand:
    options: dict[str, Any] = {"axes": list(node.attrs.axes), "keepDimensions": node.attrs.keep_dims}
    return e.call(REDUCTION[node.op], *_inputs(e, node), **options)


def _softmax(e: Emitter, node: Node) -> Operand:
    (x,) = _inputs(e, node)
    if node.attrs.beta != 1.0:
        x = e.call("mul", x, e.numbers(struct.pack("<f", node.attrs.beta), (), "float32"))
    return e.call("softmax", x, node.attrs.axis)


def _resize(e: Emitter, node: Node) -> Operand:
    if not node.attrs.half_pixel_centers or node.attrs.align_corners:
        raise UnsupportedOpError(["pixels that are not counted from their centres"])
    mode = "linear" if node.op is resize.RESIZE_BILINEAR else "nearest-neighbor"
    return e.call("resample2d", *_inputs(e, node), mode=mode, sizes=list(node.attrs.size), axes=[1, 2])


def _pad(e: Emitter, node: Node) -> Operand:
    a = node.attrs
    if min(*a.before, *a.after, 0) < 0:
        raise UnsupportedOpError(["padding that cuts off"])
    return e.call("pad", *_inputs(e, node), list(a.before), list(a.after), mode=MODES[a.mode], value=a.value)


def _slice(e: Emitter, node: Node) -> Operand:
    a = node.attrs
    if min(a.steps, default=1) < 1:
        raise UnsupportedOpError(["a slice that runs backwards"])
    windows = [(size - 1) * step + 1 for size, step in zip(a.sizes, a.steps, strict=True)]
    return e.call("slice", *_inputs(e, node), list(a.starts), windows, strides=list(a.steps))


def _gather(e: Emitter, node: Node) -> Operand:
    if getattr(node.attrs, "batch_dims", 0):
        raise UnsupportedOpError(["positions that differ by batch"])
    return e.call("gather", *_inputs(e, node), axis=node.attrs.axis)


_FAMILIES: dict[Op, Lower] = {
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(PARAMETRIC, _parametric),
    **dict.fromkeys((ew.RELU6, ew.RELU_N1_TO_1), _clamped),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys((*COMPARISON, *LOGICAL), _comparison),
    **dict.fromkeys(POOLS, _pool),
    **dict.fromkeys(REDUCTION, _reduction),
    **dict.fromkeys((resize.RESIZE_BILINEAR, resize.RESIZE_NEAREST), _resize),
    conv.CONV2D: _conv2d,
    conv.CONV_TRANSPOSE2D: _transposed,
    conv.DEPTHWISE_CONV2D: _depthwise,
    ew.CAST: _cast,
    ew.DEQUANTIZE: _dequantize,
    ew.SQUARE: _square,
    ew.WHERE: _where,
    gather.GATHER: _gather,
    matmul.MATMUL: _matmul,
    mv.CONCAT: lambda e, node: e.call("concat", _inputs(e, node), node.attrs.axis),
    mv.EXPAND: lambda e, node: e.call("expand", *_inputs(e, node), list(node.attrs.shape)),
    mv.PAD: _pad,
    mv.RESHAPE: lambda e, node: e.call("reshape", *_inputs(e, node), list(node.attrs.shape)),
    mv.REVERSE: lambda e, node: e.call("reverse", *_inputs(e, node), axes=list(node.attrs.axes)),
    mv.SLICE: _slice,
    mv.TILE: lambda e, node: e.call("tile", *_inputs(e, node), list(node.attrs.repeats)),
    mv.TRANSPOSE: lambda e, node: e.call("transpose", *_inputs(e, node), permutation=list(node.attrs.perm)),
    softmax.SOFTMAX: _softmax,
}
_SORTED = sorted(OPS.values(), key=lambda op: op.name)
LOWERINGS: dict[Op, Lower] = {op: _FAMILIES[op] for op in _SORTED if op in _FAMILIES}
UNSUPPORTED: dict[Op, str] = {op: "WebNN has no such operator" for op in _SORTED if op not in _FAMILIES}
