"""Which nodes of a decoder one dispatch computes together, as dispatches wait for each other.

Queries, keys and values are one product; SwiGLU is computed behind both products that it is made of. Where one token is
read, a norm is computed on the way into the products that read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webinfer.backends.webgpu.dispatch import Dispatch, FusedGroup, Scratch, Target
from webinfer.backends.webgpu.language.attention import joined_attention
from webinfer.backends.webgpu.language.products import Ends, block_products, joinable, norms_a_row
from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops.language import BLOCK_MATMUL, CACHED_ATTENTION, SWIGLU


def joined_products(graph: Graph, folded: set[Value], target: Target) -> dict[Node, FusedGroup]:
    """The products with what they compute besides, by the node that comes last."""
    makers, readers = graph.producers(), graph.consumers()
    inner = {v: node for v, node in makers.items() if v in readers and v not in graph.outputs and v not in folded}
    norms = {
        v: node for v, node in inner.items()
        if norms_a_row(node)
        and all(_is_row(r) and r.inputs.index(v) == 0 and r.inputs.count(v) == 1 for r in readers[v])
    }  # fmt: skip
    single = {v: node for v, node in inner.items() if len(readers.get(v, ())) == 1}
    found, taken = dict[Node, FusedGroup](), set[Node]()
    for node in graph.nodes:
        products = _products(node, single, target)
        if products:
            found[node] = _joined(products, norms, node)
            taken.update(products)
    for node in graph.nodes:
        if _is_row(node) and node not in taken and node.required_input(0) in norms:
            found[node] = _joined([node], norms, node)
    return found


def _joined(products: Sequence[Node], norms: Mapping[Value, Node], last: Node) -> FusedGroup:
    norm = norms.get(products[0].required_input(0))
    absorbed = [*([norm] if norm else ()), *(node for node in products if node is not last)]
    inputs = [v for node in absorbed for v in node.inputs if v is not None]

    def lowered(target: Target) -> list[Dispatch]:
        if last.op is not CACHED_ATTENTION:
            return block_products(products, target, Ends(last.output, gated=last.op is SWIGLU), norm)
        rows, width = products[0].output.type.shape[0], sum(node.output.type.shape[1] for node in products)
        side_by_side = Scratch((rows, width))
        return [
            *block_products(products, target, Ends(side_by_side), norm),
            *joined_attention(last, target, side_by_side),
        ]

    return FusedGroup(tuple(absorbed), tuple(inputs), lowered)


def _is_row(node: Node) -> bool:
    return node.op is BLOCK_MATMUL and node.required_input(0).type.shape[0] == 1


def _products(node: Node, single: Mapping[Value, Node], target: Target) -> list[Node]:
    """The products that this SwiGLU or attention is made of, where one dispatch can compute them; else none."""
    count = 2 if node.op is SWIGLU else 3 if node.op is CACHED_ATTENTION else 0
    found = [single.get(node.required_input(i)) for i in range(count)]
    products = [each for each in found if each is not None and each.op is BLOCK_MATMUL]
    if not count or len(products) < count or len(set(products)) < count or not joinable(products, target):
        return []
    return products if node.op is CACHED_ATTENTION or products[0].optional_input(2) is None else []
