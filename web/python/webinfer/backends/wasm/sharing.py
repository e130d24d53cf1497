"""Which steps threads share, and in how many parts: where a step is so short that waiting for each other costs more,
one thread does it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from webinfer.graph.ir import Graph, Node
from webinfer.plan.blocks import Step

# Operations and bytes; a core does some twenty thousand of them in a microsecond. With shares of 25 microseconds two
# threads on disturbed cores took 0.65 to 0.95 of the time of equal parts (2026-11-23).
LEAST_STEP = 60_000  # of a step that is worth a barrier
LEAST_RUN = 2_000_000  # of all such steps of a run that is worth waking threads
SHARE = 500_000  # of what a thread takes at a time: another one may have to wait for it
MOST = 1024  # shares of a step
Joined = Mapping[int, Sequence[Node]]


def with_short_steps_alone(steps: Sequence[Step], graph: Graph, joined: Joined) -> list[Step]:
    """The steps; those that one thread does have no shares, the others as many as they are worth.

    `joined`: other nodes that a node's steps do as well.
    """
    works = {number: work_of(graph, number, joined) for number in steps_per_node(steps)}
    shares = shares_of(steps, [s.units for s in steps], works)
    return [dataclasses.replace(s, shares=own) for s, own in zip(steps, shares, strict=True)]


class OfNode(Protocol):
    """A step: its node is the number of the node that it computes, below 0 at the graph's ends."""

    @property
    def node(self) -> int:
        """The number."""


def shares_of(steps: Sequence[OfNode], units: Sequence[int], works: Mapping[int, int]) -> list[int]:
    """In how many parts threads share each step; `works` are operations and bytes of the nodes."""
    works = {number: works[number] // count for number, count in steps_per_node(steps).items()}
    is_long = {number: work >= LEAST_STEP for number, work in works.items()}
    total = sum(works[step.node] for step, count in zip(steps, units, strict=True) if count and is_long[step.node])
    shared = {number for number, long in is_long.items() if long and total >= LEAST_RUN}
    shares = {number: max(1, min(works[number] // SHARE, MOST)) for number in shared}
    return [shares.get(s.node, 0) if count > 1 else 0 for s, count in zip(steps, units, strict=True)]


def steps_per_node(steps: Sequence[OfNode]) -> Counter[int]:
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


def work_of(graph: Graph, number: int, joined: Joined) -> int:
    """Operations and bytes of a node, and operations of those joined to it; steps at the graph's ends move bytes."""
    if number < 0:
        return sum(v.type.nbytes for v in (*graph.inputs, *graph.outputs))
    cost = graph.nodes[number].cost()
    return cost.flops + cost.bytes + sum(one.cost().flops for one in joined.get(number, ()))
