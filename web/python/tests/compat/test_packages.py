"""Unmodified packages from PyPI give the same answers on the stand-ins; those installed here are tried.

`judge packages` installs all of them in an environment of its own.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from importlib import metadata
from pathlib import Path

import pytest

from build_scripts.judge import packages
from build_scripts.paths import ROOT

CASES = packages.package_cases()


@pytest.mark.parametrize("name", CASES)
def test_a_package_gives_the_answers_of_its_library(name: str) -> None:
    case = CASES[name]
    for requirement in (*case.requirements, case.library):
        wanted = requirement.partition("==")[0]
        if importlib.util.find_spec(wanted) is None:
            try:
                metadata.version(wanted)
            except metadata.PackageNotFoundError:
                pytest.skip(f"{wanted} is not installed")
    row = packages.judged(Path(sys.executable), case)
    assert row.verdict == "equal", row.said


def test_answers_are_compared_number_by_number() -> None:
    answer = [["text", 0.5, 3], [0.25, math.nan]]
    assert packages.farthest(answer, answer) == 0
    assert packages.values_in(answer) == 5
    assert packages.farthest([["text", 0.5, 3], [0.26, math.nan]], answer) == pytest.approx(0.01)
    for other in (
        [["else", 0.5, 3], [0.25, math.nan]],
        [["text", 0.5, 4], [0.25, math.nan]],
        [["text", 0.5, 3], [0.25]],
        [["text", 0.5, 3.0], [0.25, math.nan]],
        [["text", 0.5, 3], [math.inf, math.nan]],
        "text",
    ):
        assert packages.farthest(other, answer) == math.inf


def test_a_package_that_differs_or_fails_is_not_equal() -> None:
    """The harness itself: both sides run, and what one says of itself reaches the row."""
    which = "import onnxruntime\nanswer = onnxruntime.InferenceSession.__module__.partition('.')[0]"
    for code, verdict, said in (
        (which, "different", "ours webinfer, onnxruntime's onnxruntime"),
        ("answer = 1", "equal", ""),
        ("raise ValueError('no such model')", "failed", "no such model"),
        ("answer = [[], []]", "failed", "nothing was compared"),
    ):
        row = packages.judged(Path(sys.executable), packages.PackageCase("one", "one", "1", "", code))
        assert row.verdict == verdict
        assert said in row.said


def test_the_documentation_lists_the_packages_that_are_tried() -> None:
    page = (ROOT / "web" / "docs" / "compat.md").read_text()
    missing = [case.package for case in CASES.values() if f"| {case.package} {case.version} |" not in page]
    assert not missing
