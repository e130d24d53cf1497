"""Rules, and their application: finds in a graph what a rule describes, and puts the rule's replacement there.

The rules for a node are looked up by its operator, and a pattern looks at a limited number of nodes: the cost is linear
in the nodes of the graph.
"""

from __future__ import annotations

import dataclasses
import struct
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypeVar

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, Op, TensorType, Value
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import elementwise as ew
from webinfer.rewrite.facts import Facts
from webinfer.rewrite.patterns import Call, Match, Pattern, Product, Scalar, Variable

Condition = Callable[[Match], bool]
T = TypeVar("T")
Replacement = Callable[[Match], Sequence[Node] | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern and what takes its place: a pattern, or a function that makes the nodes, or None where it cannot.

    The last of these nodes writes what the last node of the pattern wrote. They stand where that one stood, or where
    the node named `place` did.
    """

    name: str
    pattern: Pattern
    replacement: Pattern | Replacement
    when: Condition | None = None
    place: str = ""

    def applied(self, node: Node, facts: Facts) -> tuple[Sequence[Node], Node] | None:
        """The nodes that take the node's place, and whose place they take; None if this is not the rule's pattern."""
        for match in self.pattern.matches(node.outputs[0], Match(facts, node)):
            if self.when is None or self.when(match):
                new = self.replacement
                made = _made(new, match) if isinstance(new, Pattern) else new(match)
                if made is not None:
                    return made, match.node(self.place) if self.place else node
        return None


rule = Rule  # as tables of rules write it


def changed(match: Match, node: Node, inputs: Sequence[Value | None] | None = None, **attrs: object) -> list[Node]:
    """A node of the match in the place of the last one, with other inputs or attributes."""
    new = dataclasses.replace(node.attrs, **attrs)
    return [Node(node.op, node.inputs if inputs is None else inputs, match.root.outputs, new, node.label)]


def _made(pattern: Pattern, match: Match) -> list[Node]:
    """The nodes of a replacement: a call, or a call times a number of the match."""
    root, y = match.root, match.root.output
    if not isinstance(pattern, Product):
        return [_applied(pattern, match, y)]
    ((call, _), (scalar, _)) = pattern.powers
    assert isinstance(scalar, Scalar)
    inner = _applied(call, match, Value(f"{y.name}:unscaled", y.type))
    data = memoryview(struct.pack("<f", match.number(scalar.name)))
    factor = Value(f"{y.name}:factor", TensorType(()), Constant(data, DType.FLOAT32))
    return [inner, Node(ew.MUL, [inner.output, factor], [y], ew.BinaryAttrs(), root.label)]


def _applied(call: Pattern, match: Match, y: Value) -> Node:
    assert isinstance(call, Call)
    inputs = [match.value(part.name) for part in call.inputs if isinstance(part, Variable)]
    attrs = call.attrs(match) if callable(call.attrs) else call.attrs
    return Node(call.ops[0], inputs, [y], attrs, match.root.label)


def rewrite(graph: Graph, rules: Sequence[Rule]) -> int:
    """Number of times that a rule was applied. Of several that fit a node the first one counts; what took its place is
    looked at again. Nodes that nobody reads afterwards are gone.
    """
    present = {node.op for node in graph.nodes}
    index = _by_operator(rules, present)
    if not index:
        return 0
    facts, count = Facts(graph), 0
    places = [[node] for node in graph.nodes]  # what stands in the place of each node
    for at, node in enumerate(graph.nodes):
        while (rows := index.get(node.op)) and (found := _first(rows, node, facts)) is not None:
            new, instead = found
            places[at].pop()
            at = facts.order[instead]
            facts.replace(node, new, at)
            places[at] += new
            node = new[-1]
            count += 1
            if not present.issuperset(ops := {node.op for node in new}):
                index = _by_operator(rules, present := present | ops)
    graph.nodes = [node for place in places for node in place if node not in facts.gone]
    return count


def _by_operator(rules: Sequence[Rule], present: set[Op]) -> dict[Op, list[Rule]]:
    """The rules that a graph of these operators may hold the pattern of, by the operator that they end in."""
    index = defaultdict[Op, list[Rule]](list)
    for row in rules:
        if all(not present.isdisjoint(ops) for ops in row.pattern.needs()):
            for op in row.pattern.roots:
                index[op].append(row)
    return index


def _first(rules: Sequence[Rule], node: Node, facts: Facts) -> tuple[Sequence[Node], Node] | None:
    if len(node.outputs) == 1:
        for row in rules:
            if (made := row.applied(node, facts)) is not None:
                return made
    return None


def places(facts: Facts, pattern: Pattern, make: Callable[[Match], T | None], taken: set[Node]) -> dict[Node, T]:
    """What `make` makes of the pattern's places in a graph that stays as it is, by their last nodes.

    Each node is in one place at most: places have none that is `taken`, which learns of theirs, and none that is
    computed at load.
    """
    found = dict[Node, T]()
    for node in facts.order:
        if node in taken or node.op not in pattern.roots or len(node.outputs) != 1 or node.output in facts.fixed:
            continue
        for match in pattern.matches(node.output, Match(facts, node)):
            inner = match.inner
            if not taken.isdisjoint(inner) or any(one.output in facts.fixed for one in inner):
                continue
            if (made := make(match)) is not None:
                found[node] = made
                taken.update((node, *inner))
                break
    return found
