"""Reductions over axes, and the positions of the largest or smallest elements."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Dispatch,
    Scratch,
    Source,
    Target,
    check_turns,
    groups_for,
    may_loop,
    read,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import (
    WIDE,
    cast_dispatch,
    is_quantized,
    on_reals,
    one_word,
)
from webinfer.backends.webgpu.lowerings.geometry import merged_strides, split_at
from webinfer.codegen.prelude import Param, f32, i32, u32, u32x8
from webinfer.codegen.reductions import Reduced
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType, round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Value
from webinfer.lowering.affine import scale_of, zero_of
from webinfer.ops import reduce as ops
from webinfer.ops.reduce import REDUCTIONS
from webinfer.ops.strides import row_major

# Elements from which a workgroup shares a row, or a shorter one where a core has at most FEW_ROWS, and from which it
# shares four columns. H100 (wgpu, 2026-11-28): an invocation each takes 4.9 times as long for 20,000 rows of 200, 1.7
# for 3,000 of 20, and 4 for 2,000 columns of 40; 60,000 rows of 64 take 1.5 times as long shared. On processors a
# barrier costs more: Mesa takes 0.4 and 0.26 of the time without.
LONG_ROW, SHARED_ROW, FEW_ROWS, LONG_COLUMN = 128, 16, 128, 32
SOFTWARE_ROW, SOFTWARE_COLUMN = 256, 64
# Elements up to which a workgroup reduces each four of them: with 4,096 two graphs took 5 and 17 times as long (H100,
# 2026-11-28).
FEW_RESULTS = 1 << 14
# Elements of one result from which parts of it are reduced first, where results are few: 2,048 took 1.16 times as long,
# 8,192 1.14 (H100, 2026-11-28).
MANY = 4096
# Results of a core that are too few for a workgroup each to keep a device busy: 256 of 4,096 took 0.5 of the time in
# parts, 400 to 512 rows of as many up to 1.4 times (H100, 2026-11-28).
FEW_LINES = 2
ONE_LOOP = 1 << 15  # elements that one workgroup reduces at most
PART = 512  # elements that a workgroup should reduce at least: 256 took 0.99 of the time, 2,048 1.19 (H100, 2026-11-28)
MANY_GROUPS = 1024  # workgroups that keep a device busy: 256 took 1.14 times as long, 4,096 1.09 (H100, 2026-11-28)


class Reduction(enum.StrEnum):
    """Cases of _reduce.wgsl that are not a row: what a set of elements is reduced to."""

    ALL = "all"
    ANY = "any"
    LOG_SUM_EXP = "log_sum_exp"
    QUANTIZED_SUM = "quantized_sum"
    STORED_SUM = "stored_sum"
    WHOLE_MEAN = "whole_mean"


Kernel = Reduction | Reduced
L2, MAX, MEAN, SUM = (
    Reduced(row) for op in (ops.REDUCE_L2, ops.REDUCE_MAX, ops.REDUCE_MEAN, ops.REDUCE_SUM) if (row := REDUCTIONS[op])
)


def _passes(kernel: Kernel) -> tuple[Kernel, Kernel]:
    """A reduction in two passes: what makes a partial result, and what makes the result of those."""
    if isinstance(kernel, Reduced):
        first, last = kernel.row.passes()
        return Reduced(first), Reduced(last)
    stored = (Reduction.STORED_SUM, Reduction.QUANTIZED_SUM)
    return stored if kernel is Reduction.QUANTIZED_SUM else (kernel, SUM if kernel is Reduction.STORED_SUM else kernel)


@one_word
def reduce(node: Node, target: Target) -> Sequence[Dispatch]:
    """reduce_workgroup.wgsl for long rows, reduce_columns.wgsl for long columns of few results, else reduce_each.wgsl.

    What would leave most of the device idle, or one invocation too long at work, goes through reduce_part.wgsl.

    Sums and means of quantised tensors are computed on the stored integers, other reductions of them on real numbers;
    but the extremes on integers where both scales are equal.

    Raises:  UnsupportedOpError for a root or logarithm of integers
    """
    x, y, name = node.required_input(0), node.output, node.op.name
    row, kept_whole = REDUCTIONS[node.op], node.op in (ops.REDUCE_ALL, ops.REDUCE_ANY, ops.REDUCE_MEAN)
    if not (kept_whole or (row and row.is_whole) or x.type.dtype.is_float or is_quantized(x)):
        raise UnsupportedOpError([f"{name} of {x.type.dtype}; cast to float32 first"])
    if is_quantized(x) and is_quantized(y):
        if name in ("reduce_sum", "reduce_mean"):
            return _reduce(node, target, Reduction.QUANTIZED_SUM, _rounding(node))
        if name in ("reduce_max", "reduce_min") and x.type.quant == y.type.quant:
            return _plain(node, target)
    return on_reals(_plain)(node, target)


def long_row(rows: int, target: Target) -> int:
    """Elements from which a workgroup shares each of so many rows."""
    if target.software:
        return SOFTWARE_ROW
    return LONG_ROW if rows > FEW_ROWS * target.cores else SHARED_ROW


def _rounding(node: Node) -> tuple[Param, ...]:
    x, y = node.required_input(0), node.output
    count = x.type.size // max(y.type.size, 1) if node.op.name == "reduce_mean" else 1
    low, high = y.type.dtype.range
    scale = round_to_f32(scale_of(x.type) / round_to_f32(scale_of(y.type) * count))
    return (*f32(scale=scale), *i32(x_zero=zero_of(x.type), y_zero=zero_of(y.type), low=low, high=high))


def _extremes(dtype: DType) -> tuple[Param, ...]:
    """Numbers below and above all others of a type, as its kernel computes with it."""
    if dtype.is_float:
        return f32(lowest=-math.inf, highest=math.inf)
    if dtype is DType.UINT32:
        return u32(lowest=0, highest=2**32 - 1)
    return i32(lowest=-(2**31), highest=2**31 - 1)


def _plain(node: Node, target: Target) -> list[Dispatch]:
    x, row = node.required_input(0), REDUCTIONS[node.op]
    if node.op is ops.REDUCE_MEAN and not x.type.dtype.is_float:
        return _whole_mean(node, target)
    kernel = Reduced(row) if row else Reduction(node.op.name.removeprefix("reduce_"))
    return _reduce(node, target, kernel, _extremes(x.type.dtype) if _is_extreme(kernel) else ())


def _is_extreme(kernel: Kernel) -> bool:
    return isinstance(kernel, Reduced) and kernel.is_extreme


def _whole_mean(node: Node, target: Target) -> list[Dispatch]:
    """A mean of integers in one pass: partial sums are two numbers, of which a second pass would read one."""
    x, y = node.required_input(0), node.output
    count = x.type.size // max(y.type.size, 1)
    if count > ONE_LOOP:
        raise UnsupportedOpError([f"reduce_mean of {count} integers of {x.type.dtype}; at most {ONE_LOOP} a result"])
    check_turns(_turns(x, node.attrs.axes, count), target, "a mean in loops")
    return [_at_once(node, target, Reduction.WHOLE_MEAN, ())]


def _reduce(node: Node, target: Target, row: Kernel, extra: tuple[Param, ...]) -> list[Dispatch]:
    x, y = node.required_input(0), node.output
    reduced = x.type.size // max(y.type.size, 1)
    is_long = reduced > ONE_LOOP or not may_loop(_turns(x, node.attrs.axes, reduced), target)
    if y.type.size and (is_long or (reduced >= MANY and y.type.size < FEW_LINES * target.cores)):
        return _in_parts(node, target, row, extra)
    return [_at_once(node, target, row, extra)]


def _turns(x: Value, axes: Sequence[int], reduced: int) -> int:
    """How often an invocation of reduce_each.wgsl loops: over the elements, and for each over its merged axes."""
    return reduced * (1 + len(_groups(x.type.shape, axes)))


def _at_once(node: Node, target: Target, row: Kernel, extra: tuple[Param, ...]) -> Dispatch:
    x, y, axes = node.required_input(0), node.output, node.attrs.axes
    shape, strides = x.type.shape, row_major(x.type.shape)
    kept = [i for i in range(len(shape)) if i not in axes]
    reduced = math.prod(shape[i] for i in axes)
    last = sorted(axes) == list(range(len(kept), len(shape)))
    words = y.type.dtype in (DType.FLOAT32, DType.INT32, DType.UINT32)
    if last and words and reduced % 4 == 0 and reduced >= long_row(y.type.size, target):
        params = (*u32(rows=y.type.size, reduced=reduced), *extra)
        variables: dict[str, Variable] = {"workgroup": WORKGROUP, "op": row, **workgroup_reduction(target)}
        bindings = (read("x", x), write("y", y, single=True))
        groups, why = groups_for(y.type.size, target, 1), f"long rows, {workgroup_reduction_text(target)}"
        return Dispatch("reduce_workgroup", variables, bindings, params, groups, why)
    columns = _columns(shape, sorted(axes))
    long = SOFTWARE_COLUMN if target.software else LONG_COLUMN
    if columns is not None and reduced >= long and y.type.size <= FEW_RESULTS:
        return columns_dispatch(x, y, columns, row, extra, target)
    kept_size, kept_stride = merged_strides([shape[i] for i in kept], [strides[i] for i in kept])
    reduced_size, reduced_stride = merged_strides([shape[i] for i in sorted(axes)], [strides[i] for i in sorted(axes)])
    quads = (
        kept_stride[-1] == 1
        and kept_size[-1] % 4 == 0
        and all(s % 4 == 0 for s in (*kept_stride[:-1], *reduced_stride))
    )
    quads = quads and reduced > 1
    params = (
        *u32x8(kept_size=kept_size, kept_stride=kept_stride, reduced_size=reduced_size, reduced_stride=reduced_stride),
        *u32(count=y.type.size, reduced=reduced),
        *extra,
    )
    variables = {"workgroup": WORKGROUP, "op": row, "kept": len(kept_size), "reduced": len(reduced_size), "row": quads}
    groups = groups_for(-(-y.type.size // 4), target)
    return Dispatch(
        "reduce_each", variables, (read("x", x), write("y", y)), params, groups, "quads" if quads else "elements"
    )


def _in_parts(node: Node, target: Target, row: Kernel, extra: tuple[Param, ...]) -> list[Dispatch]:
    """Neighbouring axes by neighbouring axes, the last ones first; each group in parts, then the parts.

    Only the first pass sees elements of x, only the last one makes results: sums and products may be cut anywhere.
    """
    x, y = node.required_input(0), node.output
    first, last = _passes(row)
    between = _passes(first)[1]
    walks = [walk for group in _groups(x.type.shape, node.attrs.axes) for walk in _split(group)]
    word = WIDE.get(x.type.dtype, x.type.dtype)
    made: list[Dispatch] = []
    source: Source = x
    for i, (outer, depth, inner, part) in enumerate(walks):
        parts, ends = -(-depth // part), i == len(walks) - 1
        narrow = ends and y.type.dtype is not word
        result: Source = y if ends and not narrow else Scratch((outer, parts, inner), word)
        op = row if len(walks) == 1 else last if ends else first if i == 0 else between
        params = u32(
            count=outer * parts * -(-inner // 4), depth=depth, inner=inner, part=part, parts=parts,
            reduced=x.type.size // y.type.size,
        )  # fmt: skip
        quads = inner % 4 == 0 if inner > 1 else depth % 4 == 0 and part % 4 == 0
        variables: dict[str, Variable] = {
            "workgroup": WORKGROUP, "op": op, "inner": inner > 1, "quads": quads, "added": False,
            **workgroup_reduction(target),
        }  # fmt: skip
        bindings = (read("x", source), write("y", result, single=True))
        groups = groups_for(outer * parts * -(-inner // 4), target, 1)
        why = f"pass {i + 1} of {len(walks)}, {workgroup_reduction_text(target)}"
        numbers = (*params, *_stage(op, extra, i > 0))
        made.append(Dispatch("reduce_part", variables, bindings, numbers, groups, why))
        if narrow:
            made.append(cast_dispatch(result, y, target))
        source = result
    return made


def _stage(op: Kernel, extra: tuple[Param, ...], of_parts: bool) -> tuple[Param, ...]:
    """The parameters that one pass needs; partial sums of stored integers have no zero point any more."""
    if op is Reduction.STORED_SUM:
        return tuple(param for param in extra if param.name == "x_zero")
    if op is Reduction.QUANTIZED_SUM:
        return tuple(i32(x_zero=0)[0] if of_parts and param.name == "x_zero" else param for param in extra)
    return extra if _is_extreme(op) else ()


def _groups(shape: Sequence[int], axes: Sequence[int]) -> list[tuple[int, int, int]]:
    """(outer, depth, inner) of each run of neighbouring axes, the last run first, on what the ones before left."""
    left, found = list(shape), []
    axis = len(left) - 1
    while axis >= 0:
        first = axis
        while first in axes and first - 1 in axes:
            first -= 1
        depth = math.prod(left[first : axis + 1])
        if axis in axes and depth > 1:
            found.append((math.prod(left[:first]), depth, math.prod(left[axis + 1 :])))
            left[first : axis + 1] = [1] * (axis + 1 - first)
        axis = first - 1
    return found


def _split(group: tuple[int, int, int]) -> list[tuple[int, int, int, int]]:
    """(outer, depth, inner, part) of the passes over one group: parts first where a line is long, then all at once."""
    outer, depth, inner = group
    part = split_depth(outer * -(-inner // 4), depth)
    if part == depth:
        return [(*group, depth)]
    return [(*group, part), *_split((outer, -(-depth // part), inner))]


def split_depth(busy: int, depth: int) -> int:
    """How many elements of a line a workgroup should walk, where `busy` of them are at work; `depth` if all."""
    wanted = min(-(-depth // PART), max(-(-MANY_GROUPS // max(1, busy)), -(-depth // ONE_LOOP)))
    return depth if wanted <= 1 else -(-depth // (4 * wanted)) * 4


def _columns(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, int, int] | None:
    """(outer, depth, inner) if the axes are neighbours and whole quads lie behind them."""
    if not axes or list(axes) != list(range(axes[0], axes[-1] + 1)):
        return None
    inner = math.prod(shape[axes[-1] + 1 :])
    return None if inner % 4 else (math.prod(shape[: axes[0]]), math.prod(shape[a] for a in axes), inner)


def columns_dispatch(
    x: Value, y: Value, columns: tuple[int, int, int], row: Kernel, extra: tuple[Param, ...], target: Target
) -> Dispatch:
    """reduce_columns.wgsl: one workgroup reduces four neighbouring columns.

    `columns` is (outer, depth, inner) of x, whose middle dimension is reduced; inner is a multiple of 4. `extra` are
    the parameters that this reduction needs besides.
    """
    _, reduced, inner = columns
    params = (*u32(count=y.type.size, reduced=reduced, inner=inner), *extra)
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "op": row, **workgroup_reduction(target)}
    groups, why = groups_for(y.type.size // 4, target, 1), f"long columns, {workgroup_reduction_text(target)}"
    return Dispatch("reduce_columns", variables, (read("x", x), write("y", y)), params, groups, why)


class Kind(enum.StrEnum):
    """How arg_extreme_workgroup.wgsl ranks elements."""

    FLOAT = "float"
    SIGNED = "signed"
    UNSIGNED = "unsigned"


@one_word
def arg_extreme(node: Node, target: Target) -> list[Dispatch]:
    """arg_extreme_workgroup.wgsl for long lines and few results on hardware, else arg_extreme.wgsl."""
    x, y = node.required_input(0), node.output
    _, depth, inner = split_at(x.type.shape, node.attrs.axis)
    is_long = depth > ONE_LOOP or not may_loop(4 * (depth + 1), target)
    if is_long or (not target.software and depth >= LONG_ROW and y.type.size <= FEW_RESULTS):
        return [_arg_extreme_workgroup(node, target)]
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "largest": node.op.name == "arg_max", "float": x.type.dtype.is_float,
    }  # fmt: skip
    params = u32(count=y.type.size, depth=depth, inner=inner)
    bindings = (read("x", x), write("y", y))
    return [Dispatch("arg_extreme", variables, bindings, params, groups_for(-(-y.type.size // 4), target))]


def _arg_extreme_workgroup(node: Node, target: Target) -> Dispatch:
    x, y, dtype = node.required_input(0), node.output, node.required_input(0).type.dtype
    _, depth, inner = split_at(x.type.shape, node.attrs.axis)
    kind = Kind.FLOAT if dtype.is_float else Kind.UNSIGNED if dtype is DType.UINT32 else Kind.SIGNED
    variables = {
        "workgroup": WORKGROUP,
        "largest": node.op.name == "arg_max",
        "kind": kind,
        **workgroup_reduction(target),
    }
    params = u32(count=y.type.size, depth=depth, inner=inner)
    groups, why = groups_for(-(-y.type.size // 4), target, 1), f"long lines, {workgroup_reduction_text(target)}"
    return Dispatch("arg_extreme_workgroup", variables, (read("x", x), write("y", y)), params, groups, why)
