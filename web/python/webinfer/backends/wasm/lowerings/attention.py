"""Attention: one step over blocks of queries of all heads and batches, which reads keys and values where they lie."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.products import require_float
from webinfer.graph.ir import Node, Op, Value
from webinfer.kernel_constants import ATTENTION_MIDDLE, ATTENTION_NARROW, ATTENTION_ROWS, ATTENTION_WIDE_ROWS
from webinfer.ops import attention as ops
from webinfer.plan.blocks import Arguments


def attention(node: Node, builder: Builder) -> None:
    """One step."""
    require_float(node)
    a, y, mask, columns = node.attrs, node.output, node.optional_input(3), node.optional_input(4)
    q, k, v = map(node.required_input, range(3))
    b, h, n, d = ops.by_heads(q.type.shape, a.inner[0])
    _, g, keys, e = ops.by_heads(v.type.shape, a.inner[2])
    steps: Arguments = {}
    for name, value, inner in zip("qkvy", (q, k, v, y), a.inner, strict=True):
        steps |= _steps(name, ops.strides(builder.placed_shape(node, value), inner))
    builder.step(
        "f32_attention", steps, *(_mask_steps(*part) for part in (("mask", mask), ("columns", columns))),
        q=builder.ref(q), k=builder.ref(k), v=builder.ref(v), mask=builder.optional_ref(mask), y=builder.ref(y),
        columns=builder.optional_ref(columns), spread=columns.type.shape[-1] if columns else 1,
        batches=b, heads=h, share=h // g, queries=n, keys=keys, d=d, e=e, scale=a.scale, cap=a.softcap,
        clear_nan=int(a.clear_nan), units=b * g * -(-(h // g) * n // _unit_rows(max(d, e))),
    )  # fmt: skip


def _unit_rows(width: int) -> int:
    """Queries of a unit."""
    if width > ATTENTION_MIDDLE:
        return ATTENTION_WIDE_ROWS
    return ATTENTION_ROWS if width > ATTENTION_NARROW else 2 * ATTENTION_ROWS


def _mask_steps(name: str, value: Value | None) -> Arguments:
    return _steps(name, ops.mask_strides(value.type.shape) if value else (0, 0, 0))


def _steps(name: str, lengths: Sequence[int]) -> Arguments:
    return {f"{name}_{part}": step for part, step in zip(("batch", "head", "row"), lengths, strict=True)}


LOWERINGS: dict[Op, Lower] = {ops.ATTENTION: attention}
