"""A gelu behind a product, which ends the product's step: it is computed where the tile was stored.

A sum behind a matrix product stays a step. Tiles add what is added first, the rows that are left over last: the bits of
a plan would tell which tiles it has, and plans that are bound to sizes have others than plans made for them.
"""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.conv import conv2d
from webinfer.backends.wasm.lowerings.matmul import matmul
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Op
from webinfer.kernel_constants import ACTIVATION_GELU, ACTIVATION_GELU_TANH
from webinfer.ops import conv
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import movement as mv
from webinfer.plan.blocks import Arguments
from webinfer.rewrite.facts import Facts
from webinfer.rewrite.matcher import places
from webinfer.rewrite.patterns import kind

PRODUCTS: dict[Op, Lower] = {mm.MATMUL: matmul, conv.CONV2D: conv2d}


def find_product_ends(graph: Graph, facts: Facts, taken: set[Node]) -> dict[Node, tuple[Node, ...]]:
    """The float32 product that nobody else reads, of each gelu behind one, and the reshape that may lie between them.

    None in graphs of parts or with values that nodes change in place: the product would read its operands late.
    """
    if graph.parts or graph.resident:
        return {}
    return places(facts, GELU, lambda match: match.inner, taken)


def _is_dense(node: Node) -> bool:
    """Whether it is a product of floats whose sums may be rounded; windows of one channel have kernels of their own."""
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    depthwise = node.op is conv.CONV2D and node.required_input(1).type.shape[3] == 1
    floats = all(v.type.dtype is DType.FLOAT32 and v.type.quant is None for v in values)
    return floats and not depthwise and not node.attrs.exact


PRODUCT = kind(*PRODUCTS)(..., name="product", once=True, when=_is_dense)
RESHAPED = kind(mv.RESHAPE)(PRODUCT, ..., name="reshape", once=True)
GELU = kind(ew.GELU, ew.GELU_TANH)(PRODUCT | RESHAPED)


def product_with_gelu(node: Node, builder: Builder, inner: tuple[Node, ...]) -> None:
    """The steps of the product, which store the gelu's result."""
    act = ACTIVATION_GELU if node.op is ew.GELU else ACTIVATION_GELU_TANH
    end: Arguments = {"act": act, "lo": -math.inf, "hi": math.inf}
    for before in inner:
        builder.end(before.output, end, node.output)
    PRODUCTS[inner[0].op](inner[0], builder)
