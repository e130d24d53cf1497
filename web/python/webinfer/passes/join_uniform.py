"""Channels that are the same at every pixel, as an upsampled mean of the picture: a 1x1 convolution takes what they
give as its bias, and does not multiply them pixel by pixel.
"""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value, apply
from webinfer.graph.queries import producer_of, single_producers
from webinfer.ops import conv, movement, resize

RESIZES = (resize.RESIZE_BILINEAR, resize.RESIZE_NEAREST)
MIN_PIXELS = 64  # below, the weights are read as often as they are multiplied


def join_uniform(graph: Graph) -> int:
    """Number of convolutions of a CONCAT that lost channels to their bias. What only they read is left as dead code."""
    mergeable, nodes, count = single_producers(graph), list[Node](), 0
    for node in graph.nodes:
        parts = producer_of(node.inputs[0], mergeable, movement.CONCAT) if _mixes_channels(node) else None
        made = _split(node, parts, mergeable) if parts is not None and parts.attrs.axis in (3, -1) else []
        count += bool(made)
        nodes += made or [node]
    graph.nodes = nodes
    return count


def _mixes_channels(node: Node) -> bool:
    """Whether the node is a float32 convolution of one picture that sees one pixel at a time and knows its weights."""
    if node.op is not conv.CONV2D or node.output.type.dtype is not DType.FLOAT32:
        return False
    w, a, (n, oh, ow, _) = node.required_input(1), node.attrs, node.output.type.shape
    held = w.constant
    if held is None or held.sparsity is not None or not isinstance(held.data, memoryview) or w.type.quant is not None:
        return False
    one_pixel = w.type.shape[1:3] == (1, 1) and not any(a.pads) and a.groups == 1
    return bool(one_pixel and n == 1 and oh * ow >= MIN_PIXELS and held.stored.is_float)


def _split(node: Node, parts: Node, mergeable: dict[Value, Node]) -> list[Node]:
    """The products of what is uniform, and the convolution of the rest; nothing where all or none of it is."""
    x, w, *others = (*node.inputs, None)[: max(3, len(node.inputs))]
    assert w is not None
    made, rest, bias, at = list[Node](), list[tuple[Value, int]](), others[0], 0
    for part in parts.inputs:
        assert part is not None
        pixel, channels = _pixel(part, mergeable), part.type.shape[3]
        if pixel is None:
            rest.append((part, at))
        else:
            inputs = [pixel, _columns(w, [(at, channels)]), bias]
            made.append(apply(conv.CONV2D, inputs, conv.Conv2dAttrs(), f"{node.label}:pixel"))
            shape = (node.output.type.shape[3],)
            made.append(apply(movement.RESHAPE, [made[-1].output], movement.ReshapeAttrs(shape), f"{node.label}:bias"))
            bias = made[-1].output
        at += channels
    if not made or not rest:
        return []
    x = rest[0][0]
    if len(rest) > 1:
        made.append(apply(movement.CONCAT, [part for part, _ in rest], parts.attrs, parts.label))
        x = made[-1].output
    columns = _columns(w, [(start, part.type.shape[3]) for part, start in rest])
    return [*made, Node(node.op, [x, columns, bias, *others[1:]], node.outputs, node.attrs, node.label)]


def _pixel(part: Value, mergeable: dict[Value, Node]) -> Value | None:
    """The one pixel that a value repeats; None if it does not."""
    upsampling = producer_of(part, mergeable, *RESIZES)
    source = upsampling.required_input(0) if upsampling is not None else None
    return source if source is not None and source.type.shape[:3] == (1, 1, 1) else None


def _columns(w: Value, spans: list[tuple[int, int]]) -> Value:
    """The weights of some input channels: spans of (first, count)."""
    held = w.constant
    assert held is not None
    co, _, _, ci = w.type.shape
    size, data = held.stored.itemsize, held.data.cast("B")
    places = [(start * size, (start + count) * size) for start, count in spans]
    rows = (data[row + first : row + last] for row in range(0, co * ci * size, ci * size) for first, last in places)
    type = TensorType((co, 1, 1, sum(count for _, count in spans)), w.type.dtype)
    return Value(w.name, type, Constant(memoryview(b"".join(rows)), held.stored))
