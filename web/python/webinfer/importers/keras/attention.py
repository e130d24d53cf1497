"""Attention layers: of one head with scores of two kinds, and of several heads.

Source:  keras v3.3, layers/attention; masks add -1e9 to the scores of what does not count
"""

from __future__ import annotations

import functools
import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.graph.printer import safe_name
from webinfer.importers.keras.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul, reduce, softmax

_HIDDEN = -1e9  # added to a score


def _three(op: Operation) -> list[Value]:
    """Queries, values and keys, by place or by name; keys are the values if they are not given."""
    count, names = op.positional, ("query", "value", "key")
    strange = [name for name, number, _ in op.named if number and name not in (*names, "attention_mask")]
    if count > 3 or strange:
        op.refuse(f"{count} values by place, others called {', '.join(map(safe_name, strange))}")
    found = [op.cast(op.value(i), DType.FLOAT32) if i < count else op.argument(n) for i, n in enumerate(names)]
    if found[0] is None or found[1] is None:
        op.fail("query or value is missing")
    query, value, key = found[0], found[1], found[2] if found[2] is not None else found[1]
    for v in (query, value, key):
        if v.type.rank != 3:
            op.refuse(f"it reads {v.type}, other ranks than 3")
    if key.type.shape[:2] != value.type.shape[:2] or query.type.shape[0] != key.type.shape[0]:
        op.fail(f"query {query.type}, value {value.type}, key {key.type} do not fit")
    return [query, value, key]


def _causal(op: Operation, queries: int, keys: int) -> Value | None:
    """[1, Q, K]: no query sees what comes behind it."""
    if not (op.plain("use_causal_mask") or op.flag("causal")):
        return None
    rows = op.constant(range(queries), DType.INT32, (1, queries, 1))
    return op.binary(ew.GREATER_EQUAL, rows, op.constant(range(keys), DType.INT32, (1, 1, keys)))


def _mask_of(op: Operation, x: Value, axis: int) -> Value | None:
    """Which steps of x count, with a new axis."""
    mask = op.context.masks.get(x)
    return None if mask is None else op.reshape(mask, [*mask.type.shape[:axis], 1, *mask.type.shape[axis:]])


def _hidden(op: Operation, scores: Value, masks: list[Value | None]) -> Value:
    """Scores of what all masks let count; the rest far below."""
    given = [mask for mask in masks if mask is not None]
    if not given:
        return scores
    seen = functools.reduce(lambda a, b: op.binary(ew.LOGICAL_AND, a, b), given)
    lowered = op.unary(ew.LINEAR, op.cast(seen, DType.FLOAT32), -_HIDDEN, _HIDDEN)
    if lowered.type.rank < scores.type.rank:  # the same for all heads
        lowered = op.reshape(lowered, (lowered.type.shape[0], 1, *lowered.type.shape[1:]))
    return op.binary(ew.ADD, scores, lowered)


def _weighted(op: Operation, scores: Value, value: Value) -> tuple[Value, Value]:
    """Values in the shares of their scores, and these shares."""
    shares = op.emit(softmax.SOFTMAX, [scores], softmax.SoftmaxAttrs(scores.type.rank - 1))
    return op.emit(matmul.MATMUL, [shares, value], matmul.MatmulAttrs()), shares


def _sums(op: Operation, query: Value, key: Value, scale: Value | None, inside: bool) -> Value:
    """Sums over tanh(q + k); the scale is a factor of the argument, if it is `inside`, or of the result."""
    (n, rows, width), keys = query.type.shape, key.type.shape[1]
    total = op.binary(ew.ADD, op.reshape(query, (n, rows, 1, width)), op.reshape(key, (n, 1, keys, width)))
    if scale is not None and inside:
        total = op.binary(ew.MUL, total, scale)
    total = op.unary(ew.TANH, total)
    if scale is not None and not inside:
        total = op.binary(ew.MUL, total, scale)
    return op.emit(reduce.REDUCE_SUM, [total], reduce.ReduceAttrs((3,)))


