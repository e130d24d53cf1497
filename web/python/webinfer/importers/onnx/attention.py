"""Attention of ONNX and of ONNX Runtime's exports, taken apart into products, a softmax and sums.

Source:  onnx v1.23, Attention-24, RotaryEmbedding-23 and onnx/reference/ops/op_attention.py;
         onnxruntime v1.31, docs/ContribOperators.md
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.dims import has_size
from webinfer.graph.ir import Constant, TensorType, Value
from webinfer.importers.core.limits import within
from webinfer.importers.core.spans import counted
from webinfer.importers.onnx.elementwise import tanh_gelu
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.tensors import dtype_of
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, rotary
from webinfer.ops import matmul as mm
from webinfer.ops import movement as mv
from webinfer.ops import reduce as red
from webinfer.ops import softmax as sm
from webinfer.ops.registry import NoAttrs

MAX_BIAS = 2**24  # elements of a mask that is known while the model is read
LOWEST_HALF_BIAS = -32768.0  # half of float16's range, so that a score can be added; exp of it is 0
INFINITY = math.inf


@dataclass(slots=True)
class Heads:
    """Queries, keys and values by heads. Shapes:  [N, heads, length, size]"""

    q: Value
    k: Value
    v: Value


def split_heads(op: Operation, x: Value, heads: int) -> Value:
    """Shapes:  x [N, L, heads*size] -> [N, heads, L, size]"""
    if x.type.rank != 3 or heads < 1 or x.type.shape[2] % heads:
        op.fail(f"{x.type.shape} does not split into {heads} heads")
    n, length, width = x.type.shape
    return op.transpose(op.reshape(x, (n, length, heads, width // heads)), (0, 2, 1, 3))


def join_heads(op: Operation, x: Value) -> Value:
    """Shapes:  x [N, heads, L, size] -> [N, L, heads*size]"""
    n, heads, length, size = x.type.shape
    return op.reshape(op.transpose(x, (0, 2, 1, 3)), (n, length, heads * size))


def repeat_heads(op: Operation, x: Value, times: int) -> Value:
    """Each head several times, one after the other. Shapes:  [N, heads, L, size] -> [N, heads*times, L, size]"""
    if times == 1:
        return x
    n, heads, length, size = x.type.shape
    wide = op.expand(op.reshape(x, (n, heads, 1, length, size)), (n, heads, times, length, size))
    return op.reshape(wide, (n, heads * times, length, size))


def scores(op: Operation, heads: Heads) -> Value:
    """q kᵀ * scale, softly capped where `softcap` says so."""
    return _capped(op, _scaled_products(op, heads))


def _scaled_products(op: Operation, heads: Heads) -> Value:
    """q kᵀ * scale. Half of the scale goes to each side, which keeps products of float16 in range."""
    root = math.sqrt(op.real("scale", 0.0) or 1 / math.sqrt(heads.q.type.shape[3]))
    q, k = (op.unary(ew.LINEAR, x, root) for x in (heads.q, heads.k))
    return op.emit(mm.MATMUL, [q, k], mm.MatmulAttrs(transpose_b=True))


def _capped(op: Operation, raw: Value) -> Value:
    cap = op.real("softcap", 0.0)
    return op.unary(ew.LINEAR, op.unary(ew.TANH, op.unary(ew.LINEAR, raw, 1 / cap)), cap) if cap else raw


def biased(op: Operation, logits: Value, past: int = 0) -> Value:
    """Scores and the bias of input 5; with `unidirectional` no query looks ahead, before which were `past` keys."""
    if op.optional(5) is not None:
        logits = op.binary(ew.ADD, logits, op.value(5))
    if op.whole("unidirectional", 0):
        queries, keys = logits.type.shape[2:]
        logits = op.binary(ew.ADD, logits, op.cast(known_bias(op, queries, keys, past, -1, 0), logits.type.dtype))
    return logits


def attend(op: Operation, logits: Value, v: Value) -> tuple[Value, Value]:
    """softmax(logits) v, and the softmax."""
    weights = op.emit(sm.SOFTMAX, [logits], sm.SoftmaxAttrs(logits.type.rank - 1))
    return op.emit(mm.MATMUL, [weights, v], mm.MatmulAttrs()), weights


def known_bias(op: Operation, queries: int, keys: int, offset: int, left: int, right: int) -> Value:
    """0 where a query may look, else minus infinity: `left` keys back and `right` ahead of it, -1 for all."""
    if has_size((queries, keys, offset)):
        place = op.binary(ew.ADD, counted(op, queries, DType.INT32, (queries, 1)), op.scalar_of(offset, DType.INT32))
        return _near(op, op.binary(ew.SUB, place, counted(op, keys, DType.INT32, (1, keys))), left, right)
    within("elements of a mask", queries * keys, MAX_BIAS, "use shorter sequences")
    rows = []
    for i in range(queries):
        first = max(i + offset - left, 0) if left >= 0 else 0
        last = min(i + offset + right, keys - 1) if right >= 0 else keys - 1
        first, count = min(first, keys), max(last - first + 1, 0)
        rows.append(
            struct.pack("<f", -INFINITY) * first
            + bytes(4 * count)
            + struct.pack("<f", -INFINITY) * (keys - first - count)
        )
    data = memoryview(b"".join(rows))
    return Value("mask", TensorType((queries, keys), DType.FLOAT32), Constant(data, DType.FLOAT32))


def running_bias(op: Operation, lengths: Value, queries: int, keys: int, left: int, right: int) -> Value:
    """The same where each batch has its own number of keys, known at run time. Shapes:  lengths [N] -> [N, 1, Q, K]"""
    n = lengths.type.size
    ends = op.reshape(op.cast(lengths, DType.INT32), (n, 1, 1, 1))
    rows = counted(op, queries, DType.INT32, (1, 1, queries, 1))
    columns = counted(op, keys, DType.INT32, (1, 1, 1, keys))
    start = op.binary(ew.SUB, ends, op.scalar_of(queries, DType.INT32))
    bias = _near(op, op.binary(ew.SUB, op.binary(ew.ADD, rows, start), columns), left, right)
    return op.binary(ew.ADD, bias, _hidden(op, op.binary(ew.LESS, columns, ends)))


def _near(op: Operation, behind: Value, left: int, right: int) -> Value:
    """0 for keys that lie up to `left` before their query and `right` behind it; `behind` says how far before it."""
    bias = op.scalar_of(0.0, DType.FLOAT32)
    for limit, sign in ((left, 1), (right, -1)):
        if limit >= 0:
            far = behind if sign > 0 else op.unary(ew.NEG, behind)
            bias = op.binary(ew.ADD, bias, _hidden(op, op.binary(ew.LESS_EQUAL, far, op.scalar_of(limit, DType.INT32))))
    return bias


def _hidden(op: Operation, allowed: Value) -> Value:
    """0 where it is true, else minus infinity."""
    zero, low = (op.scalar_of(number, DType.FLOAT32) for number in (0.0, -INFINITY))
    return op.emit(ew.WHERE, [allowed, zero, low], NoAttrs())


def _mask(op: Operation, key: int, keys: int) -> Value | None:
    """The mask of the file as a sum, made as wide as there are keys."""
    mask = op.optional(key)
    if mask is None:
        return None
    bias = _hidden(op, mask) if mask.type.dtype is DType.BOOL else op.cast(mask, DType.FLOAT32)
    missing = keys - bias.type.shape[-1]
    if missing < 0:
        op.fail(f"a mask of {mask.type.shape} for {keys} keys")
    if missing:
        before = (0,) * bias.type.rank
        bias = op.emit(mv.PAD, [bias], mv.PadAttrs(before, (*before[1:], missing), -INFINITY))
    return bias


def _bias(op: Operation, heads: Heads, past: int | None) -> tuple[Value | None, bool]:
    """What is added to the scores, and whether a query may be left without any key."""
    queries, keys = heads.q.type.shape[2], heads.k.type.shape[2]
    left, right = op.whole("left_window_size", -1), op.whole("right_window_size", -1)
    right = 0 if op.whole("is_causal", 0) else right
    lengths, bias = op.optional(6), _mask(op, 3, keys)
    guarded = bias is not None
    if lengths is not None:
        extra = running_bias(op, lengths, queries, keys, left, right)
        guarded = True
    elif left >= 0 or right >= 0:
        extra = known_bias(op, queries, keys, past or 0, left, right)
        guarded = guarded or left >= 0 or queries > keys
    else:
        return bias, guarded
    return extra if bias is None else op.binary(ew.ADD, bias, extra), guarded


def _attention(op: Operation) -> list[Value]:
    """Y, the keys and values with those of the past before them, and the scores as the mode wants them.

    float16 is computed in float32 and rounded at the end.
    """
    flat = len(op.arranged(0).perm) == 3
    inputs = [op.value(i) for i in range(3)]
    kind = inputs[0].type.dtype
    if flat:
        counts = [op.whole("q_num_heads", 0), *[op.whole("kv_num_heads", 0)] * 2]
        inputs = [split_heads(op, x, count) for x, count in zip(inputs, counts, strict=True)]
    heads, past = Heads(*inputs), None
    if any(x.type.rank != 4 for x in inputs):
        op.fail("queries, keys and values are not all of one rank")
    if op.optional(4) is not None:
        past = op.value(4).type.shape[2]
        heads.k, heads.v = op.concat([op.value(4), heads.k], 2), op.concat([op.value(5), heads.v], 2)
    present = [heads.k, heads.v]
    if kind is DType.FLOAT16:
        heads = Heads(*(op.cast(x, DType.FLOAT32) for x in (heads.q, heads.k, heads.v)))
    bias, guarded = _bias(op, heads, past)
    groups, rest = divmod(heads.q.type.shape[1], heads.k.type.shape[1])
    if rest:
        op.fail(f"{heads.q.type.shape[1]} heads of queries for {heads.k.type.shape[1]} of keys")
    heads.k, heads.v = repeat_heads(op, heads.k, groups), repeat_heads(op, heads.v, groups)
    raw = _scaled_products(op, heads)
    capped = _capped(op, raw)
    if dtype_of(op.whole("softmax_precision", 1), "softmax_precision").inner not in (DType.FLOAT32, DType.FLOAT16):
        op.refuse("softmax_precision")
    logits = capped if bias is None else op.binary(ew.ADD, capped, bias)
    weights = op.emit(sm.SOFTMAX, [logits], sm.SoftmaxAttrs(3))
    if guarded and bias is not None:
        most = op.emit(red.REDUCE_MAX, [bias], red.ReduceAttrs((bias.type.rank - 1,), True))
        empty = op.binary(ew.EQUAL, most, op.scalar_of(-INFINITY, DType.FLOAT32))
        weights = op.emit(ew.WHERE, [empty, op.scalar_of(0.0, DType.FLOAT32), weights], NoAttrs())
    y = op.emit(mm.MATMUL, [weights, heads.v], mm.MatmulAttrs())
    mode = op.whole("qk_matmul_output_mode", 0)
    if not 0 <= mode <= 3:
        op.fail(f"qk_matmul_output_mode is {mode}")
    y, shown = op.cast(y, kind), op.cast((raw, capped, logits, weights)[mode], kind)
    return [join_heads(op, y) if flat else y, *present, shown]


def rotated(op: Operation, x: Value, cos: Value, sin: Value, interleaved: bool) -> Value:
    """Pairs of the first elements of each row turned. Shapes:  x [N, heads, L, size], cos, sin [N or 1, 1, L, pairs]"""
    angles = [op.cast(wave, x.type.dtype) for wave in (cos, sin)]
    return op.emit(rotary.ROTATE, [x, *angles], rotary.RotateAttrs(interleaved))


def _rotary(op: Operation, cos_key: int, sin_key: int, places_key: int) -> Value:
    x, places = op.value(0), op.optional(places_key)
    cos, sin = op.value(cos_key), op.value(sin_key)
    flat = x.type.rank == 3
    heads = op.whole("num_heads", 0)
    if flat and not heads:
        heads = x.type.shape[2] // (2 * cos.type.shape[-1])
    parts = split_heads(op, x, heads) if flat else x
    width = op.whole("rotary_embedding_dim", 0) or parts.type.shape[3]
    length = parts.type.shape[2]
    if places is not None and places.type.size == 1 and places.type.rank == 1:  # where the first one is
        steps = counted(op, length, places.type.dtype, (1, length))
        places = op.binary(ew.ADD, op.reshape(places, (1, 1)), steps)
    waves = []
    for table in (cos, sin):
        wave = table if places is None else op.emit(gather.GATHER, [table, places], gather.GatherAttrs(0))
        if wave.type.rank != 3 or wave.type.shape[1] != length or wave.type.shape[2] * 2 != width:
            op.fail(f"angles {wave.type.shape} do not fit {parts.type.shape} and {width} elements")
        waves.append(op.reshape(wave, (wave.type.shape[0], 1, length, width // 2)))
    y = rotated(op, parts, waves[0], waves[1], bool(op.whole("interleaved", 0)))
    return join_heads(op, y) if flat else y


def _sectioned_rotary(op: Operation) -> Value:
    """Rotation by three positions a token (time, height, width), each of which gives a part of the angles."""
    x, places, sections = op.value(0), op.value(1), op.wholes("mrope_section") or ()
    half, flat = op.value(2).type.shape[-1], x.type.rank == 3
    if op.whole("is_packed_batching", 0) or op.real("scale", 1.0) != 1.0:
        op.refuse("packed batches or a scale")
    if len(sections) != 3 or min(sections) < 0 or sum(sections) != half or places.type.rank != 3:
        op.fail(f"sections {sections} of {half} angles at {places.type.shape}")
    parts = split_heads(op, x, op.whole("num_heads", 0) or x.type.shape[2] // (2 * half)) if flat else x
    if op.whole("mrope_layout", 0):
        streams = [i % 3 if i < 3 * sections[i % 3] else 0 for i in range(half)]
    else:
        streams = [0] * sections[0] + [1] * sections[1] + [2] * sections[2]
    own = op.constant([float(streams[i % half] == i // half) for i in range(3 * half)], DType.FLOAT32, (3, 1, 1, half))
    waves = []
    for key in (2, 3):
        wave = op.emit(gather.GATHER, [op.value(key), places], gather.GatherAttrs(0))
        wave = op.binary(ew.MUL, wave, op.cast(own, wave.type.dtype))
        wave = op.emit(red.REDUCE_SUM, [wave], red.ReduceAttrs((0,), False))
        waves.append(op.reshape(wave, (wave.type.shape[0], 1, *wave.type.shape[1:])))
    y = rotated(op, parts, waves[0], waves[1], bool(op.whole("interleaved", 0)))
    return join_heads(op, y) if flat else y


def _packed(op: Operation) -> list[Value]:
    """com.microsoft's Attention: one product makes queries, keys and values; behind it the keys and values so far."""
    if op.whole("do_rotary", 0) or op.whole("past_present_share_buffer", 0):
        op.refuse("rotation, or a past in the buffer of its result")
    count, x = op.whole("num_heads", 0), op.value(0)
    wide = op.emit(mm.MATMUL, [x, op.value(1)], mm.MatmulAttrs())
    if op.optional(2) is not None:
        wide = op.binary(ew.ADD, wide, op.value(2))
    total = wide.type.shape[-1]
    sizes: Sequence[int] = op.wholes("qkv_hidden_sizes") or (total // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != total:
        op.fail(f"sizes {sizes} do not add up to {total}")
    heads, before = Heads(*(split_heads(op, part, count) for part in op.pieces(wide, 2, sizes))), 0
    if op.optional(4) is not None:
        past = op.value(4)
        if past.type.rank != 5 or past.type.shape[0] != 2:
            op.fail(f"a past of {past.type.shape}, needs [2, N, heads, L, size]")
        before = past.type.shape[3]
        heads.k, heads.v = (op.concat([op.row(past, 0, i), new], 2) for i, new in enumerate((heads.k, heads.v)))
    logits = biased(op, scores(op, heads), before)
    if op.optional(3) is not None:
        logits = masked(op, logits, op.value(3))
    y = join_heads(op, attend(op, logits, heads.v)[0])
    # values wider than keys have no such list of both
    return [y, op.stack([heads.k, heads.v])] if len(op.info.outputs) > 1 else [y]


def masked(op: Operation, logits: Value, mask: Value) -> Value:
    """Scores plus `mask_filter_value` where a key does not count: the mask has numbers of keys, or a yes or no for
    each key, or for each query and key.
    """
    n, _, _, keys = logits.type.shape
    shape, away = mask.type.shape, op.real("mask_filter_value", -10000.0)
    if logits.type.dtype is DType.FLOAT16:  # a row without keys stays finite
        away = max(away, LOWEST_HALF_BIAS)
    if shape in ((n,), (2 * n,), (3 * n + 2,)):  # the end of each row; with 2 n, its start too; 3 n + 2 begin alike
        columns = counted(op, keys, DType.INT32, (1, keys))
        yes = op.binary(ew.LESS, columns, op.reshape(op.cut(mask, 0, 0, n), (n, 1)))
        if shape == (2 * n,):
            start = op.reshape(op.cut(mask, 0, n, n), (n, 1))
            yes = op.binary(ew.LOGICAL_AND, yes, op.binary(ew.LESS_EQUAL, start, columns))
        yes = op.reshape(yes, (n, 1, 1, keys))
    elif len(shape) in (2, 3) and shape[0] == n and shape[-1] == keys:
        yes = op.binary(ew.LESS, op.scalar_of(0, mask.type.dtype), op.reshape(mask, (n, 1, *shape[1:-1], keys)))
        yes = op.reshape(yes, (n, 1, 1 if len(shape) == 2 else shape[1], keys))
    else:
        op.refuse(f"a mask of {shape} for {n} rows of {keys} keys")
    bias = op.unary(ew.LINEAR, op.cast(yes, DType.FLOAT32), -away, away)
    return op.binary(ew.ADD, logits, op.cast(bias, logits.type.dtype))


def _bias_gelu(op: Operation) -> Value:
    return op.unary(ew.GELU, op.binary(ew.ADD, op.value(0), op.value(1)))


def _fast_gelu(op: Operation) -> Value:
    x, bias = op.value(0), op.optional(1)
    return tanh_gelu(op, x if bias is None else op.binary(ew.ADD, x, bias))


def _flex_attention(op: Operation) -> Value:
    """softmax(f(q kᵀ * scale)) v with graphs of the file on the scores and on the softmax, both in float32.

    Source:  onnx v1.23, ai.onnx.preview: FlexAttention-1
    """
    q, k, v = (op.value(i) for i in range(3))
    if any(x.type.rank != 4 for x in (q, k, v)) or not k.type.shape[1] or q.type.shape[1] % k.type.shape[1]:
        op.fail(f"queries {q.type}, keys {k.type} and values {v.type} do not fit")
    if op.whole("softmax_precision", 1) in (10, 16):
        op.refuse("a softmax in 16 bits")
    times, dtype = q.type.shape[1] // k.type.shape[1], q.type.dtype
    logits = op.cast(scores(op, Heads(q, repeat_heads(op, k, times), v)), DType.FLOAT32)
    weights = op.emit(sm.SOFTMAX, [_modified(op, "score_mod", logits)], sm.SoftmaxAttrs(3))
    seen = op.cast(repeat_heads(op, v, times), DType.FLOAT32)
    y = op.emit(mm.MATMUL, [_modified(op, "prob_mod", weights), seen], mm.MatmulAttrs())
    return op.cast(y, dtype)


def _modified(op: Operation, name: str, x: Value) -> Value:
    if name not in op.attributes:
        return x
    results = op.run(op.graph(name), [x])
    if len(results) != 1 or results[0].type.shape != x.type.shape:
        op.fail(f"{name} of {x.type} gives {[value.type for value in results]}")
    return op.cast(op.dense(results[0]), DType.FLOAT32)


CONVERTERS: dict[str, Convert] = {
    "ai.onnx.preview.FlexAttention": _flex_attention,
    "Attention": _attention,
    "RotaryEmbedding": lambda op: _rotary(op, 1, 2, 3),
    "com.microsoft.Attention": _packed,
    "com.microsoft.BiasGelu": _bias_gelu,
    "com.microsoft.FastGelu": _fast_gelu,
    "com.microsoft.MRotaryEmbedding": _sectioned_rotary,
    "com.microsoft.RotaryEmbedding": lambda op: _rotary(op, 2, 3, 1),
}
