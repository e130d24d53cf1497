"""Random TFLite nodes that move elements."""

import math
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.draw import MOST, int32
from build_scripts.judge.fuzz.graphs import FuzzNode
from build_scripts.judge.fuzz.tflite.drawing import REAL, STORED, STORED8, WHOLE, TfliteDraw
from build_scripts.judge.fuzz.tflite.elementwise import CODES, Row

MOVED = (*REAL, *WHOLE, *STORED, "bool")


def _reshape(d: TfliteDraw) -> FuzzNode:
    x = d.value(MOVED)
    wanted = d.regrouped(d.known(x).size)
    return d.make("RESHAPE", [x, int32(d, wanted)], d.same(x), new_shape=wanted)


def _transpose(d: TfliteDraw) -> FuzzNode:
    x = d.value(MOVED, 1, 5)
    return d.make("TRANSPOSE", [x, int32(d, [int(i) for i in d.rng.permutation(d.known(x).ndim)])], d.same(x))


def _squeeze(d: TfliteDraw) -> FuzzNode:
    x = d.value(MOVED, fits=lambda a: 1 in a.shape, make=lambda kind: d.array(kind, (1, d.size(), 1)))
    a = d.known(x)
    dims = [i if d.chance(0.8) else i - a.ndim for i, n in enumerate(a.shape) if n == 1 and d.chance(0.7)]
    return d.make("SQUEEZE", [x], d.same(x), squeeze_dims=dims)


def _expand_dims(d: TfliteDraw) -> FuzzNode:
    x = d.value(MOVED, 0, 4)
    rank = d.known(x).ndim
    return d.make("EXPAND_DIMS", [x, int32(d, d.pick((d.integer(-rank - 1, rank), [0])))], d.same(x))


def _concatenation(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, *WHOLE, *STORED), 1, 4)
    a, at = d.known(x), d.integer(0, d.known(x).ndim - 1)
    names, result = [x], d.same(x)
    for _ in range(d.integer(0, 3)):
        if d.chance(0.15):
            names.append(x)
            continue
        y = d.like(x, [d.size() if i == at else n for i, n in enumerate(a.shape)])
        if d.kind(x) != "quint8" and y in d.fresh:  # of int8 all scales are one
            d.quants |= {y: d.quants[x]} if x in d.quants else {}
        names.append(y)
    return d.make(
        "CONCATENATION", names, result, axis=at if d.chance(0.7) else at - a.ndim, fused_activation_function=0
    )


def _pack(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, *WHOLE, *STORED8), 0, 3)
    names = [x]
    for _ in range(d.integer(0, 2)):
        y = x if d.chance(0.4) else d.new(d.array(d.kind(x), d.known(x).shape))
        if y != x and x in d.quants:
            d.quants[y] = d.quants[x]
        names.append(y)
    rank = d.known(x).ndim
    return d.make("PACK", names, d.same(x), values_count=len(names), axis=d.integer(-rank - 1, rank))


def _unpack(d: TfliteDraw) -> FuzzNode | None:
    x = d.value((*REAL, *WHOLE, *STORED8), 1, 4, lambda a: 1 <= a.shape[-1] <= 4 or 1 <= a.shape[0] <= 4)
    shape = d.known(x).shape
    at = [i for i, n in enumerate(shape) if 1 <= n <= 4]
    if not at:
        return None
    axis = d.pick(at)
    count = shape[axis]
    return d.make("UNPACK", [x], *[d.same(x)] * count, num=count, axis=axis if d.chance(0.7) else axis - len(shape))


def _split(d: TfliteDraw) -> FuzzNode | None:
    x = d.value((*REAL, "int32", *STORED8), 1, 4)
    shape = d.known(x).shape
    choices = [(i, c) for i, n in enumerate(shape) for c in (1, 2, 3, 4) if n and n % c == 0]
    if not choices:
        return None
    axis, count = d.pick(choices)
    return d.make("SPLIT", [int32(d, axis), x], *[d.same(x)] * count, num_splits=count)


