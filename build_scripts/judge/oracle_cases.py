"""WebNN cases: read, run in one graph per file, compared by distance in units of the last place."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from build_scripts.judge.together import Array, Problem, outcomes, verdict_of
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError, WebinferError
from webinfer.graph.ir import Value
from webinfer.importers.webnn import read_graph

# Cases whose expected numbers contradict the operator's own formula in exact arithmetic.
_NO_ROOT = "the expected numbers lack the square root where a window holds two elements"
DISPUTED = {
    "l2Pool2d float32 4D tensor options.roundingType=ceil": _NO_ROOT,
    "l2Pool2d float32 4D tensor options.outputSizes ignores options.roundingType=floor": _NO_ROOT,
    "batchNormalization options.axis=0 + gelu": "the expected -0.03595118 is 34 ULP from the exact "
    "-0.03595130, 24 are allowed",
}


@dataclass(frozen=True)
class Case:
    """One case: a graph, its inputs, what must come out and how near."""

    file: str
    name: str
    graph: Mapping[str, Any]
    tolerance: Mapping[str, Any]

    @property
    def operator(self) -> str:
        """The only operator's name, or "subgraph"."""
        names = {operator["name"] for operator in self.graph["operators"]}
        return names.pop() if len(names) == 1 else "subgraph"


def load_cases(folder: Path, operator: str | None = None) -> list[Case]:
    """All cases of the folder's files, in order."""
    cases = []
    for path in sorted(folder.glob("*.json")):
        rows = json.loads(path.read_text())
        cases += [Case(path.stem, raw["name"], decoded(raw["graph"]), raw["tolerance"]) for raw in rows]
    return [case for case in cases if operator in (None, case.operator)]


def decoded(node: Any) -> Any:
    """JSON with its big integers and special numbers made plain."""
    if isinstance(node, dict):
        if set(node) == {"$bigint"}:
            return int(node["$bigint"])
        if set(node) == {"$num"}:
            return float(node["$num"].replace("Infinity", "inf"))
        return {key: decoded(value) for key, value in node.items()}
    return [decoded(item) for item in node] if isinstance(node, list) else node


async def judge(host: Any, backend: str, cases: Sequence[Case]) -> list[dict[str, Any]]:
    """A row for each case: right, unsupported, disputed or wrong, and why."""
    rows: list[dict[str, Any]] = []
    ready: list[Case] = []
    for case in cases:
        try:
            read_graph(case.graph, case.name)
            ready.append(case)
        except UnsupportedOpError as error:
            rows.append(_row(backend, case, "unsupported", "; ".join(error.problems)))
        except WebinferError as error:
            rows.append(_row(backend, case, "wrong", str(error)))
    for case, outcome in zip(ready, await outcomes(host, backend, [_problem(case) for case in ready]), strict=True):
        if isinstance(outcome, Exception):
            rows.append(_row(backend, case, *verdict_of(outcome)))
        else:
            why = "; ".join(filter(None, (_difference(case, name, got) for name, got in outcome.items())))
            verdict = "right" if not why else "disputed" if case.name in DISPUTED else "wrong"
            rows.append(_row(backend, case, verdict, DISPUTED.get(case.name, why) if why else ""))
    return rows


def _row(backend: str, case: Case, verdict: str, why: str) -> dict[str, Any]:
    return {"backend": backend, "operator": case.operator, "case": case.name, "verdict": verdict, "why": why}


def _problem(case: Case) -> Problem:
    def array(value: Value) -> Array:
        return array_of(case.graph["inputs"][value.name]["data"], value.type.shape, value.type.dtype.value)

    return Problem(lambda: read_graph(case.graph, case.name), array, list(case.graph["expectedOutputs"]))


def array_of(numbers: Any, shape: Sequence[int], dtype: str) -> Array:
    """The numbers of a case as an array; one number fills any shape."""
    numbers = numbers if isinstance(numbers, list) else [numbers]
    with np.errstate(over="ignore"):
        array = np.array(numbers, dtype=None if dtype.startswith("float") else object).astype(dtype)
    return np.ascontiguousarray(np.broadcast_to(array, math.prod(shape)) if array.size == 1 else array).reshape(shape)


def _difference(case: Case, name: str, got: Array) -> str:
    expected = case.graph["expectedOutputs"][name]
    descriptor = expected["descriptor"]
    kind = DType(descriptor["dataType"])  # of which NumPy may know nothing: numbers are compared
    want = array_of(expected["data"], descriptor["shape"], kind.inner.value)
    got = got.astype(kind.inner.value) if kind.inner is not kind else got
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{name} is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}"
    metric, limit = tolerance(case)
    distance = ulps(got, want) if metric == "ULP" else np.abs(got.astype(np.float64) - want.astype(np.float64))
    same = (got == want) | ((got != got) & (want != want))
    bad = ~same & ~(distance <= limit)
    if not bad.any():
        return ""
    found, needed, far = got.reshape(-1), want.reshape(-1), distance.reshape(-1).astype(np.float64)
    at = int(np.argmax(np.where(bad.reshape(-1), np.nan_to_num(far, nan=np.inf), -1)))
    return (
        f"{name}: {int(bad.sum())} of {got.size} wrong; at {at} {found[at]!r}, must be {needed[at]!r}, "
        f"{far[at]} {metric}, allowed {limit}"
    )


def ulps(a: Array, b: Array) -> Array:
    """How many representable numbers lie between; for integers the plain distance."""
    if a.dtype.kind != "f":
        return np.asarray(np.abs(a.astype(object) - b.astype(object)), np.float64)
    integer, magnitude = {2: ("int16", 0x7FFF), 4: ("int32", 0x7FFFFFFF)}[a.dtype.itemsize]
    ordered = []
    for x in (a, b):
        bits = x.view(integer).astype(np.int64)
        ordered.append(np.where(bits < 0, -(bits & magnitude), bits))
    distance = np.abs(ordered[0] - ordered[1]).astype(np.float64)
    return np.where(np.isnan(a) != np.isnan(b), np.inf, distance)


def tolerance(case: Case) -> tuple[str, float]:
    """(metric, limit). Where the suite computes the limit, it is the sum over the operators."""
    fixed = case.tolerance
    if "dynamic" not in fixed:
        return fixed["metricType"], float(fixed["value"])
    shapes = {name: operand["descriptor"]["shape"] for name, operand in case.graph["inputs"].items()}
    return "ULP", float(sum(_operator_tolerance(operator, shapes) for operator in case.graph["operators"]))


def _operator_tolerance(operator: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]) -> int:
    """Two roundings for each factor of a sum; softmax: three for each element, and three."""
    arguments = {key: value for part in operator["arguments"] if part for key, value in part.items()}
    if operator["name"] in ("conv2d", "convTranspose2d", "gemm"):
        factors = shapes.get(str(arguments.get("filter", arguments.get("b"))), (3, 3))
        return 2 * math.prod(factors[1:]) if len(factors) == 4 else 2 * factors[0]
    return {"batchNormalization": 6, "dequantizeLinear": 1, "quantizeLinear": 1, "softmax": 18}.get(operator["name"], 0)
