"""The benchmark as an SVG: one line a model, one mark a system, times on a logarithmic axis."""

import math
from html import escape
from typing import Any

COLOURS = {  # on a light and on a dark ground
    "webinfer": ("#c2410c", "#fb923c"),
    "litertjs": ("#1d4ed8", "#60a5fa"),
    "ortweb": ("#047857", "#34d399"),
    "tfjs": ("#7c3aed", "#c4b5fd"),
    "native": ("#6b7280", "#9ca3af"),
}
TITLES = {"litertjs": "LiteRT.js", "ortweb": "ONNX Runtime Web", "tfjs": "TF.js", "native": "native LiteRT"}
LABELS, PANEL, LINE, TOP, GAP = 268, 430, 26, 96, 36  # pixels
NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:var(--ink)}.quiet{fill:var(--quiet)}"
    ".title{font-size:16px;font-weight:600}.ground{fill:var(--ground)}.grid{stroke:var(--grid)}.row{stroke:var(--row)}"
)
GROUNDS = {
    "light": {"ink": "#1b1f24", "quiet": "#5c6570", "ground": "#ffffff", "grid": "#e3e8ee", "row": "#d3dae2"},
    "dark": {"ink": "#e6e9ee", "quiet": "#9aa4b1", "ground": "#14181d", "grid": "#262d36", "row": "#39424d"},
}


def _style() -> str:
    schemes = []
    for i, (scheme, colours) in enumerate(GROUNDS.items()):
        every = {**colours, **{system: pair[i] for system, pair in COLOURS.items()}}
        rule = f"svg{{{''.join(f'--{name}:{value};' for name, value in every.items())}}}"
        schemes.append(rule if scheme == "light" else f"@media (prefers-color-scheme:{scheme}){{{rule}}}")
    return "".join(schemes) + STYLE


def chart(report: dict[str, Any]) -> str:
    """The picture of a report."""
    rows = [row for row in report["rows"] if row["median_ms"]]
    models = list(dict.fromkeys(row["model"] for row in rows))
    panels = sorted({row["threads"] for row in rows})
    if not rows:
        return f'<svg {NAMESPACE} width="300" height="40"><text x="8" y="24">nothing ran</text></svg>\n'
    low = 10 ** math.floor(math.log10(min(row["median_ms"] for row in rows)))
    high = 10 ** math.ceil(math.log10(max(row["median_ms"] for row in rows)) + 1e-9)
    width, height = LABELS + len(panels) * (PANEL + GAP), TOP + LINE * len(models) + 40
    where = f"{report['machine']}; {report['browser']}; {report['date'][:10]}"
    parts = [
        f'<svg {NAMESPACE} viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" ',
        f'aria-label="Median inference time of each system and model"><style>{_style()}</style>',
        f'<rect class="ground" width="{width}" height="{height}"/>',
        '<text class="title" x="16" y="26">Median time of one inference, milliseconds</text>',
        f'<text class="quiet" x="16" y="44">{escape(where)}</text>',
        *_legend(rows),
    ]
    for i, model in enumerate(models):
        y = TOP + LINE * i + LINE / 2
        parts.append(f'<text x="{LABELS - 12}" y="{y + 4}" text-anchor="end">{escape(model)}</text>')
    for i, threads in enumerate(panels):
        shown = [row for row in rows if row["threads"] == threads]
        parts += _panel(shown, models, LABELS + i * (PANEL + GAP), low, high, threads)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(rows: list[dict[str, Any]]) -> list[str]:
    parts, x = [], 16
    for system, backend in dict.fromkeys((row["system"], row["backend"]) for row in rows):
        name = f"{TITLES.get(system, system)} ({backend})"
        parts.append(_mark(system, backend, x + 5, 60))
        parts.append(f'<text x="{x + 16}" y="64">{escape(name)}</text>')
        x += 40 + round(7.2 * len(name))
    return parts


def _panel(
    rows: list[dict[str, Any]], models: list[str], left: int, low: float, high: float, threads: int
) -> list[str]:
    """Grid, axis and marks of one thread count."""
    bottom = TOP + LINE * len(models)
    span = math.log10(high / low)

    def place(ms: float) -> float:
        return left + PANEL * math.log10(ms / low) / span

    heading = f"{threads} thread{'s' if threads > 1 else ''}" if threads else "GPU"
    parts = [f'<text x="{left}" y="{TOP - 8}">{heading}</text>']
    for exponent in range(round(math.log10(low)), round(math.log10(high)) + 1):
        x, number = place(10.0**exponent), f"{10.0**exponent:g}"
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(f'<text class="quiet" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{number}</text>')
    for i, model in enumerate(models):
        y = TOP + LINE * i + LINE / 2
        parts.append(f'<line class="row" x1="{left}" x2="{left + PANEL}" y1="{y}" y2="{y}" stroke-dasharray="1 3"/>')
        for row in sorted((r for r in rows if r["model"] == model), key=lambda r: r["system"] == "webinfer"):
            mark = _mark(row["system"], row["backend"], place(row["median_ms"]), y)
            parts.append(f"<g><title>{escape(_tip(row))}</title>{mark}</g>")
    return parts


def _tip(row: dict[str, Any]) -> str:
    system = TITLES.get(row["system"], row["system"])
    return f"{row['model']}: {system} {row['backend']} {row['median_ms']:.2f} ms (min {row['min_ms']:.2f})"


def _mark(system: str, backend: str, x: float, y: float) -> str:
    """A shape and a colour, so that neither alone has to be told apart."""
    colour = f"var(--{system if system in COLOURS else 'native'})"
    solid = f'style="fill:{colour}"'
    if system == "webinfer":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" {solid}/>'
    if system == "native":
        return f'<path d="M{x:.1f} {y - 7:.1f}v14" style="stroke:{colour};stroke-width:3"/>'
    if system == "litertjs":
        return f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" {solid}/>'
    if system == "ortweb":
        return f'<path d="M{x:.1f} {y - 6:.1f}l6 11h-12z" {solid}/>'
    paint = f'style="fill:none;stroke:{colour};stroke-width:1.5"' if backend == "cpu" else solid
    return f'<path d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z" {paint}/>'
