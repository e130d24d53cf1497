"""Formulas of elementwise operators in C: the kernels' names in kernels.toml, and build/generated/formulas.h.

The operators' rows stand in web/python/webinfer/ops/elementwise.py. A family of kernels.toml is all operators that one
C file computes: `rows_of` names them, and formulas.h has a macro with their formulas. From the engine only rows and
the writer are imported, which need the standard library alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from build_scripts.paths import ENGINE

if str(ENGINE.parent) not in sys.path:
    sys.path.insert(0, str(ENGINE.parent))

from webinfer.codegen.formulas import BITS, Language
from webinfer.dtypes import DType
from webinfer.expr import formula as f
from webinfer.expr.formula import CONSTANT, Formula
from webinfer.expr.reduction import Join
from webinfer.ops.elementwise import ROWS, BinaryAttrs, ElementwiseOp, UnaryAttrs
from webinfer.ops.reduce import REDUCTIONS

INTEGERS = ("i32", "i64")  # kernels for wider and narrower integers do not exist: those are converted


def _float_unary(row: ElementwiseOp) -> bool:
    """Clamps share one kernel; the identity is a copy."""
    is_clamp = row.bounds is not None
    return row.attrs is UnaryAttrs and not row.gives_truth and not is_clamp and row.formula is not f.X


def _integer_unary(row: ElementwiseOp) -> bool:
    """Integers have no attributes: their clamp reads its bounds from memory."""
    return _float_unary(row) and row.takes_integers and row.formula is not None and not row.formula.uses("a", "b")


def _float_binary(row: ElementwiseOp) -> bool:
    return row.attrs is BinaryAttrs and not row.gives_truth and DType.FLOAT32 in row.dtypes


def _integer_binary(row: ElementwiseOp) -> bool:
    return row.attrs is BinaryAttrs and not row.gives_truth and row.takes_integers


def _comparison(row: ElementwiseOp) -> bool:
    return row.attrs is BinaryAttrs and row.gives_truth and DType.FLOAT32 in row.dtypes


def _logic(row: ElementwiseOp) -> bool:
    return row.attrs is BinaryAttrs and row.gives_truth and DType.FLOAT32 not in row.dtypes


# family of kernels.toml → which rows, and the element types of their kernels
FAMILIES: dict[str, tuple[Callable[[ElementwiseOp], bool], tuple[str, ...]]] = {
    "float_unary": (_float_unary, ("f32",)),
    "float_binary": (_float_binary, ("f32",)),
    "integer_unary": (_integer_unary, INTEGERS),
    "integer_binary": (_integer_binary, INTEGERS),
    "comparison": (_comparison, ("f32", *INTEGERS)),
    "logic": (_logic, ("b8",)),
    "float_reduce": (lambda row: False, ("f32",)),  # the rows of ops/reduce.py
}


def rows_of(family: str) -> list[ElementwiseOp]:
    """The operators of a family, by name.

    Raises:  KeyError for a family that does not exist
    """
    belongs, _ = FAMILIES[family]
    return [row for _, row in sorted(ROWS.items()) if belongs(row)]


def kernel_names(family: str) -> list[str]:
    """The names of the family's kernels.

    Raises:  KeyError for a family that does not exist
    """
    if family == "float_reduce":
        return [f"f32_{op.name}" for op, row in REDUCTIONS.items() if row is not None]
    return [f"{prefix}_{row.name}" for prefix in FAMILIES[family][1] for row in rows_of(family)]


def _float_leaf(formula: Formula, in_arithmetic: bool) -> str:
    """A vector, or a number for each of its lanes."""
    if formula.name != CONSTANT:
        return formula.name
    return f"{formula.value!r}f" if in_arithmetic else f"v4f_splat({formula.value!r}f)"


def _integer_leaf(formula: Formula, in_arithmetic: bool) -> str:
    """Arithmetic in the unsigned type wraps."""
    if formula.name == CONSTANT:
        return str(int(formula.value))
    return f"(UNSIGNED){formula.name}" if in_arithmetic else formula.name


def _divide(a: Formula, b: Formula) -> Formula:
    """A division by a constant as a product, which costs a fraction of it."""
    return a * (1.0 / b.value) if b.name == CONSTANT else Formula("/", (a, b))


_ONE = (
    "abs", "ceil", "cos", "erf", "exp", "expm1", "floor", "gelu", "log", "round_even", "sigmoid", "sign", "sin", "sqrt",
    "tan", "tanh",
)  # fmt: skip
_FLOAT = Language(
    _float_leaf,
    {
        **{name: f"v4f_{name}({{}})" for name in _ONE},
        "%": "each_lane(modulo, {}, {})", "**": "v4f_pow({}, {})", "//": "each_lane(floor_quotient, {}, {})",
        "clamp": "v4f_clamp({}, {}, {})", "larger": "v4f_larger({}, {})", "log1p": "v4f_log1p_positive({})",
        "max": "v4f_max({}, {})", "min": "v4f_min({}, {})", "select": "v4f_select({}, {}, {})",
        "smaller": "v4f_smaller({}, {})",
    },
    {
        "/": _divide,
        "keep_nan": lambda x, v: v,  # v4f_clamp, v4f_max and v4f_min keep it
        "rsqrt": lambda x: 1.0 / f.sqrt(x),
    },
)  # fmt: skip
_INTEGER = Language(
    _integer_leaf,
    {
        "%": "PREFIX##_modulo({}, {})", "**": "PREFIX##_power({}, {})", "/": "PREFIX##_quotient({}, {})",
        "//": "PREFIX##_floor_quotient({}, {})", "abs": "MAGNITUDE(UNSIGNED, {})", "larger": "LARGER({}, {})",
        "select": "({} ? {} : {})", "sign": "SIGN({})", "smaller": "SMALLER({}, {})", **BITS,
    },
    {"keep_nan": lambda x, v: v, "neg": lambda v: 0.0 - v},
)  # fmt: skip
_TRUTH = Language(lambda formula, _: str(int(formula.value)) if formula.name == CONSTANT else formula.name, {})


def _macro(name: str, family: str, parameters: str, row: str, language: Language) -> str:
    """The macro that puts a family's names and formulas into another macro."""
    lines = []
    for op in rows_of(family):
        assert op.formula is not None
        lines.append("  " + row.format(name=op.name, formula=language.write(op.formula)))
    return f"#define {name}({parameters}) \\\n" + " \\\n".join(lines) + "\n"


