"""What stands behind a product and can be its epilogue: y = activation(product + bias + residual)."""

from __future__ import annotations

import struct

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, Op, TensorType, Value
from webinfer.ops import conv, matmul, movement, pool
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.rewrite.matcher import changed, rewrite, rule
from webinfer.rewrite.patterns import ANY, Match, Variable, add, kind

CLAMPS = frozenset({Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1})
CURVES = CLAMPS | {Activation.HARD_SWISH, Activation.SIGMOID, Activation.TANH, Activation.SILU}
CARRIES: dict[Op, frozenset[Activation]] = {
    conv.CONV2D: CURVES | {Activation.PRELU},
    conv.DEPTHWISE_CONV2D: CURVES | {Activation.PRELU},
    conv.CONV_TRANSPOSE2D: CURVES | {Activation.PRELU},
    matmul.MATMUL: CURVES,
    ew.ADD: CLAMPS,
    ew.MUL: CLAMPS,
    ew.SUB: CLAMPS,
    pool.AVERAGE_POOL2D: CLAMPS,
    pool.MAX_POOL2D: CLAMPS,
}
ACTIVATIONS = {
    **{op: activation for activation, op in ew.ACTIVATIONS.items()},
    ew.CLAMP: Activation.RELU6,
    ew.LEAKY_RELU: Activation.PRELU,
}

OTHER = Variable("other")
convolution, carrier = kind(conv.CONV2D, conv.DEPTHWISE_CONV2D), kind(*CARRIES)
pad, activation = kind(movement.PAD), kind(*ACTIVATIONS)


def _is_no_scale(node: Node) -> bool:
    """Whether it is more than a factor a channel: memory bounds that one, and a sum alone is as fast."""
    return node.op is conv.CONV2D or node.required_input(1).type.shape[1:3] != (1, 1)


def _takes(product: Node, other: Value, total: Value) -> int | None:
    """The input of a convolution that another operand of its sum becomes: its residual, its bias, or none."""
    if product.output.type != total.type or other.type.dtype is not total.type.dtype or not total.type.dtype.is_float:
        return None
    if other.type.shape == total.type.shape:
        return 3 if product.optional_input(3) is None else None
    row = other.is_constant and other.type.shape == total.type.shape[-1:]
    return 2 if row and product.optional_input(2) is None else None


def _with_operand(match: Match) -> list[Node] | None:
    """The convolution with the sum's other operand, in the place of the sum, where both are known."""
    product, other, facts = match.node("product"), match.value("other"), match.facts
    at = _takes(product, other, match.root.output)
    if at is None:
        return None
    later = facts.writers.get(other)
    if later is not None and facts.order[later] > facts.order[product] and PRODUCT.fits(later, facts):
        if _takes(later, product.output, match.root.output) is not None:
            return None  # of two, the one that runs later takes the sum
    inputs = [*product.inputs, None, None][:5]
    inputs[at] = other
    while inputs[-1] is None:
        inputs.pop()
    return changed(match, product, inputs, activation=match.root.attrs.activation)


def _widens(node: Node) -> bool:
    """Whether a pad only puts zero channels behind the others, which a residual need not have."""
    a = node.attrs
    return a.mode == "constant" and a.value == 0 and not any(a.before) and not any(a.after[:-1])


def _narrow(match: Match) -> list[Node]:
    node = match.node("product")
    return changed(match, node, [*node.inputs[:3], match.node("pad").inputs[0], *node.inputs[4:]])


def _ended(match: Match) -> list[Node] | None:
    """The node with an activation at its end; quantised ones have their own rounding."""
    node, before = match.root, match.node("before")
    a, ends = node.attrs, ACTIVATIONS[node.op]
    other = (node.op is ew.CLAMP and (a.a, a.b) != (0.0, 6.0)) or (node.op is ew.SILU and a.a != 1.0)
    y = node.output.type
    if other or ends not in CARRIES[before.op] or before.output.type != y or not y.dtype.is_float:
        return None
    if ends is not Activation.PRELU:
        return changed(match, before, activation=ends)
    slope = _channel_slope(node) if node.op is ew.PRELU else _leak(node)
    inputs = [*[*before.inputs, None, None][:4], slope]
    return None if slope is None else changed(match, before, inputs, activation=ends)


def _leak(node: Node) -> Value | None:
    """The one slope of a LEAKY_RELU as a constant with a number a channel."""
    shape = node.output.type.shape[-1:]
    if not shape:
        return None
    data = struct.pack("<f", node.attrs.a) * shape[0]
    return Value("leak", TensorType(shape), Constant(memoryview(data), DType.FLOAT32))


def _channel_slope(node: Node) -> Value | None:
    """The slope of a PRELU if it is a constant with one number a channel."""
    slope, channels = node.required_input(1), node.output.type.shape[-1:]
    return slope if slope.is_constant and channels == slope.type.shape[-1:] == (slope.type.size,) else None


PRODUCT = convolution(..., name="product", once=True, when=_is_no_scale)
RESIDUALS = (rule("residual", add(PRODUCT, OTHER, curved=True), _with_operand),)
NARROW = (
    rule(
        "residual without zero channels",
        convolution(ANY, ANY, ANY, pad(..., name="pad", when=_widens), ..., name="product", curved=True), _narrow,
    ),
)  # fmt: skip
ENDS = (rule("activation", activation(carrier(..., name="before", once=True), ...), _ended, place="before"),)


def fuse_residual(graph: Graph) -> int:
    """Number of sums with a convolution that became its residual or, for one number a channel, its bias."""
    return rewrite(graph, RESIDUALS)


def fuse_channel_pad_add(graph: Graph) -> int:
    """Number of residuals that lost a pad with zero channels."""
    return rewrite(graph, NARROW)


def fuse_activation(graph: Graph) -> int:
    """Number of activations that became the end of the node before them."""
    return rewrite(graph, ENDS)
