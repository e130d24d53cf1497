"""Formulas as text: precedence, numbers, and one function a row in every language of the engine."""

from __future__ import annotations

import enum

import pytest

from webinfer.codegen.elements import Element
from webinfer.codegen.formulas import FORMULAS, FormulaName, Language, shader_function
from webinfer.codegen.lookup import lookup_table
from webinfer.codegen.prelude import Access, Slot
from webinfer.codegen.templates import render
from webinfer.errors import ShapeError
from webinfer.expr import formula as f
from webinfer.expr.formula import CONSTANT, A, B, Formula, X
from webinfer.ops.elementwise import ROWS, UnaryAttrs
from webinfer.ops.registry import eight_bit


class Word(enum.StrEnum):
    """How a binary step reads its operands."""

    FLAT = "flat"


PLAIN = Language(lambda part, _: f"{part.value:g}" if part.name == CONSTANT else part.name, {"exp": "exp({})"})


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (A - (B - X), "a - (b - x)"),
        ((A - B) - X, "a - b - x"),
        (A / (B * X), "a / (b * x)"),
        ((A + B) * X, "(a + b) * x"),
        (A * X + B, "a * x + b"),
        (-(A + B), "-(a + b)"),
        (-f.exp(A + B), "-exp(a + b)"),
        (X * -1.0, "x * (-1)"),
        (-X * A, "-x * a"),
        ((A > B) & (A <= X), "(a > b) & (a <= x)"),
        (f.equal(A + B, X), "a + b == x"),
        (2.0 - X, "2 - x"),
        (f.not_equal(f.equal(A, B), X), "(a == b) != x"),
    ],
)
def test_parentheses_keep_the_order_of_operations(formula: Formula, text: str) -> None:
    assert PLAIN.write(formula) == text


def test_a_primitive_that_a_language_lacks_is_named() -> None:
    with pytest.raises(KeyError, match="tanh"):
        PLAIN.write(f.tanh(X))


@pytest.mark.parametrize(
    ("name", "integer", "text"),
    [
        ("softsign", False, "fn unary(x: x_v) -> y_v { return x / (1.0 + abs(x)); }"),
        ("linear", False, "fn unary(x: x_v) -> y_v { return params.a * x + params.b; }"),
        ("clamp", True, "fn unary(x: x_v) -> y_v { return keep_nan(x, clamp(x, x_v(params.a), x_v(params.b))); }"),
        ("relu6", True, "fn unary(x: x_v) -> y_v { return keep_nan(x, clamp(x, x_v(), x_v(6))); }"),
        ("clamp_high", False, "fn unary(x: x_v) -> y_v { return keep_nan(x, min(x, x_v(params.b))); }"),
        ("logical_not", False, "fn unary(x: x_v) -> y_v { return select(y_v(0), y_v(1), x == x_v()); }"),
        ("div", False, "fn binary(a: x_v, b: x_v) -> y_v { return a / b; }"),
        ("div", True, "fn binary(a: x_v, b: x_v) -> y_v { return quotient(a, b); }"),
        ("floor_mod", False, "fn binary(a: x_v, b: x_v) -> y_v { return modulo(a, b); }"),
        ("prelu", False, "fn binary(a: x_v, b: x_v) -> y_v { return select(a * b, a, a >= x_v()); }"),
    ],
)
def test_a_formula_is_written_in_wgsl(name: str, integer: bool, text: str) -> None:
    assert shader_function(name, integer) == text


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_every_formula_can_be_written_for_floats(name: str) -> None:
    assert shader_function(name, False).startswith("fn ")


def test_a_formula_of_two_operands_brings_what_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    shader_function.cache_clear()
    monkeypatch.setitem(FORMULAS, "sub", f.tanh(A) ** B)
    slots = [Slot(name, Element.F32, Access.READ) for name in "ab"] + [Slot("y", Element.F32, Access.WRITE)]
    steps = {"rank": 1, "access": Word.FLAT, "a_step": 1, "b_step": 1, "has_activation": False}
    text = render(
        "elementwise_binary", {"workgroup": 64, "op": FormulaName("sub"), "integer": False, **steps}, slots, ()
    ).code
    shader_function.cache_clear()
    assert "return power(safe_tanh(a), b);" in text
    assert "fn power(" in text
    assert "fn safe_tanh(" in text


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.attrs is UnaryAttrs])
def test_every_formula_of_one_operand_that_gives_numbers_has_a_table(name: str) -> None:
    x, y = eight_bit((4,), 0.05, -100), eight_bit((4,), 0.1)
    if ROWS[name].gives_truth:
        with pytest.raises(ShapeError, match="no formula"):
            lookup_table(name, UnaryAttrs(0.5, 1.0), x, y)
    else:
        assert len(set(lookup_table(name, UnaryAttrs(0.5, 1.0), x, y))) > 1


def test_numbers_that_no_table_can_hold_are_a_shape_error() -> None:
    x, y = eight_bit((4,), 1.0), eight_bit((4,), 1.0)
    with pytest.raises(ShapeError, match="leaky_relu: there is no table"):
        lookup_table("leaky_relu", UnaryAttrs(float("inf"), 0.0), x, y)
