"""Mixtures of experts of ONNX Runtime: a router chooses k of many two-layer networks for each token.

All experts are computed, some at a time, and those that the router has not chosen count nothing.

Source:  onnxruntime v1.31, MoE and QMoE of com.microsoft
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, TensorType, Value
from webinfer.importers.onnx.elementwise import tanh_gelu
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.packed_bits import in_halves, unpacked
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import packed_matmul as pk
from webinfer.ops import reduce as red
from webinfer.ops import scan
from webinfer.ops import softmax as sm
from webinfer.ops.registry import NoAttrs

WIDTH = 8192  # columns of hidden layers that are computed at a time, so that 512 tokens take 16 MiB
Product = Callable[[Value, int, int, bool], Value]  # x, first and last expert, whether they are summed -> x wᵀ


@dataclass(slots=True)
class Layer:
    """A layer of every expert: its product, its bias [E, N] if it has one, and N."""

    product: Product
    bias: Value | None
    width: int


def _routed(op: Operation, chosen_by: Value, weighed_by: Value | None, alone: bool) -> Value:
    """How much each expert counts for each token: nothing but for the k with the largest scores.

    Scores become shares by a softmax of all, or `alone` of the chosen ones; `weighed_by` has the shares as they are.

    Shapes:  [T, E] -> [T, E]
    """
    count, k = chosen_by.type.shape[1], op.whole("k", 1)
    if op.whole("use_sparse_mixer", 0):
        op.refuse("a sparse mixer")
    if not 1 <= k <= count:
        op.fail(f"{k} of {count} experts")
    logits = op.cast(chosen_by, DType.FLOAT32)
    _, places = op.emit_all(scan.TOP_K, [logits], scan.TopKAttrs(k))
    tokens = logits.type.shape[0]
    hit = op.binary(ew.EQUAL, op.reshape(places, (tokens, k, 1)), op.constant(range(count), DType.INT32, (1, 1, count)))
    hits = op.emit(red.REDUCE_SUM, [op.cast(hit, DType.FLOAT32)], red.ReduceAttrs((1,), False))
    if weighed_by is not None:
        weights = op.binary(ew.MUL, hits, op.cast(weighed_by, DType.FLOAT32))
        return _normalized(op, weights) if op.whole("normalize_routing_weights", 0) else weights
    if alone:
        chosen = op.binary(ew.LESS, op.scalar_of(0.0, DType.FLOAT32), hits)
        logits = op.emit(ew.WHERE, [chosen, logits, op.scalar_of(-math.inf, DType.FLOAT32)], NoAttrs())
    return op.binary(ew.MUL, op.emit(sm.SOFTMAX, [logits], sm.SoftmaxAttrs(1)), hits)


def _normalized(op: Operation, weights: Value) -> Value:
    total = op.emit(red.REDUCE_SUM, [weights], red.ReduceAttrs((1,), True))
    return op.binary(ew.DIV, weights, total)


def _swiglu(op: Operation, gate: Value, linear: Value) -> Value:
    """gate * sigmoid(alpha * gate) * (linear + beta), both within a limit."""
    limit = op.real("swiglu_limit", math.inf)
    gate, linear = op.clamp(gate, -math.inf, limit), op.clamp(linear, -limit, limit)
    curve = op.unary(ew.SIGMOID, op.unary(ew.LINEAR, gate, op.real("activation_alpha", 1.0)))
    shifted = op.unary(ew.LINEAR, linear, 1.0, op.real("activation_beta", 0.0))
    return op.binary(ew.MUL, op.binary(ew.MUL, gate, curve), shifted)


def _activated(op: Operation, x: Value, linear: Value | None) -> Value:
    """The hidden layer behind its activation. Shapes:  x, linear [T, experts, N]"""
    kind = op.chosen("activation_type", ("relu", "gelu", "silu", "swiglu", "identity"), "relu")
    if kind == "swiglu":
        tokens, experts, width = x.type.shape
        fusion = op.whole("swiglu_fusion", 0)
        if fusion == 1:
            pairs = op.reshape(x, (tokens, experts, width // 2, 2))
            return _swiglu(op, op.row(pairs, 3, 0), op.row(pairs, 3, 1))
        if fusion == 2:
            return _swiglu(op, *op.pieces(x, 2, (width // 2, width - width // 2)))
        if linear is None:
            op.fail("swiglu without a third layer")
        return _swiglu(op, x, linear)
    if kind == "gelu":
        x = tanh_gelu(op, x)
    elif kind == "silu":
        x = op.unary(ew.SILU, x, 1.0)
    elif kind == "relu":
        x = op.unary(ew.RELU, x)
    return x if linear is None else op.binary(ew.MUL, x, linear)


def _hidden(op: Operation, x: Value, layer: Layer, first: int, last: int) -> Value:
    """x [T, H] through a layer of some experts -> [T, experts, N]"""
    y = op.reshape(layer.product(x, first, last, False), (x.type.shape[0], last - first, layer.width))
    return y if layer.bias is None else op.binary(ew.ADD, y, op.cut(layer.bias, 0, first, last - first))


def _mixed(op: Operation, layers: Sequence[Layer | None], weights: Value) -> Value:
    """The sum of the experts' results, each as much as it counts. Shapes:  weights [T, E]"""
    x, (first, second, third) = op.value(0), layers
    assert first is not None
    assert second is not None
    rows = op.reshape(x, (op.value(1).type.shape[0], x.type.shape[-1]))
    weights, count = op.cast(weights, x.type.dtype), weights.type.shape[1]
    bias = second.bias
    y = None if bias is None else op.emit(mm.MATMUL, [weights, bias], mm.MatmulAttrs())
    step = max(WIDTH // max(first.width, 1), 1)
    for start, end in pairwise([*range(0, count, step), count]):
        linear = None if third is None else _hidden(op, rows, third, start, end)
        hidden = _activated(op, _hidden(op, rows, first, start, end), linear)
        share = op.reshape(op.cut(weights, 1, start, end - start), (rows.type.shape[0], end - start, 1))
        hidden = op.binary(ew.MUL, hidden, share)
        flat = op.reshape(hidden, (rows.type.shape[0], (end - start) * hidden.type.shape[2]))
        part = second.product(flat, start, end, True)
        y = part if y is None else op.binary(ew.ADD, y, part)
    assert y is not None
    return op.reshape(y, x.type.shape)


def _experts(op: Operation) -> Value:
    """Weights are real numbers [E, N, K]."""

    def layer(key: int) -> Layer:
        w = op.value(key)
        if w.type.rank != 3:
            op.fail(f"weights {w.type.shape} of experts")

        def product(x: Value, first: int, last: int, summed: bool) -> Value:
            some, (_, n, k) = op.cut(w, 0, first, last - first), w.type.shape
            if summed:
                some = op.reshape(op.transpose(some, (1, 0, 2)), (n, (last - first) * k))
            else:
                some = op.reshape(some, ((last - first) * n, k))
            return op.emit(mm.MATMUL, [x, some], mm.MatmulAttrs(transpose_b=True))

        return Layer(product, op.optional(key + 1), w.type.shape[1])

    layers = [layer(2), layer(4), None if op.optional(6) is None else layer(6)]
    return _mixed(op, layers, _routed(op, op.value(1), None, bool(op.whole("normalize_routing_weights", 0))))


def _quantized_experts(op: Operation) -> Value:
    """Weights of 2, 4 or 8 bits [E, N, K], with a scale for each row, or for each block of one."""
    if op.chosen("quant_type", ("int", "fp4", "nvfp4", "fp8", "wfp4afp8"), "int") != "int":
        op.refuse("experts whose weights are small floats")
    if op.whole("weights_prepacked", -1) == 1:
        op.refuse("weights in the order of one processor; export the model without packing them")
    keys = ((2, 3, 4, 11), (5, 6, 7, 12), (8, 9, 10, 13))
    layers = [
        None if op.optional(w) is None else _packed_layer(op, f"fc{i + 1}", w, scale, bias, zero)
        for i, (w, scale, bias, zero) in enumerate(keys)
    ]
    return _mixed(op, layers, _routed(op, op.value(1), op.optional(14), True))  # as ONNX Runtime's kernel, always


def _packed_layer(op: Operation, name: str, w_key: int, scale_key: int, bias_key: int, zero_key: int) -> Layer:
    w, dtype = op.value(w_key), op.value(0).type.dtype
    bits = op.whole(f"{name}_expert_weight_bits", op.whole("expert_weight_bits", 4))
    if bits not in (2, 4, 8) or w.constant is None or w.type.rank != 3 or w.type.dtype is not DType.UINT8:
        op.refuse(f"{bits} bits of weights {w.type}")
    count, n, size = w.type.shape
    k = size * 8 // bits
    block = op.whole("block_size", 0) or k
    blocks = k // block
    zeros = op.optional(zero_key)
    if zeros is not None:
        zeros = op.cast(unpacked(op, zeros, bits, (count, n, blocks), rows=op.whole("block_size", 0) > 0), dtype)
    elif bits == 2:
        zeros = op.constant([2.0] * (count * n * blocks), dtype, (count, n, blocks))
    if bits == 2:
        bits, w = 4, in_halves(op, w)
    stored, width = Value(w.name, TensorType((count, n, k * bits // 8), DType.UINT8), w.constant), k * bits // 8
    scales = op.reshape(op.cast(op.value(scale_key), dtype), (count, n, blocks))

    def some(x: Value, first: int, last: int, summed: bool) -> Value:
        x, last_axis = op.cut(x, 0, first, last - first), x.type.shape[2]
        if summed:
            return op.reshape(op.transpose(x, (1, 0, 2)), (n, (last - first) * last_axis))
        return op.reshape(x, ((last - first) * n, last_axis))

    def product(x: Value, first: int, last: int, summed: bool) -> Value:
        packed = _experts_of(stored, first, last, n, width, summed)
        parts = [None if part is None else some(part, first, last, summed) for part in (scales, zeros)]
        return op.emit(pk.PACKED_MATMUL, [x, packed, *parts, None], pk.PackedMatmulAttrs(bits, block))

    return Layer(product, op.optional(bias_key), n)


def _experts_of(w: Value, first: int, last: int, n: int, width: int, summed: bool) -> Value:
    """The constant weights of some experts: rows one behind the other, or side by side where results are summed."""
    assert w.constant is not None
    data, count = w.constant.data[first * n * width : last * n * width], last - first
    if not summed:
        return Value(w.name, TensorType((count * n, width), DType.UINT8), Constant(data, DType.UINT8))
    rows = [data[(e * n + row) * width : (e * n + row + 1) * width] for row in range(n) for e in range(count)]
    kept = Constant(memoryview(b"".join(rows)), DType.UINT8)
    return Value(w.name, TensorType((n, count * width), DType.UINT8), kept)


CONVERTERS: dict[str, Convert] = {
    "com.microsoft.MoE": _experts,
    "com.microsoft.QMoE": _quantized_experts,
}
