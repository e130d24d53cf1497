"""Logs: lines in and out, lines of other places, damaged lines."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from webinfer.tune.log import About, Log, Verdict
from webinfer.tune.search import Winner
from webinfer.version import VERSION

HERE = About("nvidia h200", "Chrome 156", "0.1.0")
WINNER = Winner("conv2d x(1, 8, 8, 8)", "tiled", 0.5, 1.0, "plain")
VERDICT = Verdict("ab12", "model", 2.0, 1.5, 3, True)


def filled() -> Log:
    return Log(HERE, {WINNER.key: WINNER}, {VERDICT.plan: VERDICT})


def test_the_engines_version_is_the_projects() -> None:
    with (Path(__file__).parents[4] / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["version"] == VERSION


def test_what_is_written_is_read() -> None:
    log = Log(HERE)
    assert log.read(filled().text()) == []
    assert (log.winners, log.verdicts, log.skipped) == ({WINNER.key: WINNER}, {VERDICT.plan: VERDICT}, 0)


def test_every_line_names_adapter_browser_and_engine() -> None:
    for line in filled().text().splitlines():
        row = json.loads(line)
        assert (row["adapter"], row["browser"], row["engine"]) == ("nvidia h200", "Chrome 156", "0.1.0")


@pytest.mark.parametrize("other", [("apple m3", "Chrome 156", "0.1.0"), ("nvidia h200", "Chrome 156", "0.2.0")])
def test_lines_of_other_places_are_counted_and_skipped(other: tuple[str, str, str]) -> None:
    log = Log(About(*other))
    assert log.read(filled().text()) == []
    assert (log.winners, log.verdicts, log.skipped) == ({}, {}, 2)


@pytest.mark.parametrize("line", ["{", "5", "[]", '{"adapter": "nvidia h200"}', "[" * 100_000, '"text"', "\x00\xff"])
def test_damaged_lines_are_named_and_cost_no_other_line(line: str) -> None:
    log = Log(HERE)
    first, second = filled().text().splitlines()
    problems = log.read("\n".join([first, line, second]))
    assert len(log.winners) == len(log.verdicts) == 1
    assert [p.startswith("line 2: ") for p in problems] == [True]


def test_a_line_cut_off_in_the_middle_is_damage() -> None:
    text = filled().text()
    for end in range(1, len(text)):
        log = Log(HERE)
        log.read(text[:end])
        assert all(winner == WINNER for winner in log.winners.values())


def test_a_later_line_replaces_an_earlier_one() -> None:
    log = filled()
    log.read(Log(HERE, {WINNER.key: Winner(WINNER.key, "plain", 1.0, 1.0, "plain")}).text())
    assert log.winners[WINNER.key].choice == "plain"
