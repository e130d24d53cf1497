"""Patterns are found in every way to write their formula, and nowhere else; what they take the place of is gone."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from tests.passes.building import Build, body, lines

from webinfer.graph.ir import Graph, Node, Op, Value
from webinfer.graph.verify import verify
from webinfer.ops import elementwise as ew
from webinfer.rewrite.facts import Facts
from webinfer.rewrite.matcher import Rule, places, rewrite, rule
from webinfer.rewrite.patterns import Maybe, Number, Pattern, Scalar, Variable, add, kind, mul

X, Y, S = Variable("x"), Variable("y"), Scalar("s")
erf, tanh, maximum, gelu = map(kind, (ew.ERF, ew.TANH, ew.MAXIMUM, ew.GELU))
NONE = ew.UnaryAttrs()
FOUND = gelu(X, attrs=NONE)


class Formula(Build):
    """A graph of x [4] and y [4], written as Python writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.y = self.input("x", 4), self.input("y", 4)

    def two(self, op: Op, a: Value | float, b: Value | float) -> Value:
        values = [v if isinstance(v, Value) else self.number(v) for v in (a, b)]
        return self.node(op, values, ew.BinaryAttrs(), op.name)

    def one(self, op: Op, x: Value, a: float = 0.0, b: float = 0.0) -> Value:
        return self.node(op, [x], ew.UnaryAttrs(a, b), op.name)


def applied(pattern: Pattern, make: Callable[[Formula], Value], when: Callable[..., bool] | None = None) -> int:
    """How often a rule with this pattern was applied to this formula."""
    b = Formula()
    graph = b.output(make(b))
    count = rewrite(graph, [Rule("rule", pattern, FOUND, when)])
    verify(graph)
    return count


def product(b: Formula, factors: tuple[Value | float, ...], left: bool) -> Value:
    """The factors multiplied in this order, from the left or from the right."""
    first, *others = factors if left else factors[::-1]
    for other in others:
        first = b.two(ew.MUL, *((first, other) if left else (other, first)))
    assert isinstance(first, Value)
    return first


@pytest.mark.parametrize("left", [True, False])
def test_factors_are_found_in_every_order(left: bool) -> None:
    for order in itertools.permutations(range(3)):
        assert applied(
            X * 0.5 * (erf(X) + 1),
            lambda b, order=order: product(
                b, tuple((b.x, 0.5, b.two(ew.ADD, 1.0, b.one(ew.ERF, b.x)))[i] for i in order), left
            ),
        )


