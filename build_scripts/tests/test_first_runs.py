"""The report of first runs in fresh browsers."""

import json
from pathlib import Path
from typing import Any

import pytest

from build_scripts.bench.first_runs import markdown, report_first
from build_scripts.errors import BuildError

ABOUT = {"browser": "Mozilla/5.0 HeadlessChrome/156.0", "date": "2026-01-02T03:04:05", "adapter": {"vendor": "a GPU"}}


def row(model: str, system: str, start: float, load: float, run: float, **more: Any) -> dict[str, Any]:
    times = {"start_ms": start, "load_ms": load, "first_run_ms": run}
    return {"model": model, "system": system, "backend": "webgpu", "threads": 0, **times, **more}


def rows() -> list[dict[str, Any]]:
    ours = [row("face", "webinfer", 100, load, 10) for load in (90, 190, 80)]
    theirs = [row("face", "litertjs", 100, 100, run) for run in (100, 300, 200)]
    return [*ours, *theirs, {"model": "pose", "system": "litertjs", "backend": "webgpu", "threads": 0, "error": "no"}]


def test_medians_are_of_all_browsers_and_ratios_with_and_without_the_start() -> None:
    text = markdown(rows(), ABOUT)
    assert "a GPU; HeadlessChrome/156.0." in text
    assert "| face | 200 (100 + 90 + 10) | 400 (100 + 100 + 200) |" in text
    assert "| LiteRT.js webgpu | 2.00 | 2.00 | 3.00 | 3.00 | 1 |" in text
    assert "| pose | – | – |" in text
    assert "over the player" not in text


def test_ratios_over_the_player_stand_beside_those_over_webinfer() -> None:
    text = markdown([*rows(), row("face", "player", 20, 50, 10)], ABOUT)
    assert "| over the player | in all | least | load + first run | least | models |" in text
    assert "| LiteRT.js webgpu | 5.00 | 5.00 | 5.00 | 5.00 | 1 |" in text


def test_lines_of_many_pages_make_one_report(tmp_path: Path) -> None:
    log = tmp_path / "lines.txt"
    lines = [["about", ABOUT], *(["first", one] for one in rows()), ["done", True]]
    log.write_text("a browser's own words\n" + "".join(f"{json.dumps(line)}\n" for line in lines))
    assert report_first(log, None) == 0
    assert len(json.loads((tmp_path / "lines.json").read_text())["rows"]) == 7
    assert "face" in (tmp_path / "lines.md").read_text()


def test_a_log_without_rows_says_so(tmp_path: Path) -> None:
    log = tmp_path / "lines.txt"
    log.write_text('["done", false]\n')
    with pytest.raises(BuildError, match="no page"):
        report_first(log, None)
