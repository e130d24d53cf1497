"""The oracle measures distances as the suite does, and no backend gets a case wrong."""

import asyncio
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from build_scripts.judge import oracle
from build_scripts.judge.oracle_cases import Case, array_of, decoded, judge, tolerance, ulps


def _case(data: list[float], expected: list[float], ulp: float = 0) -> Case:
    operand = {"descriptor": {"shape": [len(data)], "dataType": "float32"}}
    graph = {
        "inputs": {"x": {**operand, "data": data}},
        "operators": [{"name": "abs", "arguments": [{"input": "x"}], "outputs": "y"}],
        "expectedOutputs": {"y": {**operand, "data": expected}},
    }
    return Case("made", "abs of two", graph, {"metricType": "ULP", "value": ulp})


def _verdict(case: Case) -> dict[str, Any]:
    from webinfer.host.native import NativeHost

    (row,) = asyncio.run(judge(NativeHost(), "reference", [case]))
    return row


def test_a_right_result_is_right() -> None:
    assert _verdict(_case([-1.5, 2.0], [1.5, 2.0]))["verdict"] == "right"


def test_a_result_beyond_the_tolerance_is_wrong_and_says_by_how_much() -> None:
    near = float(np.nextafter(np.float32(1.5), np.float32(2), dtype=np.float32))
    assert _verdict(_case([-1.5, 2.0], [near, 2.0], ulp=1))["verdict"] == "right"
    row = _verdict(_case([-1.5, 2.0], [near, 2.0]))
    assert row["verdict"] == "wrong"
    assert "1.0 ULP, allowed 0" in row["why"]


def test_an_unknown_operator_is_unsupported_by_name() -> None:
    case = _case([1.0], [1.0])
    strange = {**case.graph, "operators": [{"name": "blend", "arguments": [{"input": "x"}], "outputs": "y"}]}
    row = _verdict(Case("made", "strange", strange, case.tolerance))
    assert (row["verdict"], row["why"]) == ("unsupported", "operator blend")


@pytest.mark.parametrize(
    ("a", "b", "distance"), [(1.0, 1.0, 0), (0.0, -0.0, 0), (1e-45, -1e-45, 2), (1.0, 1.0 + 2**-22, 2)]
)
def test_ulps_count_the_numbers_between(a: float, b: float, distance: int) -> None:
    assert ulps(np.array([a], np.float32), np.array([b], np.float32))[0] == distance


def test_nan_is_infinitely_far_from_a_number() -> None:
    assert np.isinf(ulps(np.array([np.nan], np.float16), np.array([1.0], np.float16))[0])


def test_special_numbers_of_the_case_files() -> None:
    got = decoded([{"$bigint": "9007199254740993"}, {"$num": "-Infinity"}, {"$num": "-0"}])
    assert got[0] == 9007199254740993
    assert got[1] == -np.inf
    assert np.signbit(got[2])
    assert array_of([{"a": 1}.get("a")], [2, 2], "int64").tolist() == [[1, 1], [1, 1]]


def test_computed_tolerance_adds_up_over_the_operators() -> None:
    case = _case([1.0], [1.0])
    operators = [
        {"name": "conv2d", "arguments": [{"input": "x"}, {"filter": "w"}], "outputs": "c"},
        {"name": "softmax", "arguments": [{"input": "c"}], "outputs": "y"},
    ]
    inputs = {**case.graph["inputs"], "w": {"descriptor": {"shape": [1, 1, 3, 3], "dataType": "float32"}}}
    assert tolerance(Case("made", "n", {**case.graph, "inputs": inputs, "operators": operators}, {"dynamic": "f"})) == (
        "ULP",
        36.0,
    )


@pytest.mark.parametrize("backend", oracle.backends())
def test_no_case_is_wrong(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not oracle.CASES.is_dir():
        pytest.skip(f"the WebNN cases are not here: {oracle.CASES}")
    status = oracle.run(["--backend", backend, "--json", str(tmp_path / "rows.json")])
    said = capsys.readouterr().out
    if "cannot run here" in said and os.environ.get("WEBINFER_CI") != "1":
        pytest.skip(said.splitlines()[0])
    assert status == 0, "\n".join(line for line in said.splitlines() if ": wrong: " in line or "cannot run" in line)
