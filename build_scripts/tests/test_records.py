"""Measurements on record: what a report becomes, and that the page of results is the records'."""

from pathlib import Path

import pytest

from build_scripts.bench import records
from build_scripts.errors import BuildError

REPORT = """# A report, 2026-01-02

A machine.
Two lines of it.

## Medians, ms

| model | ours | theirs |
|---|--:|--:|
| a | 1.5 | – |
| b | 2 (1) | slow |

More about it.
"""


def test_a_report_becomes_a_record_and_the_same_report_again() -> None:
    (record,) = records.records_of(REPORT)
    assert (record.title, record.date) == ("A report, 2026-01-02", "2026-01-02")
    assert record.notes == ["A machine. Two lines of it.", "Medians, ms: More about it."]
    (table,) = record.tables
    assert (table.title, table.columns) == ("Medians, ms", ["model", "ours", "theirs"])
    assert table.rows == [["a", "1.5", "–"], ["b", "2 (1)", "slow"]]
    assert "| --- | --: | --- |" in records.markdown(record)
    (again,) = records.records_of(records.markdown(record))
    assert again.tables == record.tables


def test_a_record_is_written_once_and_one_of_the_same_name_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "RECORDS", tmp_path / "records")
    (record,) = records.records_of(REPORT)
    first = records.write(record)
    assert first.name == "2026-01-02-a-report.json"
    assert records.write(record) == first
    assert records.read(first.stem) == record
    record.notes.append("one thing more")
    assert records.write(record).name == "2026-01-02-a-report-2.json"
    with pytest.raises(BuildError, match="no record 'nothing'"):
        records.read("nothing")


def test_a_report_without_a_date_needs_one() -> None:
    with pytest.raises(BuildError, match="has no date"):
        list(records.records_of("# Speed\n\n| a |\n|---|\n"))
    (record,) = records.records_of("# Speed\n\n| a |\n|---|\n", "2026-01-03")
    assert record.date == "2026-01-03"


def test_the_page_of_results_is_what_the_records_say() -> None:
    assert records.PAGE.read_text() == records.page()
    for path in records.RECORDS.glob("*.json"):
        record = records.read(path.stem)
        assert path.stem.startswith(record.date)
        assert all(len(row) == len(table.columns) for table in record.tables for row in table.rows), path.name
