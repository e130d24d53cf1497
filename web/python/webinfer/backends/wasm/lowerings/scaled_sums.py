"""A sum of which one side is a product with one number, as residual blocks end: one step, one walk over both."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from webinfer.backends.wasm.builder import Builder
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Value
from webinfer.lowering.affine import round_to_f32
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation


@dataclass(frozen=True, slots=True)
class ScaledSum:
    """What an ADD takes: `plain` as it is, and `scaled` times the factor, in place of what `product` would write."""

    plain: Value
    scaled: Value
    factor: float
    product: Node


def find_scaled_sums(graph: Graph) -> dict[Node, ScaledSum]:
    """The sums of two float32 tensors of one shape, of which nobody else reads the side that is a product."""
    reads = Counter(value for node in graph.nodes for value in node.inputs)
    reads.update(graph.outputs)
    products = {node.output: node for node in graph.nodes if node.op is ew.MUL and reads[node.output] == 1}
    found = dict[Node, ScaledSum]()
    for node in graph.nodes:
        if node.op is not ew.ADD or node.attrs.activation.bounds is None:
            continue
        for plain, side in (node.inputs, node.inputs[::-1]):
            product = products.get(side) if side is not None else None
            made = _scaled(product, plain, node.output) if product is not None and plain is not None else None
            if made is not None:
                found[node] = made
                break
    return found


def _scaled(product: Node, plain: Value, y: Value) -> ScaledSum | None:
    if product.attrs.activation is not Activation.NONE or y.type.dtype is not DType.FLOAT32 or plain.type != y.type:
        return None
    for scaled, number in (product.inputs, product.inputs[::-1]):
        held = number.constant if number is not None and number.type.size == 1 else None
        if scaled is None or number is None or held is None or held.sparsity is not None or scaled.type != y.type:
            continue
        if number.type.dtype is DType.FLOAT32:
            return ScaledSum(plain, scaled, float(number.numbers()[0]), product)
    return None


def scaled_sum(node: Node, parts: ScaledSum, builder: Builder) -> None:
    """One step for the sum and its product."""
    lo, hi = node.attrs.activation.bounds or (-math.inf, math.inf)  # which the search has asked for
    builder.step(
        "f32_scaled_add",
        a=builder.ref(parts.plain), b=builder.ref(parts.scaled), y=builder.ref(node.output), factor=parts.factor,
        lo=round_to_f32(lo), hi=round_to_f32(hi), units=node.output.type.size,
    )  # fmt: skip
