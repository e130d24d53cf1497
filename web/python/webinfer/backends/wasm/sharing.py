"""Which steps threads share: where a step is so short that waiting for each other costs more, one thread does it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from webinfer.graph.ir import Graph
from webinfer.plan.blocks import Step

# Operations and bytes; a core does some twenty thousand of them in a microsecond.
LEAST_STEP = 60_000  # of a step that is worth a barrier
LEAST_RUN = 2_000_000  # of all such steps of a run that is worth waking threads


def with_short_steps_alone(steps: Sequence[Step], graph: Graph) -> list[Step]:
    """The steps; the units of those that one thread does are below zero."""
    works = {number: _work(graph, number) // count for number, count in steps_per_node(steps).items()}
    is_long = {number: work >= LEAST_STEP for number, work in works.items()}
    total = sum(works[step.node] for step in steps if step.units and is_long[step.node])
    shared = {number for number, long in is_long.items() if long and total >= LEAST_RUN}
    return [
        step if step.node in shared and step.units != 1 else dataclasses.replace(step, units=-step.units)
        for step in steps
    ]


def steps_per_node(steps: Sequence[Step]) -> Counter[int]:
    """How many steps each node has become."""
    return Counter(step.node for step in steps)


def _work(graph: Graph, number: int) -> int:
    """Operations and bytes of a node; those of the steps at the graph's ends are what they move."""
    if number < 0:
        return sum(v.type.nbytes for v in (*graph.inputs, *graph.outputs))
    cost = graph.nodes[number].cost()
    return cost.flops + cost.bytes
