"""The benchmark as an SVG: one line a model, one mark a system, times on a logarithmic axis.

The picture is described in the Vega-Lite language and drawn by vl-convert, which is one package without
dependencies. A style sheet in the SVG exchanges the colours for readers who prefer a dark page.
"""

from typing import Any

BAR = "M-0.16,-1.1L0.16,-1.1L0.16,1.1L-0.16,1.1Z"
# Name for people, shape, colour on a light and on a dark ground: neither shape nor colour alone has to be told apart.
SYSTEMS = {
    ("webinfer", ""): ("webinfer", "circle", "#c2410c", "#fb923c"),
    ("auto", ""): ("webinfer, auto", "triangle-right", "#c2420d", "#fb923d"),
    ("player", ""): ("player", "triangle-down", "#b45309", "#fbbf24"),
    ("litertjs", ""): ("LiteRT.js", "square", "#1d4ed8", "#60a5fa"),
    ("ortweb", ""): ("ONNX Runtime Web", "triangle-up", "#047857", "#34d399"),
    ("tfjs", ""): ("TF.js", "diamond", "#7c3aed", "#c4b5fd"),
    ("tfjs", "cpu"): ("TF.js in plain JavaScript", "cross", "#7c3aec", "#c4b5fc"),
    ("native", ""): ("native LiteRT", BAR, "#6b7280", "#9ca3af"),
}
INK, QUIET, GROUND, GRID = "#1b1f24", "#5c6570", "#ffffff", "#e3e8ee"
ON_DARK = {INK: "#e6e9ee", QUIET: "#9aa4b1", GROUND: "#14181d", GRID: "#262d36"}


def chart(report: dict[str, Any]) -> str:
    """The picture of a report."""
    import vl_convert  # in a dependency group of its own, which only `bench` installs

    return with_dark_colours(str(vl_convert.vegalite_to_svg(specification(report))))


def with_dark_colours(svg: str) -> str:
    """The picture with a style sheet that replaces every colour where the page is dark."""
    colours = {**ON_DARK, **{light: dark for _, _, light, dark in SYSTEMS.values()}}
    rules = [
        f'[{attribute}="{light}" i]{{{attribute}:{dark}}}'
        for light, dark in colours.items()
        for attribute in ("fill", "stroke")
    ]
    head, end, body = svg.partition(">")
    return f"{head}{end}<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>{body}"


def specification(report: dict[str, Any]) -> dict[str, Any]:
    """The report's picture in the Vega-Lite language: a column for each number of threads."""
    values = [_mark(row) for row in report["rows"] if row["median_ms"]]
    styles = {name: (shape, colour) for name, shape, colour, _ in SYSTEMS.values()}
    names = list(dict.fromkeys(value["system"] for value in values))
    values.sort(key=lambda value: value["system"] == "webinfer")  # drawn last, so that no mark hides it
    where = "; ".join(part for part in (report["machine"], report["browser"], report["date"][:10]) if part)
    title = "Median time of one inference, milliseconds" if values else "Nothing ran"
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": GROUND,
        "padding": 16,
        "title": {"text": title, "subtitle": where, "anchor": "start", "offset": 12},
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
        "width": 430,
        "height": {"step": 26},
        "encoding": {
            "x": {"field": "ms", "type": "quantitative", "title": None, "scale": {"type": "log"}},
            "y": {"field": "model", "type": "nominal", "title": None, "sort": None},
            "column": {"field": "threads", "type": "nominal", "title": None, "header": {"labelAnchor": "start"}},
            "color": {
                "field": "system", "scale": {"domain": names, "range": [styles[name][1] for name in names]},
                "legend": {"orient": "top", "title": None},
            },
            "shape": {"field": "system", "scale": {"domain": names, "range": [styles[name][0] for name in names]}},
            "description": {"field": "tip"},
        },
        "config": {
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "title": {"color": INK, "subtitleColor": QUIET, "fontSize": 16, "subtitleFontSize": 12},
            "axis": {"domain": False, "gridColor": GRID, "tickColor": GRID, "labelColor": QUIET, "labelFontSize": 12},
            "axisX": {"format": "~g"},
            "axisY": {"labelColor": INK, "labelLimit": 260, "grid": True, "gridDash": [1, 3], "ticks": False},
            "legend": {"labelColor": INK, "labelFontSize": 12, "symbolSize": 90},
            "header": {"labelColor": INK, "labelFontSize": 12},
        },
    }  # fmt: skip


def _mark(row: dict[str, Any]) -> dict[str, Any]:
    """One mark; `tip` is what a screen reader says of it."""
    system, backend, threads = row["system"], row["backend"], row["threads"]
    name = (SYSTEMS.get((system, backend)) or SYSTEMS[system, ""])[0]
    panel = f"{threads} thread{'s' * (threads > 1)}" if threads else "GPU"
    tip = f"{row['model']}: {name} {backend} {row['median_ms']:.2f} ms (min {row['min_ms']:.2f})"
    return {"model": row["model"], "system": name, "threads": panel, "ms": row["median_ms"], "tip": tip}
