"""1x1 convolutions of an upsampled image run before the upsampling, on fewer pixels.

A bilinear sample is a mean whose weights sum to one, so it does not matter whether channels are mixed and biases added
before or after it. Activations stay behind. Channels that are the same at every pixel, as an upsampled mean of the
picture, are not multiplied pixel by pixel: what they give is part of the bias.
"""

from __future__ import annotations

import dataclasses

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value, apply
from webinfer.ops import conv, movement, resize
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.rewrite.facts import Facts
from webinfer.rewrite.matcher import rewrite, rule
from webinfer.rewrite.patterns import Match, kind

# Below, the weights are read as often as they are multiplied: half and double changed none of 146 graphs.
MIN_PIXELS = 64
# In multiplications for each result; half and double changed none of 146 graphs:
ACTIVATION_COST = 32  # an activation's own walk
ADDITION_COST = 6  # that of a sum, which could have been the convolution's end
SAMPLE_COST = 6  # a channel of a sample

convolution, concat, bilinear = kind(conv.CONV2D), kind(movement.CONCAT), kind(resize.RESIZE_BILINEAR)
RESIZES = (resize.RESIZE_BILINEAR, resize.RESIZE_NEAREST)


def _mixes_channels(node: Node) -> bool:
    """Whether the node is a float32 convolution that sees one pixel at a time."""
    w, a = node.required_input(1), node.attrs
    one_pixel = w.type.shape[1:3] == (1, 1) and a.groups == 1 and not any(a.pads)
    return one_pixel and node.output.type.dtype is DType.FLOAT32


# ---- before the upsampling


def _can_run_before(node: Node) -> bool:
    """Whether it can do without its activation, and has no residual."""
    plain = node.attrs.activation is not Activation.PRELU and node.attrs.stride == (1, 1)
    floats = node.required_input(1).type.dtype.is_float
    return plain and floats and all(v is None for v in node.inputs[3:]) and _mixes_channels(node)


def _saved(node: Node, upsampling: Node) -> float:
    """Multiplications saved for each result of the convolution."""
    x, w = upsampling.required_input(0), node.required_input(1)
    (_, ih, iw, ci), (_, oh, ow, _), co = x.type.shape, upsampling.output.type.shape, w.type.shape[0]
    return ci * (1 - ih * iw / (oh * ow)) + SAMPLE_COST * (ci / co - 1)


def _swapped(match: Match) -> list[Node] | None:
    """The convolution, the upsampling of its result, and its activation."""
    node, upsampling = match.root, match.node("upsampling")
    activation: Activation = node.attrs.activation
    if _saved(node, upsampling) < (ADDITION_COST if activation is Activation.NONE else ACTIVATION_COST):
        return None
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


# ---- channels that are the same at every pixel


def _knows_weights(node: Node) -> bool:
    """Whether it is a convolution of one picture with dense weights of the file."""
    w, (n, oh, ow, _) = node.required_input(1), node.output.type.shape
    held = w.constant
    if held is None or held.sparsity is not None or not isinstance(held.data, memoryview) or w.type.quant is not None:
        return False
    return bool(n == 1 and oh * ow >= MIN_PIXELS and held.stored.is_float) and _mixes_channels(node)


def _split(match: Match) -> list[Node] | None:
    """The products of what is uniform, and the convolution of the rest; None where all or none of it is."""
    node, parts = match.root, match.node("parts")
    x, w, *others = (*node.inputs, None)[: max(3, len(node.inputs))]
    assert w is not None
    made, rest, bias, at = list[Node](), list[tuple[Value, int]](), others[0], 0
    for part in parts.inputs:
        assert part is not None
        pixel, channels = _pixel(part, match.facts), part.type.shape[3]
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
        return None
    x = rest[0][0]
    if len(rest) > 1:
        made.append(apply(movement.CONCAT, [part for part, _ in rest], parts.attrs, parts.label))
        x = made[-1].output
    columns = _columns(w, [(start, part.type.shape[3]) for part, start in rest])
    return [*made, Node(node.op, [x, columns, bias, *others[1:]], node.outputs, node.attrs, node.label)]


def _pixel(part: Value, facts: Facts) -> Value | None:
    """The one pixel that a value repeats; None if it does not."""
    upsampling = facts.writers.get(part) if facts.is_inner(part) else None
    source = upsampling.required_input(0) if upsampling is not None and upsampling.op in RESIZES else None
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


UPSAMPLED = bilinear(..., name="upsampling", once=True)
PARTS = concat(..., name="parts", once=True, when=lambda node: node.attrs.axis in (3, -1))
SUNK = (rule("before the upsampling", convolution(UPSAMPLED, ..., curved=True, when=_can_run_before), _swapped),)
UNIFORM = (rule("uniform channels", convolution(PARTS, ..., curved=True, when=_knows_weights), _split),)


def sink_upsample(graph: Graph) -> int:
    """Number of convolutions that were moved before an upsampling that only they read."""
    return rewrite(graph, SUNK)


def join_uniform(graph: Graph) -> int:
    """Number of convolutions of a CONCAT that lost channels to their bias."""
    return rewrite(graph, UNIFORM)
