"""Constants whose stored bytes are not their tensor: narrower types, sparse storage."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Scratch, Stored, Target, groups_for, read, write
from webinfer.backends.webgpu.lowerings.conversion import WIDE, cast_dispatch, ints, plain_cast
from webinfer.codegen.prelude import DIMS, u32, u32x8
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Sparsity, Value
from webinfer.ops.strides import row_major


def expand(value: Value, target: Target) -> Sequence[Dispatch]:
    """Dispatches that write a constant's tensor from its stored bytes, at load.

    Sparse storage becomes densify.wgsl, a narrower element type cast.wgsl.

    Raises:  UnsupportedOpError for sparse storage with more than 8 levels
    """
    constant = value.constant
    assert constant is not None
    if constant.sparsity is not None:
        return _densify(value, constant.sparsity, target)
    return [plain_cast(Stored(value), value, value.type.size, target)]


def _densify(value: Value, sparsity: Sparsity, target: Target) -> list[Dispatch]:
    constant, dtype = value.constant, value.type.dtype
    assert constant is not None
    levels = len(sparsity.formats)
    if levels > DIMS:
        raise UnsupportedOpError([f"sparse constant {value.name!r} with {levels} levels; webgpu has at most {DIMS}"])
    tables: list[int] = []
    sizes, starts, segments = [], [], []
    for kind, *facts in sparsity.formats:
        starts.append(len(tables))
        if kind == "dense":
            sizes.append(int(facts[0]))
            segments.append(0)
        else:
            sizes.append(0)
            segments.append(len(facts[0]))
            tables += [*facts[0], *facts[1]]
    count = len(constant.data) // constant.stored.itemsize
    params = (
        *u32x8(size=sizes, start=starts, segments=segments, step=_steps(value.type.shape, sparsity)),
        *u32(count=count, dense=value.type.size),
    )
    y = Scratch(value.type.shape, WIDE[dtype]) if dtype in WIDE else value
    table = ints(tables or [0])
    bindings = (
        read("x", Stored(value)),
        read("tables", type(table)(table.data, DType.UINT32)),
        write("y", y, single=True),
    )
    variables = {"workgroup": WORKGROUP, "levels": levels}
    main = Dispatch("densify", variables, bindings, params, groups_for(count, target), "stored sparse")
    return [main, cast_dispatch(y, value, target)] if isinstance(y, Scratch) else [main]


def _steps(shape: Sequence[int], sparsity: Sparsity) -> list[int]:
    """How far one index of each traversed dimension moves in the dense tensor, in elements."""
    rank, strides = len(shape), row_major(shape)
    sizes = {
        dimension: int(facts[1])
        for dimension, facts in zip(sparsity.traversal_order, sparsity.formats, strict=True)
        if facts[0] == "dense"
    }
    steps = []
    for dimension in sparsity.traversal_order:
        if dimension >= rank:  # the inside of a block
            steps.append(strides[sparsity.block_map[dimension - rank]])
        else:
            inside = [sizes[rank + i] for i, axis in enumerate(sparsity.block_map) if axis == dimension]
            steps.append(strides[dimension] * math.prod(inside))
    return steps
