"""Polynomials with whole factors over numbered atoms: what sizes that follow symbols are computed as."""

from __future__ import annotations

from collections.abc import Mapping

Poly = tuple[tuple[tuple[int, ...], int], ...]  # sorted (atoms, factor): a sum of products; () is 0
MAX_TERMS = 32  # of a quotient of polynomials; sizes have a few


def constant(number: int) -> Poly:
    """A number as a polynomial."""
    return (((), int(number)),) if number else ()


def as_number(poly: Poly) -> int | None:
    """The number that a polynomial is; None if it depends on an atom."""
    if not poly:
        return 0
    return poly[0][1] if len(poly) == 1 and not poly[0][0] else None


def sorted_terms(parts: Mapping[tuple[int, ...], int]) -> Poly:
    """The polynomial of these products and their factors, without those of factor 0."""
    return tuple(sorted(item for item in parts.items() if item[1]))


def plus(a: Poly, b: Poly) -> Poly:
    """The sum."""
    if not a or not b:
        return a or b
    total = dict(a)
    for atoms, factor in b:
        total[atoms] = total.get(atoms, 0) + factor
    return sorted_terms(total)


def times(a: Poly, b: Poly) -> Poly:
    """The product."""
    total: dict[tuple[int, ...], int] = {}
    for atoms, factor in a:
        for others, number in b:
            key = tuple(sorted(atoms + others)) if atoms and others else atoms or others
            total[key] = total.get(key, 0) + factor * number
    return sorted_terms(total)


def long_division(over: Poly, under: Poly) -> Poly | None:
    """The quotient of polynomials, if nothing is left over."""

    def lead(poly: Poly) -> tuple[tuple[int, ...], int]:
        return max(poly, key=lambda term: (len(term[0]), term[0]))

    total: Poly = ()
    (first, factor), left = lead(under), over
    for _ in range(MAX_TERMS):
        if not left:
            return total
        atoms, number = lead(left)
        rest = without(atoms, first)
        if rest is None or number % factor:
            return None
        term: Poly = ((rest, number // factor),)
        total, left = plus(total, term), plus(left, tuple((a, -f) for a, f in times(term, under)))
    return None


def without(atoms: tuple[int, ...], factors: tuple[int, ...]) -> tuple[int, ...] | None:
    """A product without some of its factors; None if it lacks one."""
    left = list(atoms)
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def code_of(poly: Poly) -> str:
    """The polynomial as a Python expression over the names a0, a1, …"""
    terms = ["*".join([str(factor), *(f"a{atom}" for atom in atoms)]) for atoms, factor in poly]
    return " + ".join(terms) or "0"
