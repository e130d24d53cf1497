"""Random TensorFlow.js nodes that move elements."""

from typing import Any

import numpy as np

from build_scripts.judge.fuzz.draw import Draw, int32
from build_scripts.judge.fuzz.graphs import FuzzNode
from build_scripts.judge.fuzz.tfjs.elementwise import ALL, BOTH, REAL, Row


def _reshape(d: Draw) -> FuzzNode:
    x = d.value(ALL)
    return d.node("Reshape", [x, int32(d, d.regrouped(d.known(x).size))])


def _transpose(d: Draw) -> FuzzNode:
    x = d.value(ALL, 1, 4)
    return d.node("Transpose", [x, int32(d, [int(i) for i in d.rng.permutation(d.known(x).ndim)])])


def _squeeze(d: Draw) -> FuzzNode:
    x = d.value(ALL, fits=lambda a: 1 in a.shape, make=lambda kind: d.array(kind, (1, d.size(), 1)))
    dims = [i for i, n in enumerate(d.known(x).shape) if n == 1 and d.chance(0.7)]
    return d.node("Squeeze", [x], squeeze_dims=dims or None)


def _expand_dims(d: Draw) -> FuzzNode:
    x = d.value(ALL, 0, 3)
    return d.node("ExpandDims", [x, int32(d, d.integer(-d.known(x).ndim - 1, d.known(x).ndim))])


def _concat(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 1, 4)
    a, at = d.known(x), d.integer(0, d.known(x).ndim - 1)

    def part() -> str:
        return x if d.chance(0.15) else d.like(x, [d.size() if i == at else n for i, n in enumerate(a.shape)])

    names = [x, *(part() for _ in range(d.integer(0, 3)))]
    return d.node("ConcatV2", [*names, int32(d, at if d.chance(0.7) else at - a.ndim)], N=len(names))


def _pack(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 0, 3)
    names = [x, *(x if d.chance(0.4) else d.like(x, d.known(x).shape) for _ in range(d.integer(0, 2)))]
    return d.node("Pack", names, N=len(names), axis=d.integer(0, d.known(x).ndim))


def _unpack(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 1, 4)
    axis = d.pick([i for i, n in enumerate(d.known(x).shape) if 1 <= n <= 4])
    count = d.known(x).shape[axis]
    return d.node("Unpack", [x], outputs=count, num=count, axis=axis)


def _split(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 1, 4)
    axis, count = d.pick([(i, c) for i, n in enumerate(d.known(x).shape) for c in (1, 2, 3, 4) if n and n % c == 0])
    return d.node("Split", [int32(d, axis), x], outputs=count, num_split=count)


def _split_v(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 1, 4)
    axis, count = d.integer(0, d.known(x).ndim - 1), d.integer(1, 4)
    n = d.known(x).shape[axis]
    parts = [int(p) for p in np.diff([0, *sorted(d.integer(0, n) for _ in range(count - 1)), n])]
    return d.node("SplitV", [x, int32(d, parts), int32(d, axis)], outputs=count, num_split=count)


def _slice(d: Draw) -> FuzzNode:
    x = d.value(ALL, 1, 4)
    begin = [d.integer(0, max(n - 1, 0)) if d.chance(0.6) else 0 for n in d.known(x).shape]
    size = [
        -1 if d.chance(0.4) else d.integer(min(1, n - b), n - b) for b, n in zip(begin, d.known(x).shape, strict=True)
    ]
    return d.node("Slice", [x, int32(d, begin), int32(d, size)])


def _strided_slice(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 1, 4)
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
        at = d.integer(0, len(shape) - 1)
        masks["shrink_axis_mask"], strides[at] = 1 << at, 1
        begins[at] = d.integer(-shape[at], shape[at] - 1) if shape[at] else 0
        ends[at] = begins[at] + 1
    elif d.chance(0.15):
        masks["new_axis_mask"] = 1 << d.integer(0, len(shape) - 1)
    elif d.chance(0.15):
        masks["ellipsis_mask"] = 1 << d.integer(0, len(shape) - 1)
    return d.node("StridedSlice", [x, int32(d, begins), int32(d, ends), int32(d, strides)], **masks)