def _single(op: Operation) -> list[Value]:
    """One head. Additive layers have the scores of `_sums`, others products or the same sums with one weight."""
    query, value, key = _three(op)
    if query.type.shape[2] != key.type.shape[2]:
        op.fail(f"query {query.type} and key {key.type} do not fit")
    additive = op.name == "AdditiveAttention"
    width = query.type.shape[2]
    scale = None
    if op.flag("use_scale", additive):
        scale = op.weight("scale", 1) if additive else op.reshape(op.weight("scale", 0), (1,))
        if scale.type.size not in (1, width):
            op.fail(f"its scale {scale.type.shape} does not fit {query.type}")
    if additive:
        scores = _sums(op, query, key, scale, inside=False)
    elif op.chosen("score_mode", ("dot", "concat"), "dot") == "concat":
        weight = op.weight("concat_score_weight", 0)
        scores = op.binary(ew.MUL, _sums(op, query, key, scale, inside=True), op.reshape(weight, (1,)))
    else:
        scores = op.emit(matmul.MATMUL, [query, key], matmul.MatmulAttrs(transpose_b=True))
        scores = scores if scale is None else op.binary(ew.MUL, scores, scale)
    causal = _causal(op, scores.type.shape[1], scores.type.shape[2])
    y, shares = _weighted(op, _hidden(op, scores, [causal, _mask_of(op, value, 1)]), value)
    mask = op.context.masks.get(query)
    if mask is not None:
        held = op.reshape(op.cast(mask, DType.FLOAT32), (*mask.type.shape, 1))
        y = op.binary(ew.MUL, y, held)
        op.context.masks[y] = mask
    return [y, shares]


def _projected(op: Operation, x: Value, own: str, heads: int) -> Value:
    """x [N, T, D] times weights [D, H, K], as [N, H, T, K]."""
    w = op.inner_weight(own, "kernel", 3)
    if w.type.shape[:2] != (x.type.shape[2], heads):
        op.fail(f"{own}: weights {w.type.shape} do not fit {x.type} and {heads} heads")
    size = w.type.shape[2]
    bias = op.reshape(op.inner_weight(own, "bias", 2), (heads * size,)) if op.flag("use_bias", True) else None
    flat = op.reshape(w, (w.type.shape[0], heads * size))
    y = op.emit(matmul.MATMUL, [x, flat, bias], matmul.MatmulAttrs())
    return op.transpose(op.reshape(y, (*x.type.shape[:2], heads, size)), (0, 2, 1, 3))


def _several(op: Operation) -> list[Value]:
    """Several heads."""
    query, value, key = _three(op)
    (heads,) = op.wholes("num_heads", None, 1)
    if op.config.get("attention_axes") not in (None, [1], 1, (1,)):
        op.refuse(f"attention_axes {str(op.config['attention_axes'])[:40]}")
    q, k, v = (_projected(op, x, own, heads) for x, own in ((query, "query"), (key, "key"), (value, "value")))
    if q.type.shape[3] != k.type.shape[3]:
        op.fail(f"queries {q.type.shape} and keys {k.type.shape} do not fit")
    q = op.unary(ew.LINEAR, q, 1 / math.sqrt(q.type.shape[3]))
    scores = op.emit(matmul.MATMUL, [q, k], matmul.MatmulAttrs(transpose_b=True))
    given = op.argument("attention_mask")
    masks = [
        None if given is None else op.cast(given, DType.BOOL),
        _causal(op, query.type.shape[1], key.type.shape[1]), _mask_of(op, query, 2), _mask_of(op, value, 1),
    ]  # fmt: skip
    y, shares = _weighted(op, _hidden(op, scores, masks), v)
    n, _, steps, size = y.type.shape
    w = op.inner_weight("attention_output", "kernel", 3)
    if w.type.shape[:2] != (heads, size):
        op.fail(f"attention_output: weights {w.type.shape} do not fit {heads} heads of {size}")
    y = op.reshape(op.transpose(y, (0, 2, 1, 3)), (n, steps, heads * size))
    bias = op.inner_weight("attention_output", "bias", 1) if op.flag("use_bias", True) else None
    w = op.reshape(w, (heads * size, w.type.shape[2]))
    y = op.emit(matmul.MATMUL, [y, w, bias], matmul.MatmulAttrs())
    mask = op.context.masks.get(query)
    if mask is not None:
        op.context.masks[y] = mask
    return [y, shares]


CONVERTERS: dict[str, Convert] = {
    "AdditiveAttention": _single,
    "Attention": _single,
    "MultiHeadAttention": _several,
}
