"""Reductions as rows: what is taken of each element, how that is joined, and what is made of the joined value.

The schedules, which say how a tensor is walked, are each backend's own and serve all rows.
"""

from __future__ import annotations

import enum

from webinfer.expr.formula import CONSTANT, Formula, X
from webinfer.lazy_dataclass import dataclass

COUNT = Formula("count")  # how many elements are joined
_WHOLE = frozenset({X.name, CONSTANT, "abs", "neg", "+", "-", "*"})  # what keeps whole numbers whole


class Join(enum.StrEnum):
    """How two values become one; the order is free."""

    __hash__ = str.__hash__

    LARGEST = "largest"
    PRODUCT = "product"
    SMALLEST = "smallest"
    SUM = "sum"


@dataclass(frozen=True, slots=True)
class ReductionRow:
    """y = end(join of take(x) over elements x): both formulas are of X, the last one may use COUNT too."""

    take: Formula = X
    join: Join = Join.SUM
    end: Formula = X

    @property
    def is_whole(self) -> bool:
        """Whether it makes whole numbers of whole numbers."""
        return all(part.name in _WHOLE for formula in (self.take, self.end) for part in formula)

    def passes(self) -> tuple[ReductionRow, ReductionRow]:
        """The same in two passes: what makes a part of a result, and what makes the result of its parts."""
        return ReductionRow(self.take, self.join), ReductionRow(X, self.join, self.end)
