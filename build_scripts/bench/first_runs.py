"""Time to first inference in browsers in which nothing ran before: a fresh one for each system, model and round."""

import argparse
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from build_scripts.bench.columns import AUTO, PLAYER, Entry
from build_scripts.bench.page_reports import posted, said
from build_scripts.bench.report import OURS, Row, browser_of, columns_of, geometric_mean, machine_of, title
from build_scripts.errors import BuildError
from build_scripts.files import write_json
from build_scripts.paths import BENCH_OUTPUT

SILENCE_S = 120  # longest wait for the next report of a page
PARTS = ("start_ms", "load_ms", "first_run_ms")


def measure_first(options: argparse.Namespace, entries: Sequence[Entry]) -> int:
    """Writes JSON and table; 0 if every browser came to its end."""
    from build_scripts.bench.measure import prepared
    from build_scripts.bench.server import serving

    site = BENCH_OUTPUT / "site"
    models = [model.name for model in prepared(options, entries, site)]
    entries = [entry for entry in entries if entry.system != "native"]
    lines: list[list[Any]] = []
    with serving(site, None) as (address, reports):
        for turn in range(options.rounds):
            for model in models:
                for entry in entries:
                    page = f"{address}/first.html?system={entry.system}&model={model}&threads={entry.threads}"
                    lines += said(page, reports, SILENCE_S, webgpu=options.backend == "webgpu")
            print(f"  round {turn + 1} of {options.rounds} done")
    return _write(lines, options.json or BENCH_OUTPUT / "first.json", len(models) * len(entries) * options.rounds)


def report_first(log: Path, target: Path | None) -> int:
    """JSON and table of the lines that first.html posted elsewhere, opened again and again."""
    lines = posted(log.read_text())
    return _write(lines, target or log.with_suffix(".json"), sum(key == "first" for key, _ in lines))


def _write(lines: Sequence[Sequence[Any]], target: Path, wanted: int) -> int:
    rows: list[Row] = [value for key, value in lines if key == "first"]
    if not rows:
        raise BuildError("no page has said anything")
    about: dict[str, Any] = next((value for key, value in lines if key == "about"), {})
    write_json(target, {"about": about, "rows": rows})
    text = markdown(rows, about)
    target.with_suffix(".md").write_text(text)
    print(f"{text}\n{target}, {target.with_suffix('.md').name}")
    return 0 if len(rows) == wanted and all(value for key, value in lines if key == "done") else 1


def markdown(rows: Sequence[Row], about: dict[str, Any]) -> str:
    """Medians of each model and column, and the others' over webinfer's and over the player's: in all, and without the
    runtime's start.
    """
    columns, models = columns_of(rows), list(dict.fromkeys(row["model"] for row in rows))
    text = [f"# First run in a fresh browser, {about.get('date', '')}", ""]
    text += [
        f"{machine_of(about)}; {browser_of(about)}.",
        "",
        "Medians, ms (start of the runtime + load + first run).",
        "",
    ]
    text += [f"| model | {' | '.join(map(title, columns))} |", f"|---|{'--:|' * len(columns)}"]
    for model in models:
        text.append(f"| {model} | {' | '.join(_cell(_of(rows, model, column)) for column in columns)} |")
    for base, words in ((OURS, "over webinfer"), (AUTO, "over webinfer's auto"), (PLAYER, "over the player")):
        found = [line for column in columns if column[0] != base and (line := _ratios(rows, models, column, base))]
        if found:
            text += [
                "",
                f"| {words} | in all | least | load + first run | least | models |",
                f"|---|{'--:|' * 5}",
                *found,
            ]
    return "\n".join(text) + "\n"


def _ratios(rows: Sequence[Row], models: Sequence[str], column: tuple[str, str, int], base: str) -> str:
    """How many times longer a column takes than the system `base`, of the models that both ran; empty without any."""
    pairs = [(_of(rows, model, column), _of(rows, model, (base, *column[1:]))) for model in models]
    full = [(theirs, ours) for theirs, ours in pairs if theirs and ours]
    if not full:
        return ""
    ratios = [[_median(t, parts) / _median(o, parts) for t, o in full] for parts in (PARTS, PARTS[1:])]
    figures = " | ".join(f"{geometric_mean(r):.2f} | {min(r):.2f}" for r in ratios)
    return f"| {title(column)} | {figures} | {len(full)} |"


def _of(rows: Iterable[Row], model: str, column: tuple[str, str, int]) -> list[Row]:
    """The rows of a model and a column that ran."""
    return [
        row
        for row in rows
        if row["model"] == model and (row["system"], row["backend"], row["threads"]) == column and not row.get("error")
    ]


def _median(rows: Sequence[Row], parts: Sequence[str]) -> float:
    return float(statistics.median(sum(row[part] for part in parts) for row in rows))


def _cell(rows: Sequence[Row]) -> str:
    if not rows:
        return "–"
    parts = " + ".join(f"{_median(rows, [part]):.0f}" for part in PARTS)
    return f"{_median(rows, PARTS):.0f} ({parts})"
