"""The verdict on one graph: right, refused, explained by a rule, or a finding; and how a finding is made small."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.compare import mismatch, spread_of, told, wrong
from build_scripts.judge.fuzz.graphs import Array, FuzzGraph, smaller, trimmed
from build_scripts.judge.fuzz.noise import Noise
from build_scripts.judge.fuzz.rules import Difference, explained
from build_scripts.judge.together import Outcome
from webinfer.errors import CompilerError, WebinferError

RIGHT, REFUSED, EXPLAINED, UNTYPED, DIFFERENT, UNJUDGED = (
    "right",
    "refused",
    "explained",
    "untyped",
    "different",
    "unjudged",
)
FINDINGS = (UNTYPED, DIFFERENT)
FIRST_DRAWS, DRAWS = 6, 32  # of noise: at first, and before a difference counts
MOST_ATTEMPTS = 120  # at making a graph smaller


@dataclass(frozen=True)
class Verdict:
    """What a graph amounts to on a backend. `why` names the output, the error or the rule."""

    kind: str
    why: str = ""


def attempt(work: Callable[..., Any], *arguments: Any) -> Any:
    """What the work gives, or the error that it ends in."""
    try:
        return work(*arguments)
    except Exception as error:  # runtimes have no common base of errors
        return error


def judged(
    format: Any, graph: FuzzGraph, want: Sequence[Array] | Exception, got: Outcome, backend: str = "wasm"
) -> Verdict:
    """The verdict on what this engine made of a graph, beside what the runtime made of it."""
    if isinstance(got, Exception):
        if not isinstance(got, WebinferError) or isinstance(got, CompilerError):  # "a bug, please report it"
            return Verdict(UNTYPED, f"{type(got).__name__}: {got}")
        return Verdict(REFUSED if not isinstance(want, Exception) else UNJUDGED, f"{type(got).__name__}: {got}")
    if isinstance(want, Exception):
        return Verdict(UNJUDGED, "the runtime refuses the graph")
    arrays = [got[name] for name in graph.outputs]
    off = [i for i, name in enumerate(graph.outputs) if _told(replace(graph, outputs=(name,)), [arrays[i]], [want[i]])]
    if not off:
        return Verdict(RIGHT)
    part = trimmed(replace(graph, outputs=tuple(graph.outputs[i] for i in off)))  # a reference may lack the rest
    return _explained(format, part, [arrays[i] for i in off], [want[i] for i in off], backend)


def _told(graph: FuzzGraph, got: Sequence[Array], want: Sequence[Array], spreads: Sequence[Array] | None = None) -> str:
    """The first output that is off and how, or an empty text."""
    for i, name in enumerate(graph.outputs):
        if why := mismatch(got[i], want[i]):
            return f"{name} {why}"
        bad = wrong(got[i], want[i], None if spreads is None else spreads[i])
        if bad.any():
            return told(name, got[i], want[i], bad)
    return ""


def _explained(format: Any, graph: FuzzGraph, got: Sequence[Array], want: Sequence[Array], backend: str) -> Verdict:
    """What explains the difference: rounding, the runtime's own contradiction, the format's reference, or a rule."""
    plain = attempt(format.node_by_node, graph)
    single = None if isinstance(plain, Exception) else [plain[name] for name in graph.outputs]
    why = _told(graph, got, want)
    if single is not None:
        for draws in (FIRST_DRAWS, DRAWS):
            spreads = _spreads(format, graph, want, single, draws)
            if spreads is None:
                return Verdict(EXPLAINED, "rounding decides a shape")
            why = _told(graph, got, want, spreads)
            if not why:
                return Verdict(EXPLAINED, "rounding: noise moves the result as far")
        if not _told(graph, got, single, spreads):
            return Verdict(EXPLAINED, f"{format.runtime} contradicts itself: its nodes one by one give our numbers")
    other = attempt(format.reference, graph)
    if not isinstance(other, Exception) and not _told(graph, got, other):
        return Verdict(EXPLAINED, f"{format.reference_name} gives our numbers")
    rule = explained(format.name, Difference(graph, got, want, plain if isinstance(plain, dict) else {}, backend))
    return Verdict(EXPLAINED, rule) if rule else Verdict(DIFFERENT, why)


def _spreads(
    format: Any, graph: FuzzGraph, want: Sequence[Array], single: Sequence[Array], draws: int
) -> list[Array] | None:
    """How far rounding may move each output; None if it decides a shape."""
    moved = [single]
    for seed in range(draws):
        values = attempt(format.node_by_node, graph, Noise(seed))
        if not isinstance(values, Exception):
            moved.append([values[name] for name in graph.outputs])
    spreads = [spread_of(want[i], [outputs[i] for outputs in moved]) for i in range(len(want))]
    found = [spread for spread in spreads if spread is not None]
    return found if len(found) == len(spreads) else None


def shrunk(
    format: Any, graph: FuzzGraph, verdict: Verdict, run: Callable[[FuzzGraph], Outcome], backend: str
) -> tuple[FuzzGraph, Verdict]:
    """The smallest graph found that ends in a finding of the same kind, and its verdict."""
    attempts, changed = 0, True
    while changed and attempts < MOST_ATTEMPTS:
        changed = False
        for candidate in smaller(graph):
            attempts += 1
            want = attempt(format.whole, candidate)
            if isinstance(want, Exception) and verdict.kind == DIFFERENT:
                continue
            found = judged(format, candidate, want, run(candidate), backend)
            if found.kind == verdict.kind:
                graph, verdict, changed = _with_values(candidate, want), found, True
                break
            if attempts >= MOST_ATTEMPTS:
                break
    return graph, verdict


def _with_values(graph: FuzzGraph, want: Any) -> FuzzGraph:
    if isinstance(want, Exception):
        return graph
    return replace(
        graph, values={**graph.values, **{n: np.asarray(a) for n, a in zip(graph.outputs, want, strict=True)}}
    )
