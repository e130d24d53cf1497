"""Which elementwise nodes one dispatch computes together: chains of formulas that end in one stored result, and the
pads and resizes behind them that only say where an element is stored.

Only the schedule knows: the graph stays as it is, and inner values are never stored. Reshapes between the nodes cost
nothing, values that are broadcast are computed where they are read. The dispatch itself is in lowerings.chain.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

from webinfer.backends.webgpu.dispatch import Dispatch, FusedGroup, Target
from webinfer.backends.webgpu.lowerings.chain import Links, chain_dispatch, is_link, is_move, is_step, operands_of
from webinfer.graph.ir import Graph, Node, Value

# Of a chain: what all of them read must stay a glance for a compiler; 24 took 1.5 times as long, 12 2.2 (H100,
# 2026-11-28).
MOST_NODES = 48


def find_chains(graph: Graph, folded: set[Value], target: Target, taken: Collection[Node]) -> dict[Node, FusedGroup]:
    """The chains of a graph by their last node, of nodes that are not `taken` by another dispatch.

    None in graphs of parts or with values that nodes change in place: what a chain reads, it reads late.
    """
    if graph.parts or graph.resident:
        return {}
    finder = _Finder(graph, folded, target, taken)
    for node in reversed(graph.nodes):
        finder.add(node)
    return finder.found


class _Finder:
    """Grows a chain from each node that is in none yet, towards what it reads."""

    def __init__(self, graph: Graph, folded: set[Value], target: Target, taken: Collection[Node]) -> None:
        self.found: dict[Node, FusedGroup] = {}
        self._target, self._readers = target, graph.consumers()
        self._at = {node: i for i, node in enumerate(graph.nodes)}
        kept = {*graph.outputs, *folded}
        free = [node for node in graph.nodes if node not in taken and len(node.outputs) == 1]
        free = [node for node in free if node.outputs[0] not in folded]
        self._links = {node.output: node for node in free if is_link(node)}
        self._inner = {value: node for value, node in self._links.items() if value not in kept}
        self._moves = {node.output: node for node in free if is_move(node)}
        self._inner_moves = {value: node for value, node in self._moves.items() if value not in kept}
        self._absorbed: set[Node] = set()

    def add(self, node: Node) -> None:
        """Makes the longest chain that ends in this node, if it joins at least two."""
        if node in self._absorbed or not node.outputs:
            return
        movers, value = self._movers(node)
        last = self._links.get(value)
        alone = bool(movers) and (value not in self._inner or len(self._readers[value]) > 1)
        members = set[Node]() if last is None or alone or not is_step(last) else self._grown(last, movers)
        if sum(map(is_step, members)) + len(movers) < 2:
            return
        inner = tuple(sorted({*members, *movers} - {node}, key=self._at.__getitem__))
        self._absorbed.update(inner)
        self.found[node] = _joined(
            value, inner, {n.output: n for n in sorted(members, key=self._at.__getitem__)}, movers
        )

    def _movers(self, node: Node) -> tuple[list[Node], Value]:
        """The movers that end in this node, the first one first, and what they move."""
        movers, value = list[Node](), node.outputs[0]
        maker = self._moves.get(value)
        while maker is not None:
            movers.insert(0, maker)
            value = maker.required_input(0)
            maker = self._inner_moves.get(value) if len(self._readers[value]) == 1 else None
            if maker in self._absorbed:
                maker = None
        return movers, value

    def _grown(self, last: Node, movers: list[Node]) -> set[Node]:
        """The nodes of the longest chain that ends in this step."""
        members, refused = {last}, set[Node]()
        if chain_dispatch(last.output, {last.output: last}, self._target, movers) is None:
            return set()
        while len(members) < MOST_NODES:
            candidate = self._candidate(members, refused)
            if candidate is None:
                break
            links: Links = {n.output: n for n in (*members, candidate)}
            if chain_dispatch(last.output, links, self._target, movers) is None:
                refused.add(candidate)
            else:
                members.add(candidate)
        while True:  # a reshape at the end of a chain is no use there
            ends = [n for n in members if n is not last and not is_step(n) and self._reads_outside(n, members)]
            if not ends:
                return members
            members.difference_update(ends)

    def _candidate(self, members: set[Node], refused: set[Node]) -> Node | None:
        """The last node that only members read the result of."""
        fitting = [
            maker
            for node in members
            for value in operands_of(node)
            if (maker := self._inner.get(value)) is not None
            and maker not in members
            and maker not in refused
            and maker not in self._absorbed
            and maker not in self.found
            and all(reader in members for reader in self._readers[value])
        ]
        return max(fitting, key=self._at.__getitem__, default=None)

    def _reads_outside(self, node: Node, members: set[Node]) -> bool:
        maker = self._inner.get(node.required_input(0))
        return maker is None or maker not in members


def _joined(value: Value, inner: Sequence[Node], links: Links, movers: Sequence[Node]) -> FusedGroup:
    made = {n.output for n in inner}
    inputs = tuple(dict.fromkeys(v for n in inner for v in n.inputs if v is not None and v not in made))
    return FusedGroup(tuple(inner), inputs, functools.partial(_lower, value, links, movers))


def _lower(value: Value, links: Links, movers: Sequence[Node], target: Target) -> list[Dispatch]:
    found = chain_dispatch(value, links, target, movers)
    assert found is not None, f"{value.name}: the chain was possible before"
    return [found]
