"""Patterns of formulas and of nodes, and how each is found in a graph.

A pattern is written as the formula is, and compared as a formula. `X * 0.5 * (erf(X / SQRT2) + 1)` is found in every
order of its factors and with its numbers in any place: products are compared by the powers of their factors and the
product of their numbers, so that division, roots and squares need no rows of their own. `mul(A, B)` means one node of
that operator. A variable stands for one value, however often it is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from types import EllipsisType
from typing import Any

from webinfer.graph.ir import Node, Op, Value
from webinfer.graph.queries import scalar_constant
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import elementwise as ew
from webinfer.rewrite.facts import POWERS, Factor, Facts, is_plain

# Nodes of one product that are looked at, so that long chains take no time by their square: half and double changed
# none of 146 graphs.
MAX_WALK = 16
TOLERANCE = 1e-4  # of the product of all numbers among the factors: files write them in float16 or in decimal
COMMUTATIVE = frozenset({ew.ADD, ew.MUL, ew.MAXIMUM, ew.MINIMUM, ew.SQUARED_DIFFERENCE})


@dataclass(frozen=True, slots=True)
class Match:
    """What the names of a pattern stand for, in one place of a graph."""

    facts: Facts
    root: Node
    bound: Mapping[str, Any] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        """The value that a variable stands for."""
        found = self.bound[name]
        assert isinstance(found, Value)
        return found

    def node(self, name: str) -> Node:
        """The node that a part of the pattern was found as."""
        found = self.bound[name]
        assert isinstance(found, Node)
        return found

    def number(self, name: str) -> float:
        """The number that a scalar stands for."""
        return float(self.bound[name])

    @property
    def inner(self) -> tuple[Node, ...]:
        """The nodes that the pattern names, in the graph's order, without the last one."""
        nodes = [node for node in self.bound.values() if isinstance(node, Node) and node is not self.root]
        return tuple(sorted(nodes, key=self.facts.order.__getitem__))

    def bind(self, name: str, found: Any) -> Match | None:
        """The match with one more name; None where the name stands for something else."""
        if not name:
            return self
        if name in self.bound:
            known = self.bound[name]
            return self if known is found or (isinstance(found, float) and known == found) else None
        return Match(self.facts, self.root, {**self.bound, name: found})


class Pattern:
    """A part of a formula. Python's operators put patterns together."""

    @property
    def roots(self) -> tuple[Op, ...]:
        """Operators of the node that it ends in."""
        return ()

    def matches(self, value: Value, match: Match) -> Iterator[Match]:
        """All ways to see the value as this pattern."""
        return (found for found, scale in self.scaled(value, match) if scale == 1.0)

    def scaled(self, value: Value, match: Match) -> Iterator[tuple[Match, float]]:
        """All ways to see the value as a multiple of this pattern, and the multiples."""
        return ((found, 1.0) for found in self.matches(value, match))

    def needs(self) -> Iterator[tuple[Op, ...]]:
        """Operators of which a graph must have at least one each to hold this pattern."""
        yield from ()

    def __add__(self, other: Pattern | float) -> Pattern:
        return Shifted(self, other) if isinstance(other, Scalar | int | float) else add(self, other)

    def __sub__(self, other: Pattern) -> Pattern:
        return sub(self, other)

    def __mul__(self, other: Pattern | float) -> Product:
        return _product(self).times(_product(other))

    def __truediv__(self, other: Pattern | float) -> Product:
        return _product(self).times(_product(other) ** -1)

    def __pow__(self, power: float) -> Product:
        return Product(1.0, ((self, float(power)),))

    def __or__(self, other: Pattern) -> Pattern:
        return Either((self, other))


@dataclass(frozen=True, eq=False)
class Variable(Pattern):
    """One value, the same wherever the name stands; with `of`, one that is this pattern."""

    name: str
    of: Pattern | None = None

    def matches(self, value: Value, match: Match) -> Iterator[Match]:
        """The value itself."""
        if self.name in match.bound or self.of is None:
            found = match.bind(self.name, value)
            return iter(() if found is None else (found,))
        named = (inner.bind(self.name, value) for inner in self.of.matches(value, match))
        return (found for found in named if found is not None)

    def needs(self) -> Iterator[tuple[Op, ...]]:
        """Those of what it is."""
        return iter(()) if self.of is None else self.of.needs()


ANY = Pattern()  # an input that does not matter, there or absent