def _gather(d: Draw) -> FuzzNode:
    x = d.value(ALL, 1, 4)
    axis = d.integer(0, d.known(x).ndim - 1)
    positions = d.new(d.array("int32", d.shape(0, 2, 20), 0, max(d.known(x).shape[axis] - 1, 0)))
    return d.node("GatherV2", [x, positions, int32(d, axis)])


def _gather_nd(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 1, 4)
    shape = d.known(x).shape
    rank, lead = d.integer(1, len(shape)), d.shape(1, 2, 12)
    columns = [d.rng.integers(0, max(n, 1), lead) for n in shape[:rank]]
    return d.node("GatherNd", [x, d.new(np.stack(columns, -1).astype("int32"))])


def _scatter_nd(d: Draw) -> FuzzNode:
    shape = [d.integer(1, 4) for _ in range(d.integer(1, 3))]
    rank, count = d.integer(1, len(shape)), d.integer(1, 5)
    at = np.stack([d.rng.integers(0, n, count) for n in shape[:rank]], -1).astype("int32")
    wanted = (count, *shape[rank:])
    updates = d.value(BOTH, fits=lambda a: a.shape == wanted, make=lambda kind: d.array(kind, wanted))
    return d.node("ScatterNd", [d.new(at), updates, int32(d, shape)])


