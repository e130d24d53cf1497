"""Small graphs and hosts that session tests share."""

from __future__ import annotations

from webinfer.graph.ir import Graph, TensorType, Value, apply
from webinfer.ops.elementwise import ABS, ADD, EXP, NEG, BinaryAttrs, UnaryAttrs


def diamond() -> Graph:
    """y = (-|x|) + exp(|x|), and |x| itself: two branches that meet again."""
    x = Value("x", TensorType((2, 6)))
    first = apply(ABS, [x], UnaryAttrs(), "first")
    left = apply(NEG, [first.output], UnaryAttrs(), "left")
    right = apply(EXP, [first.output], UnaryAttrs(), "right")
    joined = apply(ADD, [left.output, right.output], BinaryAttrs(), "joined")
    return Graph("diamond", [x], [joined.output, first.output], [first, left, right, joined])
