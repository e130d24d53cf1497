"""Sizes that are symbols: integers that remember how they were computed, and what was asked about them.

A `Trace` is one reading of a model with a symbol for each open axis. Every size computed from symbols is a `Size`: a
polynomial over symbols and over floor divisions of such polynomials, together with its value at the sizes of the trace,
the hint. A question about a size (a comparison, `bool`, `int`) is answered for the hint and recorded as a guard. What
the trace made is right for all sizes for which the guards have the same answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from webinfer.graph.polynomials import (
    Poly,
    as_number,
    constant,
    plus,
    times,
)  # fmt: skip

if TYPE_CHECKING:
    from webinfer.graph.trace import Trace

ACTIVE: list[Trace] = []  # the readings that are under way, the innermost at the end
_FIELDS: dict[type, tuple[str, ...]] = {}  # of dataclasses that were asked about; none of other classes


class Size:
    """An integer computed from symbols of a trace. No `int`: what cannot take it says so, or asks it for a number."""

    __slots__ = ("hint", "poly", "trace")

    def __init__(self, trace: Trace, poly: Poly, hint: int) -> None:
        self.trace, self.poly, self.hint = trace, poly, hint

    # ----- arithmetic

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int):
            return self.trace.make(plus(self.poly, constant(other)), self.hint + other) if other else self
        if isinstance(other, Size):
            return self.trace.make(plus(self.poly, other.poly), self.hint + other.hint)
        return int(self) + other if isinstance(other, float) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self.trace.make(tuple((atoms, -factor) for atoms, factor in self.poly), -self.hint)

    def __pos__(self) -> Size:
        return self

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, (int, Size)) else int(self) - other

    def __rsub__(self, other: Any) -> Any:
        return -self + other if isinstance(other, int) else other - int(self)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int):
            if other == 1:
                return self
            return self.trace.make(times(self.poly, constant(other)), self.hint * other)
        if isinstance(other, Size):
            return self.trace.make(times(self.poly, other.poly), self.hint * other.hint)
        if isinstance(other, float):
            return self * int(other) if other.is_integer() else int(self) * other
        return NotImplemented

    __rmul__ = __mul__

    def __pow__(self, power: int) -> Any:
        result: Any = 1
        for _ in range(power):
            result = result * self
        return result

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 1:
            return self
        if isinstance(other, (int, Size)):
            return _divide(self, other)
        return int(self) // other

    def __rfloordiv__(self, other: Any) -> Any:
        return _divide(other, self) if isinstance(other, int) else other // int(self)

    def __mod__(self, other: Any) -> Any:
        return self - (self // other) * other if isinstance(other, (int, Size)) else int(self) % other

    def __rmod__(self, other: Any) -> Any:
        return other - (other // self) * self

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __truediv__(self, other: Any) -> Any:
        """Exact where the quotient is whole for all sizes, which counts as a float; else the number at the hint."""
        if isinstance(other, (int, Size)) and other:
            quotient = _divide(self, other)
            if _is_exact(self, quotient, other):
                return quotient
        return int(self) / (int(other) if isinstance(other, Size) else other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / int(self)

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __round__(self, digits: int | None = None) -> Size:
        return self

    def __floor__(self) -> Size:
        return self

    __ceil__ = __trunc__ = __floor__

    def is_integer(self) -> bool:
        """True, as of a float that is whole."""
        return True

    def bit_length(self) -> int:
        """Bits of the number; recorded as the range that has as many."""
        bits = self.hint.bit_length()
        return bits if self < 2**bits and (not bits or self >= 2 ** (bits - 1)) else int(self).bit_length()

    # ----- questions

    def __eq__(self, other: object) -> bool:
        difference = _difference(self, other)
        return False if difference is None else self.trace.is_zero(*difference)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        """Of the expression: a size that equals a number by chance is not found among numbers, but never mistaken."""
        poly = self.trace.reduced(self.poly)
        number = as_number(poly)
        return hash(poly) if number is None else hash(number)

    def __gt__(self, other: Any) -> bool:
        if isinstance(other, float):
            return other == -math.inf if math.isinf(other) or math.isnan(other) else self > math.floor(other)
        difference = _difference(self, other)
        if difference is None:
            return NotImplemented
        return self.trace.is_positive(*difference)

    def __lt__(self, other: Any) -> bool:
        if isinstance(other, float):
            return other == math.inf if math.isinf(other) or math.isnan(other) else self < math.ceil(other)
        difference = _difference(self, other)
        if difference is None:
            return NotImplemented
        return self.trace.is_positive(tuple((a, -f) for a, f in difference[0]), -difference[1])

    def __ge__(self, other: Any) -> bool:
        return self == other if isinstance(other, float) and math.isnan(other) else not self < other

    def __le__(self, other: Any) -> bool:
        return self == other if isinstance(other, float) and math.isnan(other) else not self > other

    def __bool__(self) -> bool:
        return not self == 0

    def __int__(self) -> int:
        return self.trace.pin(self)

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.trace.pin(self))

    def __repr__(self) -> str:
        return self.trace.text(self.poly)

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        return format(str(self), how if how.endswith("s") else "")

    def __copy__(self) -> Size:
        return self

    def __deepcopy__(self, memo: Any) -> Size:
        return self


def minimum(a: Any, b: Any) -> Any:
    """The smaller one of two sizes or numbers; no question of which one it is is recorded."""
    size = next((s for s in (a, b) if isinstance(s, Size)), None)
    if size is None:
        return min(a, b)
    return size.trace.make(size.trace.least(_poly_of(a), _poly_of(b)), min(hint_of(a), hint_of(b)))


def maximum(a: Any, b: Any) -> Any:
    """The larger one of two sizes or numbers; no question of which one it is is recorded."""
    return -minimum(-a, -b)


def whole(number: Any) -> Any:
    """`int(number)` that lets a size be one."""
    return number if isinstance(number, Size) else int(number)


def hint_of(size: Any) -> Any:
    """The number that a size has at the hint of its trace; anything else as it is. Asks nothing."""
    return size.hint if isinstance(size, Size) else size


def has_size(thing: Any) -> bool:
    """Whether a size that follows symbols is in a tuple, list, dict or dataclass, at any depth."""
    if isinstance(thing, (tuple, list)):  # first, and without a call for each number: most questions are of shapes
        for part in thing:
            if type(part) is not int and has_size(part):
                return True
        return False
    if isinstance(thing, Size):
        return True
    if isinstance(thing, dict):
        return any(map(has_size, thing.values()))
    kind = type(thing)
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    return any(has_size(getattr(thing, name)) for name in _FIELDS[kind])


def sizes_in(thing: Any) -> Iterator[Size]:
    """The sizes that follow symbols in a tuple, list, dict or dataclass, at any depth."""
    if isinstance(thing, Size):
        yield thing
    elif isinstance(thing, (tuple, list)):
        for part in thing:
            yield from sizes_in(part)
    elif isinstance(thing, dict):
        yield from sizes_in(list(thing.values()))
    elif is_dataclass(thing) and not isinstance(thing, type):
        for field in fields(thing):
            yield from sizes_in(getattr(thing, field.name))


def with_sizes(thing: Any, value_of: Callable[[Size], int]) -> Any:
    """A copy of a tuple, list, dict or dataclass with numbers in place of the sizes that follow symbols."""
    if isinstance(thing, Size):
        return value_of(thing)
    if not has_size(thing):
        return thing
    if isinstance(thing, (tuple, list)):
        parts = [with_sizes(part, value_of) for part in thing]
        return parts if isinstance(thing, list) else type(thing)(*parts) if hasattr(thing, "_fields") else tuple(parts)
    if isinstance(thing, dict):
        return {key: with_sizes(value, value_of) for key, value in thing.items()}
    changed = {field.name: with_sizes(getattr(thing, field.name), value_of) for field in fields(thing)}
    return replace(thing, **changed)


def tracing() -> bool:
    """Whether a model is read with symbols at the moment."""
    return bool(ACTIVE)


def _divide(over: Any, under: Any) -> Any:
    size: Size = over if isinstance(over, Size) else under
    if under == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    poly = size.trace.divided(size.trace.reduced(_poly_of(over)), size.trace.reduced(_poly_of(under)))
    return size.trace.make(poly, hint_of(over) // hint_of(under))


def _is_exact(over: Size, quotient: Any, under: Any) -> bool:
    """Whether quotient * under is over as an expression, whatever the sizes."""
    trace = over.trace
    return trace.reduced(times(_poly_of(quotient), _poly_of(under))) == trace.reduced(over.poly)


def _difference(size: Size, other: Any) -> tuple[Poly, int] | None:
    if isinstance(other, Size):
        if other.trace is not size.trace:
            return None
        negative = tuple((atoms, -factor) for atoms, factor in other.poly)
        return plus(size.poly, negative), size.hint - other.hint
    if isinstance(other, float) and other.is_integer():
        other = int(other)
    if isinstance(other, int):
        return plus(size.poly, constant(-other)), size.hint - other
    return None


def _poly_of(number: Any) -> Poly:
    return number.trace.reduced(number.poly) if isinstance(number, Size) else constant(int(number))
