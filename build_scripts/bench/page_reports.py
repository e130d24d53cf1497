"""What the benchmarks' pages say: as they say it in headless Chromium, or from a log of it."""

import argparse
import json
import queue
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from build_scripts.bench.server import serving
from build_scripts.files import write_json
from build_scripts.paths import BENCH_OUTPUT, ROOT
from build_scripts.setup.chromium import driver, launch_options

Report = list[Any]  # [key, value]
THREADS = (1, 2)  # of wasm, unless others are asked for


def said(page: str, reports: "queue.Queue[Report]", silence_s: float, *, webgpu: bool = True) -> Iterator[Report]:
    """The reports of a page in a browser of its own; the last one is ["done", whether all went well].

    What breaks the page, or its silence, is ["failed", why] before that.
    """
    with driver() as playwright:
        browser = playwright.chromium.launch(**launch_options(webgpu=webgpu))
        window = browser.new_page()
        window.on("pageerror", lambda error: _fail(reports, str(error)))
        window.goto(page)
        heard, key = time.monotonic(), ""
        while key != "done":
            try:
                key, value = reports.get_nowait()
            except queue.Empty:
                if time.monotonic() - heard > silence_s:
                    _fail(reports, f"the page was silent for {silence_s:.0f} s")
                window.wait_for_timeout(200)
                continue
            heard = time.monotonic()
            yield [key, value]
        browser.close()


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """Where the measurement goes: into a browser here, or into a site for another machine, whose log comes back."""
    parser.add_argument("--static", type=Path, help="write a site that needs no server of ours, and measure nothing")
    parser.add_argument("--report", type=Path, help="make JSON and table from lines that a static site posted")
    target = BENCH_OUTPUT / f"{name}.json"
    parser.add_argument("--json", type=Path, default=target, help="where the JSON goes, the table beside")


def add_turns(parser: argparse.ArgumentParser) -> None:
    """Where webinfer's turns run, and how many rounds there are."""
    parser.add_argument("--backend", action="append", choices=("wasm", "webgpu"), help="may be repeated (default wasm)")
    parser.add_argument("--threads", action="append", type=int, help="of wasm; may be repeated (default 1 and 2)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds in which every system has its turn (default 5)")


def own_entries(backend: str, threads: Sequence[int] | None) -> list[dict[str, Any]]:
    """What a page is told of webinfer's turns on a backend: one a number of threads; on webgpu one, of 0."""
    counts = (threads or THREADS) if backend == "wasm" else [0]
    return [{"system": "webinfer", "backend": backend, "threads": count} for count in counts]


def left_for_later(site: Path, name: str) -> int:
    """0; says what to do with a site that was made for another machine."""
    total = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print(f"{site}: {total / 1e6:.1f} MB; open {name}.html there and keep the lines that it posts to /log, then")
    print(f"python3 -m build_scripts measure {name} --report LINES makes JSON and the table of them")
    return 0


def rows_of(site: Path, name: str, silence_s: float, *, unsafe_eval: bool = False) -> list[Report]:
    """What the page of this name in a folder posts, in headless Chromium; its rivals may need `unsafe_eval`.

    Progress that the page reports as "doing" is printed at once.
    """
    found = []
    with serving(site, None, unsafe_eval=unsafe_eval) as (address, reports):
        for key, value in said(f"{address}/{name}.html", reports, silence_s):
            if key == "doing":
                print(f"  {value}", flush=True)
            found.append([key, value])
    return found


def _fail(reports: "queue.Queue[Report]", why: str) -> None:
    reports.put(["failed", why])
    reports.put(["done", False])


def posted(text: str) -> list[Report]:
    """The reports in a log, which holds the browser's own lines too."""
    found = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, list) and len(value) == 2:
            found.append(value)
    return found


def written(found: Sequence[Sequence[Any]], target: Path, text: str, **more: Any) -> bool:
    """Whether nothing failed; writes a page's reports and `more` as JSON, the table beside it, and prints the table."""
    about: dict[str, Any] = next((value for key, value in found if key == "about"), {})
    failures = [str(value) for key, value in found if key == "failed"]
    rows = [value for key, value in found if key == "row"]
    write_json(target, {"about": about, "rows": rows, **more, "failures": failures})
    target.with_suffix(".md").write_text(text)
    print(text)
    for failure in failures:
        print(f"FAILED: {failure}")
    shown = target.relative_to(ROOT) if target.is_relative_to(ROOT) else target
    print(f"written: {shown} and the table beside it")
    return not failures
