"""Which nodes of a decoder one dispatch computes together where one word is read, as dispatches wait for each other.

A norm is computed on the way into the products that read it, and SwiGLU behind both products that it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping

from webinfer.backends.webgpu.dispatch import Dispatch, FusedGroup, Target
from webinfer.backends.webgpu.language.products import row_product
from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops.language import BLOCK_MATMUL, SWIGLU
from webinfer.ops.normalization import LAYER_NORM


def joined_products(graph: Graph, folded: set[Value]) -> dict[Node, FusedGroup]:
    """The products of one row with what they compute besides, by the node that comes last."""
    makers, readers = graph.producers(), graph.consumers()
    inner = {v: node for v, node in makers.items() if v in readers and v not in graph.outputs and v not in folded}
    norms = {
        v: node for v, node in inner.items()
        if _is_norm(node) and all(_is_row(r) and r.inputs.index(v) == 0 and r.inputs.count(v) == 1 for r in readers[v])
    }  # fmt: skip
    single = {v: node for v, node in inner.items() if len(readers.get(v, ())) == 1}
    found, taken = dict[Node, FusedGroup](), set[Node]()
    for node in graph.nodes:
        pair = _pair(node, single)
        if pair is not None:
            found[node] = _joined(pair[0], norms, pair[1], node)
            taken.update(pair)
    for node in graph.nodes:
        if _is_row(node) and node not in taken and node.required_input(0) in norms:
            found[node] = _joined(node, norms)
    return found


def _joined(product: Node, norms: Mapping[Value, Node], up: Node | None = None, last: Node | None = None) -> FusedGroup:
    norm = norms.get(product.required_input(0))
    absorbed = [node for node in (norm, product if up else None, up) if node is not None]
    inputs = [v for node in absorbed for v in node.inputs if v is not None]
    y = last.output if last else None

    def lowered(target: Target) -> list[Dispatch]:
        return [row_product(product, target, norm, up, y)]

    return FusedGroup(tuple(absorbed), tuple(inputs), lowered)


def _is_row(node: Node) -> bool:
    return node.op is BLOCK_MATMUL and node.required_input(0).type.shape[0] == 1


def _is_norm(node: Node) -> bool:
    """Whether it is an RMS norm of one row without a shift."""
    if node.op is not LAYER_NORM or node.attrs.centred or node.optional_input(2) is not None:
        return False
    x = node.required_input(0)
    return x.type.shape[:-1] == (1,) and node.attrs.axes == 1 and node.optional_input(1) is not None


def _pair(node: Node, single: Mapping[Value, Node]) -> tuple[Node, Node] | None:
    """The two products that this SwiGLU is made of, where one dispatch can compute all."""
    if node.op is not SWIGLU:
        return None
    gate, up = (single.get(node.required_input(i)) for i in range(2))
    if gate is None or up is None or gate is up or not (_is_row(gate) and _is_row(up)):
        return None
    plain = all(product.optional_input(i) is None for product in (gate, up) for i in (2, 3))
    alike = gate.attrs == up.attrs and gate.inputs[0] is up.inputs[0]
    return (gate, up) if plain and alike and gate.optional_input(4) is up.optional_input(4) else None
