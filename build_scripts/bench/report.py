"""What the page reported, as JSON, as a Markdown table and as a chart."""

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from build_scripts.bench.chart import chart
from build_scripts.errors import BuildError
from build_scripts.files import write_json

OURS = "webinfer"
FIELDS = ("median_ms", "min_ms", "first_ms", "bytes", "max_abs_diff")  # null where a row has an error
TITLES = {"player": "player", "litertjs": "LiteRT.js", "ortweb": "ORT-web", "tfjs": "TF.js", "native": "native LiteRT"}
Row = dict[str, Any]
Column = tuple[str, str, int]  # system, backend, threads


@dataclass
class Collected:
    """Everything that the page has said so far."""

    machine: str
    date: str
    settings: dict[str, Any]
    browser: str = ""
    peak: float = 0.0
    ended: bool = False
    failure: str = ""
    doing: dict[str, Any] = field(default_factory=dict)  # the model and the column that the page is busy with
    rows: list[Row] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    def take(self, key: str, value: Any) -> None:
        """One report of the page: [key, value]."""
        if key == "row":
            self.rows.append({**dict.fromkeys(FIELDS), **value})
            print(f"  {line_of(self.rows[-1])}")
        elif key == "doing":
            self.doing = value
        elif key == "wasm_peak_gflops":
            self.peak = max(self.peak, float(value))
        elif key == "about":
            self.about = value
        elif key == "model":
            self.models[value["name"]] = value
        elif key == "failed":
            self.failure = str(value)
        elif key == "done":
            self.ended = True

    def hear(self, kind: str, text: str) -> None:
        """A message of the browser's console."""
        if kind in ("error", "warning") and text not in self.complaints:
            self.complaints.append(text)


def line_of(row: Row) -> str:
    """One row for the terminal."""
    name = f"{row['model']:30} {title((row['system'], row['backend'], row['threads'])):26}"
    if row.get("error"):
        return f"{name} – {' '.join(row['error'].split())[:110]}"
    difference = "" if row["max_abs_diff"] is None else f"  differs by {row['max_abs_diff']:.2g}"
    return f"{name} {row['median_ms']:9.3f} ms  min {row['min_ms']:9.3f}  first {row['first_ms']:7.0f}{difference}"


def title(column: Column) -> str:
    """A column's heading."""
    system, backend, threads = column
    return " ".join([TITLES.get(system, system), backend, *([f"{threads} thr."] if threads else [])])


def columns_of(rows: Iterable[Row]) -> list[Column]:
    """The columns in the order of their first appearance."""
    return list(dict.fromkeys((row["system"], row["backend"], row["threads"]) for row in rows))


def complete(collected: Collected) -> dict[str, Any]:
    """The report as JSON has it."""
    for row in collected.rows:
        flops = collected.models.get(row["model"], {}).get("flops")
        if flops and row["median_ms"]:
            row["gflops"] = flops / row["median_ms"] / 1e6
            peak = collected.peak * max(row["threads"], 1)
            if peak and row["backend"] == "wasm" and row["system"] != "native":
                row["of_peak"] = row["gflops"] / peak
    return {
        "machine": collected.machine,
        "browser": collected.browser,
        "date": collected.date,
        "wasm_peak_gflops": round(collected.peak, 2),
        "settings": collected.settings,
        "about": collected.about,
        "models": list(collected.models.values()),
        "summary": summary(collected.rows, collected.models),
        "rows": collected.rows,
        "complaints": collected.complaints,
    }


