"""6x6 windows that step by two pixels, as first layers have them: 3x3 windows over squares of 2x2 pixels, for which
there is Winograd's transform.
"""

from __future__ import annotations

import dataclasses
import math

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.lowerings import winograd
from webinfer.backends.wasm.lowerings.movement import strided_copy
from webinfer.backends.wasm.lowerings.nest import nest
from webinfer.graph.ir import Node, TensorType, Value
from webinfer.ops import conv as ops
from webinfer.ops.strides import StridedCopy, row_major

MOVED = 8  # what an element of the picture costs to move, in multiplications


def halved(node: Node) -> Node | None:
    """The same convolution over squares [n, ih/2, iw/2, 4*ci], which are still to be made; None if there is none."""
    x, w, a = node.required_input(0), node.required_input(1), node.attrs
    if node.op is not ops.CONV2D or w.type.shape[1:3] != (6, 6) or a.stride != (2, 2):
        return None
    (n, ih, iw, ci), co = x.type.shape, w.type.shape[0]
    if a.dilation != (1, 1) or a.groups > 1 or ih % 2 or iw % 2 or a.pads[0] % 2 or a.pads[2] % 2:
        return None
    squares = Value(f"{x.name}:squares", TensorType((n, ih // 2, iw // 2, 4 * ci)))
    weights = Value(f"{w.name}:squares", TensorType((co, 3, 3, 4 * ci)))
    attrs = dataclasses.replace(a, stride=(1, 1), pads=tuple(pad // 2 for pad in a.pads))
    found = Node(node.op, [squares, weights, *node.inputs[2:]], node.outputs, attrs, node.label)
    return found if winograd.fits(found) else None


def work(node: Node, isa: str) -> float:
    """What a convolution over squares costs, in the measure of conv.tile_work."""
    moved = MOVED * node.required_input(0).type.size / math.prod(node.required_input(1).type.shape[1:])
    return winograd.work(node, isa) + moved


def lay_out(node: Node, given: Node, builder: Builder) -> Node:
    """The convolution over squares, with steps that make them: of the picture in each run, of the weights at load."""
    x, w = given.required_input(0), given.required_input(1)
    squares, made = node.required_input(0), node.required_input(1)
    (n, ih, iw, ci), co = x.type.shape, w.type.shape[0]
    shape = (n, ih // 2, iw // 2, 2, 2 * ci)
    steps = (ih * iw * ci, 2 * iw * ci, 2 * ci, iw * ci, 1)
    strided_copy(builder, StridedCopy(0, shape, 0, steps, 0, row_major(shape)), builder.ref(x), builder.ref(squares), 4)
    weights, is_new = builder.derived(("squares", w), made.type, made.name)
    if is_new:
        shape = (co, 3, 3, 2, 2 * ci)
        table = nest(builder, shape, (36 * ci, 12 * ci, 2 * ci, 6 * ci, 1), row_major(shape))
        builder.prepare("b32_copy", x=builder.ref(w), y=builder.ref(weights), nest=table, units=w.type.size)
    return Node(node.op, [squares, weights, *node.inputs[2:]], node.outputs, node.attrs, node.label)
