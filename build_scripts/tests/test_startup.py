"""`measure startup`: what a visit's marks become, and what is printed and written of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from build_scripts.bench import startup
from build_scripts.errors import BuildError

MARKS = [["webinfer begin", 20.0], ["webinfer snapshot", 50.0], ["webinfer runtime", 90.0], ["else", 95.0]]
FIRST = {"page, worker": 100.0, "runtime compiled": 400.0, "snapshot read": 300.0, startup.TOTAL: 1000.0}
LATER = {"page, worker": 90.0, "runtime compiled": 200.0, "snapshot read": 250.0, startup.TOTAL: 500.0}


class Page:
    """A page of a browser whose document says `data` after some looks."""

    def __init__(self, data: dict[str, str], looks: int = 3) -> None:
        self.data, self.looks, self.waited, self.url = data, looks, 0.0, "http://here/"

    def evaluate(self, script: str) -> Any:
        if script == "performance.timeOrigin":
            return 1000.0
        self.looks -= 1
        return {} if self.looks > 0 else self.data

    def wait_for_timeout(self, ms: float) -> None:
        self.waited += ms


def test_marks_of_the_worker_become_times_of_the_page() -> None:
    page = Page({"webinferResult": json.dumps({"first_ms": 321.5})})
    times = startup.times_of(page, lambda page: {"origin": 1030.0, "marks": MARKS})
    assert times == {"page, worker": 50.0, "snapshot read": 80.0, "runtime compiled": 120.0, startup.TOTAL: 321.5}
    assert page.waited == 2 * 20


def test_a_page_that_reports_an_error_ends_the_measurement() -> None:
    with pytest.raises(BuildError, match="no room"):
        startup.times_of(Page({"webinferError": "no room"}))


def test_phases_take_what_lies_between_them_in_their_own_order() -> None:
    assert startup.durations(FIRST) == {
        "page, worker": 100.0, "snapshot read": 200.0, "runtime compiled": 100.0, startup.TOTAL: 600.0,
    }  # fmt: skip


def test_the_summary_holds_medians_and_every_visit() -> None:
    slow = {**LATER, "runtime compiled": 240.0, startup.TOTAL: 900.0}
    summary = startup.summary([LATER, slow, LATER])
    assert summary["total"] == {"median": 500.0, "min": 500.0, "max": 900.0}
    assert summary["phases"][1] == {"phase": "runtime compiled", "end": 200.0, "took": 110.0}
    assert [row["phase"] for row in summary["phases"]] == list(LATER)
    assert len(summary["visits"]) == 3


def test_the_verb_prints_a_table_and_writes_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    def measure(*arguments: Any) -> Any:
        asked.append(arguments)
        return [FIRST], [LATER]

    monkeypatch.setattr(startup, "set_up", lambda: None)
    monkeypatch.setattr(startup, "measure", measure)
    file = tmp_path / "startup.json"
    assert startup.run(["--visits", "1", "--backend", "auto", "--json", str(file)]) == 0
    assert asked == [(1, "/face-detection?backend=auto")]
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if line.startswith("snapshot read")).split() == [
        "snapshot", "read", "300", "(", "200)", "250", "(", "50)",
    ]  # fmt: skip
    written = json.loads(file.read_text())
    assert written["unit"] == "ms"
    assert written["first"]["visits"] == [FIRST]
    assert written["later"]["total"]["median"] == 500.0
