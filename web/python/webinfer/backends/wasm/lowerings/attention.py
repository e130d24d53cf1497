"""Attention: keys and values packed into panels, then one step over blocks of queries."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.kernel_constants import ATTENTION_ROWS
from webinfer.backends.wasm.lowerings.products import DenseWeights, column_panels, require_float
from webinfer.graph.ir import Node, Op, Value
from webinfer.ops import attention as ops
from webinfer.plan.blocks import Ref

_PANEL = 8  # columns


def attention(node: Node, builder: Builder) -> None:
    """Three steps a batch: the panels of keys, those of values, the attention."""
    require_float(node)
    a, y, mask = node.attrs, node.output, node.optional_input(3)
    q, k, v = map(node.required_input, range(3))
    b, h, n, d = ops.by_heads(q.type.shape, a.inner[0])
    _, g, keys, e = ops.by_heads(v.type.shape, a.inner[2])
    q_batch, q_head, q_row = ops.strides(q.type.shape, a.inner[0])
    y_batch, y_head, y_row = ops.strides(y.type.shape, a.inner[3])
    mask_batch, mask_head, mask_row = ops.mask_strides(mask.type.shape) if mask else (0, 0, 0)
    place = builder.optional_ref(mask)
    for i in range(b):
        builder.step(
            "f32_attention",
            q=builder.ref(q) + 4 * i * q_batch, k=_packed(builder, k, a.inner[1], i, False),
            v=_packed(builder, v, a.inner[2], i, True), mask=place and place + 4 * i * mask_batch,
            y=builder.ref(y) + 4 * i * y_batch, heads=h, share=h // g, queries=n, keys=keys, d=d, e=e,
            q_head=q_head, q_row=q_row, y_head=y_head, y_row=y_row, mask_head=mask_head, mask_row=mask_row,
            scale=a.scale, clear_nan=int(a.clear_nan), units=h * -(-n // ATTENTION_ROWS),
        )  # fmt: skip


def _packed(builder: Builder, value: Value, inner: bool, batch: int, down: bool) -> Ref:
    """Column panels of one batch: a column is a row of the tensor, or with `down` an element of all rows."""
    _, groups, rows, width = ops.by_heads(value.type.shape, inner)
    step, head, row = ops.strides(value.type.shape, inner)
    sizes = (width, rows, 1, head, 1, row) if down else (rows, 1, width, head, row, 0)
    args, size, panels = column_panels(DenseWeights(groups, *sizes), _PANEL, 1)
    target = builder.scratch(4 * size)
    source = builder.ref(value) + 4 * batch * step
    builder.step("f32_pack_conv_weights", args, w=source, bias=None, y=target, stored_f16=0, units=panels)
    return target


LOWERINGS: dict[Op, Lower] = {ops.ATTENTION: attention}
