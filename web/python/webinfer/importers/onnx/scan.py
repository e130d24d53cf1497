"""ONNX operators that run along an axis: sums, products, largest elements, states of linear attention."""

from __future__ import annotations

import functools
import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.axes import running_product
from webinfer.importers.core.limits import MAX_TIME_STEPS, within
from webinfer.importers.core.nonzero import places
from webinfer.importers.core.unique import reversed_order
from webinfer.importers.onnx.attention import repeat_heads, split_heads
from webinfer.importers.onnx.conv import convolve
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import scan
from webinfer.ops.gather import GATHER, GatherAttrs


def _cumulative_sum(op: Operation) -> Value:
    x = op.arranged(0)
    axis = x.perm[op.axis(op.integer(1), len(x.perm))]
    dtype, attrs = (
        x.value.type.dtype,
        scan.CumulativeSumAttrs(axis, bool(op.whole("exclusive", 0)), bool(op.whole("reverse", 0))),
    )
    if dtype is DType.INT64:
        return op.view(_long_sum(op, x.value, attrs), x.perm)
    if dtype not in (DType.FLOAT32, DType.FLOAT16, DType.INT32):
        op.refuse(f"running sums of {dtype}")
    return op.view(op.in_float32(x.value, lambda v: op.emit(scan.CUMULATIVE_SUM, [v], attrs)), x.perm)


def _long_sum(op: Operation, x: Value, attrs: scan.CumulativeSumAttrs) -> Value:
    """Running sums of int64: of its four parts of 16 bits, which int32 holds, put together again."""
    within("elements of a running sum of int64", x.type.shape[attrs.axis], 2**15, "use shorter rows")
    total = None
    for i in range(4):
        part = op.binary(ew.FLOOR_DIV, x, op.scalar_of(2 ** (16 * i), DType.INT64)) if i else x
        if i < 3:
            part = op.binary(ew.BIT_AND, part, op.scalar_of(2**16 - 1, DType.INT64))
        sums = op.cast(op.emit(scan.CUMULATIVE_SUM, [op.cast(part, DType.INT32)], attrs), DType.INT64)
        sums = op.binary(ew.MUL, sums, op.scalar_of(2 ** (16 * i), DType.INT64)) if i else sums
        total = sums if total is None else op.binary(ew.ADD, total, sums)
    assert total is not None
    return total


def _cumulative_product(op: Operation) -> Value:
    x, exclusive, backward = op.value(0), bool(op.whole("exclusive", 0)), bool(op.whole("reverse", 0))
    return running_product(op, x, op.axis(op.integer(1), x.type.rank), exclusive, backward)


def _top_k(op: Operation) -> list[Value]:
    """The largest or smallest elements in order, and their positions."""
    x = op.value(0)
    axis = op.axis(op.whole("axis", -1), x.type.rank)
    count = op.integer(1) if op.opset >= 10 else op.whole("k", 0)
    largest = bool(op.whole("largest", 1))
    dtype = x.type.dtype
    wide = {DType.INT8: DType.INT32, DType.UINT8: DType.INT32, DType.INT16: DType.INT32, DType.FLOAT16: DType.FLOAT32}
    if dtype not in (DType.FLOAT32, DType.INT32, DType.INT64, *wide):
        op.refuse(f"largest elements of {dtype}")
    order = [i for i in range(x.type.rank) if i != axis] + [axis]
    rows = op.transpose(op.cast(x, wide.get(dtype, dtype)), order)
    rows = rows if largest else reversed_order(op, rows)
    values, places = op.emit_all(scan.TOP_K, [rows], scan.TopKAttrs(count))
    values = values if largest else reversed_order(op, values)
    back = [order.index(i) for i in range(x.type.rank)]
    return [op.cast(op.transpose(values, back), dtype), op.transpose(op.cast(places, DType.INT64), back)]


