"""Operators that move elements and compute none.

Each row of `COPIES` says an operator as strided copies; the output's elements that no copy writes
(padding) hold `fill`. reshape has no copy: it is the same bytes.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from webinfer.errors import ShapeError
from webinfer.expr.formula import Formula, clamp, select
from webinfer.expr.kernel import Kernel, Tensor, axes, element, sizes
from webinfer.graph.ir import Case, Op, TensorType
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import EXACT, declare, move_cost, need
from webinfer.ops.strides import StridedCopy, coalesce, row_major

Inputs = Sequence[TensorType | None]


@dataclass(frozen=True, slots=True)
class ReshapeAttrs:
    """reshape: the new shape, with as many elements."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TransposeAttrs:
    """transpose: axis i of y is axis perm[i] of x."""

    perm: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SliceAttrs:
    """y[i] = x[starts + i*steps]; a negative step runs backwards from its start."""

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ExpandAttrs:
    """expand: the shape that x broadcasts to."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TileAttrs:
    """tile: how often x is repeated along each axis."""

    repeats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConcatAttrs:
    """concat: the axis along which the inputs follow each other."""

    axis: int


@dataclass(frozen=True, slots=True)
class PadAttrs:
    """pad: elements added before and after each axis, and where their value comes from."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    value: float = 0.0  # in stored units: a quantised zero is the zero point; an int beside integers, exact
    mode: str = "constant"  # constant, edge, reflect, symmetric


@dataclass(frozen=True, slots=True)
class ReverseAttrs:
    """reverse: the axes that run backwards."""

    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlockAttrs:
    """depth_to_space and space_to_depth: the side of a square block of pixels."""

    block: int


def _reshape(inputs: Inputs, a: ReshapeAttrs) -> tuple[TensorType, ...]:
    x = need("reshape", "x", inputs[0])
    if math.prod(a.shape) != x.size or any(d < 0 for d in a.shape):
        raise ShapeError(f"reshape: {x.shape} has {x.size} elements, {a.shape} does not")
    return (TensorType(a.shape, x.dtype, x.quant),)


def _transpose(inputs: Inputs, a: TransposeAttrs) -> tuple[TensorType, ...]:
    x = need("transpose", "x", inputs[0])
    if sorted(a.perm) != list(range(x.rank)):
        raise ShapeError(f"transpose: {a.perm} is not a permutation of the {x.rank} axes of {x.shape}")
    return (TensorType(tuple(x.shape[i] for i in a.perm), x.dtype, x.quant),)


def _slice(inputs: Inputs, a: SliceAttrs) -> tuple[TensorType, ...]:
    x = need("slice", "x", inputs[0])
    if not len(a.starts) == len(a.sizes) == len(a.steps) == x.rank:
        raise ShapeError(f"slice: starts {a.starts}, sizes {a.sizes}, steps {a.steps} do not fit {x.shape}")
    for dim, start, size, step in zip(x.shape, a.starts, a.sizes, a.steps, strict=True):
        last = start + (size - 1) * step
        if step == 0 or size < 0 or (size > 0 and not (0 <= start < dim and 0 <= last < dim)):
            raise ShapeError(f"slice: start {start}, size {size}, step {step} leaves an axis of {dim} in {x.shape}")
    return (TensorType(a.sizes, x.dtype, x.quant),)


def _expand(inputs: Inputs, a: ExpandAttrs) -> tuple[TensorType, ...]:
    x = need("expand", "x", inputs[0])
    padded = (1,) * (len(a.shape) - x.rank) + x.shape
    if len(padded) != len(a.shape) or any(d not in (1, t) for d, t in zip(padded, a.shape, strict=True)):
        raise ShapeError(f"expand: {x.shape} does not broadcast to {a.shape}")
    return (TensorType(a.shape, x.dtype, x.quant),)


def _tile(inputs: Inputs, a: TileAttrs) -> tuple[TensorType, ...]:
    x = need("tile", "x", inputs[0])
    if len(a.repeats) != x.rank or any(r < 0 for r in a.repeats):
        raise ShapeError(f"tile: repeats {a.repeats} do not fit {x.shape}")
    return (TensorType(tuple(d * r for d, r in zip(x.shape, a.repeats, strict=True)), x.dtype, x.quant),)


