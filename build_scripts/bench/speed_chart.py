"""The chart of the README: how many times longer other runtimes take, as bars, drawn from the records.

`build tables` writes it, and says when it is behind. It is plain SVG: what lies in the checkout shall not need a
plotting package to be checked.
"""

from dataclasses import dataclass
from xml.sax.saxutils import escape

from build_scripts.bench.records import read
from build_scripts.errors import BuildError

# Heading, record, what the record calls the backend of the rivals, what was measured where.
GROUPS = (
    ("CPU, one thread", "2026-11-21-benchmark", "wasm 1 thr.", "AMD EPYC, Chromium 156, 2026-11-21"),
    ("CPU, two threads", "2026-11-21-benchmark", "wasm 2 thr.", "the same"),
    ("GPU", "2026-11-21-webgpu-on-an-nvidia-h200", "webgpu", "NVIDIA H200, result read back, 2026-11-21"),
)
RIVALS = (("LiteRT.js", "LiteRT.js"), ("ONNX Runtime Web", "ORT-web"), ("TensorFlow.js", "TF.js"))  # shown; recorded
SUMMARY = "Geometric mean of times"
WIDTH, LEFT, RIGHT, BAR, GAP, HEAD = 720, 168, 64, 20, 6, 44  # pixels
STYLE = """
    text { font: 14px system-ui, sans-serif; fill: #1b1f24 }
    .title { font-weight: 600; font-size: 16px } .quiet { fill: #5c6570; font-size: 13px }
    .ours { fill: #c2410c } .theirs { fill: #9aa4b1 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6e9ee } .quiet { fill: #9aa4b1 } .ours { fill: #fb923c } .theirs { fill: #5c6570 }
    }"""


@dataclass(frozen=True)
class Bars:
    """One group: its heading, what was measured where, and times over webinfer's by name."""

    heading: str
    where: str
    times: dict[str, float]


def groups() -> list[Bars]:
    """What the chart shows.

    Raises:  BuildError if a record lacks a row
    """
    return [Bars(heading, where, _times(record, backend)) for heading, record, backend, where in GROUPS]


def _times(record: str, backend: str) -> dict[str, float]:
    table = next((table for table in read(record).tables if table.title.startswith(SUMMARY)), None)
    if table is None:
        raise BuildError(f"the record {record!r} has no table {SUMMARY!r}")
    median = table.columns.index("of medians")
    found = {row[1]: float(row[median]) for row in table.rows if row[0] == "float"}
    missing = [f"{name} {backend}" for _, name in RIVALS if f"{name} {backend}" not in found]
    if missing:
        raise BuildError(f"the record {record!r} has no row for {', '.join(missing)}")
    return {shown: found[f"{name} {backend}"] for shown, name in RIVALS}


def table() -> str:
    """The rows of the records behind the chart, of float and of quantized models, as Markdown."""
    lines = ["| models | measured on | runtime | times as long | least | models counted |", "|---|---|---|---|---|---|"]
    for record in dict.fromkeys(record for _, record, _, _ in GROUPS):
        where = next(place for _, name, _, place in GROUPS if name == record)
        means = next(found for found in read(record).tables if found.title.startswith(SUMMARY))
        kind, rival, median, least, count = (
            means.columns.index(name) for name in ("models", "rival", "of medians", "least", "models counted")
        )
        for row in means.rows:
            kinds = row[kind].replace("quantised", "quantized")
            lines.append(f"| {kinds} | {where} | {row[rival]} | {row[median]} | {row[least]} | {row[count]} |")
    return "\n".join(lines)


def speed_chart() -> str:
    """The SVG. Bars start at 0 and share one axis, so that lengths can be compared."""
    rows = groups()
    unit = (WIDTH - LEFT - RIGHT) / max(max(bars.times.values()) for bars in rows)
    y, parts = 34, list[str]()
    told = "; ".join(f"{b.heading}: " + ", ".join(f"{n} {t:.1f}" for n, t in b.times.items()) for b in rows)
    for bars in rows:
        parts.append(f'<text class="title" x="0" y="{y + 16}">{escape(bars.heading)}</text>')
        where = f'<text class="quiet" x="{LEFT}" y="{y + 16}">{escape(bars.where)}</text>'
        parts.append(where)
        y += 30
        for name, times in {"webinfer": 1.0, **bars.times}.items():
            kind = "ours" if name == "webinfer" else "theirs"
            width = round(times * unit, 1)
            parts += [
                f'<text x="{LEFT - 12}" y="{y + 15}" text-anchor="end">{escape(name)}</text>',
                f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{width}" height="{BAR}" rx="3"/>',
                f'<text x="{LEFT + width + 8}" y="{y + 15}">{times:.1f}</text>',
            ]
            y += BAR + GAP
        y += HEAD - BAR
    shown = "\n  ".join(parts)
    size = f'viewBox="0 0 {WIDTH} {y - 10}" width="{WIDTH}" height="{y - 10}"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">
  <title>Time of one inference, webinfer = 1; shorter is faster. {escape(told)}.</title>
  <style>{STYLE}
  </style>
  <text class="title" x="0" y="16">Time of one inference, webinfer = 1 (shorter is faster)</text>
  {shown}
</svg>
"""
