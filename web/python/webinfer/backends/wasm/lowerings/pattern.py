"""Patterns of positions: one-hot marks and triangles of matrices."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder, Lower, compute_itemsize
from webinfer.backends.wasm.lowerings.cast import present
from webinfer.backends.wasm.lowerings.gather import positions_ref
from webinfer.backends.wasm.lowerings.movement import fill, fill_words
from webinfer.graph.ir import Node, Op
from webinfer.ops import pattern as ops


def one_hot(node: Node, builder: Builder) -> None:
    x, y, a = present(node.inputs[0]), node.output, node.attrs
    fill(builder, builder.ref(y), a.dtype, a.off, y.type.size)
    inner = math.prod(x.type.shape[a.axis :])
    low, high = fill_words(a.dtype, a.on)
    kernel = f"b{8 * compute_itemsize(a.dtype)}_one_hot"
    builder.step(kernel, positions_ref(builder, x), builder.ref(y), a.depth, inner, low, high, units=x.type.size)


def triangular(node: Node, builder: Builder) -> None:
    x, y, a = present(node.inputs[0]), node.output, node.attrs
    rows, columns = x.type.shape[-2:]
    # Beyond the corners a diagonal changes nothing; clamped, it fits int32.
    diagonal = max(-rows - 1, min(columns + 1, a.diagonal))
    kernel = f"b{8 * compute_itemsize(x.type.dtype)}_triangular"
    builder.step(
        kernel, builder.ref(x), builder.ref(y), rows, columns, int(a.upper), diagonal, units=x.type.size // columns
    )


LOWERINGS: dict[Op, Lower] = {ops.ONE_HOT: one_hot, ops.TRIANGULAR: triangular}