def _split_v(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, "int32", *STORED8), 1, 4)
    axis = d.axis(d.known(x).ndim)
    n, count = d.known(x).shape[axis], d.integer(1, 4)
    parts = [int(p) for p in np.diff([0, *sorted(d.integer(0, n) for _ in range(count - 1)), n])]
    if d.chance(0.3):
        parts[d.integer(0, count - 1)] = -1
    return d.make("SPLIT_V", [x, int32(d, parts), int32(d, axis)], *[d.same(x)] * count, num_splits=count)


def _slice(d: TfliteDraw) -> FuzzNode:
    x = d.value(MOVED, 1, 5)
    begin = [d.integer(0, max(n - 1, 0)) if d.chance(0.6) else 0 for n in d.known(x).shape]
    size = [
        -1 if d.chance(0.4) else d.integer(0 if d.chance(0.1) else min(1, n - b), n - b)
        for b, n in zip(begin, d.known(x).shape, strict=True)
    ]
    return d.make("SLICE", [x, int32(d, begin), int32(d, size)], d.same(x))


def _strided_slice(d: TfliteDraw) -> FuzzNode:
    x = d.value(MOVED, 1, 4)
    begins, ends, strides = list[int](), list[int](), list[int]()
    shape = d.known(x).shape[: d.integer(1, d.known(x).ndim)]
    for n in shape:
        step = d.pick((1, 1, 1, 2, 3, -1, -2))
        begin, end = (0, n) if d.chance(0.4) else (d.integer(-n, n), d.integer(-n - 1, n + 1))
        if step < 0 and d.chance(0.7):
            begin, end = n - 1, d.pick((-n - 1, 0))
        for listed, number in ((begins, begin), (ends, end), (strides, step)):
            listed.append(number)
    masks = {f"{name}_mask": d.integer(0, 2 ** len(shape) - 1) for name in ("begin", "end") if d.chance(0.4)}
    if d.chance(0.25):
        masks["shrink_axis_mask"] = at = 1 << d.integer(0, len(shape) - 1)
        strides[at.bit_length() - 1] = 1
        n = shape[at.bit_length() - 1]
        begins[at.bit_length() - 1] = begin = d.integer(-n, n - 1) if n else 0
        ends[at.bit_length() - 1] = begin + 1
    elif d.chance(0.15):
        masks["new_axis_mask"] = 1 << d.integer(0, len(shape) - 1)
    elif d.chance(0.15):
        masks["ellipsis_mask"] = 1 << d.integer(0, len(shape) - 1)
    return d.make("STRIDED_SLICE", [x, int32(d, begins), int32(d, ends), int32(d, strides)], d.same(x), **masks)


def _gather(d: TfliteDraw) -> FuzzNode:
    x = d.value(MOVED, 1, 4)
    axis = d.axis(d.known(x).ndim)
    n = d.known(x).shape[axis]
    positions = d.new(d.array(d.pick(("int32", "int32", "int64")), d.shape(0, 2, 20), 0, max(n - 1, 0)))
    return d.make("GATHER", [x, positions], d.same(x), axis=axis)


def _gather_nd(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, *WHOLE, *STORED8), 1, 4)
    shape = d.known(x).shape
    rank, lead = d.integer(1, len(shape)), d.shape(1, 2, 12)
    columns = [d.rng.integers(0, max(n, 1), lead) for n in shape[:rank]]
    return d.make("GATHER_ND", [x, d.new(np.stack(columns, -1).astype("int32"))], d.same(x))


