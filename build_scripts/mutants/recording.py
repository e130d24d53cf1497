"""A pytest plugin: which test runs which line of the engine and the server, how long each takes, and how it ends.

    WEBINFER_RECORDING=build/mutants/lines/0 python -m pytest -p build_scripts.mutants.recording @tests

writes `0.db`, coverage's data with a context per test, and `0.json`, outcomes and seconds.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

TARGET = Path(os.environ.get("WEBINFER_RECORDING", "recording")).resolve()
COVERAGE = coverage.Coverage(
    data_file=str(TARGET.with_suffix(".db")),
    include=["web/python/webinfer/*", "server/*.py"],
    config_file=False,
    messages=False,
)
COVERAGE.set_option("run:relative_files", True)
OUTCOMES: dict[str, tuple[str, float]] = {}


def pytest_configure() -> None:
    """Before the engine is imported."""
    COVERAGE.start()


@pytest.hookimpl(wrapper=True)  # type: ignore[untyped-decorator]
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Lines belong to the test that runs them, its set-up included."""
    COVERAGE.switch_context(item.nodeid)
    result = yield
    COVERAGE.switch_context("")
    return result


def pytest_runtest_logreport(report: Any) -> None:
    """Adds up a test's phases; the worst outcome counts."""
    outcome, seconds = OUTCOMES.get(report.nodeid, ("passed", 0.0))
    OUTCOMES[report.nodeid] = (outcome if report.passed else report.outcome, round(seconds + report.duration, 4))


def pytest_sessionfinish() -> None:
    """Writes both files."""
    COVERAGE.stop()
    COVERAGE.save()
    TARGET.with_suffix(".json").write_text(json.dumps(OUTCOMES))
