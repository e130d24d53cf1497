"""Clamp fusion: a MAXIMUM with a constant behind a PReLU becomes the lower bound of the convolution's epilogue."""

from __future__ import annotations

from collections import Counter

from webinfer.backends.wasm.lowerings.conv import IMAGE_CHANNELS, is_direct
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops import conv
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation


def find_floors(graph: Graph) -> dict[Node, tuple[Value, float]]:
    """For each MAXIMUM that a convolution can do: the convolution's result, which nobody else reads, and the bound."""
    reads = Counter(value for node in graph.nodes for value in node.inputs)
    reads.update(graph.outputs)
    ending = {node.output: node for node in graph.nodes if _ends_with_slopes(node) and reads[node.output] == 1}
    found = {}
    for node in graph.nodes:
        if node.op is not ew.MAXIMUM or node.attrs.activation is not Activation.NONE:
            continue
        for x, bound in (node.inputs, node.inputs[::-1]):
            number = _number(bound)
            if x in ending and number is not None and x.type == node.output.type:
                found[node] = (x, number)
    return found


def _ends_with_slopes(node: Node) -> bool:
    """Whether a node is a dense convolution with PReLU whose tiles know bounds: other ones have no time for them."""
    if node.op is not conv.CONV2D or node.attrs.activation is not Activation.PRELU:
        return False
    w = node.required_input(1)
    dense = w.constant is None or w.constant.sparsity is None
    wide = w.type.shape[3] > 1 or node.attrs.groups == 1
    return dense and wide and w.type.shape[3] != IMAGE_CHANNELS and not is_direct(node) and _is_float(node.output)


def _is_float(value: Value) -> bool:
    return value.type.dtype is DType.FLOAT32


def _number(value: Value | None) -> float | None:
    """The element of a dense float constant that has one and is a number."""
    held = value.constant if value is not None and value.type.size == 1 and _is_float(value) else None
    if value is None or held is None or held.sparsity is not None:
        return None
    number = float(value.numbers()[0])
    return number if number == number else None
