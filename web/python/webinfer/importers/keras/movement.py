"""Layers that move elements, look them up, or cut and pad."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.keras.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, reduce
from webinfer.ops import movement as mv


def _flatten(op: Operation) -> Value:
    x = op.value(0)
    if op.channels_first and x.type.rank > 2:
        x = op.transpose(x, (0, *range(2, x.type.rank), 1))
    return op.reshape(x, (x.type.shape[0], math.prod(x.type.shape[1:])))


def _reshape(op: Operation) -> Value:
    """One size may be open: null, or negative."""
    x, found = op.value(0), op.config.get("target_shape")
    sizes = [-1 if d is None else op.whole("target_shape", d) for d in (found or ())]
    known, inner = math.prod(d for d in sizes if d >= 0), math.prod(x.type.shape[1:])
    if sum(d < 0 for d in sizes) == 1 and known:
        sizes = [inner // known if d < 0 else d for d in sizes]
    return op.reshape(x, (x.type.shape[0], *sizes))


def _permute(op: Operation) -> Value:
    return op.transpose(op.value(0), (0, *op.wholes("dims")))


def _repeat(op: Operation) -> Value:
    x, (times,) = op.value(0), op.wholes("n", None, 1)
    n, width = x.type.shape
    return op.expand(op.reshape(x, (n, 1, width)), (n, times, width))


def _edges(op: Operation, name: str, axes: int) -> list[tuple[int, int]]:
    """What is added or cut before and after each axis: one number, one for each axis, or two."""
    found = op.config.get(name)
    found = 1 if found is None else found
    listed = found if isinstance(found, list) else [found] * axes
    listed = [listed] if axes == 1 and len(listed) == 2 else listed
    pairs = [tuple(op.whole(name, n) for n in (e if isinstance(e, list) else (e, e))) for e in listed]
    if len(pairs) != axes or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        op.fail(f"{name} {str(found)[:40]} does not fit {axes} axes")
    first = 2 if op.channels_first else 1
    if op.value(0).type.rank != axes + 2:
        op.fail(f"it reads {op.value(0).type}, needs rank {axes + 2}")
    return [(0, 0)] * first + [(pair[0], pair[1]) for pair in pairs] + [(0, 0)] * (2 - first)


def _padding(axes: int) -> Convert:
    def convert(op: Operation) -> Value:
        before, after = zip(*_edges(op, "padding", axes), strict=True)
        return op.emit(mv.PAD, [op.value(0)], mv.PadAttrs(tuple(before), tuple(after), 0.0, "constant"))

    return convert


def _cropping(axes: int) -> Convert:
    def convert(op: Operation) -> Value:
        x = op.value(0)
        for axis, (before, after) in enumerate(_edges(op, "cropping", axes)):
            size = x.type.shape[axis] - before - after
            if size < 1:
                op.fail(f"nothing is left of {x.type}")
            x = op.cut(x, axis, before, size) if before or after else x
        return x

    return convert


def _embedding(op: Operation) -> Value:
    """Rows of a table. With `mask_zero` the number 0 stands for steps that do not count."""
    x = op.cast(op.value(0), DType.INT32)
    y = op.emit(gather.GATHER, [op.weight("embeddings", 2), x], gather.GatherAttrs(0))
    if op.flag("mask_zero") and x.type.rank == 2:
        op.context.masks[y] = op.binary(ew.NOT_EQUAL, x, op.scalar_of(0, DType.INT32))
    return y


def _masking(op: Operation) -> Value:
    """Steps whose elements are all the same number do not count, and are zeros."""
    x = op.real()
    other = op.binary(ew.NOT_EQUAL, x, op.scalar_of(op.number("mask_value"), DType.FLOAT32))
    held = op.emit(reduce.REDUCE_ANY, [other], reduce.ReduceAttrs((x.type.rank - 1,), True))
    y = op.binary(ew.MUL, x, op.cast(held, DType.FLOAT32))
    if x.type.rank == 3:
        op.context.masks[y] = op.reshape(held, x.type.shape[:2])
    return y


CONVERTERS: dict[str, Convert] = {
    "Cropping1D": _cropping(1),
    "Cropping2D": _cropping(2),
    "Cropping3D": _cropping(3),
    "Embedding": _embedding,
    "Flatten": _flatten,
    "Masking": _masking,
    "Permute": _permute,
    "RepeatVector": _repeat,
    "Reshape": _reshape,
    "ZeroPadding1D": _padding(1),
    "ZeroPadding2D": _padding(2),
    "ZeroPadding3D": _padding(3),
}
