"""Which convolutions add something behind their activation, or end in a bound: two nodes, one dispatch.

A residual that is added before the activation is the convolution's own input since the passes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection

from webinfer.backends.webgpu.dispatch import Joined
from webinfer.backends.webgpu.joining import is_real, single_producers
from webinfer.backends.webgpu.lowerings import lower
from webinfer.backends.webgpu.lowerings.epilogue import EpilogueNode, Late
from webinfer.graph.ir import Graph, Node, TensorType, Value
from webinfer.ops.activation import Activation

_KINDS = {"add": Late.SUM, "maximum": Late.LARGER, "minimum": Late.SMALLER}


def find_post_activation_adds(graph: Graph, folded: set[Value], taken: Collection[Node]) -> dict[Node, Joined]:
    """The sums of a graph that are computed with the convolution of one of their operands, by the sum's node.

    None in graphs of parts or with values that nodes change in place: what the convolution reads, it reads late.
    """
    if graph.parts or graph.resident:
        return {}
    single = single_producers(graph)
    found = dict[Node, Joined]()
    used = {*taken}
    for node in graph.nodes:
        if node in used or node.op.name not in _KINDS or node.outputs[0] in folded:
            continue
        for value, other in (node.inputs, node.inputs[::-1]):
            maker = single.get(value) if value is not None else None
            if maker is None or other is None or value is other or maker in used or not _takes(maker):
                continue
            both = _together(maker, other, node)
            if both is not None:
                inputs = tuple(v for v in maker.inputs if v is not None)
                found[node] = Joined((maker,), inputs, functools.partial(lower, both))
                used |= {maker, node}
                break
    return found


def _together(maker: Node, other: Value, node: Node) -> EpilogueNode | None:
    """The convolution that does what `node` does with its result and `other`; None where it cannot."""
    x, w, bias, residual, slope = (maker.optional_input(i) for i in range(5))
    slopes = [] if slope is None else [slope]
    kind = _KINDS[node.op.name]
    if kind is Late.SUM:
        plain = residual is None and maker.attrs.activation is not Activation.NONE and _is_plain(node)
        return EpilogueNode(maker, [x, w, bias, other, *slopes], node, kind) if plain else None
    plain = node.outputs[0].type == maker.output.type and node.attrs.activation is Activation.NONE
    bound = _number(other) if plain else None
    return EpilogueNode(maker, maker.inputs, node, kind, bound) if bound is not None else None


def _number(value: Value) -> float | None:
    """The one real number that a constant holds, finite."""
    constant = value.constant
    if constant is None or constant.sparsity is not None or value.type != TensorType(value.type.shape):
        return None
    if value.type.size != 1:
        return None
    number = float(value.numbers()[0])
    return number if math.isfinite(number) else None


def _is_plain(node: Node) -> bool:
    """Whether it adds real tensors of one shape and one type, and does nothing else."""
    types = [v.type for v in (*node.inputs, *node.outputs) if v is not None]
    alike = all(t == types[0] for t in types) and types[0].dtype.is_float and types[0].quant is None
    return alike and node.attrs.activation is Activation.NONE


def _takes(node: Node) -> bool:
    """Whether it is a real convolution."""
    return node.op.name in ("conv2d", "depthwise_conv2d") and is_real(node)
