"""The figures of visits: every page is visited, and the documentation shows the newest record of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from build_scripts.bench import page_visits, records
from build_scripts.bench.page_visits import Visit, figures, median, paths, record, recorded
from build_scripts.bench.records import markdown_table
from server.settings import Settings
from server.studio import read_studio

FOUND = {"/": {"1280 px": Visit(248.4, 0.0, 22, 416_507), "360 px": Visit(300.6, 0.0124, 21, 400_000)}}
ROW = "| `/` | 248 ms | 301 ms | 0.000 | 0.012 | 22 | 0.42 |  |"


def test_every_page_is_visited() -> None:
    studio, found = read_studio(Settings().tables), paths()
    assert {page.address for page in (*studio.pages, *studio.demos)} <= set(found)
    assert len(found) == len(set(found))


def test_the_table_has_a_row_for_each_page() -> None:
    assert markdown_table(figures(FOUND)).splitlines()[2:] == [ROW]


def test_the_table_says_what_was_missing() -> None:
    seen = Visit(248.4, 0.0, 22, 416_507, "Could not download the model: posenet")
    assert figures({"/people": {"1280 px": seen, "360 px": seen}}).rows[0][-1] == seen.missing


def test_a_visit_that_failed_does_not_count_beside_whole_ones() -> None:
    whole, failed = Visit(200, 0.0, 20, 4000), Visit(900, 0.1, 90, 100, "no result after 120 s")
    assert median([failed, whole]) == whole
    assert median([failed, failed]) == failed


def test_a_record_is_what_the_documentation_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in (page_visits, records):
        monkeypatch.setattr(module, "RECORDS", tmp_path)
    records.write(record(FOUND, 3, "en-US"))
    text = recorded()
    assert "medians of 3 first visit(s) of each page" in text
    assert text.splitlines()[-1] == ROW