def _causal_conv(op: Operation) -> list[Value]:
    """A convolution for each channel that looks back only, and the last elements for the next call."""
    x, w, past = op.value(0), op.value(1), op.optional(3)
    if op.whole("state_window", 0) or op.whole("ndim", 1) != 1:
        op.refuse("a window of states, or images")
    last, shape = bool(op.whole("channels_last", 0)), x.type.shape
    if last:  # [N, L, ...] with any number of axes of channels
        x, past = _channels_second(op, x), None if past is None else _channels_second(op, past)
    if x.type.rank != 3 or w.type.rank != 3 or not x.type.dtype.is_float:
        op.fail(f"input {shape} and weights {w.type.shape} must have three axes")
    n, channels, length = x.type.shape
    step = op.whole("dilation", 1)
    back = (w.type.shape[2] - 1) * step
    if past is None and back:
        past = op.zeros((n, channels, back), x.type.dtype)
    padded = x if past is None or not back else op.concat([past, x], 2)
    image = op.reshape(op.transpose(padded, (0, 2, 1)), (n, 1, length + back, channels))
    wide = op.reshape(w, (channels, w.type.shape[1], 1, w.type.shape[2]))
    y = convolve(op, image, wide, op.optional(2), ((w.type.shape[2],), (1,), (step,), [(0, 0)]), channels)
    y = op.reshape(y, (n, length, channels))
    if op.chosen("activation", ("none", "silu", "swish"), "none") != "none":
        y = op.binary(ew.MUL, y, op.unary(ew.SIGMOID, y))
    state = op.cut(padded, 2, length, back)
    if last:
        return [op.reshape(y, shape), op.reshape(op.transpose(state, (0, 2, 1)), (n, back, *shape[2:]))]
    return [op.transpose(y, (0, 2, 1)), state]


def _channels_second(op: Operation, x: Value) -> Value:
    """Shapes:  x [N, L, ...] -> [N, C, L]; C is the product of the axes behind L"""
    flat = op.reshape(x, (*x.type.shape[:2], math.prod(x.type.shape[2:])))
    return op.transpose(flat, (0, 2, 1))


