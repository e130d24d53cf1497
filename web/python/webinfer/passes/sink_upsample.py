"""1x1 convolutions of an upsampled image run before the upsampling, on fewer pixels.

A bilinear sample is a mean whose weights sum to one, so it does not matter whether channels are mixed
and biases added before or after it. Activations stay behind.
"""

from __future__ import annotations

import dataclasses

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Value, apply
from webinfer.graph.queries import remove, single_producers
from webinfer.ops import conv, resize
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation

# In multiplications for each result:
ACTIVATION_COST = 32  # an activation's own walk
ADDITION_COST = 6  # that of a sum, which could have been the convolution's end
SAMPLE_COST = 6  # a channel of a sample


def sink_upsample(graph: Graph) -> int:
    """Number of convolutions that were moved before an upsampling that only they read."""
    mergeable = single_producers(graph)
    replaced: dict[Node, list[Node]] = {}
    merged: set[Node] = set()
    for node in graph.nodes:
        source = node.inputs[0] if node.inputs else None
        upsampling = mergeable.get(source) if source is not None else None
        if upsampling is None or upsampling.op is not resize.RESIZE_BILINEAR or not _mixes_channels(node):
            continue
        if _saved(node, upsampling) >= (ADDITION_COST if node.attrs.activation is Activation.NONE else ACTIVATION_COST):
            replaced[node] = _swapped(node, upsampling)
            merged.add(upsampling)
    graph.nodes = [new for node in graph.nodes for new in replaced.get(node, [node])]
    remove(graph, merged)
    return len(replaced)


def _mixes_channels(node: Node) -> bool:
    """Whether the node is a float32 convolution that sees one pixel at a time and can do without its activation."""
    if node.op is not conv.CONV2D or any(v is not None for v in node.inputs[3:]):
        return False
    w, a = node.inputs[1], node.attrs
    assert w is not None
    one_pixel = w.type.shape[1:3] == (1, 1) and a.stride == (1, 1) and not any(a.pads)
    plain = a.activation is not Activation.PRELU
    return one_pixel and plain and node.output.type.dtype is DType.FLOAT32 and w.type.dtype.is_float


def _saved(node: Node, upsampling: Node) -> float:
    """Multiplications saved for each result of the convolution."""
    x, w = upsampling.inputs[0], node.inputs[1]
    assert x is not None
    assert w is not None
    (_, ih, iw, ci), (_, oh, ow, _), co = x.type.shape, upsampling.output.type.shape, w.type.shape[0]
    return ci * (1 - ih * iw / (oh * ow)) + SAMPLE_COST * (ci / co - 1)


def _swapped(node: Node, upsampling: Node) -> list[Node]:
    """The convolution, the upsampling of its result, and its activation; the last one writes the node's output."""
    activation: Activation = node.attrs.activation
    attrs = dataclasses.replace(node.attrs, activation=Activation.NONE)
    inputs: list[Value | None] = [upsampling.inputs[0], *node.inputs[1:]]
    name = node.output.name
    new = [apply(conv.CONV2D, inputs, attrs, node.label, f"{name}:small")]
    new.append(apply(resize.RESIZE_BILINEAR, [new[0].output], upsampling.attrs, upsampling.label, f"{name}:large"))
    if activation is not Activation.NONE:
        slope = ew.UnaryAttrs(float(activation is Activation.SILU))
        new.append(apply(ew.ACTIVATIONS[activation], [new[1].output], slope, f"{node.label}:{activation}", name))
    new[-1].outputs = node.outputs
    return new
