"""Sums that are no step of their own, as residual blocks end: with a product with one number, or with one of each
channel, one walk over both, with what a depthwise convolution makes the end of its step.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.kernel_constants import VECTOR_LANES
from webinfer.backends.wasm.lowerings.conv import After, depthwise_conv2d, fixed_window
from webinfer.dtypes import DType, round_to_f32
from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops import conv
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation


@dataclass(frozen=True, slots=True)
class ScaledSum:
    """What an ADD takes: `plain` as it is, and `scaled` times the factor; both stand in for the nodes of `instead`.

    `depthwise` makes what is scaled, where the sum ends its step. `factors` are the numbers of channels, where each has
    its own.
    """

    plain: Value
    scaled: Value
    factor: float
    instead: tuple[Node, ...]
    depthwise: Node | None = None
    factors: Value | None = None


def find_scaled_sums(graph: Graph, isa: str) -> dict[Node, ScaledSum]:
    """The sums of two float32 tensors of one shape, of which nobody else reads the side that is a product or comes of a
    depthwise convolution.
    """
    reads = Counter(value for node in graph.nodes for value in node.inputs)
    reads.update(graph.outputs)
    fixed = graph.fixed_values()
    made = {
        node.output: node
        for node in graph.nodes
        if len(node.outputs) == 1 and reads[node.output] == 1 and node.output not in fixed
    }
    found = dict[Node, ScaledSum]()
    taken: set[Node] = set()
    for node in graph.nodes:
        if node.op is not ew.ADD or node.attrs.activation.bounds is None or node.output.type.dtype is not DType.FLOAT32:
            continue
        for plain, side in (node.inputs, node.inputs[::-1]):
            scaled = _scaled(plain, side, node, made, isa.startswith("scalar"))
            if scaled is not None and taken.isdisjoint(scaled.instead):
                found[node] = scaled
                taken.update(scaled.instead)
                break
    return found


def _scaled(
    plain: Value | None, side: Value | None, total: Node, made: dict[Value, Node], scalar: bool
) -> ScaledSum | None:
    if plain is None or side is None or plain.type != total.output.type:
        return None
    product = made.get(side)
    if product is None:
        return None
    scaled, factor, instead = side, 1.0, tuple[Node, ...]()
    if product.op is ew.MUL:
        found = _factor(product, total.output)
        if found is None:
            gated = _factors(product, total.output)
            return gated and ScaledSum(plain, gated[0], 1.0, (product,), None, gated[1])
        (scaled, factor), instead = found, (product,)
    maker = made.get(scaled)
    if maker is not None and not scalar and total.attrs.activation is Activation.NONE and _takes_sums(maker):
        return ScaledSum(plain, scaled, factor, (*instead, maker), maker)
    return ScaledSum(plain, scaled, factor, instead) if instead else None


def _factor(product: Node, y: Value) -> tuple[Value, float] | None:
    """What a product takes times which number, if it is one."""
    if product.attrs.activation is not Activation.NONE:
        return None
    for scaled, number in (product.inputs, product.inputs[::-1]):
        held = number.constant if number is not None and number.type.size == 1 else None
        if scaled is None or number is None or held is None or held.sparsity is not None or scaled.type != y.type:
            continue
        if number.type.dtype is DType.FLOAT32:
            return scaled, float(number.numbers()[0])
    return None


def _factors(product: Node, y: Value) -> tuple[Value, Value] | None:
    """What a product takes times which numbers of channels, if whole vectors of these lie side by side."""
    if product.attrs.activation is not Activation.NONE or not y.type.shape or y.type.shape[-1] % VECTOR_LANES:
        return None
    for scaled, numbers in (product.inputs, product.inputs[::-1]):
        if scaled is None or numbers is None or scaled.type != y.type or numbers.type.dtype is not DType.FLOAT32:
            continue
        if numbers.type.size == y.type.shape[-1] == numbers.type.shape[-1]:
            return scaled, numbers
    return None


def _takes_sums(node: Node) -> bool:
    """Whether a node is a depthwise convolution of float32 whose kernel can end with a sum."""
    if node.op is not conv.DEPTHWISE_CONV2D or node.output.type.dtype is not DType.FLOAT32:
        return False
    _, kh, kw, co = node.required_input(1).type.shape
    ends = node.attrs.activation.bounds is not None or node.attrs.activation is Activation.PRELU
    floats = all(value is None or value.type.dtype is DType.FLOAT32 for value in node.inputs[:4])
    return ends and floats and co == node.required_input(0).type.shape[3] and fixed_window(node, (kh, kw)) is not None


def scaled_sum(node: Node, parts: ScaledSum, builder: Builder) -> None:
    """One step for the sum and its product, or for the sum and its depthwise convolution."""
    if parts.depthwise is not None:
        depthwise_conv2d(parts.depthwise, builder, After(node.output, parts.plain, round_to_f32(parts.factor)))
        return
    lo, hi = map(round_to_f32, node.attrs.activation.bounds or (-math.inf, math.inf))  # which the search has asked for
    if parts.factors is not None:
        c = node.output.type.shape[-1]
        builder.step(
            "f32_scaled_add_channels",
            a=builder.ref(parts.plain), b=builder.ref(parts.scaled), factors=builder.ref(parts.factors),
            y=builder.ref(node.output), c=c, lo=lo, hi=hi, units=node.output.type.size // c,
        )  # fmt: skip
        return
    builder.step(
        "f32_scaled_add",
        a=builder.ref(parts.plain), b=builder.ref(parts.scaled), y=builder.ref(node.output), factor=parts.factor,
        lo=lo, hi=hi, units=node.output.type.size,
    )  # fmt: skip