def _linear_attention(op: Operation) -> list[Value]:
    """A state of keys times values that each step fades, corrects, adds to and reads; float16 in float32.

    Source:  onnx v1.23, LinearAttention-27; onnxruntime v1.31, docs/ContribOperators.md
    """
    if op.whole("state_window", 0):
        op.refuse("a window of states")
    if op.kind is DType.FLOAT16:
        given = [op.optional(i) for i in range(len(op.inputs))]
        wide = [None if value is None else op.cast(value, DType.FLOAT32) for value in given]
        inner = op.standing_for(op.info.op, op.info.domain, op.opset, wide)
        return [op.cast(value, DType.FLOAT16) for value in _linear_attention(inner)]
    rule = op.chosen("update_rule", ("linear", "gated", "delta", "gated_delta"), "gated_delta")
    queries, kept = op.whole("q_num_heads", 0), op.whole("kv_num_heads", 0)
    if op.kind is not DType.FLOAT32 or min(kept, queries) < 1 or max(queries, kept) % min(queries, kept):
        op.refuse(f"{op.kind}, or {queries} heads of queries for {kept}")
    q, k, v = (split_heads(op, op.value(i), heads) for i, heads in enumerate((queries, kept, kept)))
    n, _, steps, width = k.type.shape
    depth = v.type.shape[3]
    within("steps of a sequence", steps, MAX_TIME_STEPS, "use a shorter sequence")
    state = op.value(3) if op.optional(3) is not None else op.zeros((n, kept, width, depth), DType.FLOAT32)
    fade = op.unary(ew.EXP, _by_head(op, 4, kept)) if "gated" in rule else None
    correct = _by_head(op, 5, op.value(5).type.shape[2]) if "delta" in rule else None
    scale = op.real("scale", 0.0) or 1 / math.sqrt(width)
    q, queries = repeat_heads(op, q, max(1, kept // queries)), max(queries, kept)
    results = []
    for i in range(steps):
        row, new = op.cut(k, 2, i, 1), op.cut(v, 2, i, 1)
        column = op.reshape(row, (n, kept, width, 1))
        if fade is not None:
            now = op.cut(fade, 2, i, 1)
            state = op.binary(ew.MUL, state, op.reshape(now, (n, kept, now.type.shape[3], 1)))
        if correct is not None:
            stored = op.emit(mm.MATMUL, [row, state], mm.MatmulAttrs())
            new = op.binary(ew.MUL, op.cut(correct, 2, i, 1), op.binary(ew.SUB, new, stored))
        state = op.binary(ew.ADD, state, op.binary(ew.MUL, column, new))
        seen = repeat_heads(op, state, queries // kept)
        results.append(op.emit(mm.MATMUL, [op.cut(q, 2, i, 1), seen], mm.MatmulAttrs()))
    y = op.unary(ew.LINEAR, op.concat(results, 2) if len(results) > 1 else results[0], scale)
    return [op.reshape(op.transpose(y, (0, 2, 1, 3)), (n, steps, queries * depth)), state]


def _gates(op: Operation) -> list[Value]:
    """scale * softplus(a + bias), by which a state fades, and the sigmoid of b, by which it is corrected."""
    a, b = op.value(0), op.optional(3)
    fade = op.unary(ew.SOFTPLUS, op.binary(ew.ADD, op.cast(a, DType.FLOAT32), op.value(1)))
    fade = op.cast(op.binary(ew.MUL, fade, op.value(2)), a.type.dtype)
    return [fade] if b is None else [fade, op.unary(ew.SIGMOID, b)]


def _by_head(op: Operation, key: int, heads: int) -> Value:
    return split_heads(op, op.value(key), heads)


def _tensor_scatter(op: Operation) -> Value:
    """A cache with rows written from the positions on that a constant gives each batch."""
    x, rows = op.value(0), op.value(1)
    axis = op.axis(op.whole("axis", -2), x.type.rank)
    mode = op.chosen("mode", ("linear", "circular"), "linear")
    starts = op.integers(2) if op.optional(2) is not None else (0,) * x.type.shape[0]
    size, count = x.type.shape[axis], rows.type.shape[axis]
    if axis == 0 or len(starts) != x.type.shape[0] or count > size:
        op.fail(f"rows {rows.type.shape} from {starts} do not fit {x.type.shape}")
    if not x.type.size:
        return x
    batches = []
    for i, start in enumerate(starts):
        old, new = op.cut(x, 0, i, 1), op.cut(rows, 0, i, 1)
        places = [(start + j) % size if mode == "circular" else start + j for j in range(count)]
        if any(not 0 <= p < size for p in places):
            op.fail(f"position {max(places)} is not on an axis of {size}")
        parts = [op.cut(new, axis, places.index(p), 1) if p in places else op.cut(old, axis, p, 1) for p in range(size)]
        batches.append(op.concat(parts, axis) if len(parts) > 1 else parts[0])
    return op.concat(batches, 0) if len(batches) > 1 else batches[0]


def _compress(op: Operation) -> Value:
    """The positions of an axis where a condition is true."""
    x = op.value(0)
    axis = op.attributes.get("axis")
    at = op.axis(op.whole("axis", 0), x.type.rank) if axis is not None else 0
    x = x if axis is not None else op.reshape(x, (x.type.size,))
    if not op.known(1):
        found = places(op, op.value(1))
        return op.emit(GATHER, [x, found], GatherAttrs(at)) if found.type.size else op.cut(x, at, 0, 0)
    kept = [i for i, yes in enumerate(op._constants(1)) if yes]
    if any(i >= x.type.shape[at] for i in kept):
        op.fail(f"position {kept[-1]} is not on an axis of {x.type.shape[at]}")
    parts = [op.cut(x, at, i, 1) for i in kept]
    if not parts:
        return op.cut(x, at, 0, 0)
    return op.concat(parts, at) if len(parts) > 1 else parts[0]


def _swiglu(op: Operation) -> Value:
    a, b = op.value(0), op.value(1)
    alpha = op.real("alpha", 1.0)
    gate = op.unary(ew.SIGMOID, a if alpha == 1.0 else op.unary(ew.LINEAR, a, alpha))
    return functools.reduce(lambda x, y: op.binary(ew.MUL, x, y), (a, gate, b))


CONVERTERS: dict[str, Convert] = {
    "CausalConvWithState": _causal_conv,
    "Compress": _compress,
    "CumProd": _cumulative_product,
    "CumSum": _cumulative_sum,
    "LinearAttention": _linear_attention,
    "SwiGLU": _swiglu,
    "TensorScatter": _tensor_scatter,
    "TopK": _top_k,
    "com.microsoft.CausalConvWithState": _causal_conv,
    "com.microsoft.LinearAttention": _linear_attention,
    "com.microsoft.LinearAttentionGate": _gates,
}
