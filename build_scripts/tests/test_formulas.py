"""The operators' formulas in C, and which kernels they ask for."""

from __future__ import annotations

import pytest

from build_scripts.kernels.described import INPUTS
from build_scripts.kernels.formulas import FAMILIES, header, kernel_names


@pytest.mark.parametrize(
    "row",
    [
        "ROW(softsign, x / (1.0f + v4f_abs(x)))",
        "ROW(reciprocal, 1.0f / x)",
        "ROW(hard_swish, x * v4f_clamp(x + 3.0f, v4f_splat(0.0f), v4f_splat(6.0f)) * 0.16666666666666666f)",
        "ROW(clamp, v4f_clamp(x, a, b))",
        "ROW(PREFIX##_neg, TYPE, 0 - (UNSIGNED)x)",
        "ROW(PREFIX##_squared_difference, TYPE, ((UNSIGNED)a - (UNSIGNED)b) * ((UNSIGNED)a - (UNSIGNED)b))",
        "ROW(PREFIX##_logical_xor, TYPE, (a != 0) ^ (b != 0))",
    ],
)
def test_a_formula_is_written_in_c(row: str) -> None:
    assert row in header()


def test_clamps_share_a_kernel_and_a_copy_needs_none() -> None:
    names = kernel_names("float_unary")
    assert "f32_clamp" in names
    assert not {"f32_relu", "f32_relu6", "f32_identity", "f32_logical_not", "f32_is_nan"} & set(names)


def test_integers_have_kernels_only_where_operators_take_them() -> None:
    assert kernel_names("integer_unary") == [
        f"{integer}_{name}" for integer in ("i32", "i64") for name in ("abs", "neg", "sign", "square")
    ]


def test_no_kernel_belongs_to_two_families() -> None:
    names = [name for family in FAMILIES for name in kernel_names(family)]
    assert len(names) == len(set(names))


def test_the_set_up_step_watches_the_formulas() -> None:
    assert all(path.exists() for path in INPUTS)
    assert {path.name for path in INPUTS} >= {"ops", "expr", "formulas.py", "kernels.py"}
