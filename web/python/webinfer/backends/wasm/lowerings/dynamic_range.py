"""Activations rounded to what eight bits hold."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.products import require_float
from webinfer.graph.ir import Node, Op
from webinfer.ops import dynamic_range as ops


def round_rows(node: Node, builder: Builder) -> None:
    """One step over rows."""
    require_float(node)
    x, y = node.required_input(0), node.output
    rows, r = ops.rows_of(x.type, node.attrs)
    builder.step(
        "f32_round_rows",
        x=builder.ref(x), y=builder.ref(y), r=r, symmetric=int(node.attrs.symmetric), units=rows,
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {ops.ROUND_ROWS: round_rows}
