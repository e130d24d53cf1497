"""Which steps threads share, and in how many parts: where a step is so short that waiting for each other costs more,
one thread does it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from webinfer.graph.ir import Graph
from webinfer.plan.blocks import Step

# Operations and bytes; a core does some twenty thousand of them in a microsecond.
LEAST_STEP = 60_000  # of a step that is worth a barrier
LEAST_RUN = 2_000_000  # of all such steps of a run that is worth waking threads
SHARE = 500_000  # of what a thread takes at a time: another one may have to wait for it
MOST = 1024  # shares of a step


def with_short_steps_alone(steps: Sequence[Step], graph: Graph) -> list[Step]:
    """The steps; those that one thread does have no shares, the others as many as they are worth."""
    works = {number: _work(graph, number) // count for number, count in steps_per_node(steps).items()}
    is_long = {number: work >= LEAST_STEP for number, work in works.items()}
    total = sum(works[step.node] for step in steps if step.units and is_long[step.node])
    shared = {number for number, long in is_long.items() if long and total >= LEAST_RUN}
    shares = {number: max(1, min(works[number] // SHARE, MOST)) for number in shared}
    return [dataclasses.replace(s, shares=shares.get(s.node, 0) if s.units > 1 else 0) for s in steps]


def steps_per_node(steps: Sequence[Step]) -> Counter[int]:
    """How many steps each node has become."""
    return Counter(step.node for step in steps)


def only_moves(kernel: str) -> bool:
    """Whether a kernel brings elements to other places without computing: those that are named by an element's width,
    and those that pack weights.
    """
    dtype, _, operator = kernel.partition("_")
    return (dtype.startswith("b") and dtype[1:].isdigit()) or dtype == "pack" or operator.startswith("pack_")


def saves(kernel: str) -> bool:
    """Whether a kernel multiplies less often than the operator's definition, or smaller numbers than floats."""
    return kernel.startswith("q8_") or any(word in kernel for word in ("winograd", "sparse", "block_product"))


def _work(graph: Graph, number: int) -> int:
    """Operations and bytes of a node; those of the steps at the graph's ends are what they move."""
    if number < 0:
        return sum(v.type.nbytes for v in (*graph.inputs, *graph.outputs))
    cost = graph.nodes[number].cost()
    return cost.flops + cost.bytes
