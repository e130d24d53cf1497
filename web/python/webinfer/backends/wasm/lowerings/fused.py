"""Nodes that are lowered together, by the last one of each group; the graph stays as it is."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.dynamic_quantize import dynamic_step, find_dynamic
from webinfer.backends.wasm.lowerings.packed_matmul import convolution, find_byte_products
from webinfer.backends.wasm.lowerings.product_epilogue import find_product_ends, product_with_gelu
from webinfer.backends.wasm.lowerings.scaled_sums import find_scaled_sums, scaled_sum
from webinfer.graph.ir import Graph, Node
from webinfer.lazy_dataclass import dataclass
from webinfer.rewrite.facts import Facts


@dataclass(frozen=True, slots=True)
class Fused:
    """What lowers the last node, and the nodes that have no step of their own."""

    lower_last: Lower
    instead: tuple[Node, ...]

    def lower(self, node: Node, index: int, builder: Builder) -> None:
        """The steps of them all, as those of the last node, which has this number."""
        self.lower_last(node, builder)
        builder.joined[index] = self.instead


def find_fused(graph: Graph, facts: Facts, isa: str, others: Collection[Node]) -> dict[Node, Fused]:
    """The groups by their last nodes; `others` are nodes that something else does."""
    sums = find_scaled_sums(facts, isa)
    found = {node: Fused(partial(scaled_sum, parts=parts), parts.instead) for node, parts in sums.items()}
    taken = {*others, *found, *(inner for one in found.values() for inner in one.instead)}
    for node, inner in find_product_ends(graph, facts, taken).items():
        found[node] = Fused(partial(product_with_gelu, inner=inner), inner)
    for node, inner in find_byte_products(facts, taken).items():
        found[node] = Fused(partial(convolution, inner=inner), inner)
    for node, chain in find_dynamic(graph, facts, taken).items():
        found[node] = Fused(partial(dynamic_step, parts=chain), chain.instead)
    return found
