"""Graphs of views and of stacks of them: what lies inside what is decided for them."""

from __future__ import annotations

import random

from webinfer.graph.ir import Graph, TensorType, Value, apply
from webinfer.ops.elementwise import ABS, UnaryAttrs
from webinfer.ops.movement import CONCAT, RESHAPE, ConcatAttrs, ReshapeAttrs

SHAPE, SIZE = (8, 16), 128


class Stacks:
    """A graph of views and of stacks of them."""

    def __init__(self) -> None:
        self.x = Value("x", TensorType(SHAPE))
        self.graph = Graph("stacks", [self.x], [], [])

    def computed(self, value: Value | None = None) -> Value:
        node = apply(ABS, [value or self.x], UnaryAttrs(), f"a{len(self.graph.nodes)}")
        self.graph.nodes.append(node)
        return node.output

    def view(self, value: Value, *shape: int) -> Value:
        node = apply(RESHAPE, [value], ReshapeAttrs(shape), f"v{len(self.graph.nodes)}")
        self.graph.nodes.append(node)
        return node.output

    def joined(self, *values: Value) -> Value:
        node = apply(CONCAT, values, ConcatAttrs(0), f"c{len(self.graph.nodes)}")
        self.graph.nodes.append(node)
        return node.output

    def output(self, *values: Value) -> None:
        self.graph.outputs += values


def all_forms() -> Graph:
    """The stacks that exporters write, all in one graph: each with a value of its own."""
    s = Stacks()
    stack = (1, *SHAPE)
    a = s.computed()
    s.output(s.joined(s.view(a, *stack), s.view(a, *stack)))  # torch.stack([a, a])
    a = s.computed()
    s.output(s.joined(*(s.view(a, *stack) for _ in range(3))))
    a = s.computed()
    s.output(s.joined(s.view(a, *stack), s.view(s.x, *stack), s.view(a, *stack)))
    a = s.computed()
    s.output(s.joined(s.view(a, SIZE), s.view(s.view(a, *stack), SIZE)), a)  # the value is an output too
    a, b = s.computed(), s.computed()
    s.output(s.joined(s.joined(a, b), a))  # a part of a part
    a = s.computed()
    s.output(s.view(s.joined(a, s.view(s.view(a, SIZE), *SHAPE)), 2 * SIZE), s.computed(a))
    a = s.computed()
    inner = s.joined(s.view(a, *stack), s.view(a, *stack))
    s.output(s.joined(inner, s.view(a, *stack)), s.view(inner, 2 * SIZE))
    return s.graph


def random_stacks(seed: int) -> Graph:
    """Views and stacks of a few values, of which some are outputs."""
    draw, s = random.Random(seed), Stacks()
    values = [s.computed()]
    for _ in range(draw.randint(2, 8)):
        kind, value = draw.random(), draw.choice(values[-4:])
        if kind < 0.25:
            values.append(s.computed(value))
        elif kind < 0.6:
            values.append(
                s.view(value, *draw.choice(((value.type.size,), (1, value.type.size), (2, -(-value.type.size // 2)))))
            )
        else:
            rest = value.type.shape[1:]
            fits = [v for v in (*values, s.x) if v.type.shape[1:] == rest]
            values.append(s.joined(*(draw.choice(fits) for _ in range(draw.randint(1, 3)))))
    s.output(*dict.fromkeys([values[-1], *draw.sample(values, min(2, len(values)))]))
    return s.graph
