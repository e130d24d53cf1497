"""A sum with a convolution's result becomes the convolution's residual: y = act(conv + bias + residual)."""

from __future__ import annotations

import dataclasses

from webinfer.graph.ir import Graph, Node, Value
from webinfer.graph.queries import remove, single_producers
from webinfer.ops import conv
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation

_CONVOLUTIONS = (conv.CONV2D, conv.DEPTHWISE_CONV2D)


def fuse_residual(graph: Graph) -> int:
    """Number of ADD nodes that became a residual or, for one number a channel, a bias.

    The convolution moves to the place of the sum, where both operands are known. Quantised sums have
    their own rounding and stay.
    """
    mergeable = single_producers(graph)
    order = {node: i for i, node in enumerate(graph.nodes)}
    merged: set[Node] = set()
    for i, node in enumerate(graph.nodes):
        if node.op is not ew.ADD or not node.output.type.dtype.is_float:
            continue
        found = _convolution(node, mergeable, order)
        if found is None:
            continue
        producer, other = found
        inputs = (producer.inputs + [None] * 3)[:5]
        inputs[3 if other.type.shape == node.output.type.shape else 2] = other
        attrs = dataclasses.replace(producer.attrs, activation=node.attrs.activation)
        fused = Node(producer.op, _trimmed(inputs), node.outputs, attrs, producer.label)
        graph.nodes[i] = fused
        order[fused] = i
        merged.add(producer)
        if node.output in mergeable:
            mergeable[node.output] = fused
    remove(graph, merged)
    return len(merged)


def _convolution(add: Node, mergeable: dict[Value, Node], order: dict[Node, int]) -> tuple[Node, Value] | None:
    """The convolution to merge into and the other operand; of two, the one that runs later."""
    found: list[tuple[Node, Value]] = []
    for value, other in (add.inputs, add.inputs[::-1]):
        producer = mergeable.get(value) if value is not None else None
        if producer is None or other is None or producer.op not in _CONVOLUTIONS:
            continue
        if producer.op is conv.DEPTHWISE_CONV2D and producer.required_input(1).type.shape[1:3] == (1, 1):
            continue  # a scale: memory bounds it, and the sum alone is as fast
        if producer.attrs.activation is Activation.NONE and _fits(producer, other, add.output):
            found.append((producer, other))
    return max(found, key=lambda pair: order[pair[0]], default=None)


def _fits(producer: Node, other: Value, total: Value) -> bool:
    if producer.output.type != total.type or other.type.dtype is not total.type.dtype:
        return False
    if other.type.shape == total.type.shape:
        return len(producer.inputs) < 4 or producer.inputs[3] is None
    bias = producer.inputs[2] if len(producer.inputs) > 2 else None
    return bias is None and other.is_constant and other.type.shape == total.type.shape[-1:]


def _trimmed(inputs: list[Value | None]) -> list[Value | None]:
    while inputs[-1] is None:
        inputs.pop()
    return inputs
