"""Attention of language models as ONNX Runtime's exports have it: shared keys, a cache of what was before, rotation.

Source:  onnxruntime v1.31, docs/ContribOperators.md, GroupQueryAttention and MultiHeadAttention
"""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.spans import counted
from webinfer.importers.onnx.attention import (
    Heads,
    attend,
    biased,
    join_heads,
    masked,
    repeat_heads,
    rotated,
    running_bias,
    scores,
    split_heads,
)
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather
from webinfer.ops import matmul as mm
from webinfer.ops import softmax as sm
from webinfer.ops.registry import NoAttrs


def _heads(op: Operation, count: int, shared: int) -> Heads:
    """Queries, keys and values by heads; one input may hold all three."""
    if op.optional(1) is not None:
        return Heads(*(split_heads(op, op.value(i), n) for i, n in enumerate((count, shared, shared))))
    wide = split_heads(op, op.value(0), count + 2 * shared)
    return Heads(*op.pieces(wide, 1, (count, shared, shared)))


def _with_past(op: Operation, new: Value, key: int, before: Value, total: int) -> Value:
    """New keys or values behind those of the past, of which there are `before`.

    Shapes:  new [N, heads, S, size], before [N] -> [N, heads, K, size]
    """
    past, length = op.optional(key), new.type.shape[2]
    if past is None or past.type.shape[2] == 0:
        return new
    room = past.type.shape[2]
    if total == length:  # nothing is before the first prompt, whose sequences all begin at 0
        return op.concat([new, op.cut(past, 2, length, room - length)], 2) if room > length else new
    if new.type.shape[0] > 1 and length == 1:  # sequences of different lengths: each has its own place for the row
        if total > room:
            past, room = op.concat([past, op.zeros(new.type.shape, new.type.dtype)], 2), room + 1
        places = counted(op, room, DType.INT32, (1, 1, room, 1))
        here = op.binary(ew.EQUAL, places, op.reshape(before, (before.type.size, 1, 1, 1)))
        return op.emit(ew.WHERE, [here, new, past], NoAttrs())
    if total > room:
        if total != room + length:
            op.refuse(f"{length} new positions behind a past of {room} that make {total}")
        return op.concat([past, new], 2)
    if new.type.shape[0] != 1:
        op.refuse("a cache with room for several sequences of several new positions")
    places = op.binary(ew.SUB, counted(op, room, DType.INT32, (room,)), op.reshape(before, (1,)))
    lowest, highest = (op.scalar_of(n, DType.INT32) for n in (0, length - 1))
    inside = op.binary(ew.MINIMUM, op.binary(ew.MAXIMUM, places, lowest), highest)
    fresh = op.reshape(op.binary(ew.EQUAL, inside, places), (1, 1, room, 1))
    moved = op.emit(gather.GATHER, [new, inside], gather.GatherAttrs(2))
    return op.emit(ew.WHERE, [fresh, moved, past], NoAttrs())


def _turned(op: Operation, x: Value, before: Value) -> Value:
    """x turned by the angles of its positions, which follow the past."""
    length, size = x.type.shape[2:]
    places = op.optional(9)
    if places is None:
        steps = counted(op, length, DType.INT32, (1, length))
        places = op.binary(ew.ADD, op.reshape(before, (before.type.size, 1)), steps)
    waves = []
    for key in (7, 8):
        wave = op.emit(gather.GATHER, [op.value(key), places], gather.GatherAttrs(0))
        waves.append(op.reshape(wave, (wave.type.shape[0], 1, length, wave.type.shape[-1])))
    width = 2 * waves[0].type.shape[-1]
    if width > size or places.type.shape[-1] != length:
        op.fail(f"angles of {width} elements at {places.type.shape} for heads {x.type.shape}")
    return rotated(op, x, waves[0], waves[1], bool(op.whole("rotary_interleaved", 0)))


