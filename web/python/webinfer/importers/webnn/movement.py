"""WebNN operators that move elements."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.webnn.operation import Convert, Operation
from webinfer.ops import movement as mv

PAD_MODES = {"constant": "constant", "edge": "edge", "reflection": "reflect", "symmetric": "symmetric"}


def _concat(op: Operation) -> Value:
    return op.emit(mv.CONCAT, op.named(op.need("inputs")), mv.ConcatAttrs(op.need("axis")))


def _expand(op: Operation) -> Value:
    return op.emit(mv.EXPAND, [op.value("input")], mv.ExpandAttrs(tuple(op.need("newShape"))))


def _pad(op: Operation) -> Value:
    mode = PAD_MODES.get(op.get("mode", "constant"))
    if mode is None:
        op.fail(f"pad mode {op.get('mode')!r} is not one of {sorted(PAD_MODES)}")
    attrs = mv.PadAttrs(tuple(op.need("beginningPadding")), tuple(op.need("endingPadding")), op.get("value", 0), mode)
    return op.emit(mv.PAD, [op.value("input")], attrs)


def _reshape(op: Operation) -> Value:
    return op.emit(mv.RESHAPE, [op.value("input")], mv.ReshapeAttrs(tuple(op.need("newShape"))))


def _reverse(op: Operation) -> Value:
    x = op.value("input")
    axes = op.get("axes", range(x.type.rank))
    return op.emit(mv.REVERSE, [x], mv.ReverseAttrs(tuple(axes)))


def _slice(op: Operation) -> Value:
    """`sizes` is the window; with strides, the result is shorter."""
    x, starts, windows = op.value("input"), tuple(op.need("starts")), op.need("sizes")
    steps = tuple(op.get("strides", [1] * x.type.rank))
    sizes = tuple(-(-window // step) for window, step in zip(windows, steps, strict=True))
    return op.emit(mv.SLICE, [x], mv.SliceAttrs(starts, sizes, steps))


def _split(op: Operation) -> list[Value]:
    x, axis, splits = op.value("input"), op.get("axis", 0), op.need("splits")
    if not 0 <= axis < x.type.rank:
        op.fail(f"axis {axis} is not an axis of {x.type.shape}")
    if isinstance(splits, int):
        if splits < 1 or x.type.shape[axis] % splits:
            op.fail(f"{x.type.shape[axis]} elements do not split into {splits} equal parts")
        splits = [x.type.shape[axis] // splits] * splits
    return op.pieces(x, axis, splits)


def _tile(op: Operation) -> Value:
    return op.emit(mv.TILE, [op.value("input")], mv.TileAttrs(tuple(op.need("repetitions"))))


def _transpose(op: Operation) -> Value:
    x = op.value("input")
    perm = op.get("permutation", range(x.type.rank)[::-1])
    return op.emit(mv.TRANSPOSE, [x], mv.TransposeAttrs(tuple(perm)))


CONVERTERS: dict[str, Convert] = {
    "concat": _concat,
    "expand": _expand,
    "pad": _pad,
    "reshape": _reshape,
    "reverse": _reverse,
    "slice": _slice,
    "split": _split,
    "tile": _tile,
    "transpose": _transpose,
}
