"""Rows of expr/reduction.py in WGSL: the functions that the shaders of reductions call."""

from __future__ import annotations

from webinfer.codegen.formulas import Language, float_calls, operand
from webinfer.expr.formula import Formula
from webinfer.expr.reduction import COUNT, Join, ReductionRow
from webinfer.lazy_dataclass import dataclass

# What a join begins with, how it joins a and b, and the built-in that joins those of a subgroup.
_JOINS = {
    Join.LARGEST: ("params.lowest", "max(a, b)", "subgroupMax"),
    Join.PRODUCT: ("1", "a * b", "subgroupMul"),
    Join.SMALLEST: ("params.highest", "min(a, b)", "subgroupMin"),
    Join.SUM: ("0", "a + b", "subgroupAdd"),
}


@dataclass(frozen=True, slots=True)
class Reduced:
    """A row as a value of a template. Needs params.reduced, and for extremes params.lowest or params.highest."""

    row: ReductionRow

    @property
    def is_extreme(self) -> bool:
        """Whether the shader needs numbers below and above all others."""
        return self.row.join in (Join.LARGEST, Join.SMALLEST)

    def text(self, subgroups: bool = False) -> str:
        """acc_v, start(), combine(a, b), step(a, x) and finish(x), of four elements each; also subgroup_reduce(a)."""
        start, combined, joined = _JOINS[self.row.join]
        language = Language(_leaf, float_calls())
        return "\n".join([
            *([f"fn subgroup_reduce(a: acc_v) -> acc_v {{ return {joined}(a); }}"] if subgroups else []),
            "alias acc_v = x_v;",
            f"fn start() -> acc_v {{ return acc_v({start}); }}",
            f"fn combine(a: acc_v, b: acc_v) -> acc_v {{ return {combined}; }}",
            f"fn step(a: acc_v, x: x_v) -> acc_v {{ return combine(a, {language.write(self.row.take)}); }}",
            f"fn finish(x: acc_v) -> y_v {{ return {language.write(self.row.end)}; }}",
        ])  # fmt: skip


def _leaf(formula: Formula, in_arithmetic: bool) -> str:
    return "y_v(y_t(params.reduced))" if formula.name == COUNT.name else operand(formula, in_arithmetic)
