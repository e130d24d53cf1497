"""Ring 1: every case of every operator on every backend, against the NumPy reference."""

from __future__ import annotations

import importlib
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

import pytest
from tests.ops.case_graphs import Outcome, Problem, difference, outcomes, problem, run
from tests.ops.targets import BUILDS, TARGETS, Target

from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Case
from webinfer.host.native import NativeHost
from webinfer.ops import OPS


@lru_cache(maxsize=1)
def host() -> NativeHost:
    return NativeHost()


def _module(target: Target) -> tuple[ModuleType, Any]:
    backend = importlib.import_module(f"webinfer.backends.{target.backend}")
    lowerings = importlib.import_module(f"webinfer.backends.{target.backend}.lowerings")
    return backend, lowerings


@cache
def _results(target: Target, name: str) -> dict[str, tuple[Problem, Outcome]]:
    """All cases of one operator with their outcomes, by label: one build instead of dozens."""
    op = OPS[name]
    problems = [problem(op, case) for case in op.cases]
    found = run(outcomes(_module(target)[0], host(), problems, dict(target.options)))
    return {p.case.label: (p, outcome) for p, outcome in zip(problems, found, strict=True)}


@pytest.mark.parametrize(
    ("name", "case"),
    [pytest.param(op.name, case, id=f"{op.name}-{case.label}") for op in OPS.values() for case in op.cases],
)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_matches_reference(target: Target, name: str, case: Case) -> None:
    target.demand()
    op, (_, lowerings) = OPS[name], _module(target)
    if op in lowerings.UNSUPPORTED:
        pytest.skip(f"{target.backend} lacks {name}: {lowerings.UNSUPPORTED[op]}")
    p, outcome = _results(target, name)[case.label]
    if isinstance(outcome, UnsupportedOpError):
        pytest.skip(f"{target.backend} refuses this case: {outcome.problems[0]}")
    for got, want in zip(outcome, p.want, strict=True):
        wrong = difference(got, want, p)
        assert not wrong, f"{name}, {case.label}: {wrong}"


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("build", ["scalar", "simd128", "relaxed", "simd128-threads", "relaxed-threads"])
def test_nothing_beside_the_results_is_touched(build: str, name: str) -> None:
    """Where tensors lie apart between guarded gaps, the results are right too."""
    next(target for target in BUILDS if build.startswith(str(dict(target.options)["isa"]))).demand()
    from tests.wasm import guards

    op = OPS[name]
    problems = [problem(op, case) for case in op.cases]
    for p, outcome in zip(problems, run(outcomes(guards, guards.BuildHost(build), problems, {})), strict=True):
        found = [] if isinstance(outcome, UnsupportedOpError) else zip(outcome, p.want, strict=True)
        for wrong in (difference(got, want, p) for got, want in found):
            assert not wrong, f"{p.node.label}: {wrong}"


def test_cases_have_distinct_labels() -> None:
    for op in OPS.values():
        labels = [case.label for case in op.cases]
        assert labels, f"{op.name} has no case"
        assert len(set(labels)) == len(labels), f"{op.name}: two cases share a label"
