"""Which convolutions add something behind their activation: two nodes, whose dispatch is that of the convolution.

A residual that is added before the activation is the convolution's own input since the passes.
"""

from __future__ import annotations

import functools
from collections.abc import Collection

from webinfer.backends.webgpu.dispatch import Dispatch, Joined, Target
from webinfer.backends.webgpu.lowerings import LOWERINGS
from webinfer.backends.webgpu.lowerings.epilogue import LateSum
from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops.activation import Activation


def find_late_sums(graph: Graph, folded: set[Value], taken: Collection[Node]) -> dict[Node, Joined]:
    """The sums of a graph that are computed with the convolution of one of their operands, by the sum's node.

    None in graphs of parts or with values that nodes change in place: what the convolution reads, it reads late.
    """
    if graph.parts or graph.resident:
        return {}
    makers, readers = graph.producers(), graph.consumers()
    found = dict[Node, Joined]()
    used = {*taken}
    for node in graph.nodes:
        if node in used or node.op.name != "add" or not _is_plain(node) or node.outputs[0] in folded:
            continue
        for value, other in (node.inputs, node.inputs[::-1]):
            maker = makers.get(value) if value is not None else None
            if maker is None or other is None or value is other or maker in used or not _takes(maker):
                continue
            if len(readers[maker.output]) == 1 and maker.output not in graph.outputs:
                both = _together(maker, other, node)
                inputs = tuple(v for v in maker.inputs if v is not None)
                found[node] = Joined((maker,), inputs, functools.partial(_lower, both))
                used |= {maker, node}
                break
    return found


def _lower(node: Node, target: Target) -> list[Dispatch]:
    return list(LOWERINGS[node.op](node, target))


def _together(maker: Node, other: Value, node: Node) -> LateSum:
    x, w, bias, _, slope = (maker.optional_input(i) for i in range(5))
    slopes = [] if slope is None else [slope]
    return LateSum(maker.op, [x, w, bias, other, *slopes], node.outputs, maker.attrs, node.label)


def _is_plain(node: Node) -> bool:
    """Whether it adds real tensors of one shape and one type, and does nothing else."""
    types = [v.type for v in (*node.inputs, *node.outputs) if v is not None]
    alike = all(t == types[0] for t in types) and types[0].dtype.is_float and types[0].quant is None
    return alike and node.attrs.activation is Activation.NONE


def _takes(node: Node) -> bool:
    """Whether it is a real convolution that ends in an activation and adds nothing yet."""
    if node.op.name not in ("conv2d", "depthwise_conv2d") or node.optional_input(3) is not None:
        return False
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    real = all(v.type.dtype.is_float and v.type.quant is None for v in values)
    return real and node.attrs.activation is not Activation.NONE