@dataclass(frozen=True, eq=False)
class Scalar(Pattern):
    """A number that only the model knows: a constant of one element, or what a product is multiplied by."""

    name: str

    def matches(self, value: Value, match: Match) -> Iterator[Match]:
        """The number of a constant that has one."""
        number = scalar_constant(value)
        found = None if number is None else match.bind(self.name, number)
        return iter(() if found is None else (found,))


@dataclass(frozen=True, eq=False)
class Number(Pattern):
    """A constant of one element that is exactly this number."""

    number: float

    def matches(self, value: Value, match: Match) -> Iterator[Match]:
        """The match, unchanged."""
        return iter((match,) if scalar_constant(value) == self.number else ())


@dataclass(frozen=True, eq=False)
class Either(Pattern):
    """One of several patterns, the first ones tried first."""

    options: tuple[Pattern, ...]

    @property
    def roots(self) -> tuple[Op, ...]:
        """Those of all options."""
        return tuple(op for option in self.options for op in option.roots)

    def matches(self, value: Value, match: Match) -> Iterator[Match]:
        """Those of each option."""
        return (found for option in self.options for found in option.matches(value, match))


@dataclass(frozen=True, eq=False)
class Maybe(Pattern):
    """A pattern where there is one; any value, or none, where there is not."""

    part: Pattern

    def matches(self, value: Value, match: Match) -> Iterator[Match]:
        """Those of the pattern; the match unchanged, if there are none."""
        found = [*self.part.matches(value, match)]
        return iter(found or (match,))


@dataclass(frozen=True, eq=False)
class Shifted(Pattern):
    """A pattern plus a number: one of the rule, which is exact, or one of the model."""

    part: Pattern
    number: Scalar | float

    def scaled(self, value: Value, match: Match) -> Iterator[tuple[Match, float]]:
        """The sum with a number; a * x + b is a * (x + b / a)."""
        node = match.facts.writers.get(value)
        if node is None or node.op not in (ew.ADD, ew.LINEAR) or not is_plain(node):
            return
        sums = [(node.inputs[0], node.attrs.b / node.attrs.a, node.attrs.a)] if _moves(node) else []
        if node.op is ew.ADD:
            pairs = (node.inputs, node.inputs[::-1])
            sums = [(x, number, 1.0) for x, other in pairs if (number := scalar_constant(other)) is not None]
        for x, number, scale in sums:
            known = match.bind(self.number.name, number) if isinstance(self.number, Scalar) else match
            exact = isinstance(self.number, Scalar) or number == self.number
            if x is not None and known is not None and exact:
                yield from ((found, scale) for found in self.part.matches(x, known))

    def needs(self) -> Iterator[tuple[Op, ...]]:
        """Those of the pattern."""
        return self.part.needs()


def _moves(node: Node) -> bool:
    return node.op is ew.LINEAR and bool(node.attrs.a) and bool(node.attrs.b)


@dataclass(frozen=True, eq=False)
class Product(Pattern):
    """Powers of patterns, multiplied, times a number, or times one that a scalar among the factors stands for."""

    number: float
    powers: tuple[tuple[Pattern, float], ...]

    @property
    def roots(self) -> tuple[Op, ...]:
        """All that multiply."""
        return (ew.MUL, ew.DIV, ew.LINEAR, ew.POW, *POWERS)

    def times(self, other: Product) -> Product:
        """The product of two products."""
        return Product(self.number * other.number, (*self.powers, *other.powers))

    def __pow__(self, power: float) -> Product:
        return Product(self.number**power, tuple((part, own * power) for part, own in self.powers))

    @cached_property
    def _parts(self) -> tuple[tuple[Pattern, float], ...]:
        """The tensors among the factors; what says more about its value is found before plain variables."""
        tensors = [(part, power) for part, power in self.powers if not isinstance(part, Scalar)]
        return tuple(sorted(tensors, key=lambda one: isinstance(one[0], Variable) and one[0].of is None))

    @cached_property
    def _free(self) -> Scalar | None:
        return next((part for part, _ in self.powers if isinstance(part, Scalar)), None)

    def needs(self) -> Iterator[tuple[Op, ...]]:
        """Those of all factors."""
        return (ops for part, _ in self.powers for ops in part.needs())

    def matches(self, value: Value, match: Match) -> Iterator[Match]:
        """Every way to find the factors, with nothing left over but the number."""
        for found, scale in self._all(self._parts, [(value, 1.0)], 1.0, match, [MAX_WALK]):
            if self._free is not None:
                named = found.bind(self._free.name, scale / self.number)
                if named is not None:
                    yield named
            elif math.isclose(scale, self.number, rel_tol=TOLERANCE):
                yield found

    def _all(
        self, parts: Sequence[tuple[Pattern, float]], factors: list[Factor], scale: float, match: Match, left: list[int]
    ) -> Iterator[tuple[Match, float]]:
        if not parts:
            if factors:
                return
            yield match, scale
            return
        (part, power), *rest = parts
        for found, times, others, used in _taken(part, power, factors, match, left):
            wanted = rest if used == power else [(part, power - used), *rest]
            yield from self._all(wanted, others, scale * times, found, left)