QUOTIENTS: dict[str, Callable[[Formula], Value]] = {
    "over a root": lambda b: b.two(ew.DIV, b.x, b.one(ew.SQRT, b.y)),
    "by one over a root": lambda b: b.two(ew.MUL, b.two(ew.DIV, 1.0, b.one(ew.SQRT, b.y)), b.x),
    "by a reciprocal": lambda b: b.two(ew.MUL, b.x, b.one(ew.RECIPROCAL, b.one(ew.SQRT, b.y))),
    "by rsqrt": lambda b: b.two(ew.MUL, b.x, b.one(ew.RSQRT, b.y)),
    "by a power": lambda b: b.two(ew.MUL, b.x, b.two(ew.POW, b.y, -0.5)),
    "over a power": lambda b: b.two(ew.DIV, b.x, b.two(ew.POW, b.y, 0.5)),
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_a_quotient_by_a_root_is_one_pattern(name: str) -> None:
    assert applied(X / Y**0.5, QUOTIENTS[name]) == 1
    assert applied(X / erf(Y), QUOTIENTS[name]) == 0


def test_powers_are_counted() -> None:
    cubes: tuple[Callable[[Formula], Value], ...] = (
        lambda b: b.two(ew.POW, b.x, 3.0),
        lambda b: b.two(ew.MUL, b.one(ew.SQUARE, b.x), b.x),
        lambda b: product(b, (b.x, b.x, b.x), left=False),
    )
    for cube in cubes:
        assert applied(erf(X**3), lambda b, cube=cube: b.one(ew.ERF, cube(b))) == 1
        assert applied(erf(X**2), lambda b, cube=cube: b.one(ew.ERF, cube(b))) == 0
    assert applied(erf(X), lambda b: b.one(ew.ERF, b.one(ew.SQRT, b.one(ew.SQUARE, b.x)))) == 1  # x is the root


def test_the_root_of_a_square_is_not_what_was_squared() -> None:
    def make(b: Formula) -> Value:
        return b.two(ew.ADD, b.one(ew.SQRT, b.one(ew.SQUARE, b.x)), b.x)

    assert applied(add(X, X**1), make) == 0


def test_a_number_that_is_off_or_a_factor_more_is_another_formula() -> None:
    pattern = X * 0.5 * tanh(X)
    assert applied(pattern, lambda b: product(b, (b.x, 0.50001, b.one(ew.TANH, b.x)), left=True)) == 1
    assert applied(pattern, lambda b: product(b, (b.x, 0.5002, b.one(ew.TANH, b.x)), left=True)) == 0
    assert applied(pattern, lambda b: product(b, (b.x, 0.5, b.y, b.one(ew.TANH, b.x)), left=True)) == 0
    assert applied(pattern, lambda b: product(b, (b.y, 0.5, b.one(ew.TANH, b.x)), left=True)) == 0


def test_sums_with_numbers_are_found_in_linear_too() -> None:
    def half(b: Formula, shift: float) -> Value:
        return b.two(ew.MUL, b.x, b.one(ew.LINEAR, b.one(ew.TANH, b.x), 0.5, shift))

    pattern = X * (tanh(X) + 1) * 0.5
    assert applied(pattern, lambda b: half(b, 0.5)) == 1
    assert applied(pattern, lambda b: half(b, 0.6)) == 0


def test_a_scalar_is_what_a_product_is_multiplied_by() -> None:
    seen = list[float]()
    assert applied(
        erf(X * S),
        lambda b: b.one(ew.ERF, product(b, (2.0, b.x, 3.0), left=True)),
        when=lambda match: seen.append(match.number("s")) or match.value("x").name == "x",
    )
    assert seen[-1] == 6.0


def test_operands_of_an_operator_are_found_in_both_orders_where_it_commutes() -> None:
    for pair in (lambda b: (b.x, 0.0), lambda b: (0.0, b.x)):
        assert applied(maximum(X, Number(0.0)), lambda b, pair=pair: b.two(ew.MAXIMUM, *pair(b))) == 1
    assert applied(kind(ew.SUB)(X, erf(X)), lambda b: b.two(ew.SUB, b.one(ew.ERF, b.x), b.x)) == 0


def test_once_is_a_result_that_nobody_else_wants() -> None:
    pattern = tanh(erf(X, once=True))
    assert applied(pattern, lambda b: b.one(ew.TANH, b.one(ew.ERF, b.x))) == 1
    b = Formula()
    inner = b.one(ew.ERF, b.x)
    assert rewrite(b.output(b.one(ew.TANH, inner), inner), [rule("rule", pattern, FOUND)]) == 0


def test_what_a_rule_left_unread_no_longer_counts_as_a_reader() -> None:
    b = Formula()
    inner = b.one(ew.ERF, b.x)
    first, second = b.one(ew.TANH, inner), b.two(ew.MUL, inner, b.y)
    graph = b.output(first, second)
    rules = [rule("drop", tanh(erf(X)), FOUND), rule("only", mul(erf(X, once=True), Y), FOUND)]
    assert rewrite(graph, rules) == 2
    assert body(graph) == lines("%tanh = gelu(%x) -> float32[4]", "%mul = gelu(%x) -> float32[4]", "return %tanh, %mul")


def test_rules_for_operators_that_other_rules_bring_are_applied() -> None:
    def brought(b: Formula) -> Graph:
        return b.output(b.one(ew.TANH, b.one(ew.ERF, b.x)))

    rules = [rule("late", tanh(gelu(X)), FOUND), rule("first", erf(X), FOUND)]
    assert rewrite(brought(Formula()), rules) == 2


def test_places_share_no_node_and_hold_none_that_is_computed_at_load() -> None:
    b = Formula()
    first = b.one(ew.ERF, b.x)
    second = b.one(ew.TANH, first)
    fixed = b.one(ew.TANH, b.one(ew.ERF, b.constant(4)))
    graph = b.output(second, b.two(ew.MUL, first, b.y), fixed)
    taken = set[Node]()
    facts, inner = Facts(graph), erf(X, name="inner")
    found = places(facts, tanh(inner) | mul(inner, Y), lambda match: match.node("inner"), taken)
    assert {node.op.name: one.op.name for node, one in found.items()} == {"tanh": "erf"}
    assert len(taken) == 2


@pytest.mark.parametrize("there", [True, False])
def test_what_may_be_absent_is_found_where_it_is(there: bool) -> None:
    seen = list[bool]()
    applied(
        maximum(X, Maybe(erf(Y, name="inner"))),
        lambda b: b.two(ew.MAXIMUM, b.x, b.one(ew.ERF, b.y) if there else b.y),
        when=lambda match: bool(seen.append("inner" in match.bound)),
    )
    assert (True in seen) is there
