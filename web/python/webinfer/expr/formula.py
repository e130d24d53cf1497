"""Formulas of elementwise operators: small expression trees that every backend writes in its own language.

A formula is made of numbers, variables, Python's operators and the primitives below, each of which every backend has
once. A unary operator's operand is `x` and its attributes are `a` and `b`; a binary operator's operands are `a` and
`b`. For integers `/` cuts the quotient towards zero and every division by zero gives 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from webinfer.lazy_dataclass import dataclass

CONSTANT = "constant"
TRUTHS = frozenset({"<", "<=", ">", ">=", "==", "!=", "&", "|", "^"})  # true or false, no number


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A variable, a number (its name is "constant"), or an operator or a primitive applied to its parts."""

    name: str
    parts: tuple[Formula, ...] = ()
    value: float = 0.0

    def __iter__(self) -> Iterator[Formula]:
        """The formula itself, then everything in it."""
        yield self
        for part in self.parts:
            yield from part

    def uses(self, *names: str) -> bool:
        """Whether one of these variables, operators or primitives occurs in it."""
        return any(part.name in names for part in self)

    def __abs__(self) -> Formula:
        return Formula("abs", (self,))

    def __add__(self, other: Operand) -> Formula:
        return Formula("+", (self, formula(other)))

    def __and__(self, other: Operand) -> Formula:
        return Formula("&", (self, formula(other)))

    def __floordiv__(self, other: Operand) -> Formula:
        return Formula("//", (self, formula(other)))

    def __ge__(self, other: Operand) -> Formula:
        return Formula(">=", (self, formula(other)))

    def __gt__(self, other: Operand) -> Formula:
        return Formula(">", (self, formula(other)))

    def __le__(self, other: Operand) -> Formula:
        return Formula("<=", (self, formula(other)))

    def __lt__(self, other: Operand) -> Formula:
        return Formula("<", (self, formula(other)))

    def __mod__(self, other: Operand) -> Formula:
        return Formula("%", (self, formula(other)))

    def __mul__(self, other: Operand) -> Formula:
        return Formula("*", (self, formula(other)))

    def __neg__(self) -> Formula:
        return Formula("neg", (self,))

    def __or__(self, other: Operand) -> Formula:
        return Formula("|", (self, formula(other)))

    def __pow__(self, other: Operand) -> Formula:
        return Formula("**", (self, formula(other)))

    def __radd__(self, other: Operand) -> Formula:
        return Formula("+", (formula(other), self))

    def __rmul__(self, other: Operand) -> Formula:
        return Formula("*", (formula(other), self))

    def __rsub__(self, other: Operand) -> Formula:
        return Formula("-", (formula(other), self))

    def __rtruediv__(self, other: Operand) -> Formula:
        return Formula("/", (formula(other), self))

    def __sub__(self, other: Operand) -> Formula:
        return Formula("-", (self, formula(other)))

    def __truediv__(self, other: Operand) -> Formula:
        return Formula("/", (self, formula(other)))

    def __xor__(self, other: Operand) -> Formula:
        return Formula("^", (self, formula(other)))


Operand = Formula | float


def formula(value: Operand) -> Formula:
    """The value as a formula."""
    return value if isinstance(value, Formula) else Formula(CONSTANT, value=float(value))


def primitive(name: str) -> Callable[..., Formula]:
    """The function that applies a primitive, or an operator that Python cannot overload for formulas."""
    return lambda *parts: Formula(name, tuple(map(formula, parts)))


X, A, B = Formula("x"), Formula("a"), Formula("b")
INFINITY = float("inf")

bit_and = primitive("bit_and")
bit_or = primitive("bit_or")
bit_xor = primitive("bit_xor")
ceil = primitive("ceil")
clamp = primitive("clamp")  # (v, low, high)
cos = primitive("cos")
equal = primitive("==")
erf = primitive("erf")
exp = primitive("exp")
expm1 = primitive("expm1")  # e^v - 1
floor = primitive("floor")
gelu = primitive("gelu")
keep_nan = primitive("keep_nan")  # (x, v): v, but x where x is a NaN that v may have lost
larger = primitive("larger")  # of two; a NaN wins
log = primitive("log")
log1p = primitive("log1p")  # log(1 + v) for v >= 0
max = primitive("max")  # (v, bound); whether a NaN in v stays is open
min = primitive("min")  # (v, bound); the same
not_equal = primitive("!=")
round_even = primitive("round_even")
rsqrt = primitive("rsqrt")
select = primitive("select")  # (condition, where true, where false)
sigmoid = primitive("sigmoid")
sign = primitive("sign")
sin = primitive("sin")
smaller = primitive("smaller")  # of two; a NaN wins
sqrt = primitive("sqrt")
tan = primitive("tan")
tanh = primitive("tanh")


def softplus(v: Formula) -> Formula:
    """log(1 + e^v) without overflow."""
    return max(v, 0.0) + log1p(exp(-abs(v)))


def arctan(v: Formula) -> Formula:
    """The angle of this tangent: brought to at most tan(π/8), then a polynomial that is right to 2e-8 of it."""
    size = abs(v)
    far, middle = size > 2.4142135, size > 0.41421357
    t = select(far, -1.0 / size, select(middle, (size - 1.0) / (size + 1.0), size))
    angle = select(far, 1.5707964, select(middle, 0.7853982, 0.0))
    square = t * t
    tail = ((0.08044466 * square - 0.13874449) * square + 0.1997736) * square - 0.33332938
    whole = angle + (t + t * square * tail)
    return odd(v, whole)


def odd(v: Formula, whole: Formula) -> Formula:
    """`whole`, which is made of |v|, with the sign of v."""
    return select(v < 0.0, -whole, whole)


def bounded(low: Operand, high: Operand) -> Formula:
    """x between two bounds, a NaN kept. A bound that is infinite is left out."""
    low, high = formula(low), formula(high)
    if low.value == -INFINITY:
        return keep_nan(X, min(X, high))
    if high.value == INFINITY:
        return keep_nan(X, max(X, low))
    return keep_nan(X, clamp(X, low, high))
