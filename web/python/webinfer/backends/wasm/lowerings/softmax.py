"""Softmax and its logarithm along one axis."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.cast import F32, compute_dtype
from webinfer.backends.wasm.lowerings.elementwise import refuse
from webinfer.backends.wasm.lowerings.reduce import lines_of
from webinfer.graph.ir import Node, Op
from webinfer.ops import softmax as ops


def softmax(node: Node, builder: Builder) -> None:
    """One step over lines along the axis."""
    x, y = node.required_input(0), node.output
    if compute_dtype(x) is not F32:
        raise refuse(node.op, x.type.dtype)
    outer, r, inner = lines_of(x.type.shape, node.attrs.axis)
    builder.step(
        f"f32_{node.op.name}",
        x=builder.ref(x), y=builder.ref(y), r=r, inner=inner, beta=node.attrs.beta, units=outer * inner,
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {ops.LOG_SOFTMAX: softmax, ops.SOFTMAX: softmax}