def _scatter_nd(d: TfliteDraw) -> FuzzNode:
    shape = [d.integer(1, 4) for _ in range(d.integer(1, 3))]
    rank = d.integer(1, len(shape))
    count = d.integer(1, 5)
    at = np.stack([d.rng.integers(0, n, count) for n in shape[:rank]], -1).astype("int32")
    wanted = (count, *shape[rank:])
    updates = d.value((*REAL, *WHOLE), fits=lambda a: a.shape == wanted, make=lambda kind: d.array(kind, wanted))
    return d.make("SCATTER_ND", [d.new(at), updates, int32(d, shape)], d.same(updates))


def _pad(op: str) -> Row:
    def row(d: TfliteDraw) -> FuzzNode:
        x = d.value((*REAL, *WHOLE, *STORED), 1, 4)
        a = d.known(x)
        mode = d.integer(0, 1)
        most = [(n - 1 if mode == 0 else n) if op == "MIRROR_PAD" else 3 for n in a.shape]
        pads = [[d.integer(0, max(min(m, 3), 0)) if d.chance(0.6) else 0 for _ in range(2)] for m in most]
        inputs = [x, int32(d, pads)]
        if op == "PADV2":
            value = d.constant(d.pick((0, 1, 5)), a.dtype.name)
            d.quants |= {value: d.quants[x]} if x in d.quants else {}
            inputs.append(value)
        return d.make(op, inputs, d.same(x), mode=mode if op == "MIRROR_PAD" else None)

    return row


def _tile(d: TfliteDraw) -> FuzzNode:
    x = d.value(MOVED, 1, 4)
    return d.make("TILE", [x, int32(d, [d.pick((1, 1, 2, 3)) for _ in d.known(x).shape])], d.same(x))


def _broadcast_to(d: TfliteDraw) -> FuzzNode:
    x = d.value(MOVED, 1, 3)
    shape = [n if n != 1 or d.chance(0.4) else d.integer(1, 4) for n in d.known(x).shape]
    return d.make("BROADCAST_TO", [x, int32(d, [d.integer(1, 3)] * d.integer(0, 1) + shape)], d.same(x))


def _reverse(d: TfliteDraw) -> FuzzNode:
    x = d.value(MOVED, 1, 4)
    return d.make("REVERSE_V2", [x, int32(d, d.axes(d.known(x).ndim, 1))], d.same(x))


def _reverse_sequence(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, "int32"), 2, 4)
    shape = d.known(x).shape
    time, batch = (int(i) for i in d.rng.permutation(len(shape))[:2])
    lengths = d.new(d.array("int32", (shape[batch],), 1, max(shape[time], 1)))
    return d.make("REVERSE_SEQUENCE", [x, lengths], d.same(x), seq_dim=time, batch_dim=batch)


