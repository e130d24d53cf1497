"""Layers that prepare inputs: numbers of categories, the middle of a picture. As TensorFlow.js computes them."""

from __future__ import annotations

import math

from webinfer.dtypes import DType, round_to_f32
from webinfer.graph.ir import Value
from webinfer.importers.core.geometry import check_window
from webinfer.importers.keras.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, reduce, resize


def _category(op: Operation) -> Value:
    """How often each category stands in a row, or whether it does."""
    x, (count,) = op.cast(op.value(0), DType.INT32), op.wholes("num_tokens", None, 1)
    mode = op.word("output_mode", "multi_hot").replace("_", "").lower()
    if mode == "int":
        return x
    if mode not in ("count", "multihot", "onehot"):
        op.refuse(f"output_mode {mode}")
    check_window(op, {"num_tokens": count})
    if x.type.rank not in (1, 2) or (mode == "onehot" and x.type.shape[-1] != 1):
        op.refuse(f"output_mode {mode} of {x.type}")
    rows = op.reshape(x, (*x.type.shape, 1))
    found = op.binary(ew.EQUAL, rows, op.constant(range(count), DType.INT32))
    axes = reduce.ReduceAttrs((x.type.rank - 1,))
    if mode == "count":
        return op.emit(reduce.REDUCE_SUM, [op.cast(found, DType.FLOAT32)], axes)
    return op.cast(op.emit(reduce.REDUCE_ANY, [found], axes), DType.FLOAT32)


def _middle(size: int, wanted: int, before: int) -> list[int]:
    """Rows of the middle as crop_and_resize samples them, which is not quite every row."""
    first, last = round_to_f32(before / size), round_to_f32((wanted + before) / size)
    if wanted == 1:
        places = [0.5 * (first + last) * (size - 1)]
    else:
        step = (last - first) * (size - 1) / (wanted - 1)
        places = [first * (size - 1) + i * step for i in range(wanted)]
    return [min(max(math.floor(place + 0.5), 0), size - 1) for place in places]


def _center(op: Operation) -> Value:
    """The middle of a picture [N, H, W, C]; of one that is smaller the whole, enlarged."""
    x, ((high,), (wide,)) = op.real(), (op.wholes("height", None, 1), op.wholes("width", None, 1))
    check_window(op, {"height": high, "width": wide})
    if x.type.rank != 4:
        op.refuse(f"pictures of {x.type}")
    tops = (x.type.shape[1] - high) // 2
    left = (x.type.shape[2] - wide) // 2
    if min(tops, left) < 0:
        return op.emit(resize.RESIZE_BILINEAR, [x], resize.ResizeAttrs((high, wide)))
    left = left or int(x.type.shape[2] != wide)
    for axis, size, before in ((1, high, tops), (2, wide, left)):
        places = _middle(x.type.shape[axis], size, before)
        if places == list(range(places[0], places[0] + size)):
            x = op.cut(x, axis, places[0], size)
        else:
            x = op.emit(gather.GATHER, [x, op.constant(places, DType.INT32)], gather.GatherAttrs(axis))
    return x


CONVERTERS: dict[str, Convert] = {
    "CategoryEncoding": _category,
    "CenterCrop": _center,
}
