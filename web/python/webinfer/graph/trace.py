"""A trace: one reading of a model with symbols in the place of sizes, and the guards under which it holds.

It is compiled to two functions: one tells whether the guards hold for other sizes, one evaluates expressions for them.
Both take microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from webinfer.graph.dims import ACTIVE, Size
from webinfer.graph.polynomials import (
    Poly,
    as_number,
    code_of,
    constant,
    long_division,
    plus,
    sorted_terms,
    times,
    without,
)

Bound = int | None
MOST = 2**31 - 1  # of any axis
CODE = {"//": "({a}) // ({b})", "min": "min({a}, {b})", "spare": "max(rows[{a}] - ({b}), 0) if rows else 0"}
SAID = {("==", True): "==", ("==", False): "!=", (">", True): ">", (">", False): "<="}  # a comparison and its answer


class AskedAboutSpareError(NotImplementedError):
    """Code has asked about memory that a tensor may have beside its elements: it has no kernel for such a tensor."""


class Trace:
    """One reading of a model with symbols, and the guards under which what was made of it holds.

    `hints` are the sizes that it is read for, by symbol. One of 0 stays 0; the others are above 0. With `may_close` a
    plan for the hint alone is of use as well: guards may leave no symbol open.
    """

    def __init__(self, hints: Mapping[str, int], *, may_close: bool = False) -> None:
        self.symbols, self._may_close = list(hints), may_close
        self._values: list[int] = []  # of atoms at the hint: symbols first, then divisions
        self._made: dict[tuple[str, Poly, Poly], int] = {}
        # Of an atom: "//" or "min" of two; "spare" with a number and the rows that are needed; None for a symbol.
        self._parts: list[tuple[str, Poly, Poly] | None] = []
        self._spares = 0
        self._low: list[Bound] = []
        self._high: list[Bound] = []
        self._replaced: dict[int, Poly] = {}  # symbols that must equal a number or another symbol
        self._reduced: dict[Poly, Poly] = {}  # expressions as they are with these replaced
        self._guards: dict[tuple[Poly, str], bool] = {}  # (p, "==" or ">") -> whether p == 0, p > 0
        self.leaks: list[str] = []  # where a size had to become a number
        self.note: Callable[[Size], str] | None = None  # says where, for people who look for leaks
        for hint in hints.values():
            self._values.append(hint)
            self._parts.append(None)
            self._low.append(min(hint, 1))
            self._high.append(MOST if hint else 0)
            self._guards[((((len(self._values) - 1),), 1), ((), -MOST))[::-1], ">"] = False
            self._guards[((((len(self._values) - 1),), 1),), ">"] = hint > 0
            if not hint:
                self._replaced[len(self._values) - 1] = ()

    def size(self, symbol: str) -> Any:
        """The symbol as a size; 0 if that is its hint."""
        number = self.symbols.index(symbol)
        return Size(self, (((number,), 1),), self._values[number]) if self._values[number] else 0

    @property
    def may_close(self) -> bool:
        """Whether a plan for the hint alone is of use as well."""
        return self._may_close

    def spare(self, needed: Size) -> Size:
        """How many rows a memory has beyond the `needed` ones: at least 0, and nothing may be asked about it.

        Memories are numbered in the order of calls. Who evaluates expressions gives the rows of each behind the sizes
        of symbols, or none: then no memory has more than is needed.
        """
        number, self._spares = len(self._values), self._spares + 1
        self._values.append(0)
        self._parts.append(("spare", constant(self._spares - 1), self.reduced(needed.poly)))
        self._low.append(0)
        self._high.append(MOST)
        return Size(self, (((number,), 1),), 0)

    @property
    def open_symbols(self) -> list[str]:
        """The symbols that were not bound to numbers by guards."""
        return [name for i, name in enumerate(self.symbols) if as_number(self._reduced_atom(i)) is None]

    @property
    def is_of_use(self) -> bool:
        """Whether a plan holds for more than the hint, or need not."""
        return self._may_close or bool(self.open_symbols)

    @contextmanager
    def active(self) -> Iterator[Trace]:
        """While sizes may be made and questions recorded; afterwards, both are errors."""
        ACTIVE.append(self)
        try:
            yield self
        finally:
            ACTIVE.pop()

    # ----- expressions

    def make(self, poly: Poly, hint: int) -> Any:
        """A size, or a number where the expression is one."""
        poly = self.reduced(poly)
        if not poly or (len(poly) == 1 and not poly[0][0]):
            return hint
        return Size(self, poly, hint)

    def reduced(self, poly: Poly) -> Poly:
        """The expression without symbols that are known to equal others."""
        if not self._replaced:
            return poly
        found = self._reduced.get(poly)
        if found is None:
            found = self._reduced[poly] = self._reduce(poly)
        return found

    def _reduce(self, poly: Poly) -> Poly:
        total: dict[tuple[int, ...], int] = {}
        changed = False
        for atoms, factor in poly:
            product: Poly = (((), factor),)
            for atom in atoms:
                new = self._reduced_atom(atom)
                changed = changed or new != (((atom,), 1),)
                product = times(product, new)
            for key, value in product:
                total[key] = total.get(key, 0) + value
        return sorted_terms(total) if changed else poly

    def _reduced_atom(self, atom: int) -> Poly:
        if (found := self._replaced.get(atom)) is not None:
            return self.reduced(found)
        parts = self._parts[atom]
        if parts is None or parts[0] == "spare":
            return (((atom,), 1),)
        kind, (over, under) = parts[0], map(self.reduced, parts[1:])
        if (kind, over, under) == parts:
            return (((atom,), 1),)
        return self.divided(over, under) if kind == "//" else self.least(over, under)

    def divided(self, over: Poly, under: Poly) -> Poly:
        """Floor division: what divides exactly, and the rest as an atom; `under` is not 0."""
        if len(under) == 1:
            over, under = _cancelled(*self._merged(over, under))
            atoms, factor = under[0]
            exact, rest = dict[tuple[int, ...], int](), dict[tuple[int, ...], int]()
            for own, number in over:
                left = without(own, atoms)
                if left is not None and number % factor == 0:
                    exact[left] = number // factor
                else:
                    rest[own] = number
            if not rest:
                return sorted_terms(exact)
            if not atoms and exact:  # (c*q + r) // c == q + r // c
                return plus(sorted_terms(exact), self._atom(sorted_terms(rest), under))
        elif (exact_quotient := long_division(over, under)) is not None:
            return exact_quotient
        return self._atom(over, under)

    def _merged(self, over: Poly, under: Poly) -> tuple[Poly, Poly]:
        """A division of a quotient as one division: (p // a + c) // b is (p + c*a) // (a*b)."""
        parts, step = dict(over), as_number(under)
        rest = parts.pop((), 0)
        if step is None or step < 1 or len(parts) != 1:
            return over, under
        ((atoms, factor),) = parts.items()
        inner = self._parts[atoms[0]] if len(atoms) == 1 and factor == 1 else None
        own = as_number(inner[2]) if inner is not None and inner[0] == "//" else None
        if inner is None or own is None or own < 1:
            return over, under
        return plus(inner[1], constant(rest * own)), constant(own * step)

    def _atom(self, over: Poly, under: Poly) -> Poly:
        numbers = as_number(over), as_number(under)
        if numbers[0] is not None and numbers[1]:
            return constant(numbers[0] // numbers[1])
        if numbers[1] is not None and numbers[1] > 0:  # parts that stay below the divisor vanish
            low, high = self.bounds(over)
            if low is not None and high is not None and low // numbers[1] == high // numbers[1]:
                return constant(low // numbers[1])
        low, high = self.bounds(over)
        step = numbers[1]
        low = low // step if low is not None and step is not None and step > 0 else None
        high = high // step if high is not None and step is not None and step > 0 else None
        return self._new("//", over, under, self.hint_of(over) // self.hint_of(under), (low, high))

    def least(self, a: Poly, b: Poly) -> Poly:
        """The smaller one of two expressions."""
        (low, high), (other_low, other_high) = self.bounds(a), self.bounds(b)
        if a == b or (high is not None and other_low is not None and high <= other_low):
            return a
        if other_high is not None and low is not None and other_high <= low:
            return b
        lowest = None if low is None or other_low is None else min(low, other_low)
        highest = min((h for h in (high, other_high) if h is not None), default=None)
        a, b = sorted((a, b))
        return self._new("min", a, b, min(self.hint_of(a), self.hint_of(b)), (lowest, highest))

    def _new(self, kind: str, a: Poly, b: Poly, hint: int, bounds: tuple[Bound, Bound]) -> Poly:
        """The atom of two expressions."""
        found = self._made.get((kind, a, b))
        if found is None:
            found = self._made[kind, a, b] = len(self._values)
            self._values.append(hint)
            self._parts.append((kind, a, b))
            self._low.append(bounds[0])
            self._high.append(bounds[1])
        return (((found,), 1),)

    def hint_of(self, poly: Poly) -> int:
        """The expression's value at the hint."""
        return sum(factor * math.prod(self._values[atom] for atom in atoms) for atoms, factor in poly)

    def bounds(self, poly: Poly) -> tuple[Bound, Bound]:
        """A number that the expression is at least, and one that it is at most, as far as guards tell."""
        low: float = 0
        high: float = 0
        for atoms, factor in poly:
            least: float = factor
            most: float = factor
            for atom in atoms:
                own, top = self._low[atom], self._high[atom]
                corners = [
                    a * b if a and b else 0
                    for a in (least, most)
                    for b in (-math.inf if own is None else own, math.inf if top is None else top)
                ]
                least, most = min(corners), max(corners)
            low, high = low + least, high + most
        return None if math.isinf(low) else int(low), None if math.isinf(high) else int(high)

    # ----- guards

    def is_zero(self, poly: Poly, hint: int) -> bool:
        """Whether the expression is 0; recorded unless it is so, or not so, for all sizes."""
        poly = self.reduced(poly)
        if (number := as_number(poly)) is not None:
            return number == 0
        low, high = self.bounds(poly)
        if (low is not None and low > 0) or (high is not None and high < 0):
            return False
        self._record(poly, "==", hint == 0)
        if hint == 0:
            self._replace(poly)
        elif low == 0 and len(poly) == 1:  # one product that is not 0
            for atom in poly[0][0]:
                self._low[atom] = max(self._low[atom] or 0, 1)
        return hint == 0

    def is_positive(self, poly: Poly, hint: int) -> bool:
        """Whether the expression is above 0; recorded unless it is so, or not so, for all sizes."""
        poly = self.reduced(poly)
        if (number := as_number(poly)) is not None:
            return number > 0
        low, high = self.bounds(poly)
        if low is not None and low > 0:
            return True
        if high is not None and high <= 0:
            return False
        self._record(poly, ">", hint > 0)
        self._learn(poly, hint > 0)
        return hint > 0

    def _record(self, poly: Poly, kind: str, outcome: bool) -> None:
        if not (ACTIVE and ACTIVE[-1] is self):
            raise RuntimeError("a size is asked about after its trace has ended")
        if self._spares and self._has_spare(poly):
            raise AskedAboutSpareError
        self._guards[poly, kind] = outcome

    def _has_spare(self, poly: Poly) -> bool:
        parts = [self._parts[atom] for atoms, _ in poly for atom in atoms]
        return any(p is not None and (p[0] == "spare" or any(map(self._has_spare, p[1:]))) for p in parts)

    def _learn(self, poly: Poly, positive: bool) -> None:
        """Notes what a guard says of a single atom: factor * atom + rest > 0, or <= 0."""
        parts = dict(poly)
        rest = parts.pop((), 0)
        if len(parts) != 1:
            return
        ((atoms, factor),) = parts.items()
        if len(atoms) != 1:
            return
        (atom,) = atoms
        if not positive:  # -factor * atom - rest + 1 > 0
            factor, rest = -factor, 1 - rest
        if factor > 0:  # atom >= (1 - rest) / factor
            low = -((rest - 1) // factor)
            own = self._low[atom]
            self._low[atom] = low if own is None else max(own, low)
        else:  # atom <= (rest - 1) / -factor
            high = (rest - 1) // -factor
            top = self._high[atom]
            self._high[atom] = high if top is None else min(top, high)

    def _replace(self, poly: Poly) -> None:
        """A symbol whose value this equation tells is replaced from now on."""
        parts = dict(poly)
        rest = parts.pop((), 0)
        singles = [(atoms[0], factor) for atoms, factor in parts.items() if len(atoms) == 1]
        if len(singles) != len(parts):
            return
        symbols = [(atom, factor) for atom, factor in singles if self._parts[atom] is None and abs(factor) == 1]
        if len(singles) == 1 and self._parts[singles[0][0]] is None:
            atom, factor = singles[0]
            self._replaced[atom] = constant(-rest // factor)
            self._reduced.clear()
        elif symbols and all(self._parts[atom] is None for atom, _ in singles):
            atom, factor = max(symbols)
            others = {key: value for key, value in poly if key != (atom,)}
            told = self._replaced[atom] = sorted_terms({key: -factor * value for key, value in others.items()})
            self._reduced.clear()
            low, high = self._low[atom], self._high[atom]  # what is known of it is known of the others now
            if low is not None:
                self._learn(plus(told, constant(1 - low)), True)
            if high is not None:
                self._learn(plus(told, constant(-high)), False)

    def pin(self, size: Size) -> int:
        """The size as the number that it is at the hint, for code that needs one: the trace holds for no other."""
        poly = self.reduced(size.poly)
        if (number := as_number(poly)) is not None:
            return number
        if self.note is not None:
            self.leaks.append(self.note(size))
        self.is_zero(plus(poly, constant(-size.hint)), 0)
        return size.hint

    @property
    def guards(self) -> list[str]:
        """The guards as text, for people."""
        return [f"{self.text(poly)} {SAID[kind, outcome]} 0" for (poly, kind), outcome in self._guards.items()]

    def broken(self, sizes: Sequence[int]) -> list[str]:
        """The guards, as text, that have another answer for these sizes in the order of `symbols`."""
        found = []
        for (poly, kind), outcome in self._guards.items():
            try:
                (value,) = self.compile([poly])(sizes)
                holds = (value == 0 if kind == "==" else value > 0) is outcome
            except ZeroDivisionError:
                holds = False
            if not holds:
                found.append(f"{self.text(poly)} {SAID[kind, outcome]} 0")
        return found

    def text(self, poly: Poly) -> str:
        """An expression for people."""
        terms = []
        for atoms, factor in poly:
            names = [self.symbols[a] if self._parts[a] is None else self._atom_text(a) for a in atoms]
            terms.append("*".join([*([str(factor)] if factor != 1 or not names else []), *names]))
        return " + ".join(terms) or "0"

    def _atom_text(self, atom: int) -> str:
        parts = self._parts[atom]
        assert parts is not None
        kind, a, b = parts[0], self.text(parts[1]), self.text(parts[2])
        if kind == "spare":
            return f"spare rows over {b}"
        return f"({a}) // ({b})".join("()") if kind == "//" else f"min({a}, {b})"

    # ----- stored traces

    @property
    def atoms(self) -> int:
        """How many symbols and divisions there are."""
        return len(self._parts)

    def parts_of(self, atom: int) -> tuple[str, Poly, Poly]:
        """What an atom that is not a symbol is: "//" or "min" of two expressions."""
        parts = self._parts[atom]
        assert parts is not None
        return parts

    def asked(self) -> list[tuple[tuple[Poly, str], bool]]:
        """The guards: an expression and whether it is compared "==" or ">" with 0; the answer."""
        return list(self._guards.items())

    def add_atom(self, kind: str, a: Poly, b: Poly) -> None:
        """Adds an atom of another trace, which had the same symbols and atoms; only for evaluation."""
        self._values.append(1)
        self._parts.append((kind, a, b))
        self._low.append(None)
        self._high.append(None)

    def add_guard(self, poly: Poly, kind: str, answer: bool) -> None:
        """Adds a guard of another trace."""
        self._guards[poly, kind] = answer

    # ----- evaluation

    def compile_guards(self) -> Callable[[Sequence[int]], bool]:
        """A function that tells, for sizes in the order of `symbols`, whether all guards have the answers of the trace.

        A division by 0 counts as another answer.
        """
        # cheap ones first: those of symbols alone decide most
        ordered = sorted(
            self._guards.items(), key=lambda item: max((max(a, default=0) for a, _ in item[0][0]), default=0)
        )
        lines, known = list[str](), set[int]()
        for (poly, kind), outcome in ordered:
            lines += self._atom_lines([poly], known)
            lines.append(f"if not ({code_of(poly)} {SAID[kind, outcome]} 0): return False")
        holds = _function([*lines, "return True"], len(self.symbols))

        def answer(sizes: Sequence[int]) -> bool:
            try:
                return bool(holds(sizes))
            except ZeroDivisionError:
                return False

        return answer

    def compile(self, polys: Sequence[Poly]) -> Callable[[Sequence[int]], list[int]]:
        """A function that evaluates expressions for sizes in the order of `symbols`."""
        lines = self._atom_lines(polys, set())
        listed = ", ".join(map(code_of, polys))
        made: Callable[[Sequence[int]], list[int]] = _function([*lines, f"return [{listed}]"], len(self.symbols))
        return made

    def _atom_lines(self, polys: Sequence[Poly], known: set[int]) -> list[str]:
        """Lines that compute the divisions in expressions, each once."""
        lines: list[str] = []

        def visit(poly: Poly) -> None:
            for atoms, _ in poly:
                for atom in atoms:
                    parts = self._parts[atom]
                    if parts is not None and atom not in known:
                        known.add(atom)
                        visit(parts[1])
                        visit(parts[2])
                        a, b = code_of(parts[1]), code_of(parts[2])
                        lines.append(f"a{atom} = " + CODE[parts[0]].format(a=a, b=b))

        for poly in polys:
            visit(poly)
        return lines


class Expressions:
    """Sizes of a trace, numbered, to be evaluated together for other sizes of the symbols."""

    def __init__(self, trace: Trace, listed: Sequence[Poly] = ()) -> None:
        self._trace, self._listed = trace, list(listed)
        self._numbers = {poly: i for i, poly in enumerate(self._listed)}
        self._compiled: Callable[[Sequence[int]], list[int]] | None = None

    def number(self, size: Size) -> int:
        """Where the value of this size is in the list that `evaluate` gives."""
        poly = self._trace.reduced(size.poly)
        found = self._numbers.get(poly)
        if found is None:
            found = self._numbers[poly] = len(self._listed)
            self._listed.append(poly)
            self._compiled = None
        return found

    def listed(self) -> list[Poly]:
        """The expressions, in order."""
        return list(self._listed)

    def evaluate(self, sizes: Sequence[int]) -> list[int]:
        """The values of all of them, for sizes in the order of the trace's symbols."""
        if self._compiled is None:
            self._compiled = self._trace.compile(self._listed)
        return self._compiled(sizes)

    def value_of(self, size: Size, values: Sequence[int]) -> int:
        """A size that was numbered, in a list that `evaluate` gave."""
        return values[self._numbers[self._trace.reduced(size.poly)]]


def _cancelled(over: Poly, under: Poly) -> tuple[Poly, Poly]:
    """A division without what all factors of both have in common: 8*t // 32 is t // 4."""
    step = as_number(under)
    if step is None or step < 2:
        return over, under
    shared = math.gcd(step, *(factor for _, factor in over))
    return tuple((atoms, factor // shared) for atoms, factor in over), constant(step // shared)


def _function(lines: Sequence[str], symbols: int) -> Any:
    """The function of these lines, which hold nothing but whole numbers and names that are made here."""
    names = "".join(f"a{i}, " for i in range(symbols))
    text = f"def evaluate(sizes):\n    {names}*rows, = sizes\n"
    text += "".join(f"    {line}\n" for line in lines)
    made: dict[str, Any] = {}
    exec(compile(text, "<sizes>", "exec"), made)
    return made["evaluate"]