def pictures(d: TfliteDraw, kinds: tuple[str, ...] = REAL, channels: int = 0, height: int = 0, width: int = 0) -> str:
    """An operand N H W C; sizes other than 0 are multiples that it must have."""
    h, w, c = max(height, 1), max(width, 1), max(channels, 1)

    def fits(a: Any) -> bool:
        return bool(a.shape[1] % h == 0 and a.shape[2] % w == 0 and a.shape[3] % c == 0 and 0 < a.size <= 1500)

    def make(kind: str) -> Any:
        shape = (d.pick((1, 1, 2)), h * d.integer(1, 8 // h), w * d.integer(1, 8 // w), c * d.pick((1, 2, 3, 4, 8)))
        return d.array(kind, shape)

    return d.value(kinds, 4, 4, fits, make)


def _blocks(op: str) -> Row:
    def row(d: TfliteDraw) -> FuzzNode:
        b = d.integer(1, 3)
        x = pictures(d, (*REAL, *STORED8), b * b) if op == "DEPTH_TO_SPACE" else pictures(d, (*REAL, *STORED8), 0, b, b)
        return d.make(op, [x], d.same(x), block_size=b)

    return row


def _to_batch(d: TfliteDraw) -> FuzzNode:
    b, c = d.integer(1, 2), d.integer(1, 3)
    x = pictures(d, (*REAL, *STORED8))
    _, height, width, _ = d.known(x).shape
    pads = [[d.integer(0, 1), 0], [d.integer(0, 1), 0]]
    for pad, n, block in ((pads[0], height, b), (pads[1], width, c)):
        pad[1] = -(n + pad[0]) % block
    return d.make("SPACE_TO_BATCH_ND", [x, int32(d, [b, c]), int32(d, pads)], d.same(x))


def _from_batch(d: TfliteDraw) -> FuzzNode:
    b, c = d.integer(1, 2), d.integer(1, 3)
    x = d.value(
        (*REAL, *STORED8),
        4,
        4,
        lambda a: a.shape[0] == b * c and a.size > 0,
        lambda kind: d.array(kind, (b * c, d.integer(1, 4), d.integer(1, 4), d.integer(1, 3))),
    )
    _, height, width, _ = d.known(x).shape
    crops = [[d.integer(0, min(1, n * k - 1)), 0] for n, k in ((height, b), (width, c))]
    return d.make("BATCH_TO_SPACE_ND", [x, int32(d, [b, c]), int32(d, crops)], d.same(x))


def _resize(op: str) -> Row:
    def row(d: TfliteDraw) -> FuzzNode:
        x = pictures(d, (*REAL, *STORED8))
        _, height, width, _ = d.known(x).shape
        way = d.integer(0, 2)
        size = [d.pick((n, 2 * n, max(n // 2, 1), d.integer(1, 9))) for n in (height, width)]
        return d.make(op, [x, int32(d, size)], d.same(x), align_corners=way == 1, half_pixel_centers=way == 2)

    return row


def _one_hot(d: TfliteDraw) -> FuzzNode:
    x = d.value(("int32", "int64"), 0, 2)
    kind = d.dtype((*REAL, "int32"))
    ends = [d.constant(n, kind) for n in (d.pick((1, 5)), d.pick((0, -1)))]
    return d.make("ONE_HOT", [x, int32(d, d.integer(1, 6)), *ends], d.out(kind), axis=d.integer(-1, d.known(x).ndim))


def _fill(d: TfliteDraw) -> FuzzNode:
    kind = d.dtype((*REAL, *WHOLE, "bool"))
    return d.make("FILL", [int32(d, list(d.shape(0, 3, 60))), d.given(kind, d.array(kind, ()))], d.out(kind))


def _range(d: TfliteDraw) -> FuzzNode:
    kind = d.dtype((*REAL, "int32"))
    start, step, count = d.integer(-3, 3), d.pick((1, 2, -1, -3)), d.integer(0, 7)
    return d.make("RANGE", [d.constant(n, kind) for n in (start, start + step * count, step)], d.out(kind))


def _shape(d: TfliteDraw) -> FuzzNode:
    kind = d.pick(("int32", "int64"))
    return d.make("SHAPE", [d.value(MOVED)], d.out(kind), out_type=CODES[kind])


def _update_slice(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, *WHOLE, "bool"), 1, 4)
    part = [d.integer(min(n, 1), n) for n in d.known(x).shape]
    starts = d.new(np.asarray([d.integer(-1, n) for n in part], "int32"))
    return d.make("DYNAMIC_UPDATE_SLICE", [x, d.like(x, part), starts], d.same(x))


def _diagonal(op: str) -> Row:
    def row(d: TfliteDraw) -> FuzzNode:
        x = d.value((*REAL, *WHOLE), 1 if op == "MATRIX_DIAG" else 2, 3)
        shape = d.known(x).shape
        more = [] if op == "MATRIX_DIAG" else [d.like(x, (*shape[:-2], min(shape[-2:])))]
        return d.make(op, [x, *more], d.same(x))

    return row


def _unique(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, *WHOLE), 1, 1)
    kind = d.pick(("int32", "int64"))
    return d.make("UNIQUE", [x], d.same(x), d.out(kind), idx_out_type=CODES[kind])


def _lookup(d: TfliteDraw) -> FuzzNode:
    x = d.value(REAL, 2, 3, lambda a: a.size > 0)
    at = d.new(d.array("int32", (d.integer(1, 5),), 0, d.known(x).shape[0] - 1))
    return d.make("EMBEDDING_LOOKUP", [at, x], d.same(x))


def _segments(op: str) -> Row:
    def row(d: TfliteDraw) -> FuzzNode:
        x = d.value((*REAL, "int32"), 1, 3, lambda a: a.size > 0)
        n = d.known(x).shape[0]
        at = d.array("int32", (n,), 0, 3)
        if op == "SEGMENT_SUM":
            return d.make(op, [x, d.new(np.sort(at), stored=True)], d.same(x))
        return d.make(op, [x, d.new(at), int32(d, 4)], d.same(x))

    return row


def _broadcast_args(d: TfliteDraw) -> FuzzNode:
    shape = d.shape(1, 3)
    return d.make(
        "BROADCAST_ARGS", [int32(d, list(shape)), int32(d, [n if d.chance(0.5) else 1 for n in shape])], d.out("int32")
    )


ROWS: dict[str, Row] = {
    "BATCH_TO_SPACE_ND": _from_batch,
    "BROADCAST_ARGS": _broadcast_args,
    "BROADCAST_TO": _broadcast_to,
    "CONCATENATION": _concatenation,
    "DEPTH_TO_SPACE": _blocks("DEPTH_TO_SPACE"),
    "DYNAMIC_UPDATE_SLICE": _update_slice,
    "EMBEDDING_LOOKUP": _lookup,
    "EXPAND_DIMS": _expand_dims,
    "FILL": _fill,
    "GATHER": _gather,
    "GATHER_ND": _gather_nd,
    "MATRIX_DIAG": _diagonal("MATRIX_DIAG"),
    "MATRIX_SET_DIAG": _diagonal("MATRIX_SET_DIAG"),
    "MIRROR_PAD": _pad("MIRROR_PAD"),
    "ONE_HOT": _one_hot,
    "PACK": _pack,
    "PAD": _pad("PAD"),
    "PADV2": _pad("PADV2"),
    "RANGE": _range,
    "RANK": lambda d: d.make("RANK", [d.value(MOVED)], d.out("int32")),
    "RESHAPE": _reshape,
    "RESIZE_BILINEAR": _resize("RESIZE_BILINEAR"),
    "RESIZE_NEAREST_NEIGHBOR": _resize("RESIZE_NEAREST_NEIGHBOR"),
    "REVERSE_SEQUENCE": _reverse_sequence,
    "REVERSE_V2": _reverse,
    "SCATTER_ND": _scatter_nd,
    "SEGMENT_SUM": _segments("SEGMENT_SUM"),
    "SHAPE": _shape,
    "SLICE": _slice,
    "SPACE_TO_BATCH_ND": _to_batch,
    "SPACE_TO_DEPTH": _blocks("SPACE_TO_DEPTH"),
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "SQUEEZE": _squeeze,
    "STRIDED_SLICE": _strided_slice,
    "TILE": _tile,
    "TRANSPOSE": _transpose,
    "UNIQUE": _unique,
    "UNPACK": _unpack,
    "UNSORTED_SEGMENT_MAX": _segments("UNSORTED_SEGMENT_MAX"),
    "UNSORTED_SEGMENT_MIN": _segments("UNSORTED_SEGMENT_MIN"),
    "UNSORTED_SEGMENT_PROD": _segments("UNSORTED_SEGMENT_PROD"),
    "UNSORTED_SEGMENT_SUM": _segments("UNSORTED_SEGMENT_SUM"),
    "WHERE": lambda d: d.make("WHERE", [d.value(("bool", *REAL, "int32"), 1, 3)], d.out("int64")),
}
__all__ = ["MOST", "MOVED", "ROWS", "int32", "math", "pictures"]
