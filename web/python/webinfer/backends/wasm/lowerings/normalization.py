"""Layer norm and RMS norm."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.products import require_float
from webinfer.graph.ir import Node, Op
from webinfer.ops import normalization as ops


def layer_norm(node: Node, builder: Builder) -> None:
    """One step over rows."""
    require_float(node)
    x, y, a = node.required_input(0), node.output, node.attrs
    rows, r = ops.rows_of(x.type, a)
    builder.step(
        "f32_layer_norm",
        x=builder.ref(x), scale=builder.optional_ref(node.optional_input(1)),
        bias=builder.optional_ref(node.optional_input(2)), y=builder.ref(y), r=r, epsilon=a.epsilon,
        centred=int(a.centred), units=rows,
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {ops.LAYER_NORM: layer_norm}