def _taken(
    part: Pattern, power: float, factors: list[Factor], match: Match, left: list[int]
) -> Iterator[tuple[Match, float, list[Factor], float]]:
    """One of the factors as a pattern: the match, a number, the other factors, and the power that was found."""
    for i, (value, own) in enumerate(factors):
        others = [*factors[:i], *factors[i + 1 :]]
        if own == power or (own == int(own) and 0 < own / power < 1):  # x * x * x is x ** 3
            for found, scale in part.scaled(value, match):
                yield found, scale**own, others, own
        if left[0] and (inner := match.facts.factors(value, own)) is not None:
            left[0] -= 1
            for found, scale, rest, used in _taken(part, power, inner[1], match, left):
                yield found, scale * inner[0], [*rest, *others], used


def _product(part: Pattern | float) -> Product:
    if isinstance(part, Product):
        return part
    return Product(float(part), ()) if isinstance(part, int | float) else Product(1.0, ((part, 1.0),))


@dataclass(frozen=True, eq=False)
class Call(Pattern):
    """One node. Inputs beyond the patterns are absent, unless the last pattern is `...`.

    `once`: nobody else reads the result. `curved`: an activation may stand behind it. `attrs` are of a replacement.
    """

    ops: tuple[Op, ...]
    inputs: tuple[Pattern | EllipsisType | None, ...]
    name: str = ""
    once: bool = False
    curved: bool = False
    when: Callable[[Node], bool] | None = None
    attrs: Any = None

    @property
    def roots(self) -> tuple[Op, ...]:
        """Its own."""
        return self.ops

    def matches(self, value: Value, match: Match) -> Iterator[Match]:
        """All ways to see the node as this one; operands of sums, products and extremes in both orders."""
        node = match.facts.writers.get(value)
        known = match.bind(self.name, node) if node is not None and self.fits(node, match.facts) else None
        if node is None or known is None:
            return
        yield from _inputs(self.inputs, node.inputs, known)
        if node.op in COMMUTATIVE and node.inputs[0] is not node.inputs[1]:
            yield from _inputs(self.inputs, node.inputs[::-1], known)

    def fits(self, node: Node, facts: Facts) -> bool:
        """Whether the node itself, whatever it reads, is one of these."""
        if node.op not in self.ops or not (self.curved or is_plain(node)):
            return False
        return (not self.once or facts.is_inner(node.output)) and (self.when is None or self.when(node))

    def needs(self) -> Iterator[tuple[Op, ...]]:
        """Its own, and those of its inputs."""
        yield self.ops
        for part in self.inputs:
            if isinstance(part, Pattern):
                yield from part.needs()


def _inputs(
    parts: Sequence[Pattern | EllipsisType | None], values: Sequence[Value | None], match: Match
) -> Iterator[Match]:
    if not parts:
        yield from () if any(value is not None for value in values) else (match,)
        return
    part, value = parts[0], values[0] if values else None
    if part is ...:
        yield match
    elif part is ANY:
        yield from _inputs(parts[1:], values[1:], match)
    elif part is None or (value is None and isinstance(part, Maybe)):
        if value is None:
            yield from _inputs(parts[1:], values[1:], match)
    elif value is not None:
        assert isinstance(part, Pattern)
        for found in part.matches(value, match):
            yield from _inputs(parts[1:], values[1:], found)


@dataclass(frozen=True, slots=True)
class Kind:
    """Some operators by the name under which patterns call them."""

    ops: tuple[Op, ...]

    def __call__(
        self,
        *inputs: Pattern | EllipsisType | None,
        name: str = "",
        once: bool = False,
        curved: bool = False,
        when: Callable[[Node], bool] | None = None,
        attrs: Any = None,
    ) -> Call:
        return Call(self.ops, inputs, name, once, curved, when, attrs)


def kind(*ops: Op) -> Kind:
    """What makes patterns of nodes of these operators."""
    return Kind(ops)


add, sub, mul = kind(ew.ADD), kind(ew.SUB), kind(ew.MUL)