def _concat(inputs: Inputs, a: ConcatAttrs) -> tuple[TensorType, ...]:
    tensors = [need("concat", f"input {i}", t) for i, t in enumerate(inputs)]
    if not tensors:
        raise ShapeError("concat: needs at least one input")
    first = tensors[0]
    if not 0 <= a.axis < first.rank:
        raise ShapeError(f"concat: axis {a.axis} is not an axis of {first.shape}")
    for t in tensors[1:]:
        others = zip(first.shape, t.shape, strict=False)
        if (
            t.rank != first.rank
            or t.dtype is not first.dtype
            or any(p != q for i, (p, q) in enumerate(others) if i != a.axis)
        ):
            raise ShapeError(f"concat on axis {a.axis}: {first} and {t} do not fit")
    shape = list(first.shape)
    shape[a.axis] = sum(t.shape[a.axis] for t in tensors)
    return (TensorType(tuple(shape), first.dtype, first.quant),)


PAD_MODES = ("constant", "edge", "reflect", "symmetric")


def _pad(inputs: Inputs, a: PadAttrs) -> tuple[TensorType, ...]:
    x = need("pad", "x", inputs[0])
    if not len(a.before) == len(a.after) == x.rank or min((*a.before, *a.after, 0)) < 0 or a.mode not in PAD_MODES:
        raise ShapeError(f"pad: before {a.before}, after {a.after}, mode {a.mode!r} do not fit {x.shape}")
    if a.mode == "constant" and not x.dtype.is_float and not x.dtype.range[0] <= a.value <= x.dtype.range[1]:
        raise ShapeError(f"pad: the value {a.value} does not fit {x.dtype}, which holds {x.dtype.range}")
    spare = {"constant": None, "edge": None, "reflect": 1, "symmetric": 0}[a.mode]
    if a.mode == "edge" and any(d == 0 and p + q for d, p, q in zip(x.shape, a.before, a.after, strict=True)):
        raise ShapeError(f"pad: {x.shape} has an empty axis, which has no edge to repeat")
    if spare is not None:
        for dim, p, q in zip(x.shape, a.before, a.after, strict=True):
            if max(p, q) > max(dim - spare, 0):
                raise ShapeError(f"pad: {a.mode} padding {p}, {q} is larger than an axis of {dim} allows")
    return (TensorType(tuple(p + d + q for d, p, q in zip(x.shape, a.before, a.after, strict=True)), x.dtype, x.quant),)


