"""Constants and API tensors whose stored form differs from the form that kernels compute in."""

from __future__ import annotations

import struct

from webinfer.backends.wasm.builder import COMPUTE, LOAD_STEP, Builder
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Sparsity, Value
from webinfer.kernel_constants import SPARSITY_CSR, SPARSITY_DENSE
from webinfer.plan.blocks import Block, Kind, Ref


def expand_constant(builder: Builder, value: Value, target: Ref) -> None:
    """Prepare steps that write a constant's dense compute form to `target`."""
    constant = value.constant
    assert constant is not None
    source = builder.weights(value)
    count = len(constant.data) // constant.stored.itemsize
    compute = COMPUTE.get(value.type.dtype, value.type.dtype)
    if constant.stored is DType.FLOAT16 and compute is DType.FLOAT32:
        widened = target if constant.sparsity is None else builder.scratch(4 * count)
        builder.prepare("f16_to_f32", x=source, y=widened, units=count)
        source = widened
    elif constant.stored is not compute:
        raise UnsupportedOpError([f"constant {value.name!r} is stored as {constant.stored} and used as {compute}"])
    if constant.sparsity is not None:
        table = builder.staged_bytes(f"sparsity of {value.name}", pack_sparsity(value.type.shape, constant.sparsity))
        kernel = f"b{8 * compute.itemsize}_densify"
        builder.prepare(kernel, x=source, table=table, y=target, size=value.type.size)


def pack_sparsity(shape: tuple[int, ...], sparsity: Sparsity) -> bytes:
    """The words that the densify kernels walk.

    Words (int32): dense rank, traversed rank, block rank; shape; traversal order; block map; then for
    each traversed dimension: SPARSITY_DENSE, size or SPARSITY_CSR, segments count, indices count,
    segments, indices.
    """
    words: list[int] = [len(shape), len(sparsity.traversal_order), len(sparsity.block_map)]
    words += [*shape, *sparsity.traversal_order, *sparsity.block_map]
    for entry in sparsity.formats:
        if entry[0] == "dense":
            words += [SPARSITY_DENSE, entry[1]]
        else:
            words += [SPARSITY_CSR, len(entry[1]), len(entry[2]), *entry[1], *entry[2]]
    return struct.pack(f"<{len(words)}i", *words)


def begin_inputs(builder: Builder) -> None:
    """What the API writes, float16 widened: first what is appended to, which a run of held states leaves out."""
    for value in sorted(builder.graph.inputs, key=lambda value: value not in builder.appended):
        builder.keep_alive(widen_input(builder, value), LOAD_STEP)
        if value in builder.appended:
            builder.casts = len(builder.run_part.steps), 0


def end_appended(builder: Builder) -> None:
    """Where something is appended to, what the API reads: last what that gives, which such a run leaves out too."""
    outputs = builder.graph.outputs if builder.appended else []
    for value in [value for value in outputs if value not in builder.appended]:
        narrow_output(builder, value)
    before = len(builder.run_part.steps)
    for value in [value for value in outputs if value in builder.appended]:
        narrow_output(builder, value)
    builder.casts = builder.casts[0], len(builder.run_part.steps) - before


def widen_input(builder: Builder, value: Value) -> Ref:
    """Where the API writes an input; float16 gets a block of its own and a step that widens it."""
    return _boundary(builder, value, "input")


def narrow_output(builder: Builder, value: Value) -> Ref:
    """Where the API reads an output; float16 gets a step that narrows it."""
    return _boundary(builder, value, "output")


def _boundary(builder: Builder, value: Value, side: str) -> Ref:
    if value.type.dtype not in COMPUTE or value.type.size == 0:
        return builder.ref(value)
    known = builder.boundary_refs.get((value, side))
    if known is None:
        appended = builder.appended.get(value)
        type = value.type if appended is None else appended.result.type  # an input's rows lie where they will be
        known = Ref(Block(f"{value.name} at the API", type.nbytes, Kind.ARENA))
        builder.boundary_refs[(value, side)] = known
        if side == "input":
            builder.step("f16_to_f32", x=known, y=builder.ref(value), units=type.size)
        else:
            builder.step("f32_to_f16", x=builder.ref(value), y=known, units=type.size)
    return known
