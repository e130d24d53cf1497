"""A trace as JSON, for plans that are stored and packages: what decides whether it holds, and the sizes that follow it.

The form: `symbols` are names; `atoms` are ["//" or "min", expression, expression], numbered behind the symbols, or
["spare", a memory's number, the rows that it needs], which `Trace.spare` explains; an expression is a list of [factor,
atom, ...], the sum of products; `guards` are [expression, "==" or ">", answer] of comparisons with 0; `values` are
expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webinfer.errors import ModelFormatError
from webinfer.graph.polynomials import Poly
from webinfer.graph.trace import Expressions, Trace

KINDS = ("//", "min", "spare")
MAX_ATOMS = 1 << 16  # of a stored trace; models of 3,000 nodes have some hundred


def written(trace: Trace, expressions: Expressions) -> dict[str, Any]:
    """The form of a trace and of sizes that were numbered."""
    numbers = {i: i for i in range(len(trace.symbols))}
    atoms: list[Any] = []

    def expression(poly: Poly) -> list[list[int]]:
        return [[factor, *(number(atom) for atom in own)] for own, factor in poly]

    def number(atom: int) -> int:
        if atom not in numbers:
            kind, a, b = trace.parts_of(atom)
            row = [kind, expression(a), expression(b)]
            numbers[atom] = len(trace.symbols) + len(atoms)
            atoms.append(row)
        return numbers[atom]

    guards = [[expression(poly), kind, answer] for (poly, kind), answer in trace.asked()]
    values = [expression(poly) for poly in expressions.listed()]
    return {"symbols": list(trace.symbols), "atoms": atoms, "guards": guards, "values": values}


def restored(form: Any) -> tuple[Trace, Expressions]:
    """The trace of a form, which can be evaluated, and its sizes in their order.

    Raises:  ModelFormatError where the form is not kept
    """
    match form:
        case {"symbols": [*symbols], "atoms": [*atoms], "guards": [*guards], "values": [*values]}:
            pass
        case _:
            raise ModelFormatError("sizes that follow inputs lack symbols, atoms, guards or values")
    if len(symbols) + len(atoms) > MAX_ATOMS or not all(isinstance(name, str) for name in symbols):
        raise ModelFormatError(f"sizes follow {len(symbols)} inputs and {len(atoms)} divisions")
    trace = Trace(dict.fromkeys(map(str, symbols), 1))
    if len(trace.symbols) != len(symbols):
        raise ModelFormatError("two symbols of sizes have one name")
    for row in atoms:
        match row:
            case [str(kind), over, under] if kind in KINDS:
                trace.add_atom(kind, _poly(over, trace), _poly(under, trace))
            case _:
                raise ModelFormatError(f"a size is computed as {str(row)[:80]}")
    for row in guards:
        match row:
            case [poly, "==" | ">" as kind, bool(answer)]:
                trace.add_guard(_poly(poly, trace), kind, answer)
            case _:
                raise ModelFormatError(f"a plan holds while {str(row)[:80]}")
    return trace, Expressions(trace, [_poly(poly, trace) for poly in values])


def _poly(rows: Any, trace: Trace) -> Poly:
    """An expression, over atoms that are there already."""
    found = []
    for row in rows if isinstance(rows, list) else [None]:
        if not isinstance(row, Sequence) or not row or any(type(word) is not int for word in row):
            raise ModelFormatError(f"a size is computed as {str(rows)[:80]}")
        if any(not 0 <= atom < trace.atoms for atom in row[1:]):
            raise ModelFormatError(f"a size is computed from {str(row)[:80]}, of {trace.atoms} sizes")
        found.append((tuple(row[1:]), row[0]))
    return tuple(found)
