"""One-hot marks. Described, every element would be compared; a fill and the marks take less (one_hot.c)."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder, Lower, compute_itemsize
from webinfer.backends.wasm.lowerings.described import positions_ref
from webinfer.backends.wasm.lowerings.movement import fill, fill_words
from webinfer.graph.ir import Node, Op
from webinfer.ops import pattern as ops


def one_hot(node: Node, builder: Builder) -> None:
    """One value everywhere, then another at each position."""
    x, y, a = node.required_input(0), node.output, node.attrs
    fill(builder, builder.ref(y), a.dtype, a.off, y.type.size)
    inner = math.prod(x.type.shape[a.axis :])
    builder.step(
        f"b{8 * compute_itemsize(a.dtype)}_one_hot", fill_words(a.dtype, a.on),
        x=positions_ref(builder, x), y=builder.ref(y), depth=a.depth, inner=inner, units=x.type.size,
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {ops.ONE_HOT: one_hot}
