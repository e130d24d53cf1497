"""Formulas of expr/formula.py as text: the writer for every language, and the functions that shaders call.

The C text of the WASM kernels is made by build_scripts/kernels/formulas.py, with the same writer.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from dataclasses import field

from webinfer.expr import formula as f
from webinfer.expr.formula import CONSTANT, TRUTHS, A, B, Formula
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.elementwise import ROWS, BinaryAttrs

# How tightly operators bind. Those below 3 never stand beside each other without parentheses.
_BINDING = {**dict.fromkeys(TRUTHS, 1), "&": 2, "|": 2, "^": 2, "+": 3, "-": 3, "*": 4, "/": 4, "neg": 5}
_ALONE = 9  # how tightly a name, a number or a call binds


@dataclass(frozen=True)
class Language:
    """How one language writes formulas.

    `leaf` writes a variable or a number; it is told whether that is an operand of arithmetic, else it is compared or
    passed to a function. `calls` has the text of each primitive with `{}` for its arguments, an operator's in
    parentheses; an operator without one stands between its operands. `instead` rewrites what the language lacks.
    """

    leaf: Callable[[Formula, bool], str]
    calls: Mapping[str, str]
    instead: Mapping[str, Callable[..., Formula]] = field(default_factory=dict)

    def write(self, formula: Formula) -> str:
        """The formula in this language.

        Raises:  KeyError naming a primitive that the language lacks
        """
        return self._write(formula, False)[0]

    def _write(self, formula: Formula, in_arithmetic: bool) -> tuple[str, int]:
        """The text and how tightly it binds."""
        name, parts = formula.name, formula.parts
        if not parts:
            text = self.leaf(formula, in_arithmetic)
            return text, 0 if text.startswith("-") else _ALONE
        other = self.instead[name](*parts) if name in self.instead else formula
        if other.name != name:
            return self._write(other, in_arithmetic)
        if name in self.calls or name not in _BINDING:
            form = self.calls[name]
            needed = _ALONE if form.startswith("({}") and "?" not in form else 0  # operands; what ?: has needs none
            return form.format(*(_enclosed(*self._write(part, False), needed) for part in parts)), _ALONE
        own = _BINDING[name]
        texts = [self._write(part, name not in TRUTHS) for part in parts]
        if name == "neg":
            return "-" + _enclosed(*texts[0], own), own
        left = _enclosed(*texts[0], max(own, 3))
        return f"{left} {name} {_enclosed(*texts[1], max(own + 1, 3))}", own


def _enclosed(text: str, binding: int, needed: int) -> str:
    """The text, in parentheses if it binds less tightly than needed."""
    return text if binding >= needed else f"({text})"


def operand(formula: Formula, in_arithmetic: bool) -> str:
    """Four operands, or a number for each of them."""
    value = formula.value
    if formula.name != CONSTANT:
        return formula.name
    return repr(value) if in_arithmetic else f"x_v({'' if not value else int(value) if value.is_integer() else value})"


def _operand_or_attribute(formula: Formula, in_arithmetic: bool) -> str:
    """The same in a unary operator, whose a and b are attributes."""
    if formula.name not in (A.name, B.name):
        return operand(formula, in_arithmetic)
    return f"params.{formula.name}" if in_arithmetic else f"x_v(params.{formula.name})"


def _operand_or_argument(formula: Formula, in_arithmetic: bool) -> str:
    """The same where the attributes are arguments of the function."""
    return _operand_or_attribute(formula, in_arithmetic).replace("params.", "")


def _pair(formula: Formula, in_arithmetic: bool) -> str:
    """An operand, or a number that is not negative, as a pair of words."""
    return formula.name if formula.name != CONSTANT else f"vec2<u32>({int(formula.value)}u, 0u)"


_ONE = {
    **{name: name for name in ("abs", "ceil", "erf", "exp", "floor", "gelu", "log", "sigmoid", "sign", "sqrt")},
    "expm1": "exp_minus_1", "log1p": "log_plus_1", "round_even": "round", "rsqrt": "inverseSqrt",
    "tan": "reduced_tan", "tanh": "safe_tanh",
}  # fmt: skip
_TWO = {"keep_nan": "keep_nan", "larger": "max", "max": "max", "min": "min", "smaller": "min", "**": "power"}
BITS = {"bit_and": "({} & {})", "bit_or": "({} | {})", "bit_xor": "({} ^ {})"}  # of integers, in C too
_FLOAT_CALLS = {
    **{name: text + "({})" for name, text in _ONE.items()}, **{name: text + "({}, {})" for name, text in _TWO.items()},
    "clamp": "clamp({}, {}, {})", "cos": "quarter_sin({}, 1)", "select": "select({2}, {1}, {0})",
    "sin": "quarter_sin({}, 0)", "//": "floor_quotient({}, {})", "%": "modulo({}, {})", **BITS,
}  # fmt: skip


def float_calls() -> Mapping[str, str]:
    """The texts of primitives of floats in WGSL; those that it has no precise function for need _math.wgsl."""
    return _FLOAT_CALLS


_INTEGER_CALLS = _FLOAT_CALLS | {  # WGSL has no sign of unsigned integers
    "/": "quotient({}, {})", "sign": "(x_v({0} > x_v()) - x_v({0} < x_v()))"
}  # fmt: skip
_WIDE_CALLS = {  # _wide.wgsl: 64-bit integers as pairs of words, one at a time
    "+": "plus({}, {})", "-": "minus({}, {})", "*": "times({}, {})", "/": "quotient({}, {})",
    "//": "floor_quotient({}, {})", "%": "modulo({}, {})", "**": "power({}, {})", "neg": "negated({})",
    "abs": "size_of({})", "sign": "sign_of({})", "larger": "larger({}, {})", "smaller": "smaller({}, {})",
    "<": "below({0}, {1})", ">": "below({1}, {0})", "<=": "!below({1}, {0})", ">=": "!below({0}, {1})",
    "==": "all({} == {})", "!=": "any({} != {})", "select": "select({2}, {1}, {0})", **BITS,
}  # fmt: skip
_INSTEAD = {"^": f.not_equal}  # of truth values
# In _math.wgsl and _erf.wgsl.
_WRITTEN_OUT = ("%", "//", "cos", "erf", "expm1", "gelu", "log1p", "sigmoid", "sin", "tan", "tanh")

# What shaders can compute: every row with a formula, and clamps of which one bound is infinite.
FORMULAS: dict[str, Formula] = {
    **{name: row.formula for name, row in ROWS.items() if row.formula is not None},
    "clamp_high": f.bounded(-f.INFINITY, B),
    "clamp_low": f.bounded(A, f.INFINITY),
}
FormulaName = enum.StrEnum("FormulaName", [(name.upper(), name) for name in FORMULAS])  # type: ignore[misc]


def needs_math(name: str) -> bool:
    """Whether the formula with this name uses a primitive that WGSL has no precise function for."""
    return FORMULAS[name].uses(*_WRITTEN_OUT)


@functools.cache
def shader_function(name: str, integer: bool, wide: bool = False) -> str:
    """The formula with this name in WGSL: `unary(x)`, or `binary(a, b)` for a binary operator.

    x_v is four operands, y_v four results; attributes stand in `params`. `wide` ones take 64-bit integers one by one,
    of type x_t, and give one y_t.
    """
    formula, is_binary = FORMULAS[name], name in ROWS and ROWS[name].attrs is BinaryAttrs
    if wide:
        text = Language(_pair, _WIDE_CALLS, _INSTEAD).write(formula)
        result = f"select(y_t(0), y_t(1), {text})" if formula.name in TRUTHS else text
        return f"fn {'binary(a: x_t, b: x_t)' if is_binary else 'unary(x: x_t)'} -> y_t {{ return {result}; }}"
    calls = _INTEGER_CALLS if integer else _FLOAT_CALLS
    text = Language(operand if is_binary else _operand_or_attribute, calls, _INSTEAD).write(formula)
    result = f"select(y_v(0), y_v(1), {text})" if formula.name in TRUTHS else text
    head = "binary(a: x_v, b: x_v)" if is_binary else "unary(x: x_v)"
    return f"fn {head} -> y_v {{ return {result}; }}"


@functools.cache
def chain_function(name: str, called: str) -> str:
    """The formula with this name as a function of floats: of two operands, or of one and the attributes it reads."""
    formula, is_binary = FORMULAS[name], name in ROWS and ROWS[name].attrs is BinaryAttrs
    text = Language(operand if is_binary else _operand_or_argument, _FLOAT_CALLS, _INSTEAD).write(formula)
    result = f"select(x_v(0), x_v(1), {text})" if formula.name in TRUTHS else text
    others = ["b: x_v"] if is_binary else [f"{letter}: f32" for letter in "ab" if formula.uses(letter)]
    head = ", ".join([f"{'a' if is_binary else 'x'}: x_v", *others])
    return f"fn {called}({head}) -> x_v {{ return {result}; }}"