def _group_query(op: Operation) -> list[Value]:
    """Attention with fewer heads of keys than of queries, causal; and the keys and values for the next run."""
    count, shared = op.whole("num_heads", 0), op.whole("kv_num_heads", 0)
    if count < 1 or shared < 1 or count % shared:
        op.fail(f"{count} heads of queries for {shared} of keys")
    if any(op.optional(key) is not None for key in range(12, len(op.inputs))):
        op.refuse("a quantised cache")
    if not op.known(6):
        op.refuse("total_sequence_length is computed at run time; give the sizes of the inputs")
    heads, total = _heads(op, count, shared), op.integer(6)
    length = heads.q.type.shape[2]
    ends = op.binary(ew.ADD, op.cast(op.value(5), DType.INT32), op.scalar_of(1, DType.INT32))
    ends = op.binary(ew.MAXIMUM, op.reshape(ends, (ends.type.size,)), op.scalar_of(length, DType.INT32))
    before = op.binary(ew.SUB, ends, op.scalar_of(length, DType.INT32))
    if op.whole("do_rotary", 0):
        heads.q, heads.k = _turned(op, heads.q, before), _turned(op, heads.k, before)
    heads.k, heads.v = _with_past(op, heads.k, 3, before, total), _with_past(op, heads.v, 4, before, total)
    present = [heads.k, heads.v]
    window, keys = op.whole("local_window_size", -1), heads.k.type.shape[2]
    bias = running_bias(op, ends, length, keys, window - 1 if window > 0 else -1, 0)
    extra = op.optional(10)
    if extra is not None:
        bias = op.binary(ew.ADD, bias, op.cast(extra, DType.FLOAT32))
    heads.k, heads.v = repeat_heads(op, heads.k, count // shared), repeat_heads(op, heads.v, count // shared)
    logits = scores(op, heads)
    logits = op.binary(ew.ADD, logits, op.cast(bias, logits.type.dtype))
    sink = op.optional(11)
    if sink is None and op.whole("smooth_softmax", 0) > 0:
        sink = op.constant([0.0] * count, logits.type.dtype)
    y = attend(op, logits, heads.v)[0] if sink is None else _with_sink(op, logits, sink, heads.v)
    return [join_heads(op, y), *present]


def _with_sink(op: Operation, logits: Value, sink: Value, v: Value) -> Value:
    """Attention with a score for each head that takes part in the softmax and stands for no value."""
    n, heads, length, keys = logits.type.shape
    column = op.expand(op.reshape(op.cast(sink, logits.type.dtype), (1, heads, 1, 1)), (n, heads, length, 1))
    weights = op.emit(sm.SOFTMAX, [op.concat([logits, column], 3)], sm.SoftmaxAttrs(3))
    return op.emit(mm.MATMUL, [op.cut(weights, 3, 0, keys), v], mm.MatmulAttrs())


def _multi_head(op: Operation) -> list[Value]:
    """Attention of [N, L, heads*size] with a bias for each of queries, keys and values, a mask of keys and a past."""
    count = op.whole("num_heads", 0)
    if op.optional(1) is None or op.optional(2) is None:
        op.refuse("packed queries, keys and values")
    parts = [op.value(i) for i in range(3)]
    if op.optional(3) is not None:
        sizes, start = [x.type.shape[-1] for x in parts], 0
        for i, size in enumerate(sizes):
            parts[i] = op.binary(ew.ADD, parts[i], op.cut(op.value(3), 0, start, size))
            start += size
    heads = Heads(*(x if x.type.rank == 4 else split_heads(op, x, count) for x in parts))
    past = 0
    if op.optional(6) is not None:
        past = op.value(6).type.shape[2]
        heads.k, heads.v = (op.concat([op.value(key), new], 2) for key, new in ((6, heads.k), (7, heads.v)))
    logits = scores(op, heads)
    if op.optional(4) is not None:
        logits = masked(op, logits, op.value(4))
    y, _ = attend(op, biased(op, logits, past), heads.v)
    return [join_heads(op, y), heads.k, heads.v]


CONVERTERS: dict[str, Convert] = {
    "com.microsoft.GroupQueryAttention": _group_query,
    "com.microsoft.MultiHeadAttention": _multi_head,
}
