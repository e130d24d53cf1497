"""`measure interop`: a custom operator beside built-in ones, through a shared GPU buffer and through host memory."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from build_scripts.bench.page_reports import add_options, left_for_later, posted, rows_of, written
from build_scripts.bench.rivals import rivals_step
from build_scripts.errors import BuildError
from build_scripts.paths import BENCH_OUTPUT, ENGINE
from build_scripts.setup.sequence import set_up
from build_scripts.steps import run_steps

WEBINFER = ("custom", "host", "wasm", "shared", "handed", "builtin")
WEBNN = (
    "custom",
    "host",
    "shared",
    "builtin",
    "chained_custom",
    "chained_host",
    "chained_shared",
    "chained_builtin",
    "unread",
)
TFJS = ("fused", "builtin", "host", "chained", "unread")
SILENCE_S = 600  # longest wait for the next report of the page
PUBLISHED_TFJS_MS = 5.8  # TF.js 4.22 on an NVIDIA H200: conv2d + add + relu with readback
Row = dict[str, Any]


def run(argv: list[str]) -> int:
    """0 when the page came to its end and every test gave the reference's result."""
    options = parse(argv)
    if options.report:
        return report(posted(Path(options.report).read_text()), options.json)
    set_up()
    run_steps([rivals_step()])
    site = options.static or BENCH_OUTPUT / "interop_site"
    pack(site, options.size, options.channels, options.runs)
    if options.static:
        return left_for_later(site, "interop")
    return report(rows_of(site, "interop", SILENCE_S), options.json)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure interop", description=__doc__)
    parser.add_argument("--size", type=int, default=100, help="height and width of the image (default 100)")
    parser.add_argument("--channels", type=int, default=100, help="channels in and out, a multiple of 4 (default 100)")
    parser.add_argument("--runs", type=int, default=60, help="runs of each test (default 60)")
    add_options(parser, "interop")
    options = parser.parse_args(argv)
    if options.size < 1 or options.channels < 4 or options.channels % 4 or options.runs < 1:
        raise BuildError("--size and --runs start at 1, --channels is a multiple of 4")
    return options


def pack(site: Path, size: int, channels: int, runs: int) -> None:
    """Writes the page, the engine, TF.js where npm brought it, and the data into an empty folder."""
    if str(ENGINE.parent) not in sys.path:
        sys.path.insert(0, str(ENGINE.parent))  # the engine of this checkout
    from build_scripts.bench.rivals import MODULES, RIVALS, copy_script
    from build_scripts.bench.site import write_pages

    write_pages(site, ("models", "images", "snapshot"))
    files = {target: source for target, source in RIVALS["tfjs"].items() if "wasm" not in target}
    tfjs = all((MODULES / source).is_file() for source in files.values())
    for target, source in files.items() if tfjs else ():
        copy_script(MODULES / source, site / "rivals" / "tfjs" / target)
    shapes = write_data(site / "data" / "interop", size, channels)
    systems = {"webinfer": WEBINFER, "webnn": WEBNN, **({"tfjs": TFJS} if tfjs else {})}
    (site / "interop.json").write_text(json.dumps({"shapes": shapes, "runs": runs, "systems": systems}))


def write_data(folder: Path, size: int, channels: int) -> dict[str, list[int]]:
    """Writes seeded x, w, b, and what the reference makes of them: y of one layer, y2 of two; their shapes."""
    import numpy as np

    import webinfer

    source = np.random.default_rng(0)
    x = source.uniform(-1, 1, (1, size, size, channels)).astype("<f4")
    w = source.uniform(-0.1, 0.1, (channels, 3, 3, channels)).astype("<f4")
    b = source.uniform(-1, 1, channels).astype("<f4")
    g = webinfer.GraphBuilder("interop")
    y = g.node("conv2d", g.input("x", x.shape), w, b, pads=(1, 1, 1, 1), activation="relu")
    g.output(y, "y")

    async def compute() -> tuple[Any, Any]:
        with await webinfer.load(g, backend="reference") as session:
            y = (await session.run(x))["y"].numpy()
            return y, (await session.run(y))["y"].numpy()

    once, twice = asyncio.run(compute())
    arrays = {"x": x, "w": w, "b": b, "y": once, "y2": twice}
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        (folder / f"{name}.bin").write_bytes(array.tobytes())
    return {name: list(array.shape) for name, array in arrays.items()}


def report(found: Sequence[Sequence[Any]], target: Path) -> int:
    """Writes JSON and a table; 0 when every test of ours gave the reference's result."""
    rows: list[Row] = [value for key, value in found if key == "row"]
    whole = written(found, target, table(rows), ratios=ratios(rows))
    good = bool(rows) and whole and not any(row.get("error") for row in rows if row["system"] != "tfjs")
    return 0 if good else 1


def ratios(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """For each way x comes: what sharing saves, and what is gained over TF.js."""
    found: dict[str, dict[str, float]] = {}
    for feed in dict.fromkeys(row["feed"] for row in rows):
        times = {f"{r['system']} {r['test']}": r.get("median_ms") for r in rows if r["feed"] == feed}
        builtin = times.get("webinfer builtin")
        pairs = {
            "host / shared": (times.get("webinfer host"), times.get("webinfer shared")),
            "host / handed": (times.get("webinfer host"), times.get("webinfer handed")),
            "custom / shared": (times.get("webinfer custom"), times.get("webinfer shared")),
            "TF.js fused / builtin": (times.get("tfjs fused"), builtin),
            "TF.js / builtin": (times.get("tfjs builtin"), builtin),
            "WebNN 2 / 3": (times.get("webnn host"), times.get("webnn shared")),
            "WebNN 2 / 3, two layers": (times.get("webnn chained_host"), times.get("webnn chained_shared")),
            "TF.js fused / WebNN 4": (times.get("tfjs fused"), times.get("webnn builtin")),
            "TF.js / WebNN 4": (times.get("tfjs builtin"), times.get("webnn builtin")),
            "TF.js / WebNN 4, two layers": (times.get("tfjs chained"), times.get("webnn chained_builtin")),
            "TF.js / WebNN 4, nothing read back": (times.get("tfjs unread"), times.get("webnn unread")),
            f"TF.js's published {PUBLISHED_TFJS_MS} ms / builtin": (PUBLISHED_TFJS_MS, builtin),
        }
        found[feed] = {name: a / b for name, (a, b) in pairs.items() if a and b}
    return found


def table(rows: Sequence[Row]) -> str:
    """Markdown: a line a test, then the ratios."""
    lines = [
        "| system | test | x | median ms | least ms | runs | largest difference | steps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        steps = "<br>".join(row.get("plan") or [])
        if row.get("error"):
            figures = [f"failed: {' '.join(row['error'].split())[:160]}", "", "", ""]
        else:
            median, least = f"{row['median_ms']:.3f}", f"{row['min_ms']:.3f}"
            figures = [median, least, str(row["samples"]), f"{row['max_abs_diff']:.1e}"]
        lines.append("| " + " | ".join([row["system"], row["test"], row["feed"], *figures, steps]) + " |")
    for feed, named in ratios(rows).items():
        lines += ["", f"x {feed}: " + "; ".join(f"{name} {value:.2f}" for name, value in named.items())]
    return "\n".join(lines) + "\n"