def _pad(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(BOTH, 1, 4)
        a = d.known(x)
        mode = d.pick(("REFLECT", "SYMMETRIC"))
        most = [(n - 1 if mode == "REFLECT" else n) if op == "MirrorPad" else 3 for n in a.shape]
        pads = [[d.integer(0, max(min(m, 3), 0)) if d.chance(0.6) else 0 for _ in range(2)] for m in most]
        value = [d.constant(d.pick((0, 1, 5)), a.dtype.name)] if op == "PadV2" else []
        return d.node(op, [x, int32(d, pads), *value], mode=mode if op == "MirrorPad" else None)

    return row


def _tile(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 1, 4)
    return d.node("Tile", [x, int32(d, [d.pick((1, 1, 2, 3)) for _ in d.known(x).shape])])


def _broadcast_to(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 1, 3)
    shape = [n if n != 1 or d.chance(0.4) else d.integer(1, 4) for n in d.known(x).shape]
    return d.node("BroadcastTo", [x, int32(d, [d.integer(1, 3)] * d.integer(0, 1) + shape)])


def _reverse(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 1, 4)
    return d.node("ReverseV2", [x, int32(d, d.axes(d.known(x).ndim, 1))])


def pictures(d: Draw, channels: int = 1, height: int = 1, width: int = 1) -> str:
    """An operand N H W C; the sizes are multiples that it must have."""
    h, w, c = height, width, channels

    def fits(a: Any) -> bool:
        return bool(a.shape[1] % h == 0 and a.shape[2] % w == 0 and a.shape[3] % c == 0 and 0 < a.size <= 1500)

    def make(kind: str) -> Any:
        shape = (d.pick((1, 1, 2)), h * d.integer(1, 8 // h), w * d.integer(1, 8 // w), c * d.pick((1, 2, 3, 4, 8)))
        return d.array(kind, shape)

    return d.value(REAL, 4, 4, fits, make)


def _depth_to_space(d: Draw) -> FuzzNode:
    b = d.integer(2, 3)
    return d.node("DepthToSpace", [pictures(d, b * b)], block_size=b, data_format="NHWC")


def _to_batch(d: Draw) -> FuzzNode:
    b, c = d.integer(1, 2), d.integer(1, 3)
    x = pictures(d)
    _, height, width, _ = d.known(x).shape
    pads = [[d.integer(0, 1), 0], [d.integer(0, 1), 0]]
    for pad, n, block in ((pads[0], height, b), (pads[1], width, c)):
        pad[1] = -(n + pad[0]) % block
    return d.node("SpaceToBatchND", [x, int32(d, [b, c]), int32(d, pads)])


def _from_batch(d: Draw) -> FuzzNode:
    b, c = d.integer(1, 2), d.integer(1, 3)

    def make(kind: str) -> Any:
        return d.array(kind, (b * c, d.integer(1, 4), d.integer(1, 4), d.integer(1, 3)))

    x = d.value(REAL, 4, 4, lambda a: a.shape[0] == b * c and a.size > 0, make)
    _, height, width, _ = d.known(x).shape
    crops = [[d.integer(0, min(1, n * k - 1)), 0] for n, k in ((height, b), (width, c))]
    return d.node("BatchToSpaceND", [x, int32(d, [b, c]), int32(d, crops)])


def _resize(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = pictures(d)
        _, height, width, _ = d.known(x).shape
        way = d.integer(0, 2)
        size = [d.pick((n, 2 * n, max(n // 2, 1), d.integer(1, 9))) for n in (height, width)]
        return d.node(op, [x, int32(d, size)], align_corners=way == 1, half_pixel_centers=way == 2)

    return row


def _one_hot(d: Draw) -> FuzzNode:
    ends = [d.constant(n, "float32") for n in (d.pick((1, 5)), d.pick((0, -1)))]
    return d.node("OneHot", [d.value(("int32",), 1, 2), int32(d, d.integer(1, 6)), *ends], T="DT_FLOAT")


def _fill(d: Draw) -> FuzzNode:
    kind = d.dtype(BOTH)
    return d.node(
        "Fill",
        [int32(d, list(d.shape(1, 3, 60))), d.constant(d.pick((0, 2, -1)), kind)],
        T="DT_FLOAT" if kind == "float32" else "DT_INT32",
    )


def _range(d: Draw) -> FuzzNode:
    start, step, count = d.integer(-3, 3), d.pick((1, 2, -1, -3)), d.integer(1, 7)
    kind = d.dtype(BOTH)
    return d.node(
        "Range",
        [d.constant(n, kind) for n in (start, start + step * count, step)],
        Tidx="DT_FLOAT" if kind == "float32" else "DT_INT32",
    )


def _unique(d: Draw) -> FuzzNode:
    return d.node("Unique", [d.value(BOTH, 1, 1)], outputs=2)


def _update(d: Draw) -> FuzzNode:
    x = d.value(BOTH, 1, 3, lambda a: min(a.shape) > 0)
    shape = d.known(x).shape
    rank = d.integer(1, len(shape))
    places = int(np.prod(shape[:rank]))
    count = d.integer(1, min(places, 5))
    at = np.stack(np.unravel_index(d.rng.permutation(places)[:count], shape[:rank]), -1).astype("int32")
    return d.node("TensorScatterUpdate", [x, d.new(at), d.like(x, (count, *shape[rank:]))])


def _band(d: Draw) -> FuzzNode:
    return d.node("MatrixBandPart", [d.value(REAL, 2, 3), int32(d, d.integer(-1, 2)), int32(d, d.integer(-1, 2))])


ROWS: dict[str, Row] = {
    "BatchToSpaceND": _from_batch,
    "BroadcastTo": _broadcast_to,
    "ConcatV2": _concat,
    "DepthToSpace": _depth_to_space,
    "ExpandDims": _expand_dims,
    "Fill": _fill,
    "GatherNd": _gather_nd,
    "GatherV2": _gather,
    "MatrixBandPart": _band,
    "MirrorPad": _pad("MirrorPad"),
    "OneHot": _one_hot,
    "Pack": _pack,
    "Pad": _pad("Pad"),
    "PadV2": _pad("PadV2"),
    "Range": _range,
    "Reshape": _reshape,
    "ResizeBilinear": _resize("ResizeBilinear"),
    "ResizeNearestNeighbor": _resize("ResizeNearestNeighbor"),
    "ReverseV2": _reverse,
    "ScatterNd": _scatter_nd,
    "Slice": _slice,
    "SpaceToBatchND": _to_batch,
    "Split": _split,
    "SplitV": _split_v,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "TensorScatterUpdate": _update,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unique": _unique,
    "Unpack": _unpack,
    "Where": lambda d: d.node("Where", [d.value(("bool",), 1, 3)]),
}