def summary(rows: list[Row], models: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Each rival's time over webinfer's, same thread count: geometric means, the least, and every model's."""
    found = []
    kinds = {
        kind: [name for name, model in models.items() if model["quantised"] is quantised]
        for kind, quantised in (("float", False), ("quantised", True))
    }
    if all(kinds.values()):
        kinds["all"] = list(models)
    for kind, names in kinds.items():
        for system, backend, threads in columns_of(rows):
            ours = (OURS, "webgpu" if backend == "webgpu" else "wasm", threads)
            medians = _ratios(rows, names, (system, backend, threads), ours, "median_ms")
            minima = _ratios(rows, names, (system, backend, threads), ours, "min_ms")
            first = _ratios(rows, names, (system, backend, threads), ours, "first_ms")
            if system != OURS and medians:
                row = {"models": kind, "system": system, "backend": backend, "threads": threads}
                means = {
                    "geometric_mean": geometric_mean(medians.values()),
                    "geometric_mean_of_minima": geometric_mean(minima.values()),
                    "geometric_mean_of_first": geometric_mean(first.values()),
                }
                found.append({**row, **means, "least": min(medians.values()), "ratios": medians})
    return found


def _ratios(rows: list[Row], names: list[str], rival: Column, ours: Column, key: str) -> dict[str, float]:
    """Per model that both ran: the rival's time over ours."""
    times = {(row["model"], row["system"], row["backend"], row["threads"]): row[key] for row in rows}
    pairs = {name: (times.get((name, *rival)), times.get((name, *ours))) for name in names}
    return {name: theirs / own for name, (theirs, own) in pairs.items() if theirs and own}


def geometric_mean(ratios: Collection[float]) -> float:
    """Of positive numbers."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def write_all(collected: Collected, target: Path) -> None:
    """Writes TARGET (JSON) and, beside it, the table (.md) and the chart (.svg); prints the summary."""
    report = complete(collected)
    write_json(target, report)
    text = markdown(report)
    target.with_suffix(".md").write_text(text)
    target.with_suffix(".svg").write_text(chart(report))
    print(text.split("## Medians")[0])
    print(f"{target}, {target.with_suffix('.md').name}, {target.with_suffix('.svg').name}")


def report_log(log: Path, target: Path | None) -> int:
    """JSON, table and chart of the lines that a static site posted: 0 when the page came to its end."""
    collected = Collected("", "", {})
    for line in log.read_text().splitlines():
        if not line.startswith('["'):
            continue
        try:
            collected.take(*json.loads(line))
        except (ValueError, TypeError) as error:
            raise BuildError(f"{log}: not a report of the benchmark's page: {line[:80]} ({error})") from error
    collected.machine, collected.browser = machine_of(collected.about), browser_of(collected.about)
    collected.date = str(collected.about.get("date", ""))
    write_all(collected, target or log.with_suffix(".json"))
    return 0 if collected.ended and not collected.failure else 1


def machine_of(about: Mapping[str, Any]) -> str:
    """The GPU, as the browser names it."""
    return " ".join(str(v) for v in (about.get("adapter") or {}).values() if v) or "unknown machine"


def browser_of(about: Mapping[str, Any]) -> str:
    """The browser and its version."""
    agent = str(about.get("browser", "unknown browser"))
    named = re.search(r"\w*Chrome/[\d.]+", agent)
    return named[0] if named else agent


def markdown(report: dict[str, Any]) -> str:
    """The report for people."""
    rows: list[Row] = report["rows"]
    columns = columns_of(rows)
    models = list(dict.fromkeys(row["model"] for row in rows))
    by_place = {(r["model"], r["system"], r["backend"], r["threads"]): r for r in rows}
    text = [f"# Benchmark, {report['date']}", "", f"{report['machine']}; {report['browser']}.",
            f"One core in WebAssembly: {report['wasm_peak_gflops']:.1f} GFLOP/s at best.", "",
            "## Geometric mean of times over webinfer's (more than 1: webinfer is faster)", "",
            *_ratio_table(report["summary"]), "", "## Medians (and minima), ms", "",
            *_table(models, columns, by_place, _median_cell)]  # fmt: skip
    sections = (
        ("GFLOP/s reached (and its share of what the cores can do)", _gflops_cell),
        ("Outputs left on the GPU, ms until it has finished", lambda row: _number(row, "kept_median_ms")),
        ("Frames in flight, ms a frame with readback", lambda row: _number(row, "flight_ms")),
        ("Time to first inference, ms (start of the runtime + load + first run)", _first_cell),
        ("Kilobytes downloaded, gzip · peak megabytes of WebAssembly memory", _bytes_cell),
        ("Largest difference from the runtime of the model's format", _difference_cell),
    )
    for heading, cell in sections:
        if any(cell(row) != "–" for row in rows):
            text += ["", f"## {heading}", "", *_table(models, columns, by_place, cell)]
    return "\n".join([*text, *_failures(rows)]) + "\n"


def _failures(rows: list[Row]) -> list[str]:
    """What did not run: one line a model and reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.get("error"):
            reason = (row["model"], " ".join(row["error"].split()))
            reasons.setdefault(reason, []).append(title((row["system"], row["backend"], row["threads"])))
    lines = [f"- {model}: {', '.join(columns)}: {reason}" for (model, reason), columns in reasons.items()]
    return ["", "## What did not run", "", *lines] if lines else []


def _ratio_table(found: list[dict[str, Any]]) -> list[str]:
    lines = ["| models | rival | of medians | of minima | of first runs | least | models counted |",
             "|---|---|--:|--:|--:|--:|--:|"]  # fmt: skip
    for item in found:
        least = min(item["ratios"], key=item["ratios"].__getitem__)
        name = title((item["system"], item["backend"], item["threads"]))
        means = f"{item['geometric_mean']:.2f} | {item['geometric_mean_of_minima']:.2f}"
        means += f" | {item['geometric_mean_of_first']:.2f}"
        figures = f"{means} | {item['least']:.2f} ({least}) | {len(item['ratios'])}"
        lines.append(f"| {item['models']} | {name} | {figures} |")
    return lines if found else ["webinfer ran on none of the models that a rival ran."]


def _table(models: list[str], columns: list[Column], rows: dict[Any, Row], cell: Any) -> list[str]:
    lines = ["| model | " + " | ".join(map(title, columns)) + " |", "|---|" + "--:|" * len(columns)]
    for model in models:
        cells = [cell(rows[model, *column]) if (model, *column) in rows else "" for column in columns]
        lines.append(f"| {model} | " + " | ".join(cells) + " |")
    return lines


def _median_cell(row: Row) -> str:
    return "–" if row.get("error") else f"{row['median_ms']:.2f} ({row['min_ms']:.2f})"


def _gflops_cell(row: Row) -> str:
    share = f" ({100 * row['of_peak']:.0f} %)" if row.get("of_peak") else ""
    return f"{row['gflops']:.1f}{share}" if row.get("gflops") else "–"


def _number(row: Row, key: str) -> str:
    return f"{row[key]:.2f}" if row.get(key) else "–"


def _first_cell(row: Row) -> str:
    return "–" if row.get("error") else _sum_text(row)


def _sum_text(row: Row) -> str:
    parts = " + ".join(f"{row[key]:.0f}" for key in ("start_ms", "load_ms", "first_run_ms"))
    return f"{row['first_ms']:.0f} ({parts})"


def _bytes_cell(row: Row) -> str:
    if row.get("error") or not row.get("bytes"):
        return "–"
    return f"{row['bytes'] / 1000:.0f} · {(row.get('memory_bytes') or 0) / 1e6:.0f}"


def _difference_cell(row: Row) -> str:
    return "–" if row["max_abs_diff"] is None else f"{row['max_abs_diff']:.2g}"