def _depth_to_space(inputs: Inputs, a: BlockAttrs) -> tuple[TensorType, ...]:
    x = need("depth_to_space", "x", inputs[0], 4)
    n, h, w, c = x.shape
    if a.block < 1 or c % (a.block * a.block):
        raise ShapeError(f"depth_to_space: {c} channels do not split into blocks of {a.block}x{a.block}")
    return (TensorType((n, h * a.block, w * a.block, c // (a.block * a.block)), x.dtype, x.quant),)


def _space_to_depth(inputs: Inputs, a: BlockAttrs) -> tuple[TensorType, ...]:
    x = need("space_to_depth", "x", inputs[0], 4)
    n, h, w, c = x.shape
    if a.block < 1 or h % a.block or w % a.block:
        raise ShapeError(f"space_to_depth: {h}x{w} pixels do not split into blocks of {a.block}x{a.block}")
    return (TensorType((n, h // a.block, w // a.block, c * a.block * a.block), x.dtype, x.quant),)


def _x(*shape: int) -> tuple[TensorType, ...]:
    return (TensorType(shape),)


def _reverse(inputs: Inputs, a: ReverseAttrs) -> tuple[TensorType, ...]:
    x = need("reverse", "x", inputs[0])
    if len(set(a.axes)) != len(a.axes) or any(not 0 <= axis < x.rank for axis in a.axes):
        raise ShapeError(f"reverse: axes {a.axes} are not distinct axes of {x.shape}")
    return (TensorType(x.shape, x.dtype, x.quant),)


def _pad_kernel(inputs: Sequence[TensorType], outputs: Sequence[TensorType], a: PadAttrs) -> Kernel:
    (x,), (y,) = inputs, outputs
    merged = [(1, 1, 0)]  # lengths in x and in y, and what stands before; neighbours that are not padded are one axis
    for m, n, before in zip(x.shape, y.shape, a.before, strict=True):
        if m == n and merged[-1][0] == merged[-1][1]:
            merged[-1] = merged[-1][0] * m, merged[-1][1] * n, 0
        else:
            merged.append((m, n, before))
    merged = merged[1:] if len(merged) > 2 and merged[0][1] == 1 else [(1, 1, 0)] * (2 - len(merged)) + merged
    wide = sizes(**{f"y{d}": n for d, (_, n, _) in enumerate(merged)})
    space = axes(**{f"i{d}": n for d, n in enumerate(wide)})
    shape, at, outside = list(wide), list[Formula](space), list[Formula]()
    for d, (m, n, before) in enumerate(merged):
        if m != n:
            shape[d], first = sizes(**{f"x{d}": m, f"before{d}": before})
            i = space[d] - first
            at[d] = padded(i, shape[d], a.mode)
            outside += [i < 0, i >= shape[d]] if a.mode == "constant" else []
    value: Formula = (data := Tensor("x", tuple(shape)))[*at]
    if outside:
        value = select(functools.reduce(operator.or_, outside), element("fill", a.value), value)
    return Kernel(f"pad_{a.mode}", (data,), space, value)


def padded(i: Formula, size: Formula, mode: str) -> Formula:
    """Where a padded axis is read at index i, which may lie outside of it."""
    if mode == "edge":
        return clamp(i, 0, size - 1)
    if mode == "reflect":
        return (size - 1) - abs((size - 1) - abs(i))
    if mode == "symmetric":
        low = select(i < 0, -1 - i, i)
        return select(low >= size, 2 * size - 1 - low, low)
    return i


def _op(
    name: str, attrs: type, infer: Callable[[Inputs, Any], tuple[TensorType, ...]], *cases: Case,
    kernel: Callable[[Sequence[TensorType], Sequence[TensorType], Any], Kernel] | None = None,
) -> Op:  # fmt: skip
    return declare(Op(name, attrs, infer, move_cost, EXACT, cases, kernel=kernel))


RESHAPE = _op(
    "reshape", ReshapeAttrs, _reshape,
    Case("flatten", _x(2, 3, 4), ReshapeAttrs((24,))), Case("to scalar", _x(1, 1), ReshapeAttrs(())),
)  # fmt: skip
TRANSPOSE = _op(
    "transpose", TransposeAttrs, _transpose,
    Case("matrix", _x(3, 5), TransposeAttrs((1, 0))), Case("nchw to nhwc", _x(2, 3, 4, 5), TransposeAttrs((0,
        2, 3, 1))),
    Case("rank 5", _x(2, 3, 1, 4, 2), TransposeAttrs((4, 0, 3, 2, 1))),
)  # fmt: skip
SLICE = _op(
    "slice", SliceAttrs, _slice,
    Case("inner", _x(4, 6, 5), SliceAttrs((1, 2, 0), (2, 3, 5), (1, 1, 1))),
    Case("steps", _x(7, 9), SliceAttrs((0, 8), (4, 3), (2, -3))),
)  # fmt: skip
EXPAND = _op(
    "expand", ExpandAttrs, _expand,
    Case("rows", _x(1, 5), ExpandAttrs((3, 5))), Case("new axes", _x(3, 1), ExpandAttrs((2, 3, 4))),
        Case("scalar", _x(), ExpandAttrs((3, 3))),
)  # fmt: skip
TILE = _op(
    "tile",
    TileAttrs,
    _tile,
    Case("both axes", _x(2, 3), TileAttrs((2, 3))),
    Case("rank 4", _x(1, 2, 1, 3), TileAttrs((2, 1, 3, 2))),
)
CONCAT = _op(
    "concat", ConcatAttrs, _concat,
    Case("channels", (*_x(1, 2, 3, 4), *_x(1, 2, 3, 8)), ConcatAttrs(3)), Case("odd rows", (*_x(1, 5, 3),
        *_x(1, 2, 3), *_x(1, 1, 3)), ConcatAttrs(1)),
    Case("first axis", (*_x(2, 3), *_x(1, 3)), ConcatAttrs(0)),
)  # fmt: skip
PAD = _op(
    "pad", PadAttrs, _pad,
    Case("image", _x(1, 3, 4, 4), PadAttrs((0, 1, 2, 0), (0, 2, 0, 0))), Case("channels", _x(1, 3, 4, 6),
        PadAttrs((0, 0, 0, 0), (0, 0, 0, 5), 1.5)),
    Case("image, other than zero", _x(1, 3, 4, 4), PadAttrs((0, 1, 2, 0), (0, 2, 0, 0), -2.5)),
    Case("edge", _x(3, 4), PadAttrs((2, 1), (1, 3), mode="edge")), Case("reflect", _x(3, 4), PadAttrs((2, 1),
        (1, 3), mode="reflect")),
    Case("symmetric", _x(3, 4), PadAttrs((3, 1), (1, 4), mode="symmetric")),
    kernel=_pad_kernel,
)  # fmt: skip
DEPTH_TO_SPACE = _op(
    "depth_to_space",
    BlockAttrs,
    _depth_to_space,
    Case("2", _x(1, 2, 3, 12), BlockAttrs(2)),
    Case("3, batch 2", _x(2, 2, 1, 9), BlockAttrs(3)),
)
SPACE_TO_DEPTH = _op(
    "space_to_depth",
    BlockAttrs,
    _space_to_depth,
    Case("2", _x(1, 4, 6, 3), BlockAttrs(2)),
    Case("3, batch 2", _x(2, 6, 3, 2), BlockAttrs(3)),
)


REVERSE = _op(
    "reverse", ReverseAttrs, _reverse,
    Case("rows", _x(3, 4), ReverseAttrs((0,))), Case("outer and inner", _x(2, 3, 5), ReverseAttrs((0, 2))),
        Case("none", _x(2, 3), ReverseAttrs(())),
)  # fmt: skip


def _copy_transpose(x: TensorType, y: TensorType, a: TransposeAttrs) -> list[StridedCopy]:
    strides = row_major(x.shape)
    return [StridedCopy(0, y.shape, 0, tuple(strides[i] for i in a.perm), 0, row_major(y.shape))]


def _copy_slice(x: TensorType, y: TensorType, a: SliceAttrs) -> list[StridedCopy]:
    strides = row_major(x.shape)
    start = sum(p * q for p, q in zip(a.starts, strides, strict=True))
    return [
        StridedCopy(
            0, y.shape, start, tuple(p * q for p, q in zip(a.steps, strides, strict=True)), 0, row_major(y.shape)
        )
    ]


def _copy_expand(x: TensorType, y: TensorType, a: ExpandAttrs) -> list[StridedCopy]:
    padded = (1,) * (y.rank - x.rank) + x.shape
    strides = tuple(0 if d == 1 else s for d, s in zip(padded, row_major(padded), strict=True))
    return [StridedCopy(0, y.shape, 0, strides, 0, row_major(y.shape))]


def _copy_tile(x: TensorType, y: TensorType, a: TileAttrs) -> list[StridedCopy]:
    shape = tuple(n for pair in zip(a.repeats, x.shape, strict=True) for n in pair)
    strides = tuple(n for s in row_major(x.shape) for n in (0, s))
    return [StridedCopy(0, shape, 0, strides, 0, row_major(shape))]


def _copy_reverse(x: TensorType, y: TensorType, a: ReverseAttrs) -> list[StridedCopy]:
    strides = row_major(x.shape)
    start = sum((x.shape[axis] - 1) * strides[axis] for axis in a.axes)
    source = tuple(-s if i in a.axes else s for i, s in enumerate(strides))
    return [StridedCopy(0, y.shape, start, source, 0, row_major(y.shape))]


def _copy_depth_to_space(x: TensorType, y: TensorType, a: BlockAttrs) -> list[StridedCopy]:
    n, h, w, c = x.shape
    b, depth = a.block, c // (a.block * a.block)
    strides = (h * w * c, w * c, b * depth, c, depth, 1)  # n, h, bh, w, bw, depth
    return [StridedCopy(0, (n, h, b, w, b, depth), 0, strides, 0, row_major((n, h, b, w, b, depth)))]


def _copy_space_to_depth(x: TensorType, y: TensorType, a: BlockAttrs) -> list[StridedCopy]:
    forward = _copy_depth_to_space(y, x, a)[0]
    return [StridedCopy(0, forward.shape, 0, forward.target_strides, 0, forward.source_strides)]


_ONE_INPUT: dict[str, Callable[[TensorType, TensorType, Any], list[StridedCopy]]] = {
    "depth_to_space": _copy_depth_to_space,
    "expand": _copy_expand,
    "reverse": _copy_reverse,
    "slice": _copy_slice,
    "space_to_depth": _copy_space_to_depth,
    "tile": _copy_tile,
    "transpose": _copy_transpose,
}


def strided_copies(op: Op, inputs: Sequence[TensorType], y: TensorType, attrs: Any) -> list[StridedCopy] | None:
    """The operator as coalesced strided copies into a filled output, or None if it is not one."""
    if y.size == 0:
        return []
    if op is CONCAT:
        strides, at, copies = row_major(y.shape), 0, []
        for i, x in enumerate(inputs):
            copies.append(StridedCopy(i, x.shape, 0, row_major(x.shape), at * strides[attrs.axis], strides))
            at += x.shape[attrs.axis]
        return [coalesce(c) for c, x in zip(copies, inputs, strict=True) if x.size]
    x = inputs[0]
    if op is PAD and attrs.mode == "constant":
        strides = row_major(y.shape)
        start = sum(p * q for p, q in zip(attrs.before, strides, strict=True))
        return [coalesce(StridedCopy(0, x.shape, 0, row_major(x.shape), start, strides))] if x.size else []
    rule = _ONE_INPUT.get(op.name)
    return None if rule is None else [coalesce(c) for c in rule(x, y, attrs)]
