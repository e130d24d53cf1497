"""Reductions over axes, and the positions of the largest or smallest elements."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Dispatch,
    Target,
    groups_for,
    read,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import (
    is_quantized,
    on_reals,
)
from webinfer.backends.webgpu.lowerings.geometry import merged_strides, split_at
from webinfer.codegen.prelude import Param, f32, i32, u32, u32x8
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.graph.ir import Node, Value
from webinfer.lowering.affine import round_to_f32, scale_of, zero_of
from webinfer.ops.strides import row_major

LONG_ROW = 256  # elements from which a workgroup shares one row
FEW_RESULTS = 1 << 14  # elements up to which a workgroup reduces each four of them
FLOAT_MAX = 3.4028234663852886e38  # the largest finite float32


class Reduction(enum.StrEnum):
    """The cases of _reduce.wgsl: what a set of elements is reduced to."""

    ALL = "all"
    ANY = "any"
    L1 = "l1"
    L2 = "l2"
    LOG_SUM = "log_sum"
    LOG_SUM_EXP = "log_sum_exp"
    MAX = "max"
    MEAN = "mean"
    MIN = "min"
    PRODUCT = "product"
    QUANTIZED_SUM = "quantized_sum"
    SUM = "sum"
    SUM_SQUARE = "sum_square"


def reduce(node: Node, target: Target) -> Sequence[Dispatch]:
    """reduce_workgroup.wgsl for long rows, reduce_columns.wgsl for long columns of few results, else reduce_each.wgsl.

    Sums and means of quantised tensors are computed on the stored integers, other reductions of them on real numbers;
    but the extremes on integers where both scales are equal.
    """
    x, y, name = node.required_input(0), node.output, node.op.name
    if is_quantized(x) and is_quantized(y):
        if name in ("reduce_sum", "reduce_mean"):
            return [_reduce(node, target, Reduction.QUANTIZED_SUM, _rounding(node))]
        if name in ("reduce_max", "reduce_min") and x.type.quant == y.type.quant:
            return _plain(node, target)
    return on_reals(_plain)(node, target)


def _rounding(node: Node) -> tuple[Param, ...]:
    x, y = node.required_input(0), node.output
    count = x.type.size // max(y.type.size, 1) if node.op.name == "reduce_mean" else 1
    low, high = y.type.dtype.range
    scale = round_to_f32(scale_of(x.type) / round_to_f32(scale_of(y.type) * count))
    return (*f32(scale=scale), *i32(x_zero=zero_of(x.type), y_zero=zero_of(y.type), low=low, high=high))


def _extremes(dtype: DType) -> tuple[Param, ...]:
    """Numbers below and above all others of a type, as its kernel computes with it."""
    if dtype.is_float:
        return f32(lowest=-FLOAT_MAX, highest=FLOAT_MAX)
    if dtype in (DType.UINT32, DType.UINT64):
        return u32(lowest=0, highest=2**32 - 1)
    return i32(lowest=-(2**31), highest=2**31 - 1)


def _plain(node: Node, target: Target) -> list[Dispatch]:
    x = node.required_input(0)
    row = Reduction(node.op.name.removeprefix("reduce_"))
    extra = _extremes(x.type.dtype) if row in (Reduction.MAX, Reduction.MIN) else ()
    return [_reduce(node, target, row, extra)]


def _reduce(node: Node, target: Target, row: Reduction, extra: tuple[Param, ...]) -> Dispatch:
    x, y, axes = node.required_input(0), node.output, node.attrs.axes
    shape, strides = x.type.shape, row_major(x.type.shape)
    kept = [i for i in range(len(shape)) if i not in axes]
    reduced = math.prod(shape[i] for i in axes)
    last = sorted(axes) == list(range(len(kept), len(shape)))
    words = y.type.dtype in (DType.FLOAT32, DType.INT32, DType.UINT32)
    if last and words and reduced % 4 == 0 and reduced >= LONG_ROW:
        params = (*u32(rows=y.type.size, reduced=reduced), *extra)
        variables: dict[str, Variable] = {"workgroup": WORKGROUP, "op": row, **workgroup_reduction(target)}
        bindings = (read("x", x), write("y", y, single=True))
        groups, why = groups_for(y.type.size, target, 1), f"long rows, {workgroup_reduction_text(target)}"
        return Dispatch("reduce_workgroup", variables, bindings, params, groups, why)
    columns = _columns(shape, sorted(axes))
    if columns is not None and reduced >= LONG_ROW // 4 and y.type.size <= FEW_RESULTS:
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


def _columns(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, int, int] | None:
    """(outer, depth, inner) if the axes are neighbours and whole quads lie behind them."""
    if not axes or list(axes) != list(range(axes[0], axes[-1] + 1)):
        return None
    inner = math.prod(shape[axes[-1] + 1 :])
    return None if inner % 4 else (math.prod(shape[: axes[0]]), math.prod(shape[a] for a in axes), inner)


def columns_dispatch(
    x: Value, y: Value, columns: tuple[int, int, int], row: Reduction, extra: tuple[Param, ...], target: Target
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


def arg_extreme(node: Node, target: Target) -> list[Dispatch]:
    """arg_extreme_workgroup.wgsl for long lines and few results on hardware, else arg_extreme.wgsl."""
    x, y = node.required_input(0), node.output
    _, depth, inner = split_at(x.type.shape, node.attrs.axis)
    if not target.software and depth >= LONG_ROW and y.type.size <= FEW_RESULTS:
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
    unsigned = dtype in (DType.UINT32, DType.UINT64)
    kind = Kind.FLOAT if dtype.is_float else Kind.UNSIGNED if unsigned else Kind.SIGNED
    variables = {
        "workgroup": WORKGROUP,
        "largest": node.op.name == "arg_max",
        "kind": kind,
        **workgroup_reduction(target),
    }
    params = u32(count=y.type.size, depth=depth, inner=inner)
    groups, why = groups_for(-(-y.type.size // 4), target, 1), f"long lines, {workgroup_reduction_text(target)}"
    return Dispatch("arg_extreme_workgroup", variables, (read("x", x), write("y", y)), params, groups, why)