# What a join begins with, and its name.
_JOINS = {
    Join.LARGEST: ("-INFINITE", "v4f_larger"), Join.PRODUCT: ("1.0f", "times"),
    Join.SMALLEST: ("INFINITE", "v4f_smaller"), Join.SUM: ("0.0f", "plus"),
}  # fmt: skip


def _reductions() -> str:
    """The macro that puts the rows of float reductions into another macro."""
    lines = []
    for op, row in REDUCTIONS.items():
        if row is not None:
            start, join = _JOINS[row.join]
            lines.append(f"  ROW({op.name}, {start}, {_FLOAT.write(row.take)}, {join}, {_FLOAT.write(row.end)})")
    return "#define FLOAT_REDUCE_ROWS(ROW) \\\n" + " \\\n".join(lines) + "\n"


def header() -> str:
    """formulas.h: one macro a family, whose argument ROW takes a name and a formula.

    Operands are x, or a and b; attributes of float unary operators are a and b. A reduction's row is its name, what the
    join begins with, what is taken of x, the join, and what is made of the joined x.
    """
    typed = "ROW, PREFIX, TYPE, UNSIGNED"
    macros = (
        _macro("FLOAT_UNARY_ROWS", "float_unary", "ROW", "ROW({name}, {formula})", _FLOAT),
        _macro("FLOAT_BINARY_ROWS", "float_binary", "ROW", "ROW({name}, {formula})", _FLOAT),
        _macro("INTEGER_UNARY_ROWS", "integer_unary", typed, "ROW(PREFIX##_{name}, TYPE, {formula})", _INTEGER),
        _macro("INTEGER_BINARY_ROWS", "integer_binary", typed, "ROW(PREFIX##_{name}, TYPE, {formula})", _INTEGER),
        _macro("COMPARISON_ROWS", "comparison", "ROW, PREFIX, TYPE", "ROW(PREFIX##_{name}, TYPE, {formula})", _TRUTH),
        _reductions(),
        _macro("LOGIC_ROWS", "logic", "ROW, PREFIX, TYPE", "ROW(PREFIX##_{name}, TYPE, {formula})", _TRUTH),
    )
    return (
        "// Generated by build_scripts/kernels/formulas.py from web/python/webinfer/ops/elementwise.py. Do not edit.\n"
        "#pragma once\n\n" + "\n".join(macros)
    )
